package import Bytes
package import Seams

/// One HTTP/1.1 connection seen from the server, without a socket: bytes and time in, requests and bytes out.
///
/// One request at a time. While one is answered, what comes behind it is kept unread, so answers are in order by
/// construction and a second request is never run before the first is known to be well framed. After any fault the
/// answer says so and the connection closes: nothing behind a fault is read.
///
/// The driver: give what was read to ``receive(_:now:wall:)``; run a request that comes back and give its answer to
/// ``respond(_:closing:now:wall:)``, which may hand out the next; write ``output`` and empty it; stop reading while
/// ``wantsRead`` is false; arm one timer for ``nextDeadline``; close once ``isDone`` and the output is written.
package final class HTTPServerConnection {
  /// What the connection waits for.
  ///
  /// `idle` → `head` → `body` → `answer` → `idle`; `answer` → `upgraded`; any → `closed`.
  private enum State { case idle, head, body, answer, upgraded, closed }

  /// Bytes for the peer.
  ///
  /// The driver writes them and empties it.
  package var output = ByteWriter()

  private let limits: HTTPLimits
  private let parser: MessageParser
  private var writer = HTTPWriter()
  private var state = State.idle
  private var deadline: Moment?
  private var held: [UInt8] = []
  private var isHead = false
  private var keepsAlive = true
  private var isDraining = false
  private var peerEnded = false

  package init(limits: HTTPLimits = HTTPLimits(), now: Moment) {
    self.limits = limits
    parser = MessageParser(.request, limits: limits)
    deadline = now + limits.headTimeout
  }

  /// No request will come any more; close when the output is written.
  package var isDone: Bool { state == .closed }

  /// Whether a request is being read or awaits its answer.
  package var isBusy: Bool { state == .head || state == .body || state == .answer }

  /// False while enough bytes are held behind a request that is being answered.
  package var wantsRead: Bool {
    state != .closed && !peerEnded && (state != .answer || held.count < limits.heldBytesMax)
  }

  /// When ``timeout(now:wall:)`` is due; nil while an answer is awaited, which is the server's own time.
  package var nextDeadline: Moment? { deadline }

  /// Takes bytes from the peer.
  ///
  /// - Returns: A request to answer. None comes until the one before is answered.
  package func receive(_ bytes: UnsafeRawBufferPointer, now: Moment, wall: WallTime) -> HTTPRequest? {
    switch state {
    case .idle, .head, .body:
      return parse(bytes, now: now, wall: wall)
    case .answer:
      guard held.count + bytes.count <= 2 * limits.heldBytesMax else {
        // A peer that writes on while we do not read; a driver that heeds `wantsRead` never comes here.
        close()
        return nil
      }
      held.append(contentsOf: bytes)
      return nil
    case .upgraded:
      held.append(contentsOf: bytes)
      return nil
    case .closed:
      return nil
    }
  }

  /// Answers the request that was handed out.
  ///
  /// A call at any other time does nothing.
  ///
  /// - Parameter closing: Makes this the last answer.
  /// - Returns: The next request, if it is here already.
  package func respond(
    _ response: HTTPResponse, closing: Bool = false, now: Moment, wall: WallTime
  ) -> HTTPRequest? {
    guard state == .answer else { return nil }
    if response.status == 101 {
      writer.append(response, isHead: false, closes: false, wall: wall, to: &output)
      state = .upgraded
      return nil
    }
    let closes = closing || isDraining || !keepsAlive || (peerEnded && held.isEmpty)
    writer.append(response, isHead: isHead, closes: closes, wall: wall, to: &output)
    guard !closes else {
      close()
      return nil
    }
    state = .idle
    deadline = now + limits.idleTimeout
    let bytes = held
    held = []
    let next = bytes.withUnsafeBytes { parse($0, now: now, wall: wall) }
    if next == nil && peerEnded && state != .closed { end(wall: wall) }
    return next
  }

  /// Bytes that came behind a request that was answered with 101; they belong to the new protocol.
  package func takeHeld() -> [UInt8] {
    let bytes = held
    held = []
    return bytes
  }

  /// The peer will send no more.
  ///
  /// A request that is being answered still gets its answer.
  package func receiveEnd(wall: WallTime) {
    peerEnded = true
    if state != .answer { end(wall: wall) }
  }

  /// Finishes: idle connections close, others after their answer.
  package func drain() {
    isDraining = true
    if state == .idle { close() }
  }

  /// To be called when ``nextDeadline`` has come.
  ///
  /// Before it, nothing happens.
  package func timeout(now: Moment, wall: WallTime) {
    guard let deadline, now >= deadline else { return }
    switch state {
    case .head, .body: refuse(.late, wall: wall)
    case .idle: close()
    case .answer, .upgraded, .closed: break
    }
  }

  private func end(wall: WallTime) {
    switch state {
    case .head where parser.target.isEmpty: close()  // Line feeds at most.
    case .head, .body: refuse(.cut, wall: wall)
    case .idle, .answer, .upgraded, .closed: close()
    }
  }

  private func parse(_ bytes: UnsafeRawBufferPointer, now: Moment, wall: WallTime) -> HTTPRequest? {
    guard !bytes.isEmpty else { return nil }
    if state == .idle {
      state = .head
      deadline = now + limits.headTimeout
    }
    let outcome = parser.feed(bytes)
    if state == .head && parser.isHeadDone {
      state = .body
      deadline = now + limits.bodyTimeout
      if outcome.fault == nil { continueIfAwaited() }
    }
    if let fault = outcome.fault {
      refuse(fault, wall: wall)
      return nil
    }
    guard outcome.isComplete else { return nil }
    held.append(contentsOf: bytes[outcome.consumed...])
    var request = HTTPRequest(
      method: parser.method, target: String(decoding: parser.target, as: UTF8.self),
      minorVersion: parser.minorVersion, fields: parser.fields, body: parser.body)
    parser.reset()
    if let fault = ContentCoding.decode(&request.fields, &request.body, bytesMax: limits.bodyBytesMax) {
      refuse(fault, wall: wall)
      return nil
    }
    isHead = request.method == "HEAD"
    keepsAlive = request.wantsKeepAlive
    state = .answer
    deadline = nil
    return request
  }

  /// RFC 9110 §10.1.1.
  ///
  /// Sent for each such request, whether or not its body is here already.
  private func continueIfAwaited() {
    guard parser.minorVersion == 1, parser.fields.has("expect"),
      parser.fields.has("transfer-encoding") || parser.fields["content-length"].map({ $0 != "0" }) == true
    else { return }
    output.append("HTTP/1.1 100 Continue\r\n\r\n")
  }

  private func refuse(_ fault: HTTPFault, wall: WallTime) {
    writer.append(fault.response, isHead: false, closes: true, wall: wall, to: &output)
    close()
  }

  private func close() {
    state = .closed
    deadline = nil
    held = []
  }
}
