import ConnectionServer
import Foundation
import Seams
import StreamClient
import Synchronization
import TestKit
import Testing

@testable import DeviceRuntime

struct MessagingTests {
  /// An app on a device, against a real server.
  struct App {
    let messaging: Messaging
    let center: NotificationCenter
    let heard: Watched<[Messaging.Event]>
    let messages: Watched<[DeviceMessage]>
    let listening: Task<Void, Never>

    func stop() async {
      await messaging.stop()
      await center.stop()
      listening.cancel()
    }

    func waitForToken() async throws -> (String, Messaging.TokenReason) {
      try await heard.wait(for: "a token", within: .seconds(20)) { heard in
        for (index, event) in heard.enumerated() {
          if case .token(let token, let reason) = event {
            heard.remove(at: index)
            return (token, reason)
          }
        }
        return nil
      }
    }

    func waitFor(_ event: Messaging.Event) async throws {
      _ = try await heard.wait(for: "\(event)", within: .seconds(20)) { $0.contains(event) ? true : nil }
    }

    func waitForFailure(_ id: String) async throws -> Messaging.SendFailure.Code {
      try await heard.wait(for: "the failure of \(id)", within: .seconds(20)) { heard in
        for case .sendFailed(id, let failure) in heard { return failure.code }
        return nil
      }
    }
  }

  func app(
    _ server: ServerFixture, _ fixture: CenterFixture,
    handler: (@Sendable (DeviceMessage) async throws -> Void)? = nil,
    center change: (inout NotificationCenter.Configuration) -> Void = { _ in },
    settings adjust: (inout Messaging.Configuration) -> Void = { _ in }
  ) async throws -> App {
    let center = try await fixture.center(change)
    var device = Device.Configuration(
      host: "127.0.0.1", port: server.server.addresses.xmpp, trust: .file(server.caFile))
    device.reconnectSpread = .zero
    var configuration = Messaging.Configuration(
      device: device, httpsPort: server.server.addresses.https, project: server.server.addresses.projectID,
      apiKey: server.apiKey, app: "org.example.app")
    adjust(&configuration)
    let messaging = Messaging(configuration, center)
    let messages = Watched<[DeviceMessage]>([])
    await messaging.onMessage { message in
      messages.update { $0.append(message) }
      try await handler?(message)
    }
    let heard = Watched<[Messaging.Event]>([])
    let listening = Task {
      for await event in messaging.events { heard.update { $0.append(event) } }
    }
    return App(messaging: messaging, center: center, heard: heard, messages: messages, listening: listening)
  }

  func shown(_ fixture: CenterFixture, _ count: Int) async throws {
    let deadline = ContinuousClock.now + .seconds(20)
    while fixture.presenter.shown.count < count, ContinuousClock.now < deadline { await Task.yield() }
    #expect(fixture.presenter.shown.count == count)
  }

  // MARK: Token

  @Test func theFirstStartMakesATokenAndTheNextKeepsIt() async throws {
    let server = try await ServerFixture()
    let fixture = try CenterFixture()
    var app = try await app(server, fixture)
    try await app.messaging.start()
    let (token, reason) = try await app.waitForToken()
    #expect(reason == .firstStart)
    #expect(try await app.messaging.token() == token)
    await app.stop()
    app = try await self.app(server, fixture)
    try await app.messaging.start()
    #expect(try await app.messaging.token() == token)
    try await app.waitFor(.connection(.connected))
    #expect(!app.heard.current.contains { if case .token = $0 { true } else { false } })
    await app.stop()
    await server.stop()
  }

  @Test func clearedDataMeansAnotherToken() async throws {
    let server = try await ServerFixture()
    let first = try await app(server, try CenterFixture())
    try await first.messaging.start()
    let second = try await app(server, try CenterFixture())
    try await second.messaging.start()
    #expect(try await first.waitForToken().0 != second.waitForToken().0)
    await first.stop()
    await second.stop()
    await server.stop()
  }

  @Test func awayForTooLongTheTokenIsAnother() async throws {
    let server = try await ServerFixture()
    let fixture = try CenterFixture()
    var app = try await app(server, fixture)
    try await app.messaging.start()
    let old = try await app.waitForToken().0
    await app.stop()
    fixture.time.stepWall(by: .seconds(271 * 86_400))
    app = try await self.app(server, fixture)
    try await app.messaging.start()
    let (token, reason) = try await app.waitForToken()
    #expect(token != old && reason == .expired)
    await app.stop()
    await server.stop()
  }

