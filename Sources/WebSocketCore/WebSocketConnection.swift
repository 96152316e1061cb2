package import Bytes
package import Seams

/// One WebSocket connection after its handshake: bytes and time in, messages and bytes out (RFC 6455).
///
/// Either side. Holds no buffer but of what is incomplete. One object per connection, used by one thread at a time.
///
/// ```
/// var offset = 0
/// while let event = connection.next(chunk, &offset, scratch: &scratch, output: &output, now: now) { … }
/// ```
package final class WebSocketConnection {
  package enum Role: Sendable { case server, client }

  /// What the connection waits for.
  package enum State: Sendable, Hashable {
    /// Messages.
    case open
    /// The peer's answer to our close frame; messages are dropped.
    case closing
    /// Nothing any more.
    case ended
  }

  private enum Place { case header, data, control }

  package private(set) var state = State.open
  /// Bytes of memory held for what is incomplete.
  package var heldBytes: Int { gathered.count + control.count }

  private let role: Role
  private let limits: WebSocketLimits
  private let random: @Sendable () -> UInt64
  private var place = Place.header
  private var header = FrameHeader()
  /// Payload bytes of the frame that are still to come, the place of the next one, and their mask.
  private var rest = 0
  private var done = 0
  private var mask: UInt32 = 0
  private var isFinal = true
  private var controlOpcode = Opcode.ping
  /// What the message begun holds; nil between messages.
  private var content: MessageContent?
  private var fragments = 0
  private var gathered: [UInt8] = []
  private var utf8 = UTF8Check()
  private var control: [UInt8] = []
  private var lastInput: Moment
  private var deadline: Moment?
  private var isPinged = false

  /// - Parameter random: A source fit for secrets; the masks of a client come from it.
  package init(
    _ role: Role, limits: WebSocketLimits = WebSocketLimits(), now: Moment,
    random: @escaping @Sendable () -> UInt64
  ) {
    self.role = role
    self.limits = limits
    self.random = random
    lastInput = now
  }

  /// Takes bytes from the peer up to the next event.
  ///
  /// - Parameters:
  ///   - chunk: Bytes cut anywhere.
  ///   - offset: Where to go on in `chunk`; moved past what was taken.
  ///   - scratch: Where the range of a message points to. Grown when shorter, never shrunk; bytes outside the range
  ///     mean nothing.
  ///   - output: Gets what is to be sent.
  /// - Returns: nil when the chunk is used up.
  /// - Complexity: O(bytes taken).
  package func next(
    _ chunk: UnsafeRawBufferPointer, _ offset: inout Int, scratch: inout [UInt8],
    output: inout ByteWriter, now: Moment
  ) -> WebSocketEvent? {
    guard state != .ended else {
      offset = chunk.count
      return nil
    }
    if offset < chunk.count {
      lastInput = now
      isPinged = false
    }
    do throws(WebSocketFault) {
      while offset < chunk.count || (place != .header && rest == 0) {
        switch place {
        case .header:
          guard header.take(chunk, &offset) else { return nil }
          try begin()
        case .control:
          takeControl(chunk, &offset)
          if rest == 0 {
            place = .header
            if let event = try endControl(&output) { return event }
          }
        case .data:
          if let event = try takeData(chunk, &offset, &scratch) { return event }
        }
      }
      return nil
    } catch {
      return fail(error, &output)
    }
  }

  // MARK: Frames

  private func begin() throws(WebSocketFault) {
    let header = header
    self.header = FrameHeader()
    if let fault = header.fault { throw fault }
    guard let opcode = header.opcode else { throw .unknownOpcode }
    guard header.isMasked == (role == .server) else { throw .badMasking }
    guard let length = header.length else { throw .badLength }
    mask = header.mask
    done = 0
    // proof: 63 bits.
    rest = Int(length)
    switch opcode {
    case .close, .ping, .pong:
      controlOpcode = opcode
      place = .control
    case .text, .binary:
      guard content == nil else { throw .badFragment }
      content = opcode == .text ? .text : .binary
      fragments = 0
      utf8 = UTF8Check()
      try beginData(length, header.isFinal)
    case .continuation:
      guard content != nil else { throw .badFragment }
      try beginData(length, header.isFinal)
    }
  }

  private func beginData(_ length: UInt64, _ isFinal: Bool) throws(WebSocketFault) {
    guard length <= UInt64(limits.messageBytesMax - gathered.count) else { throw .messageTooBig }
    fragments += 1
    guard fragments <= limits.fragmentsMax else { throw .tooManyFragments }
    self.isFinal = isFinal
    place = .data
  }

  private func takeData(
    _ chunk: UnsafeRawBufferPointer, _ offset: inout Int, _ scratch: inout [UInt8]
  ) throws(WebSocketFault) -> WebSocketEvent? {
    let part = UnsafeRawBufferPointer(rebasing: chunk[offset..<min(chunk.count, offset + rest)])
    offset += part.count
    rest -= part.count
    let isWhole = rest == 0 && isFinal && gathered.isEmpty
    if isWhole {
      // The usual message: it comes whole, and goes where it is read from.
      if scratch.count < part.count {
        scratch.append(contentsOf: repeatElement(0, count: part.count - scratch.count))
      }
      guard scratch.withUnsafeMutableBytes({ unmask(part, to: $0.baseAddress) }) else { throw .badText }
    } else if state == .closing {
      // Dropped, but counted: `gathered` stays empty and the length is checked a frame at a time.
    } else {
      let start = gathered.count
      gathered.append(contentsOf: part)
      let isFine = gathered.withUnsafeMutableBytes { target in
        unmask(part, to: target.baseAddress.map { $0 + start })
      }
      guard isFine else { throw .badText }
    }
    guard rest == 0 else { return nil }
    place = .header
    guard isFinal else { return nil }
    return try endMessage(isWhole ? part.count : nil, &scratch)
  }

  /// Unmasks a part of the payload.
  ///
  /// - Returns: false when it is of a text and no UTF-8.
  private func unmask(_ part: UnsafeRawBufferPointer, to target: UnsafeMutableRawPointer?) -> Bool {
    guard let target, !part.isEmpty else { return true }
    let isASCII = Masking.copy(part, key: mask, offset: done, to: target)
    done += part.count
    guard content == .text, state == .open, !(isASCII && utf8.isComplete) else { return true }
    return utf8.take(UnsafeRawBufferPointer(start: target, count: part.count))
  }

  /// - Parameter whole: Bytes of a message that is in `scratch` already.
  private func endMessage(
    _ whole: Int?, _ scratch: inout [UInt8]
  ) throws(WebSocketFault) -> WebSocketEvent? {
    guard let content else { return nil }
    self.content = nil
    guard state == .open else {
      gathered = []
      return nil
    }
    if content == .text, !utf8.isComplete { throw .badText }
    if let whole { return .message(content, 0..<whole) }
    let count = gathered.count
    if scratch.count <= count {
      scratch = gathered
    } else {
      scratch.withUnsafeMutableBytes { target in
        gathered.withUnsafeBytes { target.copyMemory(from: $0) }
      }
    }
    gathered = []
    return .message(content, 0..<count)
  }

  // MARK: Control frames

  private func takeControl(_ chunk: UnsafeRawBufferPointer, _ offset: inout Int) {
    let part = UnsafeRawBufferPointer(rebasing: chunk[offset..<min(chunk.count, offset + rest)])
    let start = control.count
    control.append(contentsOf: part)
    control.withUnsafeMutableBytes { target in
      if let base = target.baseAddress { Masking.copy(part, key: mask, offset: done, to: base + start) }
    }
    offset += part.count
    rest -= part.count
    done += part.count
  }

  private func endControl(_ output: inout ByteWriter) throws(WebSocketFault) -> WebSocketEvent? {
    let payload = control
    control = []
    switch controlOpcode {
    case .ping:
      // §5.5.2; after our close frame nothing more is sent.
      if state == .open { append(.pong, payload, &output) }
      return .alive
    case .pong: return .alive
    default: return try receivedClose(payload, &output)
    }
  }

  private func receivedClose(
    _ payload: [UInt8], _ output: inout ByteWriter
  ) throws(WebSocketFault) -> WebSocketEvent? {
    guard payload.count != 1 else { throw .badClose }
    var code: CloseCode?
    var reason = ""
    if payload.count >= 2 {
      let given = CloseCode(rawValue: UInt16(payload[0]) << 8 | UInt16(payload[1]))
      guard given.maySend else { throw .badClose }
      var check = UTF8Check()
      let isText = payload.withUnsafeBytes { check.take(UnsafeRawBufferPointer(rebasing: $0[2...])) }
      guard isText, check.isComplete else { throw .badText }
      code = given
      reason = String(decoding: payload[2...], as: UTF8.self)
    }
    if state == .closing { return end(.closed) }
    append(.close, Array(payload.prefix(2)), &output)
    return end(.peerClosed(code, reason: reason))
  }

  // MARK: Sending

  /// Appends a message in one frame; nothing once a close frame was sent.
  package func send(_ content: MessageContent, _ payload: UnsafeRawBufferPointer, output: inout ByteWriter) {
    guard state == .open else { return }
    WebSocketFrame.append(
      content == .text ? .text : .binary, payload: payload, mask: nextMask(), to: &output)
  }

  /// A new mask for a frame of a client, nil on a server.
  package func nextMask() -> UInt32? {
    role == .client ? UInt32(truncatingIfNeeded: random()) : nil
  }

  /// Appends a ping; the answer is awaited from now on.
  ///
  /// - Parameter payload: 125 bytes at most; the rest is left out.
  package func ping(_ payload: [UInt8] = [], output: inout ByteWriter, now: Moment) {
    guard state == .open else { return }
    append(.ping, Array(payload.prefix(125)), &output)
    guard !isPinged else { return }
    isPinged = true
    deadline = now + limits.answerWithin
  }

  /// Begins to close: appends a close frame and awaits the peer's.
  ///
  /// - Parameter reason: 123 bytes of UTF-8 at most; a longer one is left out.
  package func close(
    _ code: CloseCode, reason: String = "", output: inout ByteWriter, now: Moment
  ) {
    guard state == .open else { return }
    appendClose(code, reason, &output)
    state = .closing
    gathered = []
    deadline = now + limits.closeWithin
  }

  private func append(_ opcode: Opcode, _ payload: [UInt8], _ output: inout ByteWriter) {
    payload.withUnsafeBytes {
      WebSocketFrame.append(opcode, payload: $0, mask: nextMask(), to: &output)
    }
  }

  private func appendClose(_ code: CloseCode, _ reason: String, _ output: inout ByteWriter) {
    var payload = [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)]
    if reason.utf8.count <= 123 { payload += Array(reason.utf8) }
    append(.close, payload, &output)
  }

  // MARK: Ends

  private func fail(_ fault: WebSocketFault, _ output: inout ByteWriter) -> WebSocketEvent {
    // §7.1.7; a close frame is sent once.
    if state == .open { appendClose(fault.code, "", &output) }
    return end(.failed(fault))
  }

  private func end(_ reason: WebSocketEnd) -> WebSocketEvent {
    state = .ended
    gathered = []
    control = []
    return .ended(reason)
  }

  // MARK: Time

  /// When ``deadlineReached(now:output:)`` is to be called; may move later with every byte.
  package var nextDeadline: Moment? {
    switch state {
    case .ended: nil
    case .closing: deadline
    case .open where isPinged: deadline
    case .open: limits.pingAfter.map { lastInput + $0 }
    }
  }

  /// Does what is due at `now`; nothing when it is too early.
  package func deadlineReached(now: Moment, output: inout ByteWriter) -> WebSocketEvent? {
    guard let due = nextDeadline, due <= now else { return nil }
    switch state {
    case .closing: return end(.closeOverdue)
    case .open where isPinged: return end(.unanswered)
    case .open:
      ping(output: &output, now: now)
      return nil
    case .ended: return nil
    }
  }
}
