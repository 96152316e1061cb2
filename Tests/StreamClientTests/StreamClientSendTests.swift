import Synchronization
import Testing

@testable import StreamClient

struct StreamClientSendTests {
  private func client(
    _ server: LoopbackServer, _ change: (inout StreamClient.Configuration) -> Void = { _ in }
  ) throws -> StreamClient {
    var configuration = StreamClient.Configuration(senderID: "100000000001", serverKey: "key")
    change(&configuration)
    return try StreamClient(configuration, connector: server.connector)
  }

  private func message(_ id: String? = nil) -> PushMessage {
    PushMessage(to: .topic("news"), data: ["a": "1"], id: id)
  }

  @Test func aMessageIsAckedUnderItsID() async throws {
    let client = try client(LoopbackServer())
    try await client.connect()
    let ack = try await client.send(message("m-1"))
    #expect(ack.messageID == "m-1")
    #expect(ack.attempts == 1)
    await client.close()
    #expect(client.state == .closed)
  }

  @Test func aMessageWithoutAnIDGetsOneOfItsOwn() async throws {
    let client = try client(LoopbackServer())
    try await client.connect()
    let first = try await client.send(message())
    let second = try await client.send(.json("{\"to\":\"/topics/news\",\"data\":{\"a\":\"1\"}}"))
    #expect(!first.messageID.isEmpty && first.messageID != second.messageID)
    await client.close()
  }

  @Test func aNackCarriesTheServersCodeAndWords() async throws {
    let server = LoopbackServer()
    server.behave { _, _ in .nack("DEVICE_UNREGISTERED") }
    let client = try client(server)
    try await client.connect()
    let error = await #expect(throws: SendError.self) { try await client.send(message("m-1")) }
    #expect(error?.code == .nacked)
    #expect(error?.nackCode == "DEVICE_UNREGISTERED")
    #expect(error?.detail == "why")
    #expect(error?.shouldDropToken == true)
    await client.close()
  }

  @Test func anInvalidMessageIsRefusedWithItsFieldAndNotSent() async throws {
    let server = LoopbackServer()
    let client = try client(server)
    try await client.connect()
    let reserved = PushMessage(to: .topic("news"), data: ["from": "x"], id: "m-1")
    let error = await #expect(throws: SendError.self) { try await client.send(reserved) }
    #expect(error?.code == .invalidMessage)
    #expect(error?.field == "data")
    let fraction = PushMessage(to: .topic("news"), id: "m-2", timeToLive: .milliseconds(1_500))
    let other = await #expect(throws: SendError.self) { try await client.send(fraction) }
    #expect(other?.field == "time_to_live")
    #expect(server.seenCount == 0)
    await client.close()
  }

  @Test func aMessageHandedOverBeforeTheConnectionIsSentOnceThereIsOne() async throws {
    let client = try client(LoopbackServer())
    async let ack = client.send(message("early"))
    try await client.connect()
    #expect(try await ack.messageID == "early")
    await client.close()
  }

  @Test func atMostAWindowIsOnTheWay() async throws {
    let server = LoopbackServer()
    let client = try client(server) { $0.window = 7 }
    try await client.connect()
    try await withThrowingTaskGroup(of: Ack.self) { group in
      for number in 0..<500 {
        group.addTask { try await client.send(message("m-\(number)")) }
      }
      try await group.waitForAll()
    }
    #expect(server.seenCount == 500)
    #expect(server.state.withLock { $0.pendingMost } <= 7)
    await client.close()
  }

  @Test func cancellingATaskFreesItsPlace() async throws {
    let server = LoopbackServer()
    server.behave { id, _ in id == "held" ? .silent : .ack }
    let client = try client(server) { $0.window = 1 }
    try await client.connect()
    let held = Task { try await client.send(message("held")) }
    while server.seenCount == 0 { await Task.yield() }
    let next = Task { try await client.send(message("next")) }
    held.cancel()
    let error = await #expect(throws: SendError.self) { try await held.value }
    #expect(error?.code == .cancelled)
    #expect(try await next.value.messageID == "next")
    await client.close()
  }

