import Bytes
import HTTPCore
import Seams
import Testing

private let post = "POST / HTTP/1.1\r\nHost: h\r\n"
private let hidden = "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n"

struct HTTPRefusalTests {
  /// Body lengths that can be read in two ways.
  ///
  /// Each is refused whole, and what is hidden behind is never run.
  @Test(arguments: [
    "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: identity\r\n\r\n",
    "Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n",
    " Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding:\u{0B}chunked\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: chunked\u{0C}\r\n\r\n0\r\n\r\n",
    "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
    "Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd",
    "Content-Length: 4, 4\r\n\r\nabcd",
    "Content-Length: +4\r\n\r\nabcd",
    "Content-Length: -4\r\n\r\nabcd",
    "Content-Length: 0x4\r\n\r\nabcd",
    "Content-Length: 4 4\r\n\r\nabcd",
    "Content-Length: 4a\r\n\r\nabcd",
    "Content-Length:\r\n\r\n",
    "Content-Length: 99999999999999999999\r\n\r\n",
    "Content-Length : 4\r\n\r\nabcd",
    "Content-Length: 4\n\r\nabcd",
    "X: a\nContent-Length: 4\r\n\r\nabcd",
    "X: a\rContent-Length: 4\r\n\r\nabcd",
    "Content-Length: 4\r\n\nabcd",
    "X: a\r\n b\r\nContent-Length: 4\r\n\r\nabcd",
  ])
  func anyDoubtAboutTheLengthOfABodyIsRefused(_ rest: String) throws {
    let heard = try #require(talkAnyWay(post + rest + hidden), "cuts differ")
    #expect(heard.requests.isEmpty)
    #expect(heard.statuses == [400])
    #expect(heard.isDone)
    #expect(heard.output.contains("connection: close\r\n"))
  }

