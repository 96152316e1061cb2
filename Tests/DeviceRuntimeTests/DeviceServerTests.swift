import ConnectionServer
import StreamClient
import Synchronization
import Testing

@testable import DeviceRuntime

/// Devices, app servers and the real server, over sockets.
struct DeviceServerTests {
  @Test func aMessageReachesItsDeviceAndIsAcked() async throws {
    let fixture = try await ServerFixture()
    let credentials = try await fixture.register()
    let device = try fixture.device(credentials)
    try await device.connect()
    let client = try fixture.client()
    try await client.connect()
    let text = "5 < 7 & 9 > 8 \"q\" 'a' é語🌍"
    let ack = try await client.send(
      PushMessage(
        to: .token(credentials.token), data: ["order": text], notification: .init(title: "T", body: "B")))
    #expect(ack.attempts == 1)
    var messages = device.messages.makeAsyncIterator()
    let message = try #require(await messages.next())
    #expect(message.data == ["order": text])
    #expect(message.from == fixture.senderID)
    #expect(message.category == "org.example.app")
    #expect(message.token == credentials.token)
    #expect(message.notificationTitle == "T" && message.notificationBody == "B")
    #expect(message.priority == .high)
    await client.close()
    await device.close()
    await fixture.stop()
  }

  @Test func whatWaitedForADeviceComesWhenItConnects() async throws {
    let fixture = try await ServerFixture()
    let credentials = try await fixture.register()
    let client = try fixture.client()
    try await client.connect()
    for number in 0..<20 {
      _ = try await client.send(
        PushMessage(to: .token(credentials.token), data: ["n": String(number)]))
    }
    let device = try fixture.device(credentials)
    try await device.connect()
    var seen: Set<String> = []
    for await message in device.messages {
      seen.insert(message.data["n"] ?? "?")
      if seen.count == 20 { break }
    }
    #expect(seen.count == 20)
    await client.close()
    await device.close()
    await fixture.stop()
  }

  @Test func whatIsNotAckedComesAgainOnTheNextStream() async throws {
    let fixture = try await ServerFixture()
    let credentials = try await fixture.register()
    let client = try fixture.client()
    try await client.connect()
    let never = try fixture.device(credentials) { $0.acks = .never }
    try await never.connect()
    _ = try await client.send(PushMessage(to: .token(credentials.token), data: ["n": "1"]))
    var first = never.messages.makeAsyncIterator()
    let shown = try #require(await first.next())
    await never.close()
    let device = try fixture.device(credentials)
    try await device.connect()
    var second = device.messages.makeAsyncIterator()
    let again = try #require(await second.next())
    #expect(again.id == shown.id)
    await client.close()
    await device.close()
    await fixture.stop()
  }

  @Test func aHandlerThatThrowsLeavesTheMessageToTheNextStream() async throws {
    struct HandlerFault: Error {}
    let fixture = try await ServerFixture()
    let credentials = try await fixture.register()
    let client = try fixture.client()
    try await client.connect()
    _ = try await client.send(PushMessage(to: .token(credentials.token), data: ["n": "1"]))
    let calls = Mutex(0)
    let device = try fixture.device(credentials)
    let handling = Task {
      await device.handleMessages { _ in
        calls.withLock { $0 += 1 }
        throw HandlerFault()
      }
    }
    try await device.connect()
    while calls.withLock({ $0 }) == 0 { await Task.yield() }
    await device.close()
    await handling.value
    let next = try fixture.device(credentials)
    try await next.connect()
    var messages = next.messages.makeAsyncIterator()
    #expect(await messages.next()?.data == ["n": "1"])
    await client.close()
    await next.close()
    await fixture.stop()
  }

  @Test func aReceiptComesOnceTheDeviceAcked() async throws {
    let fixture = try await ServerFixture()
    let credentials = try await fixture.register()
    let device = try fixture.device(credentials)
    try await device.connect()
    let handling = Task { await device.handleMessages { _ in } }
    let client = try fixture.client()
    try await client.connect()
    let ack = try await client.send(PushMessage(to: .token(credentials.token), wantsReceipt: true))
    var upstream = client.upstream.makeAsyncIterator()
    let delivery = try #require(await upstream.next())
    delivery.ack()
    guard case .receipt(let receipt) = delivery.event else {
      Issue.record("not a receipt")
      return
    }
    #expect(receipt.originalMessageID == ack.messageID)
    #expect(receipt.token == credentials.token)
    await client.close()
    await device.close()
    await handling.value
    await fixture.stop()
  }

