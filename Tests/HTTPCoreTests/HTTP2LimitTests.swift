import Bytes
import HTTPCore
import Seams
import Testing

struct HTTP2LimitTests {
  @Test func theHeadHasALimit() throws {
    let limits = HTTPLimits()
    // As RFC 9113 §6.5.2 counts: four pseudo fields and the one that fills.
    let fixed = [(":method", "POST"), (":scheme", "https"), (":authority", "h"), (":path", "/"), ("x", "")]
      .reduce(0) { $0 + $1.0.utf8.count + $1.1.utf8.count + 32 }
    func statuses(_ count: Int) throws -> [Int] {
      let peer = try HTTP2Peer()
      peer.send(Frame.post(1, [("x", String(repeating: "a", count: count - fixed))]), .data(1, "b"))
      for arrival in peer.arrivals { peer.respond(arrival.stream, HTTPResponse(status: 200)) }
      return try peer.heads(try peer.frames()).map(\.status)
    }
    #expect(try statuses(limits.headBytesMax - 300) == [200])
    var few = limits
    few.fieldsMax = 5
    let peer = try HTTP2Peer(limits: few)
    peer.send(Frame.get(1, [("x", "1")]), Frame.get(3, [("x", "1"), ("y", "1")]))
    #expect(peer.arrivals.map(\.stream) == [1])
    #expect(try peer.heads(try peer.frames()).map(\.status) == [431])
    var small = limits
    small.headBytesMax = fixed + 100
    func answer(_ count: Int) throws -> (statuses: [Int], resets: [UInt32: UInt32], next: Bool) {
      let peer = try HTTP2Peer(limits: small)
      peer.send(Frame.get(1, [("x", String(repeating: "a", count: count - fixed))]))
      peer.send(Frame.get(3))
      let frames = try peer.frames()
      return (try peer.heads(frames).map(\.status), peer.resets(frames), peer.arrivals.last?.stream == 3)
    }
    // GET has a byte less than POST.
    #expect(try answer(fixed + 101).statuses.isEmpty)
    #expect(try answer(fixed + 102).statuses == [431])
    // So large that it is not read to its end.
    let huge = try answer(5 * (fixed + 100))
    #expect(huge.statuses.isEmpty && huge.resets.keys.contains(1) && huge.next)
  }

  @Test func theBodyHasALimitStatedOrNot() throws {
    var limits = HTTPLimits()
    limits.bodyBytesMax = 10
    func peer(_ fields: [(String, String)], _ pieces: [String]) throws -> HTTP2Peer {
      let peer = try HTTP2Peer(limits: limits)
      peer.send(Frame.post(1, fields))
      for (index, piece) in pieces.enumerated() {
        peer.send(.data(1, piece, isLast: index == pieces.count - 1))
      }
      return peer
    }
    #expect(try peer([], ["12345", "67890"]).arrivals.count == 1)
    #expect(try peer([("content-length", "10")], ["1234567890"]).arrivals.count == 1)
    let unstated = try peer([], ["12345", "678901"])
    #expect(unstated.arrivals.isEmpty)
    #expect(try unstated.heads(try unstated.frames()).map(\.status) == [413])
    // By the head alone; the client that sends on is stopped after a moment.
    let stated = try peer([("content-length", "11")], [])
    stated.send(.data(1, "12345", isLast: false))
    let frames = try stated.frames()
    #expect(try stated.heads(frames).map(\.status) == [413])
    #expect(stated.resets(frames).isEmpty)
    stated.wait(limits.refusedTimeout)
    #expect(stated.resets(try stated.frames()) == [1: 0])
    // Or when it has sent as much again.
    let loud = try peer([], ["12345678901", "12345678901", "1"])
    let resets = loud.resets(try loud.frames())
    #expect(resets == [1: 0])
    #expect(!loud.connection.isBusy)
  }

