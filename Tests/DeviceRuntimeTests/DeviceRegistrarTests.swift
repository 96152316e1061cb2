import StreamClient
import Testing

@testable import DeviceRuntime

struct DeviceRegistrarTests {
  @Test func aRegistrationGivesAUsableTokenAndCredentials() async throws {
    let fixture = try await ServerFixture()
    let credentials = try await fixture.register()
    #expect(credentials.deviceID.utf8.count == 22)
    #expect(!credentials.token.isEmpty && !credentials.deviceSecret.isEmpty)
    #expect(!"\(credentials)".contains(credentials.deviceSecret))
    await fixture.stop()
  }

  @Test func anotherAppMayBeRegisteredOnTheSameDevice() async throws {
    let fixture = try await ServerFixture()
    let first = try await fixture.register("org.example.one")
    let second = try await fixture.registrar().register(app: "org.example.two", device: first)
    #expect(second.deviceID == first.deviceID)
    #expect(second.token != first.token)
    await fixture.stop()
  }

  @Test func aReplacedTokenReachesTheNewOneAndTheAckNamesIt() async throws {
    let fixture = try await ServerFixture()
    let old = try await fixture.register()
    let new = try await fixture.registrar().register(
      app: "org.example.app", previousToken: old.token, device: old)
    let client = try fixture.client()
    try await client.connect()
    let ack = try await client.send(PushMessage(to: .token(old.token), data: ["a": "1"]))
    #expect(ack.canonicalRegistrationID == new.token)
    await client.close()
    await fixture.stop()
  }

  @Test func anUnregisteredTokenIsRefused() async throws {
    let fixture = try await ServerFixture()
    let credentials = try await fixture.register()
    try await fixture.registrar().unregister(credentials)
    let client = try fixture.client()
    try await client.connect()
    let error = await #expect(throws: SendError.self) {
      try await client.send(PushMessage(to: .token(credentials.token), data: ["a": "1"]))
    }
    #expect(error?.nackCode == "DEVICE_UNREGISTERED")
    #expect(error?.shouldDropToken == true)
    await client.close()
    await fixture.stop()
  }

  @Test func refusalsCarryTheStatusAndTheServersWords() async throws {
    let fixture = try await ServerFixture()
    let key = try fixture.registrar(apiKey: "wrong")
    let wrongKey = await #expect(throws: DeviceRegistrar.Failure.self) {
      try await key.register(app: "org.example.app")
    }
    #expect(wrongKey?.status == 401)
    #expect(wrongKey?.detail.isEmpty == false)
    let project = try fixture.registrar(project: "no such/project")
    let wrongProject = await #expect(throws: DeviceRegistrar.Failure.self) {
      try await project.register(app: "org.example.app")
    }
    #expect(wrongProject?.status == 404)
    await fixture.stop()
  }

  @Test func nobodyThereIsToldWithoutAStatus() async throws {
    let registrar = try DeviceRegistrar(
      host: "127.0.0.1", port: 1, project: "demo", apiKey: "k", timeout: .seconds(5))
    let error = await #expect(throws: DeviceRegistrar.Failure.self) {
      try await registrar.register(app: "org.example.app")
    }
    #expect(error?.status == nil)
    #expect(throws: DeviceRegistrar.Failure.self) {
      try DeviceRegistrar(port: 0, project: "demo", apiKey: "k")
    }
  }
}