  @Test func aCancelledTaskDoesNotSend() async throws {
    let server = LoopbackServer()
    let client = try client(server)
    let task = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await client.send(message("m-1"))
    }
    let error = await #expect(throws: SendError.self) { try await task.value }
    #expect(error?.code == .cancelled)
    try await client.connect()
    #expect(server.seenCount == 0)
    await client.close()
  }

  @Test func aMessageOnALostStreamIsSentAgainUnderItsID() async throws {
    let server = LoopbackServer()
    server.behave { _, earlier in earlier == 0 ? .drop : .ack }
    let client = try client(server)
    try await client.connect()
    let ack = try await client.send(message("m-1"))
    #expect(ack.attempts == 2)
    #expect(server.state.withLock { $0.opened } == 2)
    await client.close()
  }

  @Test func aDrainingServerGetsTheMessageOnTheNextStream() async throws {
    let server = LoopbackServer()
    server.behave { _, earlier in earlier == 0 ? .draining : .ack }
    let client = try client(server)
    try await client.connect()
    let ack = try await client.send(message("m-1"))
    #expect(ack.attempts == 2)
    await client.close()
  }

  @Test func closingWaitsForAnswersAndRefusesNewMessages() async throws {
    let client = try client(LoopbackServer())
    try await client.connect()
    async let ack = client.send(message("m-1"))
    _ = try await ack
    await client.close()
    let error = await #expect(throws: SendError.self) { try await client.send(message("m-2")) }
    #expect(error?.code == .closed)
  }

  @Test func closingGivesUpOnAnswersThatDoNotCome() async throws {
    let server = LoopbackServer()
    server.behave { _, _ in .silent }
    let client = try client(server)
    try await client.connect()
    let send = Task { try await client.send(message("m-1")) }
    while server.seenCount == 0 { await Task.yield() }
    await client.close(within: .zero)
    let error = await #expect(throws: SendError.self) { try await send.value }
    #expect(error?.code == .closed)
  }

  @Test func refusedCredentialsFailTheConnectAtOnce() async throws {
    let server = LoopbackServer()
    server.state.withLock { $0.refusesLogin = true }
    let client = try client(server) { $0.connectPatience = .seconds(100) }
    let error = await #expect(throws: StreamClient.ConnectError.self) { try await client.connect() }
    #expect(error?.wasRefused == true)
    #expect(client.state == .closed)
  }

  @Test func anUnreachableServerFailsTheConnectUnlessThereIsPatience() async throws {
    let server = LoopbackServer()
    server.state.withLock { $0.unreachableTimes = 2 }
    let hasty = try client(server)
    let error = await #expect(throws: StreamClient.ConnectError.self) { try await hasty.connect() }
    #expect(error?.wasRefused == false)
    let patient = try client(server) {
      $0.connectPatience = .seconds(30)
      $0.reconnect.waitFirst = .milliseconds(1)
    }
    try await patient.connect()
    #expect(patient.state == .connected)
    await patient.close()
  }

  @Test func observersSeeTheStatesInOrder() async throws {
    let client = try client(LoopbackServer())
    let states = client.states
    try await client.connect()
    await client.close()
    var seen: [StreamClient.State] = []
    for await state in states { seen.append(state) }
    #expect(seen == [.idle, .connecting, .connected, .closed])
  }

  @Test func aClientThatGoesAwayEndsWhatItHad() async throws {
    let server = LoopbackServer()
    server.behave { _, _ in .silent }
    var client: StreamClient? = try client(server)
    try await client?.connect()
    let states = client?.states
    client = nil
    var last: StreamClient.State?
    if let states { for await state in states { last = state } }
    #expect(last == .closed)
  }

  @Test func aSecondMessageOfTheSameIDIsRefusedWhileTheFirstHasNotEnded() async throws {
    let server = LoopbackServer()
    server.behave { _, _ in .silent }
    let client = try client(server)
    try await client.connect()
    let first = Task { try await client.send(message("same")) }
    while server.seenCount == 0 { await Task.yield() }
    let error = await #expect(throws: SendError.self) { try await client.send(message("same")) }
    #expect(error?.code == .duplicateID)
    first.cancel()
    _ = await first.result
    await client.close()
  }
}