  @Test func bodiesOfOneConnectionHaveALimitTogether() throws {
    var limits = HTTPLimits()
    limits.bodyBytesHeldMax = 10
    let peer = try HTTP2Peer(limits: limits)
    peer.send(Frame.post(1), .data(1, "12345", isLast: false), Frame.post(3), .data(3, "67890"))
    peer.send(Frame.post(5), .data(5, "x"))
    #expect(peer.resets(try peer.frames()) == [5: 7])
    peer.respond(3, HTTPResponse(status: 200))
    peer.send(Frame.post(7), .data(7, "abcde"))
    #expect(peer.arrivals.map(\.stream) == [3, 7])
    peer.send(.reset(1), Frame.post(9), .data(9, "abcde"))
    #expect(peer.arrivals.map(\.stream) == [3, 7, 9])
  }

  @Test func streamsBeyondTheMostAreRefused() throws {
    var limits = HTTPLimits()
    limits.streamsMax = 3
    let peer = try HTTP2Peer(limits: limits, greets: false)
    peer.send(Frame.preface)
    peer.send(.settings(), .get(1), .get(3), .get(5), .get(7))
    #expect(peer.arrivals.map(\.stream) == [1, 3, 5])
    #expect(peer.resets(try peer.frames()) == [7: 7])
    peer.respond(3, HTTPResponse(status: 200))
    peer.send(Frame.get(9))
    #expect(peer.arrivals.map(\.stream) == [1, 3, 5, 9])
    // A client that has said that it knows the limit breaks the protocol.
    peer.send(Frame(kind: .settings, flags: Frame.ack), .get(11))
    #expect(peer.connection.isDone)
  }

  @Test func theSettingsTellTheLimits() throws {
    let settings = try #require(try HTTP2Peer().frames().first)
    #expect(settings.kind == .settings)
    let pairs = stride(from: 0, to: settings.payload.count, by: 6).map { at in
      [UInt32(settings.payload[at]) << 8 | UInt32(settings.payload[at + 1])]
        + [value(settings.payload[(at + 2)...])]
    }
    let limits = HTTPLimits()
    #expect(pairs.contains([3, UInt32(limits.streamsMax)]))
    #expect(pairs.contains([4, UInt32(limits.streamWindowBytes)]))
    #expect(pairs.contains([6, UInt32(limits.headBytesMax)]))
  }

  // MARK: Floods

  /// Sends until the server has had enough.
  private func flood(
    _ limits: HTTPLimits = HTTPLimits(), before: [Frame] = [], _ frames: (UInt32) -> [Frame]
  ) throws -> (peer: HTTP2Peer, sent: Int) {
    let peer = try HTTP2Peer(limits: limits)
    peer.send(before.flatMap(\.bytes))
    var sent = 0
    while !peer.connection.isDone, sent < 10_000 {
      peer.send(frames(UInt32(2 * sent + 1)).flatMap(\.bytes))
      sent += 1
    }
    return (peer, sent)
  }

  @Test func streamsThatAreResetAtOnceEndTheConnection() throws {
    let limits = HTTPLimits()
    let (peer, sent) = try flood { [.get($0), .reset($0)] }
    #expect(sent == limits.resetsMax + 1)
    #expect(peer.farewells(try peer.frames()).last?.last == calm)
    #expect(peer.connection.isDone && peer.connection.nextDeadline == nil)
  }

  @Test func resetsThatComeSlowlyAreFine() throws {
    var limits = HTTPLimits()
    limits.resetsMax = 5
    limits.resetsPerSecond = 10
    let peer = try HTTP2Peer(limits: limits)
    for number in 0..<50 {
      peer.send(Frame.get(UInt32(2 * number + 1)), .reset(UInt32(2 * number + 1)))
      peer.wait(.milliseconds(100))
    }
    #expect(!peer.connection.isDone && peer.arrivals.count == 50)
  }

  /// A peer may make the server reset its streams instead.
  @Test func resetsThatThePeerProvokesCountToo() throws {
    let limits = HTTPLimits()
    let (peer, sent) = try flood { [.get($0), .windowUpdate($0, 0x7FFF_FFFF)] }
    #expect(sent <= limits.resetsMax + 2)
    #expect(peer.farewells(try peer.frames()).last?.last == calm)
  }

