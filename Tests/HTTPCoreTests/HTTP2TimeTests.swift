import Bytes
import HTTPCore
import Seams
import Testing

struct HTTP2TimeTests {
  private let limits = HTTPLimits()

  @Test func aClientThatSaysNothingIsGivenUp() throws {
    let peer = try HTTP2Peer(greets: false)
    #expect(peer.connection.nextDeadline == start + limits.headTimeout)
    peer.wait(limits.headTimeout - .nanoseconds(1))
    #expect(!peer.connection.isDone)
    peer.wait(.nanoseconds(1))
    #expect(peer.connection.isDone)
  }

  @Test func aHeadThatDoesNotEndIsGivenUp() throws {
    let peer = try HTTP2Peer()
    peer.send(.headers(1, [(":method", "GET")], isWhole: false))
    peer.wait(limits.headTimeout - .nanoseconds(1))
    #expect(!peer.connection.isDone)
    peer.wait(.nanoseconds(1))
    #expect(peer.connection.isDone)
    #expect(peer.farewells(try peer.frames()).last?.last == calm)
  }

  @Test func aBodyThatDoesNotEndIsAnsweredWith408AndOthersGoOn() throws {
    let peer = try HTTP2Peer()
    peer.send(Frame.post(1), .data(1, "x", isLast: false))
    peer.wait(limits.bodyTimeout - .nanoseconds(1))
    #expect(try peer.heads(try peer.frames()).isEmpty)
    peer.send(Frame.get(3))
    peer.wait(.nanoseconds(1))
    #expect(try peer.heads(try peer.frames()).map(\.status) == [408])
    peer.wait(limits.refusedTimeout)
    #expect(peer.resets(try peer.frames()) == [1: 0])
    peer.respond(3, HTTPResponse(status: 200))
    #expect(try peer.heads(try peer.frames()).map(\.status) == [200])
    #expect(!peer.connection.isDone)
  }

  @Test func bytesThatDripDoNotPutTheDeadlineOff() throws {
    let peer = try HTTP2Peer()
    peer.send(Frame.post(1))
    for _ in 0..<30 {
      peer.wait(.seconds(1))
      peer.send(.data(1, "x", isLast: false))
    }
    #expect(try peer.heads(try peer.frames()).map(\.status) == [408])
  }

  @Test func aWindowThatNeverOpensDoesNotHoldTheAnswerForEver() throws {
    let peer = try HTTP2Peer(.settings((4, 0)))
    peer.send(Frame.get(1))
    peer.respond(1, HTTPResponse(status: 200, body: [1]))
    peer.wait(limits.answerTimeout - .nanoseconds(1))
    #expect(peer.connection.isBusy)
    peer.wait(.nanoseconds(1))
    #expect(peer.resets(try peer.frames()) == [1: 8])
    #expect(!peer.connection.isBusy)
  }

  @Test func aWindowThatOpensByAByteDoesNotEither() throws {
    let peer = try HTTP2Peer(.settings((4, 0)))
    peer.send(Frame.get(1))
    peer.respond(1, HTTPResponse(status: 200, body: [UInt8](repeating: 1, count: 100)))
    for _ in 0..<30 {
      peer.send(.windowUpdate(1, 1))
      peer.wait(.seconds(1))
    }
    #expect(peer.resets(try peer.frames()) == [1: 8])
  }

  @Test func aRequestMayBeAnsweredLate() throws {
    let peer = try HTTP2Peer()
    peer.send(Frame.get(1))
    peer.wait(.seconds(3_600))
    peer.respond(1, HTTPResponse(status: 200))
    #expect(try peer.heads(try peer.frames()).map(\.status) == [200])
  }

  @Test func anIdleConnectionIsSaidGoodbyeTo() throws {
    let peer = try HTTP2Peer()
    peer.send(Frame.get(1))
    peer.respond(1, HTTPResponse(status: 200))
    // Pings are no use of a connection.
    peer.wait(.seconds(40))
    peer.send(Frame(kind: .ping, payload: [0, 0, 0, 0, 0, 0, 0, 0]))
    peer.wait(limits.idleTimeout - .seconds(40) - .nanoseconds(1))
    #expect(!peer.connection.isDone)
    peer.wait(.nanoseconds(1))
    #expect(peer.connection.isDone)
    #expect(peer.farewells(try peer.frames()) == [[1, 0]])
  }

  // MARK: The end

  @Test func aDrainAnnouncesThenRefusesAndEndsWithTheLastAnswer() throws {
    let peer = try HTTP2Peer()
    peer.send(Frame.get(1))
    _ = try peer.frames()
    peer.drain()
    var frames = try peer.frames()
    #expect(peer.farewells(frames) == [[UInt32(Int32.max), 0]])
    let ping = try #require(frames.first { $0.kind == .ping })
    // Sent before the notice was read: served.
    peer.send(Frame.get(3))
    #expect(peer.arrivals.map(\.stream) == [1, 3])
    peer.send(Frame(kind: .ping, flags: Frame.ack, payload: ping.payload))
    frames = try peer.frames()
    #expect(peer.farewells(frames) == [[3, 0]])
    // Sent after: not run, and the client knows.
    peer.send(Frame.get(5))
    #expect(peer.arrivals.count == 2)
    peer.respond(3, HTTPResponse(status: 200))
    #expect(!peer.connection.isDone)
    peer.respond(1, HTTPResponse(status: 200))
    #expect(peer.connection.isDone)
    #expect(try peer.heads(try peer.frames()).map(\.stream) == [3, 1])
  }

  @Test func aDrainDoesNotWaitForAClientThatDoesNotAnswer() throws {
    let peer = try HTTP2Peer()
    peer.drain()
    #expect(!peer.connection.isDone)
    peer.wait(limits.drainNotice)
    #expect(peer.connection.isDone)
    #expect(peer.farewells(try peer.frames()).count == 2)
  }

  @Test func aPeerThatEndedStillGetsItsAnswers() throws {
    let peer = try HTTP2Peer()
    peer.send(Frame.get(1), Frame.post(3))
    peer.connection.receiveEnd(now: peer.now)
    peer.flush()
    #expect(!peer.connection.isDone)
    peer.respond(1, HTTPResponse(status: 200))
    #expect(peer.connection.isDone)
    let frames = try peer.frames()
    #expect(try peer.heads(frames).map(\.stream) == [1] && peer.resets(frames) == [3: 8])
    let idle = try HTTP2Peer()
    idle.connection.receiveEnd(now: idle.now)
    #expect(idle.connection.isDone)
  }
}
