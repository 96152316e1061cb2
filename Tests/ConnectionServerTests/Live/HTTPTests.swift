import JSONCore
import Seams
import TestKit
import Testing

@testable import ConnectionServer

/// HTTP/1.1 and HTTP/2 over TLS sockets, by hand-written bytes.
@Suite struct LiveHTTPTests {
  private let time = Duration.seconds(15)

  private func connect(_ address: ServerAddress, _ protocols: [String] = []) async throws -> TestLine {
    try await TestLine.connect(
      port: address.https, authority: address.certificateAuthority, protocols: protocols, within: time)
  }

  /// All that came until the server closed.
  private func whole(_ line: TestLine) async throws -> String {
    try await line.inbox.wait(for: "the end of the connection", within: time) { inbox in
      inbox.end == nil ? nil : String(decoding: inbox.bytes, as: UTF8.self)
    }
  }

  private func text(_ line: TestLine, until mark: String) async throws -> String {
    try await line.inbox.wait(for: mark, within: time) { inbox in
      let text = String(decoding: inbox.bytes, as: UTF8.self)
      return text.contains(mark) ? text : nil
    }
  }

  private static func statuses(_ text: String) -> [Int] {
    text.matches(of: #/HTTP/1\.1 (\d{3}) /#).compactMap { Int($0.1) }
  }

  // MARK: HTTP/1.1

  /// Bodies whose length can be read in two ways: what is hidden behind them is never run.
  @Test func noSecondRequestIsHiddenInAFirst() async throws {
    let hidden = "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n"
    try await TestServer.run { address in
      for rest in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde", "Content-Length: +4\r\n\r\nabcd",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloXY0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n0\r\nX: a\n\r\n", "X: a\nContent-Length: 4\r\n\r\nabcd",
      ] {
        let line = try await connect(address)
        line.send(Array(("POST /first HTTP/1.1\r\nHost: h\r\n" + rest + hidden).utf8))
        let answer = try await whole(line)
        #expect(Self.statuses(answer) == [400], "\(rest)")
        #expect(answer.contains("connection: close\r\n"))
      }
      // A body that is longer than stated is the next request, and this one is none.
      let line = try await connect(address)
      line.send(
        Array(("POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nabSURPLUS\r\n" + hidden).utf8))
      #expect(Self.statuses(try await whole(line)) == [404, 400])
    }
  }

  @Test func requestsInOneGoAreAnsweredInOrderOnOneConnection() async throws {
    try await TestServer.run { address in
      let line = try await connect(address)
      let one = "GET /openapi-not HTTP/1.1\r\nHost: h\r\n\r\n"
      let two = "POST /fcm/send HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"
      let three = "DELETE /fcm/send HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
      line.send(Array((one + two + three + one).utf8))
      let answer = try await whole(line)
      #expect(Self.statuses(answer) == [404, 401, 405])
      #expect(answer.contains("allow: POST\r\n"))
      #expect(answer.matches(of: #/date: \w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT\r\n/#).count == 3)
      #expect(answer.matches(of: #/content-length: \d+\r\n/#).count == 3)
    }
  }