  @Test(arguments: ["ping", "settings", "priority", "window", "empty data"])
  func framesThatCarryNothingEndTheConnectionWhenTheyAreTooMany(_ kind: String) throws {
    let limits = HTTPLimits()
    let (peer, sent) = try flood(before: [.post(1)]) { _ in
      switch kind {
      case "ping": [Frame(kind: .ping, payload: [0, 0, 0, 0, 0, 0, 0, 0])]
      case "settings": [.settings()]
      case "priority": [Frame(kind: .priority, stream: 3, payload: [0, 0, 0, 0, 1])]
      case "window": [.windowUpdate(0, 1)]
      default: [.data(1, "", isLast: false)]
      }
    }
    #expect(sent > limits.uselessFramesMax - 10 && sent <= limits.uselessFramesMax + 1)
    #expect(peer.farewells(try peer.frames()).last?.last == calm)
  }

  @Test func aClientThatWorksMayAlsoPing() throws {
    let peer = try HTTP2Peer()
    for number in 0..<5_000 {
      let stream = UInt32(2 * number + 1)
      peer.send(
        Frame.get(stream), .windowUpdate(0, 1), Frame(kind: .ping, payload: [0, 0, 0, 0, 0, 0, 0, 0]))
      peer.respond(Int32(stream), HTTPResponse(status: 200))
    }
    #expect(!peer.connection.isDone && peer.arrivals.count == 5_000)
  }

  @Test func aHeaderBlockInManyPiecesEndsTheConnection() throws {
    let peer = try HTTP2Peer()
    peer.send(.headers(1, [(":method", "GET")], isWhole: false))
    var sent = 0
    while !peer.connection.isDone, sent < 100 {
      peer.send(Frame(kind: .continuation, stream: 1, payload: Frame.block([("x", "y")])))
      sent += 1
    }
    #expect(sent <= 9)
    #expect(!peer.farewells(try peer.frames()).isEmpty)
  }

  @Test func manyPingsInOneReadDoNotGrowTheOutputWithoutBound() throws {
    let peer = try HTTP2Peer()
    peer.send((0..<100_000).flatMap { _ in Frame(kind: .ping, payload: [0, 0, 0, 0, 0, 0, 0, 0]).bytes })
    #expect(peer.connection.isDone && peer.bytes.count < 64 * 1024)
  }

  /// Bytes that are no frames of a client.
  @Test(arguments: [
    "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\u{0}\u{0}\u{0}\u{1}\u{0}\u{0}\u{0}\u{0}\u{1}",
  ])
  func aWrongBeginningEndsTheConnection(_ text: String) throws {
    let peer = try HTTP2Peer(greets: false)
    peer.send(Array(text.utf8))
    #expect(peer.connection.isDone && peer.arrivals.isEmpty)
  }

  @Test(arguments: [
    Frame(kind: .data, stream: 5, payload: [1]), Frame(kind: .settings, payload: [1]),
    Frame(kind: .ping, payload: [1]), Frame(kind: .goAway, stream: 1, payload: [0, 0, 0, 0, 0, 0, 0, 0]),
    Frame(kind: .windowUpdate, payload: [0, 0, 0, 0]), Frame(kind: .continuation, stream: 1),
    Frame(kind: .pushPromise, flags: 4, stream: 1, payload: [0, 0, 0, 2]), Frame.get(2),
    Frame(kind: .headers, flags: 5, stream: 1, payload: [0xFF, 0xFF, 0xFF, 0xFF]),
    Frame(kind: .data, stream: 1, payload: [UInt8](repeating: 0, count: 20_000)),
  ])
  func aBrokenFrameEndsTheConnectionWithAnErrorAndItsStreamsUnrun(_ frame: Frame) throws {
    let peer = try HTTP2Peer()
    peer.send(frame)
    #expect(peer.arrivals.isEmpty && peer.connection.isDone)
    let code = try #require(peer.farewells(try peer.frames()).last?.last)
    #expect(code != 0)
  }
}
