import HTTPCore
import Testing

/// Extended CONNECT (RFC 8441): streams that carry another protocol.
struct HTTP2TunnelTests {
  private static let accepted = HTTPResponse(status: 200, fields: ["sec-websocket-protocol": "xmpp"])

  private func head(_ stream: UInt32 = 1, _ more: [(String, String)] = [], isLast: Bool = false) -> Frame {
    .headers(
      stream,
      [
        (":method", "CONNECT"), (":protocol", "WebSocket"), (":scheme", "https"), (":path", "/xmpp"),
        (":authority", "h"), ("sec-websocket-version", "13"),
      ] + more, isLast: isLast)
  }

  private func opened(_ peer: HTTP2Peer, _ stream: UInt32 = 1) throws {
    peer.send(head(stream))
    try #require(peer.connection.accept(Int32(stream), Self.accepted, now: peer.now, wall: wall))
    peer.flush()
    _ = try peer.frames()
  }

  private func event(_ text: String) -> HTTP2TunnelEvent {
    HTTP2TunnelEvent(stream: 1, what: .bytes(Array(text.utf8)))
  }

  @Test func theSettingsOfferExtendedConnect() throws {
    let settings = try #require(try HTTP2Peer().frames().first)
    let pairs = stride(from: 0, to: settings.payload.count, by: 6).map { settings.payload[$0...].prefix(6) }
    #expect(pairs.contains { Array($0) == [0, 8, 0, 0, 0, 1] })
  }

  @Test func aTunnelArrivesBeforeAnyBodyAndCarriesBothWays() throws {
    let peer = try HTTP2Peer()
    _ = try peer.frames()
    peer.send(head())
    let request = try #require(peer.arrivals.first?.request)
    #expect(request.method == "CONNECT" && request.tunnel == "websocket" && request.target == "/xmpp")
    #expect(request.fields["host"] == "h")
    #expect(peer.connection.accept(1, Self.accepted, now: peer.now, wall: wall))
    peer.flush()
    var frames = try peer.frames()
    let answer = try #require(try peer.heads(frames).first)
    #expect(answer.status == 200 && answer.fields["content-length"] == nil)
    #expect(answer.fields["sec-websocket-protocol"] == "xmpp")
    #expect(frames.allSatisfy { $0.kind != .headers || $0.flags & Frame.endStream == 0 })

    peer.send(.data(1, "up", isLast: false))
    #expect(peer.connection.takeTunnelEvents() == [event("up")])
    peer.connection.send(1, Array("down".utf8))
    #expect(peer.connection.bytesQueued(1) == 4)
    peer.flush()
    #expect(peer.connection.bytesQueued(1) == 0)
    frames = try peer.frames()
    #expect(frames == [Frame(kind: .data, stream: 1, payload: Array("down".utf8))])

    peer.send(.data(1, "bye"))
    #expect(peer.connection.takeTunnelEvents() == [event("bye"), HTTP2TunnelEvent(stream: 1, what: .end)])
    #expect(peer.connection.hasTunnels)
    peer.connection.send(1, Array("last".utf8))
    peer.connection.finish(1)
    peer.flush()
    #expect(try peer.frames() == [.data(1, "last")])
    #expect(peer.connection.takeTunnelEvents() == [HTTP2TunnelEvent(stream: 1, what: .closed)])
    #expect(!peer.connection.hasTunnels && !peer.connection.isDone)
  }

  @Test func bytesThatComeBeforeTheAnswerAreKept() throws {
    let peer = try HTTP2Peer()
    peer.send(head())
    peer.send(.data(1, "ear", isLast: false))
    peer.send(.data(1, "ly"))
    #expect(peer.connection.takeTunnelEvents().isEmpty)
    #expect(peer.connection.accept(1, Self.accepted, now: peer.now, wall: wall))
    #expect(peer.connection.takeTunnelEvents() == [event("early"), HTTP2TunnelEvent(stream: 1, what: .end)])
  }

  @Test func aTunnelMayBeRefusedAndTheConnectionGoesOn() throws {
    let peer = try HTTP2Peer()
    _ = try peer.frames()
    peer.send(head())
    peer.send(.data(1, "early", isLast: false))
    peer.respond(1, HTTPResponse(status: 403))
    #expect(!peer.connection.accept(1, Self.accepted, now: peer.now, wall: wall))
    peer.send(.data(1, "late", isLast: false))
    peer.wait(.seconds(2))
    let frames = try peer.frames()
    #expect(try peer.heads(frames).map(\.status) == [403])
    #expect(peer.resets(frames) == [1: 0])
    #expect(peer.connection.takeTunnelEvents().isEmpty)
    peer.send(.get(3))
    #expect(peer.arrivals.last?.stream == 3)
  }

