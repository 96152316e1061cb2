package import HTTPCore

/// Which pages may open a connection, by the `Origin` that browsers send: RFC 6455 §10.2.
///
/// A request without `Origin` does not come from a page, and is let in.
package struct OriginRule: Sendable, Hashable {
  /// Origins beside the server's own, as browsers write them: `https://app.example.org`.
  ///
  /// `*` is any.
  package var allowed: Set<String>
  /// Lets pages in that have no origin: files, and frames in a sandbox.
  package var allowsNull: Bool
  /// The request must name this machine by a loopback name, so that a foreign name that resolves to it is of no use.
  package var isLoopbackOnly: Bool

  package init(allowed: Set<String> = [], allowsNull: Bool = true, isLoopbackOnly: Bool = false) {
    self.allowed = allowed
    self.allowsNull = allowsNull
    self.isLoopbackOnly = isLoopbackOnly
  }

  package func admits(_ request: HTTPRequest) -> Bool {
    let host = (request.fields["host"] ?? "").lowercased()
    if isLoopbackOnly, !Self.isLoopback(host) { return false }
    let origins = request.fields.values("origin")
    guard let origin = origins.first?.lowercased() else { return true }
    guard origins.count == 1 else { return false }
    if origin == "null" { return allowsNull }
    if allowed.contains("*") || allowed.contains(origin) { return true }
    for scheme in ["https://", "http://"] where origin.hasPrefix(scheme) {
      return !host.isEmpty && origin.dropFirst(scheme.count) == host
    }
    return false
  }

  private static func isLoopback(_ host: String) -> Bool {
    ["localhost", "127.0.0.1", "[::1]"].contains { host == $0 || host.hasPrefix($0 + ":") }
  }
}

/// The server's side of the opening handshake: RFC 6455 §4.2, and over HTTP/2 RFC 8441 §5.
package struct ServerHandshake: Sendable {
  package enum Answer: Sendable, Equatable {
    /// The answer with status 101, or 200 over HTTP/2, and the subprotocol chosen.
    case accepted(HTTPResponse, subprotocol: String?)
    case refused(HTTPResponse)
  }

  /// Subprotocols that are spoken, the best first; when there are any, the client must offer one of them.
  package var subprotocols: [String]
  package var origins: OriginRule

  package init(subprotocols: [String] = [], origins: OriginRule = OriginRule()) {
    self.subprotocols = subprotocols
    self.origins = origins
  }

  /// Answers an upgrade.
  ///
  /// Offers of extensions are declined by not naming them.
  package func answer(_ request: HTTPRequest) -> Answer {
    if let tunnel = request.tunnel { return answer(request, tunnel) }
    guard request.method == "GET", request.minorVersion == 1, request.body.isEmpty,
      request.fields.list("upgrade", holds: "websocket"), request.fields.list("connection", holds: "upgrade")
    else { return Self.refuse(426, "This path speaks WebSocket", ["upgrade": "websocket"]) }
    guard request.fields.values("sec-websocket-version") == ["13"] else {
      return Self.refuse(
        426, "Version 13 of WebSocket is spoken", ["upgrade": "websocket", "sec-websocket-version": "13"])
    }
    let keys = request.fields.values("sec-websocket-key")
    guard keys.count == 1, HandshakeKey.isKey(keys[0]) else {
      return Self.refuse(400, "Sec-WebSocket-Key is no key")
    }
    guard origins.admits(request) else { return Self.refuse(403, "This origin is not let in") }
    return accept(
      request, status: 101,
      [
        "upgrade": "websocket", "connection": "Upgrade", "sec-websocket-accept": HandshakeKey.accept(keys[0]),
      ])
  }

  /// An extended CONNECT: HTTP/2 says what the key and its answer say in HTTP/1.1.
  private func answer(_ request: HTTPRequest, _ tunnel: String) -> Answer {
    guard tunnel == "websocket" else { return Self.refuse(501, "This path speaks WebSocket") }
    guard request.fields.values("sec-websocket-version") == ["13"] else {
      return Self.refuse(400, "Version 13 of WebSocket is spoken", ["sec-websocket-version": "13"])
    }
    guard origins.admits(request) else { return Self.refuse(403, "This origin is not let in") }
    return accept(request, status: 200, [:])
  }

  private func accept(_ request: HTTPRequest, status: Int, _ head: HTTPFields) -> Answer {
    var fields = head
    var chosen: String?
    if !subprotocols.isEmpty {
      guard let best = subprotocols.first(where: { Self.isOffered($0, request) }) else {
        return Self.refuse(400, "The subprotocol \(subprotocols[0]) is needed")
      }
      chosen = best
      fields.append("sec-websocket-protocol", best)
    }
    return .accepted(HTTPResponse(status: status, fields: fields), subprotocol: chosen)
  }

  /// Names of subprotocols are compared with case.
  private static func isOffered(_ name: String, _ request: HTTPRequest) -> Bool {
    for line in request.fields.values("sec-websocket-protocol") {
      for offer in line.split(separator: ",") where offer.filter({ $0 != " " && $0 != "\t" }) == name {
        return true
      }
    }
    return false
  }

  private static func refuse(_ status: Int, _ text: String, _ more: HTTPFields = [:]) -> Answer {
    var fields = more
    fields.append("content-type", "text/plain")
    return .refused(HTTPResponse(status: status, fields: fields, body: Array((text + "\n").utf8)))
  }
}
