import Bytes
import HTTPCore
import Seams
import Testing

struct HTTP2RequestTests {
  @Test func aRequestIsReadAndAnsweredInEveryCut() throws {
    let input =
      Frame.preface
      + [
        .settings(), Frame.post(1, [("content-type", "application/json"), ("cookie", "a=1")], path: "/x?y"),
        .data(1, "hel", isLast: false), .data(1, "lo"),
      ].flatMap(\.bytes)
    var first: [HTTPRequest]?
    for pieces in cuts(of: input) {
      let peer = try HTTP2Peer(greets: false)
      for piece in pieces { peer.send(piece) }
      let requests = peer.arrivals.map(\.request)
      #expect(requests == (first ?? requests))
      first = requests
      peer.respond(
        1, HTTPResponse(status: 200, fields: ["Content-Type": "text/plain"], body: Array("done".utf8)))
      let frames = try peer.frames()
      let head = try #require(try peer.heads(frames).first)
      #expect(head.status == 200)
      #expect(head.fields["content-type"] == "text/plain")
      #expect(head.fields["content-length"] == "4")
      #expect(head.fields["date"] == "Sun, 06 Nov 1994 08:49:37 GMT")
      #expect(frames.last == .data(1, "done"))
    }
    let request = try #require(first?.first)
    #expect(request.method == "POST" && request.target == "/x?y")
    #expect(request.fields["host"] == "h")
    #expect(request.fields["content-type"] == "application/json")
    #expect(request.body == Array("hello".utf8))
  }

  @Test func manyRequestsAreAnsweredInAnyOrder() throws {
    let peer = try HTTP2Peer()
    let numbers = (0..<200).map { UInt32(2 * $0 + 1) }
    peer.send(numbers.flatMap { Frame.post($0, path: "/\($0)").bytes + Frame.data($0, "\($0)").bytes })
    #expect(peer.arrivals.map(\.request.target) == numbers.map { "/\($0)" })
    for arrival in peer.arrivals.reversed() {
      peer.respond(arrival.stream, HTTPResponse(status: 200, body: arrival.request.body))
    }
    let frames = try peer.frames()
    let answers = frames.filter { $0.kind == .data }
    #expect(answers.map(\.stream) == numbers.reversed())
    #expect(answers.allSatisfy { $0.payload == Array("\($0.stream)".utf8) && $0.flags == Frame.endStream })
    #expect(!peer.connection.isBusy)
  }

  @Test func answersWithoutABodyHaveNone() throws {
    let peer = try HTTP2Peer()
    peer.send(
      Frame.headers(
        1, [(":method", "HEAD"), (":scheme", "https"), (":authority", "h"), (":path", "/")], isLast: true))
    peer.send(Frame.get(3), Frame.get(5))
    peer.respond(1, HTTPResponse(status: 200, body: Array("four".utf8)))
    peer.respond(3, HTTPResponse(status: 204))
    peer.respond(5, HTTPResponse(status: 304))
    let frames = try peer.frames()
    #expect(!frames.contains { $0.kind == .data })
    #expect(frames.filter { $0.kind == .headers }.allSatisfy { $0.flags & Frame.endStream != 0 })
    let heads = try peer.heads(frames)
    #expect(heads.map(\.status) == [200, 204, 304])
    #expect(heads.map { $0.fields["content-length"] } == ["4", nil, nil])
  }

  @Test func fieldsThatHTTP2ForbidsAreNotSentAndNoneBeginsALine() throws {
    let peer = try HTTP2Peer()
    peer.send(Frame.get(1))
    peer.respond(
      1,
      HTTPResponse(
        status: 200,
        fields: [
          "Connection": "close", "Keep-Alive": "1", "Transfer-Encoding": "chunked", "Upgrade": "x",
          "X-Text": "a\r\nb: c",
        ]))
    let fields = try #require(try peer.heads(try peer.frames()).first).fields
    #expect(Set(fields.keys) == [":status", "date", "x-text", "content-length"])
    #expect(fields["x-text"] == "a  b: c")
  }

