/// A request whose body has come whole.
package struct HTTPRequest: Sendable, Equatable {
  package var method: String
  /// As sent: path and query, or a whole URL from a proxy's client.
  ///
  /// Printable ASCII.
  package var target: String
  /// 0 or 1, of HTTP/1.x; 1 for a request of HTTP/2.
  package var minorVersion: Int
  package var fields: HTTPFields
  package var body: [UInt8]
  /// What is to be spoken through the stream, in lower case (`websocket`), by an extended CONNECT of HTTP/2; nil for
  /// any other request.
  ///
  /// RFC 8441.
  package var tunnel: String?

  package init(
    method: String, target: String, minorVersion: Int = 1, fields: HTTPFields = HTTPFields(),
    body: [UInt8] = []
  ) {
    self.method = method
    self.target = target
    self.minorVersion = minorVersion
    self.fields = fields
    self.body = body
  }

  /// The protocol that the client wants to change to, in lower case (`websocket`); nil if none.
  package var upgrade: String? {
    guard fields.has("upgrade"), fields.list("connection", holds: "upgrade") else { return nil }
    return fields["upgrade"]?.lowercased().trimmed()
  }

  /// RFC 9112 §9.3.
  var wantsKeepAlive: Bool {
    guard fields.has("connection") else { return minorVersion >= 1 }
    if fields.list("connection", holds: "close") { return false }
    return minorVersion >= 1 || fields.list("connection", holds: "keep-alive")
  }
}

/// An answer with a whole body.
package struct HTTPResponse: Sendable, Equatable {
  /// 101 or 200 to 599.
  package var status: Int
  /// Without `Content-Length`, `Connection` and `Date`, which the connection writes.
  package var fields: HTTPFields
  package var body: [UInt8]

  package init(status: Int, fields: HTTPFields = HTTPFields(), body: [UInt8] = []) {
    self.status = status
    self.fields = fields
    self.body = body
  }
}

/// What a message was refused for, with the status that says so.
package enum HTTPFault: Error, Sendable, Equatable {
  /// Malformed, or its length can be read in two ways. RFC 9112 §6.3.
  case malformed
  case headTooLarge
  case targetTooLong
  case bodyTooLarge
  case expectationUnknown
  /// A body in a content coding other than gzip.
  case codingUnknown
  case versionUnknown
  /// Head or body did not come within its time.
  case late
  /// The peer closed in the middle.
  case cut

  package var status: Int {
    switch self {
    case .malformed, .cut: 400
    case .late: 408
    case .bodyTooLarge: 413
    case .targetTooLong: 414
    case .codingUnknown: 415
    case .expectationUnknown: 417
    case .headTooLarge: 431
    case .versionUnknown: 505
    }
  }
}

extension HTTPFault {
  /// The answer that tells the peer.
  var response: HTTPResponse {
    var fields: HTTPFields = ["content-type": "text/plain"]
    if self == .codingUnknown { fields.append("accept-encoding", "gzip") }
    return HTTPResponse(status: status, fields: fields, body: Array("\(status)\n".utf8))
  }
}

/// Bounds of one connection.
package struct HTTPLimits: Sendable {
  /// Request line and header fields together, in bytes.
  package var headBytesMax = 16 * 1_024
  package var fieldsMax = 100
  /// Decoded body in bytes.
  ///
  /// The framing of a chunked body may take as much again.
  package var bodyBytesMax = 1_024 * 1_024
  /// Bytes of later requests kept while one is answered; reading should stop at it.
  ///
  /// Twice this closes.
  package var heldBytesMax = 64 * 1_024
  /// From a request's first byte to the end of its head; also from the connection's start.
  package var headTimeout = Duration.seconds(10)
  /// From the end of the head to the end of the body.
  package var bodyTimeout = Duration.seconds(30)
  /// From an answer to the next request's first byte.
  package var idleTimeout = Duration.seconds(75)

  // HTTP/2 only.

  /// Requests of one connection that are read or answered at a time.
  package var streamsMax = 256
  /// What a client may send on one stream, and on all together, before it is told to go on.
  package var streamWindowBytes = 256 * 1_024
  package var connectionWindowBytes = 1_024 * 1_024
  /// Body bytes of all unanswered requests of one connection; a stream that goes beyond is refused.
  package var bodyBytesHeldMax = 8 * 1_024 * 1_024
  /// From an answer's beginning to the last byte that the client's window let pass.
  package var answerTimeout = Duration.seconds(30)
  /// How long a client may go on sending the body of a request that was refused, before its stream is reset; and
  /// no more than another body.
  package var refusedTimeout = Duration.seconds(1)
  /// Streams given up before their answer: so many at once, and so many a second.
  ///
  /// More ends the connection with `ENHANCE_YOUR_CALM`.
  package var resetsMax = 500
  package var resetsPerSecond = 25
  /// Frames that carry nothing (`PING`, `SETTINGS`, `WINDOW_UPDATE`, `PRIORITY`, empty `DATA`): so many at once,
  /// and so many a second; each request adds four.
  package var uselessFramesMax = 2_000
  package var uselessFramesPerSecond = 200
  /// In a drain, from the notice until new streams are refused, unless the client answers earlier.
  package var drainNotice = Duration.seconds(1)

  package init() {}
}
