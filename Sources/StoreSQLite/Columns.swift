import Bytes
import PushModel
import Seams
import Stores

// How values of the port stand in columns, and the rows that more than one statement reads.

extension MessageNumber {
  /// 63 bits, so the order of numbers is the order of the column.
  var column: Int64 { Int64(truncatingIfNeeded: value) }
  init(column: Int64) { self.init(UInt64(truncatingIfNeeded: column)) }
}

extension Statement {
  /// 16 bytes, most significant first.
  ///
  /// Stays in place while `body` runs.
  func withKey<Value>(_ index: Int32, _ key: MessageKey, _ body: () -> Value) -> Value {
    withUnsafeBytes(of: (key.hash.high.bigEndian, key.hash.low.bigEndian)) { bytes in
      bindInPlace(index, blob: bytes)
      return body()
    }
  }

  func withText<Value>(_ index: Int32, _ text: String?, _ body: () -> Value) -> Value {
    guard var text else {
      bindInPlace(index, text: nil)
      return body()
    }
    return text.withUTF8 { utf8 in
      bindInPlace(index, text: utf8)
      return body()
    }
  }

  func withBlob<Value>(_ index: Int32, _ bytes: [UInt8], _ body: () -> Value) -> Value {
    bytes.withUnsafeBytes { bytes in
      bindInPlace(index, blob: bytes)
      return body()
    }
  }

  /// - Parameter table: Named in the failure.
  func key(_ column: Int32, table: StaticString) throws(SQLiteFailure) -> MessageKey {
    let key: MessageKey? = withBlob(column) { bytes in
      guard bytes.count == 16 else { return nil }
      return MessageKey(
        Hash128(
          high: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
          low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))))
    }
    guard let key else { throw .corrupt("table \(table): a key that is not 16 bytes") }
    return key
  }
}

/// The columns of a message that is not a share, in the order in which they are bound.
let plainMessageColumns = """
  device, number, expires, sender, app, key, collapse, high, live, body, receipt
  """
/// The columns of a whole message row, in the order in which ``message(_:incarnation:)`` reads them.
let messageColumns = plainMessageColumns + ", share, job"

extension Statement {
  /// A row; the body of a share is left empty, see ``ShareReader``.
  func message(incarnation: Int64) throws(SQLiteFailure) -> StoredMessage {
    StoredMessage(
      number: MessageNumber(column: int(1)), device: DeviceNumber(int(0)), sender: SenderID(int(3)),
      app: text(4), key: try key(5, table: "message"), collapse: optionalText(6),
      expires: WallTime(ms: int(2)), highPriority: int(7) != 0, live: int(8) == incarnation,
      body: blob(9), receipt: blob(10))
  }

  /// Reads `number, sender, key, share, job` of a row that is going away.
  func ended(
    device: DeviceNumber, as state: MessageState
  ) throws(SQLiteFailure) -> WriteOutcome.Ended {
    WriteOutcome.Ended(
      number: MessageNumber(column: int(0)), device: device, sender: SenderID(int(1)),
      key: try key(2, table: "message"), state: state, job: job(share: 3, job: 4, number: int(0)))
  }
}

extension Statement {
  /// The fan-out that a row is a share of.
  func job(share: Int32, job: Int32, number: Int64) -> MessageNumber? {
    guard !isNull(share) else { return nil }
    let job = int(job)
    return MessageNumber(column: job == 0 ? number : job)
  }
}

/// The columns of a registration `r` of device `d`, in the order in which ``registration()`` reads them.
let registrationColumns = """
  r.token, r.device, r.sender, r.app, r.platform, r.user, r.state, r.alias_of, r.registered, d.seen
  """

extension Statement {
  func registration() throws(SQLiteFailure) -> Registration {
    guard let platform = Platform(rawValue: text(4)) else {
      throw .corrupt("table registration, device \(int(1)): unknown platform")
    }
    let state: Registration.State
    switch int(6) {
    case 0: state = .active
    case 1: state = .alias(of: text(7))
    case 2: state = .unregistered
    default: throw .corrupt("table registration, device \(int(1)): unknown state")
    }
    return Registration(
      token: text(0), device: DeviceNumber(int(1)), sender: SenderID(int(2)), app: text(3),
      platform: platform, user: optionalText(5), state: state, registeredAt: WallTime(ms: int(8)),
      lastSeen: WallTime(ms: int(9)))
  }
}
