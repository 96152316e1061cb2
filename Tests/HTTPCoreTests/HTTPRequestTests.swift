import Bytes
import HTTPCore
import Seams
import Testing

struct HTTPRequestTests {
  @Test func aRequestComesWithItsPartsHoweverItIsCut() throws {
    let heard = try #require(
      talkAnyWay(
        "POST /v1/x?y=1 HTTP/1.1\r\nHost: h\r\nX-Empty:\r\nContent-Type:  application/json \r\ncontent-length: 5\r\n\r\nhello"
      ))
    let request = try #require(heard.requests.first)
    #expect(heard.requests.count == 1)
    #expect(request.method == "POST")
    #expect(request.target == "/v1/x?y=1")
    #expect(request.fields["CONTENT-TYPE"] == "application/json")
    #expect(request.fields["x-empty"] == "")
    #expect(request.fields["absent"] == nil)
    #expect(request.body == Array("hello".utf8))
    #expect(!heard.isDone)
    #expect(
      heard.output
        == "HTTP/1.1 200 OK\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\nx-target: /v1/x?y=1\r\ncontent-length: 5\r\n\r\nhello"
    )
  }

  @Test func aChunkedBodyIsJoinedAndItsTrailersAreDropped() throws {
    let heard = try #require(
      talkAnyWay(
        "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n5;name=\"v\"\r\nhello\r\n00A\r\n, world...\r\n0\r\nX-Trailer: t\r\n\r\nGET /next HTTP/1.1\r\nHost: h\r\n\r\n"
      ))
    #expect(heard.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["hello, world...", ""])
    #expect(heard.requests.first?.fields["x-trailer"] == nil)
    #expect(heard.requests.last?.target == "/next")
    #expect(!heard.isDone)
  }

  @Test func pipelinedRequestsAreAnsweredInOrder() throws {
    let heard = try #require(
      talkAnyWay(
        "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n\r\nPOST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n2HEAD /3 HTTP/1.1\r\nHost: h\r\nConnection: foo, Close\r\n\r\nGET /4 HTTP/1.1\r\nHost: h\r\n\r\n"
      ))
    #expect(heard.requests.map(\.target) == ["/1", "/2", "/3"])
    #expect(heard.statuses == [200, 200, 200])
    #expect(heard.isDone)
    #expect(heard.output.hasSuffix("x-target: /3\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"))
  }

  @Test func aPipelinedRequestWaitsForTheAnswerBeforeIt() {
    let connection = HTTPServerConnection(now: start)
    let bytes = Array("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
    let first = bytes.withUnsafeBytes { connection.receive($0, now: start, wall: wall) }
    #expect(first?.target == "/1")
    #expect([UInt8]("G".utf8).withUnsafeBytes { connection.receive($0, now: start, wall: wall) } == nil)
    #expect(connection.output.isEmpty)
    #expect(connection.nextDeadline == nil)
    let second = connection.respond(HTTPResponse(status: 204), now: start, wall: wall)
    #expect(second?.target == "/2")
    #expect(!String(decoding: connection.output.bytes, as: UTF8.self).contains("content-length"))
    // What was held behind it waits for its rest.
    #expect(connection.respond(HTTPResponse(status: 200), now: start, wall: wall) == nil)
    #expect(!connection.isDone)
  }

  @Test func readingStopsWhileTooMuchIsHeldAndAPeerThatGoesOnIsClosed() {
    var limits = HTTPLimits()
    limits.heldBytesMax = 100
    let connection = HTTPServerConnection(limits: limits, now: start)
    let request = Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
    #expect(request.withUnsafeBytes { connection.receive($0, now: start, wall: wall) } != nil)
    #expect(connection.wantsRead)
    let more = [UInt8](repeating: UInt8(ascii: "G"), count: 100)
    _ = more.withUnsafeBytes { connection.receive($0, now: start, wall: wall) }
    #expect(!connection.wantsRead && !connection.isDone)
    _ = more.withUnsafeBytes { connection.receive($0, now: start, wall: wall) }
    #expect(!connection.isDone)
    _ = [UInt8](more[..<1]).withUnsafeBytes { connection.receive($0, now: start, wall: wall) }
    #expect(connection.isDone)
  }

  @Test func aClientThatAwaitsItIsToldToContinue() throws {
    let heard = try #require(
      talkAnyWay(
        "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\nok"))
    #expect(heard.output.hasPrefix("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"))
    let none = try #require(talkAnyWay("GET / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n"))
    #expect(none.statuses == [200])
    let other = try #require(
      talkAnyWay("POST / HTTP/1.1\r\nHost: h\r\nExpect: tea\r\nContent-Length: 2\r\n\r\nok"))
    #expect(other.statuses == [417])
  }

  @Test func aHeadRequestGetsTheLengthAndNoBody() {
    let connection = HTTPServerConnection(now: start)
    let request = Array("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
    _ = request.withUnsafeBytes { connection.receive($0, now: start, wall: wall) }
    _ = connection.respond(HTTPResponse(status: 200, body: Array("hello".utf8)), now: start, wall: wall)
    #expect(String(decoding: connection.output.bytes, as: UTF8.self).hasSuffix("content-length: 5\r\n\r\n"))
  }

  @Test func keepAliveFollowsTheVersionAndTheConnectionField() throws {
    let old = "GET / HTTP/1.0\r\n\r\n"
    #expect(try #require(talkAnyWay(old)).isDone)
    let kept = "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"
    #expect(try #require(talkAnyWay(kept)).isDone == false)
    let closed = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    #expect(try #require(talkAnyWay(closed)).isDone)
  }

  @Test func anUpgradeHandsOutWhatCameBehindIt() {
    let connection = HTTPServerConnection(now: start)
    let bytes = Array(
      "GET /xmpp HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\r\nframes"
        .utf8)
    let request = bytes.withUnsafeBytes { connection.receive($0, now: start, wall: wall) }
    #expect(request?.upgrade == "websocket")
    _ = connection.respond(
      HTTPResponse(status: 101, fields: ["upgrade": "websocket", "connection": "upgrade"]), now: start,
      wall: wall)
    #expect(connection.takeHeld() == Array("frames".utf8))
    #expect(
      String(decoding: connection.output.bytes, as: UTF8.self)
        == "HTTP/1.1 101 Switching Protocols\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n"
    )
    _ = Array("more".utf8).withUnsafeBytes { connection.receive($0, now: start, wall: wall) }
    #expect(connection.takeHeld() == Array("more".utf8))
    #expect(connection.nextDeadline == nil)
  }

  @Test func anUpgradeThatIsNotTakenIsAnOrdinaryRequest() throws {
    let heard = try #require(
      talkAnyWay(
        "GET /1 HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n"
      ))
    #expect(heard.requests.map(\.target) == ["/1", "/2"])
  }

  @Test func headerValuesOfAnswersCannotBeginALine() {
    let connection = HTTPServerConnection(now: start)
    _ = Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8).withUnsafeBytes {
      connection.receive($0, now: start, wall: wall)
    }
    _ = connection.respond(
      HTTPResponse(status: 302, fields: ["location": "/a\r\nset-cookie: b"]), now: start, wall: wall)
    let text = String(decoding: connection.output.bytes, as: UTF8.self)
    #expect(text.contains("location: /a  set-cookie: b\r\n"))
  }
}