  @Test func anUpdatedAppGetsATokenThatTakesOverFromTheOld() async throws {
    let server = try await ServerFixture()
    let fixture = try CenterFixture()
    var app = try await app(server, fixture)
    try await app.messaging.start()
    let old = try await app.waitForToken().0
    await app.stop()
    app = try await self.app(server, fixture, settings: { $0.appVersion = "2" })
    try await app.messaging.start()
    let (token, reason) = try await app.waitForToken()
    #expect(token != old && reason == .appUpdated)
    let client = try server.client()
    try await client.connect()
    #expect(
      try await client.send(PushMessage(to: .token(old), data: ["a": "1"])).canonicalRegistrationID == token)
    _ = try await app.messages.wait(for: "the message", within: .seconds(20)) { $0.isEmpty ? nil : true }
    await client.close()
    await app.stop()
    await server.stop()
  }

  @Test func aServerThatForgotTheDeviceGivesANewToken() async throws {
    let fixture = try CenterFixture()
    let before = try await ServerFixture()
    var app = try await app(before, fixture)
    try await app.messaging.start()
    let old = try await app.waitForToken().0
    await app.stop()
    await before.stop()
    let after = try await ServerFixture()
    app = try await self.app(after, fixture)
    try await app.messaging.start()
    let (token, reason) = try await app.waitForToken()
    #expect(token != old && reason == .refused)
    try await app.waitFor(.connection(.connected))
    await app.stop()
    await after.stop()
  }

  @Test func aDeletedTokenIsRefusedAndAnotherIsMadeWhenAskedFor() async throws {
    let server = try await ServerFixture()
    let app = try await app(server, try CenterFixture())
    try await app.messaging.start()
    let old = try await app.waitForToken().0
    try await app.messaging.deleteToken()
    let client = try server.client()
    try await client.connect()
    let error = await #expect(throws: SendError.self) { try await client.send(PushMessage(to: .token(old))) }
    #expect(error?.nackCode == "DEVICE_UNREGISTERED")
    let token = try await app.messaging.token()
    #expect(token != old)
    #expect(try await app.waitForToken().1 == .deleted)
    _ = try await client.send(PushMessage(to: .token(token), data: ["a": "1"]))
    _ = try await app.messages.wait(for: "the message", within: .seconds(20)) { $0.isEmpty ? nil : true }
    await client.close()
    await app.stop()
    await server.stop()
  }

  @Test func withATokenItStartsWithoutAServerAndWithoutOneItCannot() async throws {
    let server = try await ServerFixture()
    let fixture = try CenterFixture()
    var app = try await app(server, fixture)
    try await app.messaging.start()
    await app.stop()
    app = try await self.app(server, fixture, settings: { $0.device.port = 1 })
    try await app.messaging.start()
    await app.stop()
    let other = try await self.app(server, try CenterFixture(), settings: { $0.httpsPort = 1 })
    await #expect(throws: Messaging.Failure.self) { try await other.messaging.start() }
    await other.stop()
    await server.stop()
  }

  // MARK: Receiving

  @Test func inTheBackgroundNotificationsAreShownAndDataGoesToTheApp() async throws {
    let server = try await ServerFixture()
    let fixture = try CenterFixture()
    let app = try await app(server, fixture)
    try await app.messaging.start()
    let token = try await app.messaging.token()
    let client = try server.client()
    try await client.connect()
    var notification = PushMessage.Notification(title: "T", body: "B")
    notification.subtitle = "S"
    notification.badge = "5"
    notification.clickAction = "chat"
    _ = try await client.send(PushMessage(to: .token(token), data: ["k": "v"], notification: notification))
    try await shown(fixture, 1)
    let content = fixture.presenter.shown[0].content
    #expect([content.title, content.subtitle, content.body] == ["T", "S", "B"])
    #expect(content.userInfo == ["k": "v"] && content.categoryID == "chat")
    await app.center.settled()
    #expect(fixture.presenter.badge == 5)
    _ = try await client.send(PushMessage(to: .token(token), data: ["only": "data"]))
    _ = try await app.messages.wait(for: "the data", within: .seconds(20)) { $0.isEmpty ? nil : true }
    #expect(app.messages.current.map(\.data) == [["only": "data"]])
    #expect(fixture.presenter.shown.count == 1)
    await client.close()
    await app.stop()
    await server.stop()
  }

  @Test func inTheForegroundTheAppGetsAllAndDecidesWhatIsShown() async throws {
    let server = try await ServerFixture()
    let fixture = try CenterFixture()
    let app = try await app(server, fixture)
    let delegate = RecordingDelegate(wish: [.banner])
    await app.center.setDelegate(delegate)
    await app.center.setForeground(true)
    try await app.messaging.start()
    let token = try await app.messaging.token()
    let client = try server.client()
    try await client.connect()
    _ = try await client.send(
      PushMessage(to: .token(token), data: ["k": "v"], notification: .init(title: "T", body: "B")))
    _ = try await app.messages.wait(for: "the message", within: .seconds(20)) { $0.isEmpty ? nil : true }
    try await shown(fixture, 1)
    #expect(fixture.presenter.shown[0].options == [.banner])
    #expect(delegate.heard.current.asked.count == 1)
    await client.close()
    await app.stop()
    await server.stop()
  }

  @Test func contentAvailableWakesTheAppInTheBackgroundAlsoWithoutLeave() async throws {
    let server = try await ServerFixture()
    let fixture = try CenterFixture()
    fixture.answer.withLock { $0 = false }
    let app = try await app(server, fixture)
    try await app.messaging.start()
    let client = try server.client()
    try await client.connect()
    _ = try await client.send(
      PushMessage(
        to: .token(try await app.messaging.token()), notification: .init(title: "T", body: "B"),
        contentAvailable: true))
    _ = try await app.messages.wait(for: "the message", within: .seconds(20)) { $0.isEmpty ? nil : true }
    #expect(fixture.presenter.shown.isEmpty)
    await client.close()
    await app.stop()
    await server.stop()
  }

  @Test func aMessageTheAppFailedOnComesAgainAndIsShownAndCountedOnce() async throws {
    struct AppFault: Error {}
    let server = try await ServerFixture()
    let fixture = try CenterFixture()
    let failing = Mutex(true)
    let handler: @Sendable (DeviceMessage) async throws -> Void = { _ in
      if failing.withLock({ $0 }) { throw AppFault() }
    }
    var app = try await app(server, fixture, handler: handler)
    try await app.messaging.start()
    let client = try server.client()
    try await client.connect()
    var notification = PushMessage.Notification(title: "T", body: "B")
    notification.badge = "3"
    _ = try await client.send(
      PushMessage(
        to: .token(try await app.messaging.token()), notification: notification, contentAvailable: true))
    try await shown(fixture, 1)
    _ = try await app.messages.wait(for: "the first try", within: .seconds(20)) { $0.isEmpty ? nil : true }
    try await app.center.setBadgeCount(0)
    await app.stop()
    failing.withLock { $0 = false }
    app = try await self.app(server, fixture, handler: handler)
    try await app.messaging.start()
    _ = try await app.messages.wait(for: "the second try", within: .seconds(20)) { $0.isEmpty ? nil : true }
    await app.center.settled()
    #expect(fixture.presenter.shown.count == 1)
    #expect(await app.center.badgeCount == 0)
    await client.close()
    await app.stop()
    await server.stop()
  }

  @Test func aPushBringsItsPictureAndTheSameTagReplaces() async throws {
    let server = try await ServerFixture()
    let pictures = try await PictureServer.start()
    let fixture = try CenterFixture()
    let app = try await app(
      server, fixture,
      center: { configuration in
        configuration.serviceExtension = ImageExtension(folder: configuration.dataFolder + "/attachments")
      })
    try await app.messaging.start()
    let client = try server.client()
    try await client.connect()
    for title in ["one", "two"] {
      var notification = PushMessage.Notification(title: title, body: "B")
      notification.image = pictures.base + "/jpeg"
      notification.tag = "same"
      _ = try await client.send(
        PushMessage(
          to: .token(try await app.messaging.token()), notification: notification,
          mutableContent: title == "one"))
      try await shown(fixture, title == "one" ? 1 : 2)
    }
    #expect(fixture.presenter.shown.allSatisfy { $0.content.attachments.first?.mediaType == "image/jpeg" })
    await app.center.settled()
    #expect(await app.center.deliveredNotifications.map(\.request.content.title) == ["two"])
    pictures.stop()
    await client.close()
    await app.stop()
    await server.stop()
  }

  @Test func topicsReachTheAppUntilItLeaves() async throws {
    let server = try await ServerFixture()
    let fixture = try CenterFixture()
    let app = try await app(
      server, fixture,
      center: { configuration in
        configuration.router.route(topic: "news", to: "app://news")
      })
    let delegate = RecordingDelegate()
    await app.center.setDelegate(delegate)
    try await app.messaging.start()
    try await app.messaging.subscribe(to: "/topics/news")
    let client = try server.client()
    try await client.connect()
    _ = try await client.send(PushMessage(to: .topic("news"), notification: .init(title: "N", body: "B")))
    try await shown(fixture, 1)
    fixture.presenter.tap(fixture.presenter.shown[0].id)
    #expect(try await delegate.waitForResponse().1 == "app://news")
    try await app.messaging.unsubscribe(from: "news")
    try await app.messaging.unsubscribe(from: "news")
    let error = await #expect(throws: Messaging.Failure.self) {
      try await app.messaging.subscribe(to: "not a topic!")
    }
    #expect(error?.status == 400)
    await client.close()
    await app.stop()
    await server.stop()
  }

  @Test func discardedMessagesAreTold() async throws {
    let server = try await ServerFixture { $0.limits["stored-per-device"] = 5 }
    let fixture = try CenterFixture()
    var app = try await app(server, fixture)
    try await app.messaging.start()
    let token = try await app.messaging.token()
    await app.stop()
    let client = try server.client()
    try await client.connect()
    for number in 0..<6 {
      _ = try await client.send(PushMessage(to: .token(token), data: ["n": "\(number)"]))
    }
    app = try await self.app(server, fixture)
    try await app.messaging.start()
    let total = try await app.heard.wait(for: "the notice", within: .seconds(20)) { heard -> Int? in
      for case .deletedMessages(let notice) in heard { return notice.total }
      return nil
    }
    #expect(total >= 5)
    await client.close()
    await app.stop()
    await server.stop()
  }

  // MARK: Sending

  @Test func anUpstreamMessageArrivesAndIsReportedSent() async throws {
    let server = try await ServerFixture()
    let app = try await app(server, try CenterFixture())
    try await app.messaging.start()
    let client = try server.client()
    try await client.connect()
    let id = await app.messaging.send(to: server.senderID, data: ["hello": "world"])
    var upstream = client.upstream.makeAsyncIterator()
    let delivery = try #require(await upstream.next())
    delivery.ack()
    try await app.waitFor(.sent(id: id))
    await client.close()
    await app.stop()
    await server.stop()
  }

  @Test func whatIsSentWithoutAConnectionGoesOutLaterAlsoAfterARestart() async throws {
    let server = try await ServerFixture()
    let fixture = try CenterFixture()
    var app = try await app(server, fixture)
    _ = try await app.messaging.token()
    let id = await app.messaging.send(to: server.senderID, data: ["n": "1"])
    await app.stop()
    app = try await self.app(server, fixture)
    try await app.messaging.start()
    try await app.waitFor(.sent(id: id))
    await app.stop()
    await server.stop()
  }

  @Test func sendingFailsWithTheCodesOfAndroid() async throws {
    let server = try await ServerFixture()
    let fixture = try CenterFixture()
    let app = try await app(server, fixture)
    _ = try await app.messaging.token()
    // No connection yet.
    let now = await app.messaging.send(to: server.senderID, data: ["a": "1"], timeToLive: .zero)
    #expect(try await app.waitForFailure(now) == .notAvailable)
    let nobody = await app.messaging.send(to: "nobody", data: ["a": "1"])
    #expect(try await app.waitForFailure(nobody) == .invalidParameters)
    let large = await app.messaging.send(
      to: server.senderID, data: ["a": String(repeating: "x", count: 4_096)])
    #expect(try await app.waitForFailure(large) == .tooLarge)
    let short = await app.messaging.send(to: server.senderID, data: ["a": "1"], timeToLive: .seconds(5))
    for number in 1..<20 { await app.messaging.send(to: server.senderID, data: ["n": "\(number)"]) }
    let many = await app.messaging.send(to: server.senderID, data: ["n": "20"])
    #expect(try await app.waitForFailure(many) == .tooMany)
    fixture.time.stepWall(by: .seconds(6))
    try await app.messaging.start()
    #expect(try await app.waitForFailure(short) == .notAvailable)
    await app.stop()
    await server.stop()
  }
}
