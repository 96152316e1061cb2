import Synchronization
import Testing

@testable import StreamClient

struct StreamClientBulkTests {
  private struct SourceFault: Error {}

  private func client(
    _ server: LoopbackServer, _ change: (inout StreamClient.Configuration) -> Void = { _ in }
  ) throws -> StreamClient {
    var configuration = StreamClient.Configuration(senderID: "100000000001", serverKey: "key")
    change(&configuration)
    return try StreamClient(configuration, connector: server.connector)
  }

  private func messages(_ count: Int) -> [PushMessage] {
    (0..<count).map { PushMessage(to: .topic("news"), data: ["n": String($0)], id: "m-\($0)") }
  }

  @Test func everyMessageOfASourceEndsExactlyOnce() async throws {
    let server = LoopbackServer()
    server.behave { id, earlier in
      if id.hasSuffix("7") { return .nack("BAD_REGISTRATION") }
      return id.hasSuffix("33") && earlier == 0 ? .drop : .ack
    }
    let client = try client(server)
    try await client.connect()
    var ended: [String: Bool] = [:]
    for try await outcome in client.send(contentsOf: messages(5_000)) {
      let isAcked = (try? outcome.result.get()) != nil
      #expect(ended.updateValue(isAcked, forKey: outcome.messageID) == nil)
    }
    #expect(ended.count == 5_000)
    #expect(ended.values.count { !$0 } == 500)
    await client.close()
  }

  @Test func anInvalidMessageDoesNotStopTheOthers() async throws {
    let client = try client(LoopbackServer())
    try await client.connect()
    var all = messages(3)
    all[1].data = ["gcm.x": "1"]
    var failed: [SendError] = []
    var acked = 0
    for try await outcome in client.send(contentsOf: all) {
      switch outcome.result {
      case .success: acked += 1
      case .failure(let error): failed.append(error)
      }
    }
    #expect(acked == 2)
    #expect(failed.map(\.field) == ["data"])
    await client.close()
  }

  @Test func theSourceIsReadOnlyAsFastAsOutcomesAreTaken() async throws {
    let client = try client(LoopbackServer()) { $0.messagesMax = 100 }
    try await client.connect()
    let read = Shared(Atomic<Int>(0))
    let source = Counting(count: 100_000, read: read)
    var taken = 0
    for try await _ in client.send(contentsOf: source) {
      taken += 1
      if taken == 1 { for _ in 0..<2_000 { await Task.yield() } }
      if taken == 1_000 { break }
    }
    let most = read.value.load(ordering: .relaxed)
    #expect(most <= 1_000 + 2 * 712)
    await client.close()
  }

  @Test func theErrorOfASourceComesAfterTheOutcomesBeforeIt() async throws {
    let client = try client(LoopbackServer())
    try await client.connect()
    let (stream, continuation) = AsyncThrowingStream.makeStream(of: PushMessage.self)
    for message in messages(3) { continuation.yield(message) }
    continuation.finish(throwing: SourceFault())
    var count = 0
    await #expect(throws: SourceFault.self) {
      for try await _ in client.send(contentsOf: stream) { count += 1 }
    }
    #expect(count == 3)
    await client.close()
  }

  @Test func leavingABulkSendTakesBackWhatHasNotEnded() async throws {
    let server = LoopbackServer()
    server.behave { id, _ in id == "m-0" || !id.hasPrefix("m-") ? .ack : .silent }
    let client = try client(server) { $0.window = 5 }
    try await client.connect()
    for try await outcome in client.send(contentsOf: messages(50)) {
      #expect(outcome.messageID == "m-0")
      break
    }
    // The window is free again: this one is written and acked.
    let ack = try await client.send(PushMessage(to: .topic("news"), id: "after"))
    #expect(ack.messageID == "after")
    await client.close()
  }

  @Test func aSlowSourceIsSentAsItComes() async throws {
    let client = try client(LoopbackServer())
    try await client.connect()
    let (stream, continuation) = AsyncStream.makeStream(of: PushMessage.self)
    var iterator = client.send(contentsOf: stream).makeAsyncIterator()
    for message in messages(5) {
      continuation.yield(message)
      #expect(try await iterator.next()?.messageID == message.id)
    }
    continuation.finish()
    #expect(try await iterator.next() == nil)
    await client.close()
  }

  @Test func anEmptySourceEndsAtOnce() async throws {
    let client = try client(LoopbackServer())
    var iterator = client.send(contentsOf: messages(0)).makeAsyncIterator()
    #expect(try await iterator.next() == nil)
    await client.close()
  }

  @Test func outcomesMayBeTakenInBatches() async throws {
    let client = try client(LoopbackServer())
    try await client.connect()
    var iterator = client.send(contentsOf: messages(2_000)).makeAsyncIterator()
    var count = 0
    while let batch = try await iterator.nextBatch() { count += batch.count }
    #expect(count == 2_000)
    await client.close()
  }

  @Test func closingTheClientEndsABulkSend() async throws {
    let server = LoopbackServer()
    server.behave { _, _ in .silent }
    let client = try client(server)
    try await client.connect()
    let bulk = Task {
      var ends: [SendError.Code] = []
      for try await outcome in client.send(contentsOf: messages(5_000)) {
        if case .failure(let error) = outcome.result { ends.append(error.code) }
      }
      return ends
    }
    while server.seenCount == 0 { await Task.yield() }
    await client.close(within: .zero)
    let ends = try await bulk.value
    #expect(ends.count == 5_000)
    #expect(ends.allSatisfy { $0 == .closed })
  }
}

/// Says how far it was read.
private final class Shared<Value: ~Copyable>: Sendable where Value: Sendable {
  let value: Value
  init(_ value: consuming Value) { self.value = value }
}

private struct Counting: Sequence, Sendable {
  let count: Int
  let read: Shared<Atomic<Int>>

  init(count: Int, read: Shared<Atomic<Int>>) {
    self.count = count
    self.read = read
  }

  struct Iterator: IteratorProtocol {
    let count: Int
    let read: Shared<Atomic<Int>>
    var made = 0
    mutating func next() -> PushMessage? {
      guard made < count else { return nil }
      made += 1
      read.value.wrappingAdd(1, ordering: .relaxed)
      return PushMessage(to: .topic("news"), id: "m-\(made)")
    }
  }

  func makeIterator() -> Iterator { Iterator(count: count, read: read) }
}