  @Test func aClientThatWaitsForContinueGetsIt() throws {
    let peer = try HTTP2Peer()
    peer.send(Frame.post(1, [("expect", "100-continue")]))
    #expect(try peer.heads(try peer.frames()).map(\.status) == [100])
    peer.send(.data(1, "x"))
    peer.respond(1, HTTPResponse(status: 200))
    #expect(try peer.heads(try peer.frames()).map(\.status) == [200])
    peer.send(Frame.post(3, [("expect", "200-maybe")]))
    #expect(try peer.heads(try peer.frames()).map(\.status) == [417])
  }

  @Test func trailersAreReadAndDropped() throws {
    let peer = try HTTP2Peer()
    peer.send(
      Frame.post(1), .data(1, "x", isLast: false), .headers(1, [("x-sum", "1")], isLast: true))
    let request = try #require(peer.arrivals.first).request
    #expect(request.body == [UInt8(ascii: "x")] && request.fields["x-sum"] == nil)
  }

  @Test func anAnswerKeepsToTheClientsWindow() throws {
    let peer = try HTTP2Peer(.settings((4, 10)))
    peer.send(Frame.get(1))
    peer.respond(1, HTTPResponse(status: 200, body: Array("0123456789abcdefghijklmno".utf8)))
    #expect(try peer.frames().filter { $0.kind == .data } == [.data(1, "0123456789", isLast: false)])
    peer.send(.windowUpdate(1, 12))
    #expect(try peer.frames() == [.data(1, "abcdefghijkl", isLast: false)])
    peer.send(.windowUpdate(1, 100))
    #expect(try peer.frames() == [.data(1, "mno")])
  }

  @Test func anAnswerForAStreamThatIsGoneIsDropped() throws {
    let peer = try HTTP2Peer()
    peer.send(Frame.get(1), .reset(1))
    #expect(peer.arrivals.count == 1 && !peer.connection.awaits(1))
    _ = try peer.frames()
    peer.respond(1, HTTPResponse(status: 200))
    peer.respond(99, HTTPResponse(status: 200))
    #expect(try peer.frames().isEmpty)
  }

  /// What HTTP/1.1 says with its first line, and RFC 9113 §8.2 and 8.3 ask for.
  @Test(arguments: [
    [(":method", "POST"), (":scheme", "https"), (":authority", "h")],
    [(":method", "POST"), (":authority", "h"), (":path", "/")],
    [(":scheme", "https"), (":authority", "h"), (":path", "/")],
    [(":method", "POST"), (":method", "GET"), (":scheme", "https"), (":authority", "h"), (":path", "/")],
    [("x", "1"), (":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", "/")],
    [(":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", "/"), (":status", "200")],
    [(":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", "")],
    [(":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", "/a b")],
    [(":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", "/é")],
    [(":method", "POST"), (":scheme", "https"), (":path", "/")],
    [(":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", "/"), ("host", "other")],
    [(":method", "CONNECT"), (":authority", "h")],
    [(":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", "/"), ("X-Upper", "1")],
    [
      (":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", "/"), ("connection", "close"),
    ],
    [
      (":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", "/"),
      ("transfer-encoding", "chunked"),
    ],
    [(":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", "/"), ("te", "gzip")],
    [(":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", "/"), ("x", "a\r\nb")],
    [(":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", "/"), ("a b", "1")],
    [
      (":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", "/"), ("content-length", "2"),
    ],
    [
      (":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", "/"),
      ("content-length", "1"), ("content-length", "1"),
    ],
    [
      (":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", "/"), ("content-length", "x"),
    ],
  ])
  func aMalformedHeadIsNeverRunAndEndsItsStreamOnly(_ fields: [(String, String)]) throws {
    let peer = try HTTP2Peer()
    peer.send(.headers(1, fields), .data(1, "x"))
    peer.send(Frame.get(3))
    #expect(peer.arrivals.map(\.stream) == [3])
    let frames = try peer.frames()
    #expect(peer.farewells(frames).isEmpty)
    if peer.resets(frames)[1] == nil { #expect(try peer.heads(frames).map(\.status) == [400]) }
  }
}
