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

extension Rows {
  /// The messages of a statement that reads `messageColumns`; shares are completed.
  func messages() throws(PostgresFailure) -> [StoredMessage] {
    var found: [StoredMessage] = []
    found.reserveCapacity(count)
    var shared: SharedTail?
    for row in 0..<count {
      var message = StoredMessage(
        number: MessageNumber(column: int(row, 1)), device: DeviceNumber(int(row, 0)),
        sender: SenderID(int(row, 3)), app: text(row, 4), key: try key(row, 5, table: "message"),
        collapse: optionalText(row, 6), expires: WallTime(ms: int(row, 2)), highPriority: bool(row, 7),
        live: bool(row, 8), body: blob(row, 9), receipt: blob(row, 10))
      // A share whose job or registration is gone keeps what it has.
      if let job = optionalInt(row, 11), !isNull(row, 12), !isNull(row, 15),
        let audience = FanoutJob.Audience(text: text(row, 14))
      {
        let number = MessageNumber(column: job)
        if shared?.job != number { shared = SharedTail(job: number, bytes: blob(row, 15)) }
        message.shared = shared
        message.body = SharedTail.head(
          audience, sender: SenderID(int(row, 13)), key: message.key, app: message.app, token: text(row, 12))
      }
      found.append(message)
    }
    return found
  }

  /// A registration of a statement that reads `registrationColumns`.
  func registration(_ row: Int) throws(PostgresFailure) -> Registration {
    guard let platform = Platform(rawValue: text(row, 4)) else {
      throw .corrupt("table registration, device \(int(row, 1)): unknown platform")
    }
    let state: Registration.State
    switch int(row, 6) {
    case 0: state = .active
    case 1: state = .alias(of: text(row, 7))
    case 2: state = .unregistered
    default: throw .corrupt("table registration, device \(int(row, 1)): unknown state")
    }
    return Registration(
      token: text(row, 0), device: DeviceNumber(int(row, 1)), sender: SenderID(int(row, 2)),
      app: text(row, 3), platform: platform, user: optionalText(row, 5), state: state,
      registeredAt: WallTime(ms: int(row, 8)), lastSeen: WallTime(ms: int(row, 9)))
  }

  func registrations() throws(PostgresFailure) -> [Registration] {
    var found: [Registration] = []
    for row in 0..<count { found.append(try registration(row)) }
    return found
  }

  func numbered() throws(PostgresFailure) -> [NumberedRegistration] {
    var found: [NumberedRegistration] = []
    for row in 0..<count {
      found.append(
        NumberedRegistration(
          number: RegistrationNumber(int(row, 10)), registration: try registration(row)))
    }
    return found
  }

  /// A fan-out of a statement that reads `progressColumns`.
  func progress(_ row: Int) throws(PostgresFailure) -> FanoutProgress {
    let number = MessageNumber(column: int(row, 0))
    guard let audience = FanoutJob.Audience(text: text(row, 3)) else {
      throw .corrupt("table fanout, number \(number.value): audience")
    }
    var counts = FanoutCounts()
    counts.matched = Int(int(row, 8))
    counts.delivered = Int(int(row, 9))
    counts.expired = Int(int(row, 10))
    counts.collapsed = Int(int(row, 11))
    counts.droppedOverflow = Int(int(row, 12))
    counts.droppedUnregistered = Int(int(row, 13))
    counts.droppedOffline = Int(int(row, 14))
    let place = int(row, 6)
    return FanoutProgress(
      number: number, key: try key(row, 1, table: "fanout"), sender: SenderID(int(row, 2)),
      audience: audience, begun: WallTime(ms: int(row, 4)), expires: WallTime(ms: int(row, 5)),
      cursor: place == 0 ? nil : RegistrationNumber(place), isDone: bool(row, 7), counts: counts)
  }

  func progresses() throws(PostgresFailure) -> [FanoutProgress] {
    var found: [FanoutProgress] = []
    for row in 0..<count { found.append(try progress(row)) }
    return found
  }

  /// A group without its members, and its number in the tables.
  func group(_ row: Int) -> (id: Int64, group: DeviceGroup) {
    (
      int(row, 0),
      DeviceGroup(
        key: text(row, 1), sender: SenderID(int(row, 2)), name: text(row, 3),
        createdAt: WallTime(ms: int(row, 4)), members: [])
    )
  }
}

/// A bound on a page, as `LIMIT` takes it.
func pageMax(_ max: Int) -> Int64 { Int64(Swift.max(0, Swift.min(max, 1_000_000))) }
