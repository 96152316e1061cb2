package import Bytes
import COpenSSL

/// The records of an open TLS 1.3 connection, after OpenSSL has made the handshake: application data, alerts and
/// KeyUpdate (RFC 8446 §4.6.3, 5 and 6).
///
/// Stands in for OpenSSL's own so that an idle connection costs two keys and no 13.6 KB, and a record no more than its
/// AEAD. Belongs to one thread at a time. Between calls it holds bytes only of a record that has not come whole.
package final class RecordLayer {
  /// How the peer's side has ended.
  package enum Ending {
    case closed
    case failed(TLSFault)
  }

  /// Most bytes of content in a record (RFC 8446 §5.1).
  package static let contentBytesMax = RecordCipher.contentBytesMax
  /// Records in a row without application data that a peer may send: each costs work and brings nothing.
  static let idleRecordsMax = 32

  private var sealing: RecordCipher
  private var opening: RecordCipher
  private let sealedMax: UInt64?
  private let contentMax: Int
  private let takesTickets: Bool
  private var partial: OutBuffer?
  /// A message of the handshake protocol that has not come whole; a KeyUpdate has 5 bytes.
  private var message: [UInt8] = []
  private var idleRecords = 0
  private var hasClosed = false

  /// Takes a connection over.
  ///
  /// - Parameters:
  ///   - sent: Records that were sent with the present key.
  ///   - received: Records that came with the present key.
  ///   - contentMax: Most bytes of content in a record that is sent; a peer may have asked for fewer than usual (RFC 6066 §4).
  ///   - takesTickets: Whether the peer may send tickets, which are passed over: a client's layer.
  ///   - sealedMax: Records after which a new key is used; nil for the suite's bound.
  /// - Returns: nil when memory is out or the secrets do not fit the suite.
  package init?(
    sending: TrafficSecret, sent: UInt64, receiving: TrafficSecret, received: UInt64 = 0,
    contentMax: Int = RecordLayer.contentBytesMax, takesTickets: Bool = false, sealedMax: UInt64? = nil
  ) {
    guard let sealing = RecordCipher.make(sending, isSealing: true, sequence: sent),
      let opening = RecordCipher.make(receiving, isSealing: false, sequence: received)
    else { return nil }
    self.sealing = sealing
    self.opening = opening
    self.sealedMax = sealedMax
    self.contentMax = contentMax
    self.takesTickets = takesTickets
  }

  deinit {
    sealing.eraseSecret()
    opening.eraseSecret()
  }

  // MARK: Sending

  /// Appends application data as records to `output`.
  ///
  /// - Returns: Whether all of it was taken; false leaves nothing of the rest to be sent.
  package func send(_ plain: UnsafeRawBufferPointer, into output: OutBuffer) -> Bool {
    var rest = plain[...]
    while !rest.isEmpty {
      if sealing.isWorn(after: sealedMax), !updateKeys(into: output) { return false }
      let piece = rest.prefix(contentMax)
      guard sealing.seal(.application, UnsafeRawBufferPointer(rebasing: piece), into: output) else {
        return false
      }
      rest = rest.dropFirst(piece.count)
    }
    return true
  }

  /// Says that nothing more will be sent (close_notify).
  package func closeNotify(into output: OutBuffer) {
    hasClosed = true
    alert(isFatal: false, SSL3_AD_CLOSE_NOTIFY, into: output)
  }

  private func alert(isFatal: Bool, _ description: CInt, into output: OutBuffer) {
    let bytes: [UInt8] = [isFatal ? 2 : 1, UInt8(truncatingIfNeeded: description)]
    _ = bytes.withUnsafeBytes { sealing.seal(.alert, $0, into: output) }
  }

  /// Tells the peer that the next record has a new key.
  private func updateKeys(into output: OutBuffer) -> Bool {
    let message: [UInt8] = [UInt8(SSL3_MT_KEY_UPDATE), 0, 0, 1, UInt8(SSL_KEY_UPDATE_NOT_REQUESTED)]
    return message.withUnsafeBytes { sealing.seal(.handshake, $0, into: output) } && sealing.update()
  }

  // MARK: Receiving

  /// Takes bytes of the peer, all of them unless it returns an ending.
  ///
  /// - Parameters:
  ///   - scratch: Its output gets what is to be answered: an alert, a KeyUpdate.
  ///   - sink: Called with plaintext in order, good until it returns. May call `send`.
  /// - Returns: nil while the peer may send more.
  package func receive(
    _ bytes: UnsafeRawBufferPointer, _ scratch: TLSScratch, sink: (UnsafeRawBufferPointer) -> Void
  ) -> Ending? {
    var inflow = Inflow(room: scratch.plaintext)
    var ending: Ending?
    do throws(RecordFault) {
      ending = try readRecords(of: bytes, &inflow, scratch.output, sink)
    } catch {
      ending = .failed(.corrupted(error.words))
      ERR_clear_error()
      alert(isFatal: true, error.alert, into: scratch.output)
    }
    inflow.empty(into: sink)
    return ending
  }

  private func readRecords(
    of bytes: UnsafeRawBufferPointer, _ inflow: inout Inflow, _ output: OutBuffer,
    _ sink: (UnsafeRawBufferPointer) -> Void
  ) throws(RecordFault) -> Ending? {
    var rest = bytes[...]
    while !rest.isEmpty || partial != nil {
      if let partial {
        guard try complete(partial, from: &rest) else { return nil }
        self.partial = nil
        if let ending = try read(partial.bytes, &inflow, output, sink) { return ending }
      } else if let count = try Self.recordBytes(rest), count <= rest.count {
        let record = UnsafeRawBufferPointer(rebasing: rest.prefix(count))
        rest = rest.dropFirst(count)
        if let ending = try read(record, &inflow, output, sink) { return ending }
      } else {
        partial = OutBuffer()
      }
    }
    return nil
  }

  /// Bytes of a record with its header; nil while its header has not come whole.
  private static func recordBytes(_ start: Slice<UnsafeRawBufferPointer>) throws(RecordFault) -> Int? {
    guard start.count >= RecordCipher.headerBytes else { return nil }
    let header = UnsafeRawBufferPointer(rebasing: start)
    // Nothing is sent unprotected any more, and the version in a header means nothing (RFC 8446 §5.1 and 5.2).
    guard header[0] == RecordCipher.Content.application.rawValue else { throw .unexpected }
    let body = Int(header[3]) << 8 | Int(header[4])
    guard body <= RecordCipher.bodyBytesMax else { throw .tooLong }
    guard body > RecordCipher.tagBytes else { throw .altered }
    return RecordCipher.headerBytes + body
  }

  /// Adds to a record that has not come whole; returns whether it has now.
  private func complete(
    _ partial: OutBuffer, from rest: inout Slice<UnsafeRawBufferPointer>
  ) throws(RecordFault) -> Bool {
    func take(upTo count: Int) {
      let more = rest.prefix(count - partial.count)
      partial.append(UnsafeRawBufferPointer(rebasing: more))
      rest = rest.dropFirst(more.count)
    }
    if partial.count < RecordCipher.headerBytes { take(upTo: RecordCipher.headerBytes) }
    guard let count = try Self.recordBytes(partial.bytes[...]) else { return false }
    take(upTo: count)
    return partial.count == count
  }

  private func read(
    _ record: UnsafeRawBufferPointer, _ inflow: inout Inflow, _ output: OutBuffer,
    _ sink: (UnsafeRawBufferPointer) -> Void
  ) throws(RecordFault) -> Ending? {
    let space = inflow.space(emptyingInto: sink)
    guard var count = opening.open(record, into: space) else { throw .altered }
    // Content, the byte of its type, and zeros (RFC 8446 §5.4).
    while count > 0, space[count - 1] == 0 { count -= 1 }
    guard count > 0 else { throw .unexpected }
    count -= 1
    guard count <= RecordCipher.contentBytesMax else { throw .tooLong }
    let kind = RecordCipher.Content(rawValue: space[count])
    let content = UnsafeRawBufferPointer(rebasing: space[..<count])
    guard message.isEmpty || kind == .handshake else { throw .unexpected }
    idleRecords += 1
    guard idleRecords <= Self.idleRecordsMax || kind == .application && count > 0 else { throw .unexpected }
    switch kind {
    case .application:
      inflow.add(count)
      if count > 0 { idleRecords = 0 }
      return nil
    case .alert: return try heard(content)
    case .handshake:
      try shake(content, output)
      return nil
    case nil: throw .unexpected
    }
  }

  private func heard(_ alert: UnsafeRawBufferPointer) throws(RecordFault) -> Ending? {
    guard alert.count == 2 else { throw .malformed }
    switch CInt(alert[1]) {
    case SSL3_AD_CLOSE_NOTIFY: return .closed
    // RFC 8446 §6.1: a close_notify follows.
    case SSL_AD_USER_CANCELLED: return nil
    case let number:
      let words = SSL_alert_desc_string_long(number).map { String(cString: $0) }
      return .failed(.alert(words ?? "alert \(number)"))
    }
  }

  /// Messages of the handshake protocol that may still come: a KeyUpdate, and at a client's tickets.
  private func shake(_ content: UnsafeRawBufferPointer, _ output: OutBuffer) throws(RecordFault) {
    guard !content.isEmpty else { throw .unexpected }
    message.append(contentsOf: content)
    while let kind = message.first {
      guard kind == Self.keyUpdate || takesTickets && kind == Self.ticket else { throw .unexpected }
      guard message.count >= 4 else { return }
      let count = 4 + Int(message[1]) << 16 + Int(message[2]) << 8 + Int(message[3])
      guard count <= (kind == Self.keyUpdate ? 5 : Self.ticketBytesMax) else { throw .malformed }
      guard message.count >= count else { return }
      if kind == Self.keyUpdate { try changeKeys(output) }
      message.removeFirst(count)
    }
    message = []
  }

  private func changeKeys(_ output: OutBuffer) throws(RecordFault) {
    // Its sender's next record has another key, so that nothing may follow it in this one.
    guard message.count == 5 else { throw message.count > 5 ? .unexpected : .malformed }
    let isRequest = message[4] == UInt8(SSL_KEY_UPDATE_REQUESTED)
    guard isRequest || message[4] == UInt8(SSL_KEY_UPDATE_NOT_REQUESTED) else { throw .illegal }
    guard opening.update(), !isRequest || hasClosed || updateKeys(into: output) else { throw .unable }
  }

  private static let keyUpdate = UInt8(SSL3_MT_KEY_UPDATE)
  private static let ticket = UInt8(SSL3_MT_NEWSESSION_TICKET)
  /// RFC 8446 §4.6.1: a ticket has up to 65,535 bytes, a nonce up to 255, extensions 65,534.
  private static let ticketBytesMax = 4 + 2 * 65_536 + 512
}