  @Test func aPeerThatEndsItsSideStillGetsItsAnswer() async throws {
    try await TestServer.run { address in
      let line = try await connect(address)
      line.send(Array("GET /x HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
      line.close()
      #expect(Self.statuses(try await whole(line)).count <= 1)
    }
  }

  /// Time moved by hand: a client that sends too slowly is answered 408, one that is idle is closed.
  @Test func slowAndIdleConnectionsAreGivenUp() async throws {
    let clock = ManualTime(wall: SystemTime().wall)
    let directory = try TemporaryDirectory()
    var configuration = ServerConfiguration()
    configuration.dataDirectory = directory.path
    (configuration.xmppPort, configuration.httpsPort, configuration.adminPort) = (0, 0, 0)
    configuration.logLevel = "off"
    configuration.loops = 1
    let server = try await ConnectionServer.start(configuration, time: clock, tuning: ShardTuning())
    let address = try #require(ServerAddress(readyLine: server.readyLine))
    func pass(_ duration: Duration) async {
      clock.advance(by: duration)
      _ = await server.context.gather { _ in 0 }
    }
    let head = try await connect(address)
    head.send(Array("POST /x HTTP/1.1\r\nHo".utf8))
    let body = try await connect(address)
    body.send(
      Array("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\nabc".utf8))
    _ = try await text(body, until: "100 Continue")
    let idle = try await connect(address)
    idle.send(Array("GET /x HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
    _ = try await text(idle, until: "404")
    let two = try await connect(address, ["h2"])
    let silent = try await connect(address, ["h2"])
    two.send(Self.preface + Self.frame(4, 0, 0, []))
    // Until the server has them it counts no time for them.
    for line in [two, silent] {
      _ = try await line.inbox.wait(for: "the settings", within: time) { $0.bytes.count > 9 ? true : nil }
    }
    await pass(.seconds(11))
    #expect(Self.statuses(try await whole(head)) == [408])
    _ = try await whole(silent)
    await pass(.seconds(20))
    #expect(Self.statuses(try await whole(body)) == [100, 408])
    await pass(.seconds(60))
    _ = try await whole(idle)
    #expect(try await Self.frames(two, time).last?.kind == 7)
    // The drain goes by the same clock.
    let isOver = Watched(false)
    let ending = Task {
      await server.stop()
      isOver.update { $0 = true }
    }
    while !isOver.current {
      clock.advance(by: .milliseconds(50))
      await Task.yield()
    }
    await ending.value
  }

  // MARK: HTTP/2

  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  private static func frame(_ kind: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8]) -> [UInt8] {
    [0, UInt8(payload.count >> 8), UInt8(payload.count & 255), kind, flags]
      + (0..<4).map { UInt8(truncatingIfNeeded: stream >> (24 - 8 * $0)) } + payload
  }

  /// A GET for `/`, by indexes of the static table and a literal authority (RFC 7541).
  private static func get(_ stream: UInt32) -> [UInt8] {
    frame(1, 5, stream, [0x82, 0x87, 0x84, 0x01, 1, UInt8(ascii: "h")])
  }

  private struct Frame { var kind: UInt8, stream: UInt32, payload: [UInt8] }

  /// The frames of a connection that has ended.
  private static func frames(_ line: TestLine, _ time: Duration) async throws -> [Frame] {
    let bytes = try await line.inbox.wait(for: "the end of the connection", within: time) { inbox in
      inbox.end == nil ? nil : inbox.bytes
    }
    var frames: [Frame] = []
    var rest = bytes[...]
    while rest.count >= 9 {
      let head = Array(rest.prefix(9))
      rest = rest.dropFirst(9)
      let count = min(rest.count, Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2]))
      frames.append(
        Frame(
          kind: head[3], stream: head[5...].reduce(0) { $0 << 8 | UInt32($1) },
          payload: Array(rest.prefix(count))))
      rest = rest.dropFirst(count)
    }
    return frames
  }

  @Test func streamsThatAreResetAtOnceEndTheConnectionOnly() async throws {
    try await TestServer.run { address in
      let other = try await connect(address, ["h2"])
      other.send(Self.preface + Self.frame(4, 0, 0, []) + Self.get(1))
      let line = try await connect(address, ["h2"])
      line.send(Self.preface + Self.frame(4, 0, 0, []))
      for number in 0..<2_000 {
        let stream = UInt32(2 * number + 1)
        line.send(Self.get(stream) + Self.frame(3, 0, stream, [0, 0, 0, 8]))
      }
      let farewell = try #require(try await Self.frames(line, time).last { $0.kind == 7 })
      #expect(farewell.payload[4...7].elementsEqual([0, 0, 0, 11]))
      other.send(Self.get(3))
      _ = try await other.inbox.wait(for: "two answers", within: time) { inbox in
        let bodies = String(decoding: inbox.bytes, as: UTF8.self).matches(of: #/NOT_FOUND/#)
        return bodies.count == 2 ? true : nil
      }
    }
  }

  @Test func aDrainEndsBothVersionsInOrder() async throws {
    // On one loop the drain meets all connections at the same moment.
    let server = try await TestServer.start { $0.loops = 1 }
    let two = try await connect(server.address, ["h2"])
    two.send(Self.preface + Self.frame(4, 0, 0, []) + Self.get(1))
    _ = try await text(two, until: "NOT_FOUND")
    let one = try await connect(server.address)
    one.send(Array("GET /x HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
    _ = try await text(one, until: "NOT_FOUND")
    let busy = try await connect(server.address)
    busy.send(Array("GET /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n".utf8))
    _ = try await text(busy, until: "100 Continue")
    async let stopped: Void = server.stop()
    _ = try await whole(one)
    busy.send([UInt8(ascii: "x")])
    let answer = try await whole(busy)
    #expect(Self.statuses(answer) == [100, 404] && answer.contains("connection: close\r\n"))
    let farewells = try await Self.frames(two, time).filter { $0.kind == 7 }
    // The notice names no last stream, the farewell that comes after it does.
    #expect(farewells.first.map { Array($0.payload.prefix(4)) } == [0x7F, 0xFF, 0xFF, 0xFF])
    #expect(farewells.last.map { Array($0.payload.prefix(8)) } == [0, 0, 0, 1, 0, 0, 0, 0])
    await stopped
  }

  @Test func pagesOfOtherOriginsMayRegisterAndNothingElse() async throws {
    try await TestServer.run { address in
      let path = "/v1/projects/demo/registrations"
      let asked = try await address.request(
        "OPTIONS", path,
        headers: ["origin": "https://a.example", "access-control-request-method": "POST"])
      #expect(asked.status == 204)
      #expect(asked.headers["access-control-allow-origin"] == "*")
      #expect(asked.headers["access-control-allow-methods"] == "POST, OPTIONS")
      #expect(asked.headers["access-control-allow-headers"]?.contains("x-goog-api-key") == true)
      let refused = try await address.request(
        "POST", path, headers: ["origin": "https://a.example"], body: "{}")
      #expect(refused.status == 401 && refused.headers["access-control-allow-origin"] == "*")
      let send = try await address.request("OPTIONS", "/fcm/send", headers: ["origin": "https://a.example"])
      #expect(send.status == 204 && send.headers["access-control-allow-origin"] == nil)
      #expect(send.headers["allow"] == "POST, OPTIONS")
      #expect(try await address.request("OPTIONS", "/nothing").status == 404)
    }
    try await TestServer.run {
      $0.registrationOrigin = "https://a.example"
    } _: { address in
      let asked = try await address.request(
        "OPTIONS", "/v1/projects/demo/registrations", headers: ["origin": "https://b.example"])
      #expect(asked.headers["access-control-allow-origin"] == "https://a.example")
      #expect(asked.headers["vary"] == "origin")
    }
  }
}