  @Test func whatIsNoTunnelIsRefused() throws {
    let peer = try HTTP2Peer()
    _ = try peer.frames()
    // With its end already, without a protocol, and a protocol for a GET.
    peer.send(head(1, isLast: true))
    peer.send(.headers(3, [(":method", "CONNECT"), (":authority", "h")]))
    peer.send(.get(5, [(":protocol", "websocket")]))
    let frames = try peer.frames()
    #expect(try peer.heads(frames).map(\.status) == [400, 400])
    #expect(peer.resets(frames)[5] == 1)
    #expect(peer.arrivals.isEmpty)
    peer.send(.get(7))
    #expect(!peer.connection.accept(7, Self.accepted, now: peer.now, wall: wall))
  }

  @Test func theWindowOpensAsBytesAreTaken() throws {
    var limits = HTTPLimits()
    limits.streamWindowBytes = 1_000
    let peer = try HTTP2Peer(limits: limits)
    try opened(peer)
    peer.send(.data(1, String(repeating: "x", count: 1_000), isLast: false))
    #expect(try peer.frames().allSatisfy { $0.kind != .windowUpdate || $0.stream == 0 })
    peer.connection.consumed(1, 1_000)
    peer.flush()
    #expect(try peer.frames() == [.windowUpdate(1, 1_000)])
    // More than came is not given.
    peer.connection.consumed(1, 1_000)
    peer.flush()
    #expect(try peer.frames().isEmpty)
  }

  @Test func bytesThatNobodyTakesHaveALimitOverAllTunnels() throws {
    var limits = HTTPLimits()
    limits.bodyBytesHeldMax = 1_000
    let peer = try HTTP2Peer(limits: limits)
    try opened(peer, 1)
    try opened(peer, 3)
    let much = String(repeating: "x", count: 600)
    peer.send(.data(1, much, isLast: false), .data(3, much, isLast: false))
    #expect(peer.resets(try peer.frames()) == [3: 7])
    #expect(peer.connection.takeTunnelEvents() == [event(much), HTTP2TunnelEvent(stream: 3, what: .closed)])
    peer.connection.consumed(1, 600)
    try opened(peer, 5)
    peer.send(.data(5, much, isLast: false))
    #expect(peer.resets(try peer.frames()).isEmpty)
  }

  @Test func whatIsSentKeepsToTheClientsWindow() throws {
    let peer = try HTTP2Peer(.settings((4, 10)))
    try opened(peer)
    peer.connection.send(1, Array("0123456789abcdef".utf8))
    peer.flush()
    #expect(try peer.frames() == [.data(1, "0123456789", isLast: false)])
    #expect(peer.connection.bytesQueued(1) == 6)
    peer.connection.send(1, Array("gh".utf8))
    peer.connection.finish(1)
    peer.send(.windowUpdate(1, 100))
    #expect(try peer.frames() == [.data(1, "abcdefgh")])
  }

  @Test func aTunnelIsCancelledOrEndedInOrder() throws {
    let peer = try HTTP2Peer()
    for stream: UInt32 in [1, 3, 5, 7] { try opened(peer, stream) }
    peer.connection.cancel(1)
    // All was said: the rest of the peer's is not wanted, and that is no fault.
    peer.connection.finish(3)
    peer.flush()
    peer.connection.cancel(3)
    peer.send(.data(5, ""))
    peer.connection.cancel(5)
    peer.send(.reset(7))
    peer.flush()
    let frames = try peer.frames()
    #expect(peer.resets(frames) == [1: 8, 3: 0])
    #expect(frames.contains(.data(5, "")))
    let closed = peer.connection.takeTunnelEvents().filter { $0.what == .closed }.map(\.stream)
    #expect(closed.sorted() == [1, 3, 5, 7])
  }

  @Test func aTunnelHasNoDeadlineAndDoesNotHoldADrain() throws {
    let peer = try HTTP2Peer()
    try opened(peer)
    peer.wait(.seconds(3_600))
    #expect(peer.connection.takeTunnelEvents().isEmpty && peer.connection.hasTunnels)
    #expect(!peer.connection.isBusy)
    peer.drain()
    peer.wait(.seconds(2))
    #expect(!peer.connection.isBusy && !peer.connection.isDone)
    peer.send(.data(1, "still", isLast: false))
    #expect(peer.connection.takeTunnelEvents() == [event("still")])
    peer.send(.reset(1))
    #expect(peer.connection.isDone)
  }

  @Test func aPeerThatEndsTheConnectionEndsItsTunnels() throws {
    let peer = try HTTP2Peer()
    try opened(peer)
    peer.connection.receiveEnd(now: peer.now)
    peer.flush()
    #expect(peer.connection.takeTunnelEvents() == [HTTP2TunnelEvent(stream: 1, what: .closed)])
    #expect(peer.connection.isDone)
  }
}