  /// Chunks framed loosely.
  @Test(arguments: [
    "5\r\nhelloXY0\r\n\r\n", "5\r\nhello0\r\n\r\n", "5\nhello\r\n0\r\n\r\n", "5;a\nb\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\n0\r\n\r\n", "5\rXhello\r\n0\r\n\r\n", "-5\r\nhello\r\n0\r\n\r\n",
    "0x5\r\nhello\r\n0\r\n\r\n",
    "+5\r\nhello\r\n0\r\n\r\n", " 5\r\nhello\r\n0\r\n\r\n", "\r\n5\r\nhello\r\n0\r\n\r\n", "g\r\n",
    "FFFFFFFFFFFFFFFFF\r\nhello\r\n", "5\r\nhello\r\n0\r\nX: a\n\r\n", "5\r\nhello\r\n0\r\nX : a\r\n\r\n",
    "5\r\nhello\r\n0\r\n\n", "5\r\nhello\r\n0\n\r\n", "5\r\nhello\r\r\n0\r\n\r\n",
  ])
  func looselyFramedChunksAreRefused(_ chunks: String) throws {
    let heard = try #require(
      talkAnyWay(post + "Transfer-Encoding: chunked\r\n\r\n" + chunks + hidden), "cuts differ")
    #expect(heard.requests.isEmpty)
    #expect(heard.statuses == [400])
    #expect(heard.isDone)
  }

  @Test(arguments: [
    ("GET / HTTP/1.1\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    ("GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("GET /\u{1} HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("GET /é HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHo st: h\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: h\r\nX: a\u{0}b\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: h\r\nX: a\u{7F}b\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: h\r\n: empty\r\n\r\n", 400),
    ("CONNECT h:443 HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("BREW / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("get / HTTP/1.1\r\nHost: h\r\n\r\n", 400),
    ("\u{16}\u{3}\u{1}\u{0}", 400),
    ("<stream:stream>", 400),
    ("GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505),
    ("GET / HTTP/1.2\r\nHost: h\r\n\r\n", 505),
    ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
  ])
  func aMalformedHeadIsRefusedAndTheConnectionCloses(_ input: String, _ status: Int) throws {
    let heard = try #require(talkAnyWay(input + hidden), "cuts differ")
    #expect(heard.requests.isEmpty)
    #expect(heard.statuses == [status])
    #expect(heard.isDone)
  }

  @Test func nothingBehindAFaultIsRun() throws {
    let heard = try #require(
      talkAnyWay("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n" + post + "Content-Length: x\r\n\r\n" + hidden))
    #expect(heard.requests.map(\.target) == ["/1"])
    #expect(heard.statuses == [200, 400])
  }

  @Test func aBodyLongerThanStatedIsTheNextRequestOrAFault() throws {
    let heard = try #require(talkAnyWay(post + "Content-Length: 4\r\n\r\nabcdSURPLUS\r\n" + hidden))
    #expect(heard.requests.map(\.body) == [Array("abcd".utf8)])
    #expect(heard.statuses == [200, 400])
    #expect(heard.isDone)
  }

  @Test func theHeadHasALimit() throws {
    let limits = HTTPLimits()
    func head(_ count: Int) -> String {
      let frame = "GET / HTTP/1.1\r\nHost: h\r\nX: \r\n\r\n"
      return "GET / HTTP/1.1\r\nHost: h\r\nX: " + String(repeating: "a", count: count - frame.utf8.count)
        + "\r\n\r\n"
    }
    #expect(try #require(talkAnyWay(head(limits.headBytesMax))).statuses == [200])
    #expect(try #require(talkAnyWay(head(limits.headBytesMax + 1))).statuses == [431])
    let target = "GET /" + String(repeating: "a", count: limits.headBytesMax) + " HTTP/1.1\r\nHost: h\r\n\r\n"
    #expect(try #require(talkAnyWay(target)).statuses == [414])
    let many =
      "GET / HTTP/1.1\r\nHost: h\r\n" + String(repeating: "X: a\r\n", count: limits.fieldsMax) + "\r\n"
    #expect(try #require(talkAnyWay(many)).statuses == [431])
  }

  @Test func theBodyHasALimitStatedOrChunked() throws {
    var limits = HTTPLimits()
    limits.bodyBytesMax = 10
    func stated(_ count: Int) -> String {
      post + "Content-Length: \(count)\r\n\r\n" + String(repeating: "a", count: count)
    }
    #expect(try #require(talkAnyWay(stated(10), limits: limits)).statuses == [200])
    #expect(try #require(talkAnyWay(stated(11), limits: limits)).statuses == [413])
    // Refused by the head alone, and not told to continue.
    let awaited = post + "Expect: 100-continue\r\nContent-Length: 11\r\n\r\n"
    #expect(try #require(talkAnyWay(awaited, limits: limits)).statuses == [413])
    limits.bodyBytesMax = 20
    let chunked = post + "Transfer-Encoding: chunked\r\n\r\n"
    #expect(
      try #require(talkAnyWay(chunked + "9\r\n123456789\r\n0\r\n\r\n", limits: limits)).statuses == [200])
    #expect(
      try #require(talkAnyWay(chunked + "15\r\n123456789012345678901\r\n0\r\n\r\n", limits: limits)).statuses
        == [413])
    // Twenty bytes of body may have twenty bytes of framing.
    let framing = chunked + String(repeating: "1\r\na\r\n", count: 6) + "0\r\n\r\n"
    #expect(try #require(talkAnyWay(framing, limits: limits)).statuses == [413])
  }

  @Test func aRequestThatIsCutIsRefusedAndAnIdleEndIsQuiet() throws {
    #expect(try #require(talkAnyWay(post, ends: true)).statuses == [400])
    #expect(try #require(talkAnyWay(post + "Content-Length: 4\r\n\r\nab", ends: true)).statuses == [400])
    let idle = try #require(talkAnyWay("\r\n", ends: true))
    #expect(idle.output.isEmpty && idle.isDone)
  }

  @Test func aPeerThatEndedStillGetsItsAnswer() {
    let connection = HTTPServerConnection(now: start)
    _ = Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8).withUnsafeBytes {
      connection.receive($0, now: start, wall: wall)
    }
    connection.receiveEnd(wall: wall)
    #expect(!connection.isDone && !connection.wantsRead)
    _ = connection.respond(HTTPResponse(status: 200), now: start, wall: wall)
    #expect(connection.isDone)
    #expect(String(decoding: connection.output.bytes, as: UTF8.self).contains("connection: close"))
  }
}
