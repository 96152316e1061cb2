import ConnectionServer
import StreamClient
import Testing

@testable import DeviceRuntime

/// A device and an app server on secure WebSockets.
struct WebSocketDeviceTests {
  @Test func messagesGoBothWaysOverWebSockets() async throws {
    let fixture = try await ServerFixture()
    let credentials = try await fixture.register()
    let device = try fixture.device(credentials) {
      $0.port = fixture.server.addresses.https
      $0.webSocketPath = "/xmpp"
    }
    try await device.connect()
    let client = try fixture.client {
      $0.port = fixture.server.addresses.https
      $0.webSocketPath = "/xmpp"
    }
    try await client.connect()
    let text = "5 < 7 & 9 > 8 \"q\" 'a' é語🌍"
    let large = String(repeating: "\"", count: 4_000)
    let ack = try await client.send(
      PushMessage(to: .token(credentials.token), data: ["order": text, "l": large]))
    #expect(ack.attempts == 1)
    var messages = device.messages.makeAsyncIterator()
    #expect(try #require(await messages.next()).data == ["order": text, "l": large])
    async let outcome = device.sendUpstream(["up": text], to: fixture.senderID, id: "u-1")
    var upstream = client.upstream.makeAsyncIterator()
    let delivery = try #require(await upstream.next())
    guard case .message(let message) = delivery.event else {
      Issue.record("a receipt that nobody asked for")
      return
    }
    #expect(message.data == ["up": text])
    delivery.ack()
    _ = try await outcome
    await client.close()
    await device.close()
    await fixture.stop()
  }

  @Test func aPathThatSpeaksNoWebSocketIsTold() async throws {
    let fixture = try await ServerFixture()
    let device = try fixture.device(try await fixture.register()) {
      $0.port = fixture.server.addresses.https
      $0.webSocketPath = "/nothing"
    }
    let error = await #expect(throws: Device.ConnectError.self) { try await device.connect() }
    #expect(error?.detail.contains("404") == true, "\(String(describing: error))")
    await device.close()
    await fixture.stop()
  }

  @Test func aWrongSecretIsRefusedOverWebSockets() async throws {
    let fixture = try await ServerFixture()
    var credentials = try await fixture.register()
    credentials.deviceSecret = "wrong"
    let device = try fixture.device(credentials) {
      $0.port = fixture.server.addresses.https
      $0.webSocketPath = "/xmpp"
    }
    let error = await #expect(throws: Device.ConnectError.self) { try await device.connect() }
    #expect(error?.wasRefused == true)
    await device.close()
    await fixture.stop()
  }
}
