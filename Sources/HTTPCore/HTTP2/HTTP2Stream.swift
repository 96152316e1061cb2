import Seams

/// One request of an HTTP/2 connection, from its first header field to the last byte of its answer.
final class HTTP2Stream {
  /// `reading` → `awaitingAnswer` → `answering` or, for an extended CONNECT that was let in, `tunnel`; a refused
  /// stream goes from `reading` to `answering`.
  enum State { case reading, awaitingAnswer, answering, tunnel }

  private(set) var number: Int32 = 0
  var state = State.reading
  /// When the state is given up.
  var deadline: Moment?
  var isHeadDone = false
  /// The peer has sent END_STREAM, or was told to stop.
  var isRemoteDone = false
  private(set) var isHead = false
  var isAnswerSent = false
  /// Of a body that came after its request was refused.
  var bytesIgnored = 0

  private(set) var method = ""
  private(set) var target = ""
  /// What an extended CONNECT wants to speak, in lower case; empty for any other request.
  private(set) var tunnelProtocol = ""
  private var authority: [UInt8] = []
  private(set) var fields = HTTPFields()
  private var fault: HTTPFault?
  private var headBytes = 0
  private var fieldCount = 0

  /// Of the request, then of the answer or what goes through the tunnel.
  var body: [UInt8] = []
  /// What of the answer has been sent.
  var bodySent = 0
  /// Bytes of the request's body, or that came through the tunnel, that the connection counts as held.
  var bytesHeld = 0
  /// Nothing goes through the tunnel behind ``body``.
  var isFinishing = false
  /// Reset, which nghttp2 has not said yet.
  var isGivenUp = false

  var isTunnel: Bool { !tunnelProtocol.isEmpty }

  func open(_ number: Int32, deadline: Moment) {
    self.number = number
    self.deadline = deadline
  }

  /// Makes it ready for another request.
  func clear() {
    state = .reading
    deadline = nil
    isHeadDone = false
    isRemoteDone = false
    isHead = false
    isAnswerSent = false
    bytesIgnored = 0
    method = ""
    target = ""
    tunnelProtocol = ""
    authority = []
    fields = HTTPFields()
    fault = nil
    headBytes = 0
    fieldCount = 0
    body = []
    bodySent = 0
    bytesHeld = 0
    isFinishing = false
    isGivenUp = false
  }

  // MARK: The head

  /// Takes a field; nghttp2 has checked its form.
  ///
  /// - Returns: false when the head is so much too large that the stream must go; otherwise it is read to its end,
  ///   so that the refusal can say why.
  func add(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer, limits: HTTPLimits) -> Bool {
    // As the announced setting counts (RFC 9113 §6.5.2).
    headBytes += name.count + value.count + 32
    fieldCount += 1
    if headBytes > limits.headBytesMax || fieldCount > limits.fieldsMax {
      fault = .headTooLarge
      return headBytes <= 4 * limits.headBytesMax
    }
    // Trailers are read and dropped.
    if isHeadDone { return true }
    guard name.first == UInt8(ascii: ":") else {
      fields.append(name: name, value: value)
      return true
    }
    if HTTPFields.areEqual(name, ":method") {
      method = HTTPFields.areEqual(value, "POST") ? "POST" : String(decoding: value, as: UTF8.self)
      isHead = method == "HEAD"
    } else if HTTPFields.areEqual(name, ":path") {
      if !value.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) { fault = .malformed }
      target = String(decoding: value, as: UTF8.self)
    } else if HTTPFields.areEqual(name, ":authority") {
      authority = Array(value)
    } else if HTTPFields.areEqual(name, ":protocol") {
      tunnelProtocol = String(decoding: value, as: UTF8.self).lowercased()
    }
    return true
  }

  /// What is wrong with the head as a whole; the same rules as for HTTP/1.1.
  func headFault(_ limits: HTTPLimits) -> HTTPFault? {
    if let fault { return fault }
    // nghttp2 has seen that only CONNECT names a protocol. RFC 8441 §4.
    guard method != "CONNECT" || isTunnel else { return .malformed }
    // RFC 9113 §8.3.1: who is asked must be one.
    let hosts = fields.count(of: "host")
    guard hosts <= 1 else { return .malformed }
    let host = fields.withValue("host") { Array($0) }
    if authority.isEmpty {
      guard host?.isEmpty == false else { return .malformed }
    } else {
      guard host == nil || host == authority else { return .malformed }
      if host == nil {
        fields.append(name: "host", value: authority)
      }
    }
    if let length = fields["content-length"].flatMap({ Int($0) }), length > limits.bodyBytesMax {
      return .bodyTooLarge
    }
    if fields.has("expect"), fields["expect"]?.lowercased() != "100-continue" { return .expectationUnknown }
    return nil
  }

  // MARK: The body

  func append(_ bytes: UnsafeRawBufferPointer, limit: Int) {
    if body.isEmpty, let length = fields["content-length"].flatMap({ Int($0) }) {
      // No more than has been seen to come soon: a stated length costs its sender nothing.
      body.reserveCapacity(min(length, limit, 64 * 1024))
    }
    body.append(contentsOf: bytes)
    bytesHeld += bytes.count
  }

  // MARK: The tunnel

  /// Bytes for the peer that nghttp2 has not taken.
  var bytesQueued: Int { body.count - bodySent }

  func queue(_ bytes: [UInt8]) {
    if bodySent > 64 * 1024 {
      body.removeFirst(bodySent)
      bodySent = 0
    }
    body += bytes
  }

  /// Moves what has room; an idle tunnel keeps no buffer.
  func takeBody(_ room: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(room.count, bytesQueued)
    body.withUnsafeBytes {
      room.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[bodySent..<(bodySent + count)]))
    }
    bodySent += count
    if bodySent == body.count {
      body = []
      bodySent = 0
    }
    return count
  }

  // MARK: The body, whole

  func makeRequest(_ limits: HTTPLimits) -> Result<HTTPRequest, HTTPFault> {
    if let fault { return .failure(fault) }
    var request = HTTPRequest(method: method, target: target, fields: fields, body: body)
    if isTunnel { request.tunnel = tunnelProtocol }
    body = []
    fields = HTTPFields()
    if let fault = ContentCoding.decode(&request.fields, &request.body, bytesMax: limits.bodyBytesMax) {
      return .failure(fault)
    }
    return .success(request)
  }
}