/// Plaintext of the records of one call, put together so that its taker is called seldom.
private struct Inflow {
  private let room: UnsafeMutableRawBufferPointer
  private var filled = 0

  init(room: UnsafeMutableRawBufferPointer) { self.room = room }

  /// Space for one record.
  mutating func space(emptyingInto sink: (UnsafeRawBufferPointer) -> Void) -> UnsafeMutableRawBufferPointer {
    if room.count - filled < RecordCipher.bodyBytesMax { empty(into: sink) }
    return UnsafeMutableRawBufferPointer(rebasing: room[filled...])
  }

  mutating func add(_ count: Int) { filled += count }

  mutating func empty(into sink: (UnsafeRawBufferPointer) -> Void) {
    guard filled > 0 else { return }
    let bytes = UnsafeRawBufferPointer(rebasing: room[..<filled])
    filled = 0
    sink(bytes)
  }
}

/// What is wrong with what a peer sent, and the alert that says so (RFC 8446 §6.2).
private enum RecordFault: Error {
  case altered, tooLong, unexpected, malformed, illegal, unable

  var alert: CInt {
    switch self {
    case .altered: SSL_AD_BAD_RECORD_MAC
    case .tooLong: SSL_AD_RECORD_OVERFLOW
    case .unexpected: SSL3_AD_UNEXPECTED_MESSAGE
    case .malformed: SSL_AD_DECODE_ERROR
    case .illegal: SSL3_AD_ILLEGAL_PARAMETER
    case .unable: SSL_AD_INTERNAL_ERROR
    }
  }

  var words: String {
    switch self {
    case .altered: "altered on its way, or not made by the peer"
    case .tooLong: "longer than a record may be"
    case .unexpected: "not what may come now"
    case .malformed: "an alert or a message of another length"
    case .illegal: "a KeyUpdate that neither asks for one nor does not"
    case .unable: "new keys could not be made"
    }
  }
}
