import Bytes
import COpenSSL
import HTTPCore
import Seams
import Testing

@testable import WebSocketCore

@Suite struct HandshakeTests {
  static func request(_ change: (inout [(String, String)]) -> Void = { _ in }) -> HTTPRequest {
    var fields = [
      ("host", "push.example.org:8443"), ("upgrade", "websocket"), ("connection", "keep-alive, Upgrade"),
      ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="), ("sec-websocket-version", "13"),
      ("sec-websocket-protocol", "mqtt, xmpp"),
    ]
    change(&fields)
    var list = HTTPFields()
    for (name, value) in fields { list.append(name, value) }
    return HTTPRequest(method: "GET", target: "/xmpp", fields: list)
  }

  static func with(_ name: String, _ value: String?) -> HTTPRequest {
    request { fields in
      fields.removeAll { $0.0 == name }
      if let value { fields.append((name, value)) }
    }
  }

  let handshake = ServerHandshake(subprotocols: ["xmpp"])

  func status(_ request: HTTPRequest) -> Int {
    switch handshake.answer(request) {
    case .accepted(let response, _), .refused(let response): response.status
    }
  }

  @Test func theStandardsKeyHasTheStandardsAnswer() {
    // RFC 6455 §1.3.
    #expect(HandshakeKey.accept("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
  }

  @Test func digestsAreThoseOfOpenSSL() {
    for count in [0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 1_000] {
      let message = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
      var digest = [UInt8](repeating: 0, count: 20)
      _ = SHA1(message, count, &digest)
      #expect(HandshakeKey.sha1(message) == digest)
    }
  }

  @Test func anUpgradeIsAccepted() {
    guard case .accepted(let response, let subprotocol) = handshake.answer(Self.request()) else {
      Issue.record("refused")
      return
    }
    #expect(response.status == 101)
    #expect(subprotocol == "xmpp")
    #expect(response.fields["sec-websocket-protocol"] == "xmpp")
    #expect(response.fields["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    #expect(response.fields["upgrade"] == "websocket")
  }

  @Test func anOfferOfCompressionIsDeclined() {
    let request = Self.with("sec-websocket-extensions", "permessage-deflate; client_max_window_bits")
    guard case .accepted(let response, _) = handshake.answer(request) else {
      Issue.record("refused")
      return
    }
    #expect(response.fields["sec-websocket-extensions"] == nil)
  }

  @Test func whatIsNoUpgradeIsRefused() {
    #expect(status(Self.with("upgrade", nil)) == 426)
    #expect(status(Self.with("connection", "keep-alive")) == 426)
    #expect(status(Self.with("sec-websocket-version", "8")) == 426)
    #expect(status(Self.with("sec-websocket-version", nil)) == 426)
    #expect(status(Self.with("sec-websocket-key", nil)) == 400)
    #expect(status(Self.with("sec-websocket-key", "dGhlIHNhbXBsZSBub25j")) == 400)
    #expect(status(Self.with("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=!")) == 400)
    #expect(status(Self.with("sec-websocket-protocol", "mqtt")) == 400)
    #expect(status(Self.with("sec-websocket-protocol", nil)) == 400)
    var post = Self.request()
    post.method = "POST"
    #expect(status(post) == 426)
    var old = Self.request()
    old.minorVersion = 0
    #expect(status(old) == 426)
    let twice = Self.request { $0.append(("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")) }
    #expect(status(twice) == 400)
  }

  @Test func originsAreTheServersOwnOrNamed() {
    func admits(_ origin: String?, _ rule: OriginRule, host: String = "push.example.org:8443") -> Bool {
      var fields: HTTPFields = ["host": host]
      if let origin { fields.append("origin", origin) }
      return rule.admits(HTTPRequest(method: "GET", target: "/xmpp", fields: fields))
    }
    let rule = OriginRule(allowed: ["https://app.example.org"])
    #expect(admits(nil, rule))
    #expect(admits("https://push.example.org:8443", rule))
    #expect(admits("HTTPS://PUSH.example.org:8443", rule))
    #expect(admits("https://app.example.org", rule))
    #expect(admits("null", rule))
    #expect(!admits("null", OriginRule(allowsNull: false)))
    #expect(!admits("https://evil.example", rule))
    #expect(!admits("https://push.example.org", rule))
    #expect(!admits("push.example.org:8443", rule))
    #expect(!admits("https://", rule, host: ""))
    #expect(admits("https://evil.example", OriginRule(allowed: ["*"])))
    let loopback = OriginRule(allowsNull: false, isLoopbackOnly: true)
    #expect(admits("http://localhost:8080", loopback, host: "localhost:8080"))
    #expect(admits(nil, loopback, host: "127.0.0.1:8080"))
    #expect(admits(nil, loopback, host: "[::1]:8080"))
    #expect(!admits("http://rebound.example:8080", loopback, host: "rebound.example:8080"))
    #expect(!admits(nil, loopback, host: "localhost.example"))
  }

