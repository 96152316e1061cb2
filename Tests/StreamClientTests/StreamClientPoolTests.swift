import Synchronization
import Testing

@testable import StreamClient

struct StreamClientPoolTests {
  private func client(
    _ server: LoopbackServer, _ change: (inout StreamClient.Configuration) -> Void
  ) throws -> StreamClient {
    var configuration = StreamClient.Configuration(senderID: "100000000001", serverKey: "key")
    configuration.reconnect.waitFirst = .milliseconds(20)
    change(&configuration)
    return try StreamClient(configuration, connector: server.connector)
  }

  private func messages(_ count: Int, targets: Int = 1) -> [PushMessage] {
    (0..<count).map {
      PushMessage(to: .topic("t\($0 % targets)"), data: ["n": String($0)], id: "m-\($0)")
    }
  }

  @Test func everyMessageEndsOnceWhileStreamsBreak() async throws {
    let server = LoopbackServer()
    server.behave { id, earlier in
      if id.hasSuffix("7") { return .nack("BAD_REGISTRATION") }
      if id.hasSuffix("333"), earlier == 0 { return .drop }
      return id.hasSuffix("555") && earlier == 0 ? .draining : .ack
    }
    let client = try client(server) { $0.streams = 4 }
    try await client.connect()
    var ended: [String: Bool] = [:]
    for try await outcome in client.send(contentsOf: messages(10_000)) {
      let isAcked = (try? outcome.result.get()) != nil
      #expect(ended.updateValue(isAcked, forKey: outcome.messageID) == nil)
    }
    #expect(ended.count == 10_000)
    #expect(ended.values.count { !$0 } == 1_000)
    #expect(server.state.withLock { $0.opened } > 4)
    await client.close()
  }

  @Test func allStreamsAreOpenedAndShareTheMessages() async throws {
    let server = LoopbackServer()
    let client = try client(server) { $0.streams = 3 }
    try await client.connect()
    for try await _ in client.send(contentsOf: messages(3_000)) {}
    while server.state.withLock({ $0.opened }) < 3 { await Task.yield() }
    #expect(server.state.withLock { $0.opened } == 3)
    await client.close()
  }

  @Test(arguments: [nil, 250] as [Int?])
  func aLargerWindowIsUsedWhenTheServerGrantsIt(granted: Int?) async throws {
    let server = LoopbackServer(window: granted)
    server.behave { _, _ in .silent }
    let client = try client(server) { $0.window = 1_000 }
    try await client.connect()
    let bulk = Task { for try await _ in client.send(contentsOf: messages(2_000)) {} }
    let expected = granted ?? 100
    while server.state.withLock({ $0.pendingMost }) < expected { await Task.yield() }
    for _ in 0..<200 { await Task.yield() }
    #expect(server.state.withLock { $0.pendingMost } == expected)
    bulk.cancel()
    await client.close(within: .zero)
  }

  @Test func messagesToOneTargetArriveInOrderAlsoWhenTheyAreTriedAgain() async throws {
    let server = LoopbackServer()
    let arrived = Mutex<[Int]>([])
    server.behave { id, earlier in
      guard let number = Int(id.dropFirst(2)) else { return .ack }
      if number % 10 == 3, earlier == 0 { return .drop }
      arrived.withLock { $0.append(number) }
      return .ack
    }
    let client = try client(server) {
      $0.streams = 3
      $0.ordersByTarget = true
    }
    try await client.connect()
    for try await outcome in client.send(contentsOf: messages(60, targets: 2)) {
      _ = try outcome.result.get()
    }
    let order = arrived.withLock { $0 }
    #expect(order.count == 60)
    for target in 0..<2 {
      let own = order.filter { $0 % 2 == target }
      #expect(own == own.sorted())
    }
    await client.close()
  }

  @Test func theSourceIsReadNoFurtherThanTheWindowsOfAllStreamsHold() async throws {
    let server = LoopbackServer()
    server.behave { _, _ in .silent }
    let client = try client(server) {
      $0.streams = 4
      $0.messagesMax = 10
    }
    try await client.connect()
    let read = Mutex(0)
    let source = AsyncStream<PushMessage>(unfolding: {
      let number = read.withLock { number in
        number += 1
        return number
      }
      return PushMessage(to: .topic("t"), id: "m-\(number)")
    })
    let bulk = Task { for try await _ in client.send(contentsOf: source) {} }
    while server.state.withLock({ $0.seen.count }) < 400 { await Task.yield() }
    for _ in 0..<2_000 { await Task.yield() }
    #expect(read.withLock { $0 } <= 2 * 400 + 513)
    bulk.cancel()
    await client.close(within: .zero)
  }
}