  @Test func upstreamReachesTheAppServerAndItsAckTheDevice() async throws {
    let fixture = try await ServerFixture()
    let credentials = try await fixture.register()
    let client = try fixture.client()
    try await client.connect()
    let events = Mutex<[UpstreamEvent]>([])
    let handling = Task {
      await client.handleUpstream { event in events.withLock { $0.append(event) } }
    }
    let device = try fixture.device(credentials)
    try await device.connect()
    let outcome = try await device.sendUpstream(["hello": "wörld <&>"], to: fixture.senderID, id: "u-1")
    #expect(outcome.messageID == "u-1")
    while events.withLock({ $0.isEmpty }) { await Task.yield() }
    guard case .message(let message) = try #require(events.withLock { $0.first }) else {
      Issue.record("not a message")
      return
    }
    #expect(message.id == "u-1" && message.from == credentials.token)
    #expect(message.data == ["hello": "wörld <&>"])
    await device.close()
    await client.close()
    await handling.value
    await fixture.stop()
  }

  @Test func upstreamThatBreaksARuleIsNotSent() async throws {
    let fixture = try await ServerFixture()
    let device = try fixture.device(try await fixture.register())
    try await device.connect()
    let reserved = await #expect(throws: UpstreamSendError.self) {
      try await device.sendUpstream(["google.x": "1"], to: fixture.senderID)
    }
    #expect(reserved?.code == .invalidMessage)
    let big = await #expect(throws: UpstreamSendError.self) {
      try await device.sendUpstream(["a": String(repeating: "é", count: 2_048)], to: fixture.senderID)
    }
    #expect(big?.code == .invalidMessage)
    let nobody = await #expect(throws: UpstreamSendError.self) {
      try await device.sendUpstream(["a": "1"], to: "someone")
    }
    #expect(nobody?.code == .invalidMessage)
    let mismatch = await #expect(throws: UpstreamSendError.self) {
      try await device.sendUpstream(["a": "1"], to: "999")
    }
    #expect(mismatch?.nackCode == "SENDER_ID_MISMATCH")
    await device.close()
    await fixture.stop()
  }

  @Test func aSecondLoginReplacesTheFirstWhichStaysAway() async throws {
    let fixture = try await ServerFixture()
    let credentials = try await fixture.register()
    let first = try fixture.device(credentials)
    let states = first.states
    try await first.connect()
    let second = try fixture.device(credentials)
    try await second.connect()
    var last: [Device.State] = []
    for await state in states { last.append(state) }
    #expect(last.last == .closed)
    let wasReplaced = last.contains { state in
      if case .disconnected(let end) = state { end.wasReplaced && end.retryAfter == nil } else { false }
    }
    #expect(wasReplaced)
    #expect(second.state == .connected)
    await second.close()
    await fixture.stop()
  }

  @Test func wrongSecretsAreRefused() async throws {
    let fixture = try await ServerFixture()
    var credentials = try await fixture.register()
    credentials.deviceSecret = "wrong"
    let device = try fixture.device(credentials)
    let error = await #expect(throws: Device.ConnectError.self) { try await device.connect() }
    #expect(error?.wasRefused == true)
    await fixture.stop()
  }

  @Test func aDrainingServerIsNoticedByBothSides() async throws {
    let fixture = try await ServerFixture()
    let device = try fixture.device(try await fixture.register()) { $0.reconnects = false }
    try await device.connect()
    let client = try fixture.client { $0.reconnect.isEnabled = false }
    try await client.connect()
    let states = (device.states, client.states)
    await fixture.stop()
    var seen: [StreamClient.State] = []
    for await state in states.0 where state == .closed { break }
    for await state in states.1 {
      seen.append(state)
      if state == .closed { break }
    }
    #expect(seen.contains(.draining))
  }

  @Test func bulkSendingToTheRealServerLosesNothing() async throws {
    let fixture = try await ServerFixture { $0.limits["stored-per-device"] = 10_000 }
    let credentials = try await fixture.register()
    let device = try fixture.device(credentials)
    try await device.connect()
    let seen = Mutex<Set<String>>([])
    let handling = Task {
      await device.handleMessages { message in
        _ = seen.withLock { $0.insert(message.data["n"] ?? "?") }
      }
    }
    let client = try fixture.client()
    try await client.connect()
    let messages = (0..<2_000).map {
      PushMessage(to: .token(credentials.token), data: ["n": String($0)], id: "b-\($0)")
    }
    var acked = 0
    for try await outcome in client.send(contentsOf: messages) {
      if case .success = outcome.result { acked += 1 }
    }
    #expect(acked == 2_000)
    while seen.withLock({ $0.count }) < 2_000 { await Task.yield() }
    await client.close()
    await device.close()
    await handling.value
    await fixture.stop()
  }
}