  @Test func aStrangeOriginGets403() {
    #expect(status(Self.with("origin", "https://evil.example")) == 403)
    let two = Self.request { $0 += [("origin", "null"), ("origin", "https://evil.example")] }
    #expect(status(two) == 403)
  }

  // MARK: Client

  func answered(_ text: String, rest: [UInt8] = []) throws(HandshakeFault) -> Int {
    var client = ClientHandshake(host: "push.example.org", path: "/xmpp", subprotocol: "xmpp", random: { 1 })
    let key = "AQAAAAAAAAABAAAAAAAAAA=="
    #expect(String(decoding: client.request, as: UTF8.self).contains("Sec-WebSocket-Key: \(key)\r\n"))
    let accept = HandshakeKey.accept(key)
    let bytes = Array(text.replacing("ACCEPT", with: accept).utf8) + rest
    for index in bytes.indices {
      if try feed(&client, [bytes[index]]) { return bytes.count - index - 1 }
    }
    return -1
  }

  func feed(_ client: inout ClientHandshake, _ bytes: [UInt8]) throws(HandshakeFault) -> Bool {
    var offset = 0
    var copy = client
    let result = bytes.withUnsafeBytes { bytes in
      Result<Bool, HandshakeFault> { () throws(HandshakeFault) in try copy.receive(bytes, &offset) }
    }
    client = copy
    return try result.get()
  }

  static let good =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: upgrade\r\n"
    + "Sec-WebSocket-Accept: ACCEPT\r\nSec-WebSocket-Protocol: xmpp\r\n"

  @Test func aRightAnswerOpensAClientAndLeavesWhatFollows() throws {
    #expect(try answered(Self.good + "\r\n", rest: [1, 2, 3]) == 3)
    #expect(try answered(Self.good) == -1)
  }

  @Test func aWrongAnswerIsTold() {
    #expect(throws: HandshakeFault.refused(status: 403)) { try answered("HTTP/1.1 403 No\r\n\r\n") }
    #expect(throws: HandshakeFault.malformed) { try answered("HTTP/1.0 101 X\r\n\r\n") }
    #expect(throws: HandshakeFault.malformed) { try answered("SSH-2.0\r\n\r\n") }
    #expect(throws: HandshakeFault.malformed) { try answered("\r\n\r\n") }
    #expect(throws: HandshakeFault.malformed) { try answered(Self.good + "no colon\r\n\r\n") }
    #expect(throws: HandshakeFault.malformed) { try answered(String(repeating: "x", count: 20_000)) }
    #expect(throws: HandshakeFault.notWebSocket) {
      try answered(Self.good.replacing("ACCEPT", with: "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") + "\r\n")
    }
    #expect(throws: HandshakeFault.notWebSocket) {
      try answered(Self.good.replacing("Upgrade: WebSocket", with: "Upgrade: h2c") + "\r\n")
    }
    #expect(throws: HandshakeFault.notOffered) {
      try answered(Self.good.replacing("xmpp", with: "mqtt") + "\r\n")
    }
    #expect(throws: HandshakeFault.notOffered) {
      try answered(Self.good + "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n")
    }
  }

  @Test func aClientAndAServerAgree() throws {
    let client = ClientHandshake(host: "a", path: "/xmpp", subprotocol: "xmpp", random: { 77 })
    let server = HTTPServerConnection(now: start)
    let request = client.request.withUnsafeBytes {
      server.receive($0, now: start, wall: .init(ms: 0))
    }
    guard case .accepted(let response, _) = handshake.answer(try #require(request)) else {
      Issue.record("refused")
      return
    }
    _ = server.respond(response, now: start, wall: .init(ms: 0))
    var copy = client
    #expect(try feed(&copy, server.output.bytes))
  }
}
