import DeviceRuntime
import Foundation
import StreamClient
import TestKit
import Testing

@testable import DesktopNotifications

struct DesktopPresenterTests {
  /// Notes where taps lead.
  final class Taps: NotificationCenterDelegate {
    let links = Watched<[String]>([])
    func didReceive(_ response: NotificationResponse, link: DeepLink?) async {
      links.update { $0.append(link?.text ?? response.actionID) }
    }

    func next() async throws -> String {
      try await links.wait(for: "a tap", within: .seconds(20)) { $0.isEmpty ? nil : $0.removeFirst() }
    }
  }

  static func notification(
    _ id: String, title: String = "Title", replaces: Int64? = nil, actions: [NotificationAction] = []
  ) -> PresentedNotification {
    PresentedNotification(
      id: id, content: NotificationContent(title: title, subtitle: "Subtitle", body: "Body"),
      options: [.banner, .list], actions: actions, replaces: replaces)
  }

  func next(_ presenter: DesktopPresenter) async throws -> PresenterEvent {
    let event = Watched<PresenterEvent?>(nil)
    let listening = Task {
      for await found in presenter.events where found != .available {
        event.update { $0 = found }
        return
      }
    }
    defer { listening.cancel() }
    return try await event.wait(for: "an event", within: .seconds(20)) { $0 }
  }

  @Test func aPushIsShownWithTitleSubtitleTextAndPictureAndAClickOpensItsRoute() async throws {
    let desktop = try await DesktopFixture()
    let presenter = try desktop.presenter()
    let dunst = try await desktop.startDunst(presenter)
    let pictures = try await PictureServer.start()
    try await TestServer.run { address in
      var settings = DeviceRuntime.NotificationCenter.Configuration(
        dataFolder: desktop.directory.path + "/app", presenter: presenter)
      settings.serviceExtension = ImageExtension(folder: desktop.directory.path + "/app/attachments")
      settings.router.route(action: "write", to: "dating://chat/{match_id}")
      settings.router.route(type: "match", to: "dating://matches/{match_id}")
      let center = try DeviceRuntime.NotificationCenter(settings)
      let taps = Taps()
      await center.setDelegate(taps)
      await center.setCategories([
        NotificationCategory(id: "match", actions: [NotificationAction(id: "write", title: "Write to her")])
      ])
      _ = try await center.requestAuthorization([.alert, .badge, .sound])
      await center.start()
      let messaging = Messaging(
        Messaging.Configuration(
          device: Device.Configuration(
            host: "127.0.0.1", port: address.xmpp, trust: .file(address.certificateAuthority)),
          httpsPort: address.https, project: address.projectID, apiKey: try address.secret("api-key"),
          app: "org.example.dating"), center)
      try await messaging.start()
      let client = try StreamClient(
        StreamClient.Configuration(
          host: "127.0.0.1", port: address.xmpp, senderID: address.senderID,
          serverKey: try address.secret("server-key"), trust: .file(address.certificateAuthority)))
      try await client.connect()
      var push = PushMessage.Notification(title: "It is a match!", body: "Ann & you <3 each other")
      push.subtitle = "Say hello"
      push.image = pictures.base + "/png"
      push.badge = "2"
      push.clickAction = "match"
      let before = try await desktop.photograph("desktop-empty").colours
      _ = try await client.send(
        PushMessage(
          to: .token(try await messaging.token()), data: ["type": "match", "match_id": "7"],
          notification: push,
          mutableContent: true))
      try await desktop.waitUntilShown(1)
      // The picture is a run of colours from yellow to red that nothing else on the screen has.
      var photograph = try await desktop.photograph("desktop-push")
      let deadline = ContinuousClock.now + .seconds(20)
      while photograph.colours < before + 16, ContinuousClock.now < deadline {
        photograph = try await desktop.photograph("desktop-push")
      }
      #expect(photograph.colours >= before + 16)
      let colours = try await desktop.run("convert", photograph.path, "-format", "%c", "histogram:info:-")
      #expect(colours.contains("#FF8800") || colours.contains("#FF9900") || colours.contains("#FF7700"))
      let history = try await desktop.run("dunstctl", "history")
      #expect(!history.isEmpty)
      // A click in the middle of it.
      try await desktop.run("xdotool", "mousemove", "200", "70", "click", "1")
      #expect(try await taps.next() == "dating://matches/7")
      try await desktop.waitUntilShown(0)
      #expect(await center.deliveredNotifications.isEmpty)
      // Another, and its action from the menu of actions.
      push.tag = "again"
      _ = try await client.send(
        PushMessage(
          to: .token(try await messaging.token()), data: ["type": "match", "match_id": "8"],
          notification: push))
      try await desktop.waitUntilShown(1)
      try await desktop.run("dunstctl", "context")
      #expect(try await taps.next() == "dating://chat/8")
      await client.close()
      await messaging.stop()
      await center.stop()
    }
    dunst.signal(SIGTERM)
    pictures.stop()
    desktop.stop()
  }

  @Test func aNewerNotificationReplacesAnOlderOneAndCanBeTakenBack() async throws {
    let desktop = try await DesktopFixture()
    let presenter = try desktop.presenter()
    let dunst = try await desktop.startDunst(presenter)
    #expect(try await presenter.capabilities().names.isSuperset(of: ["actions", "body", "body-markup"]))
    #expect(try await presenter.capabilities().server.hasPrefix("dunst"))
    let first = try #require(try await presenter.present(Self.notification("a")))
    let second = try #require(
      try await presenter.present(Self.notification("a", title: "Newer", replaces: first)))
    #expect(first == second)
    let other = try #require(try await presenter.present(Self.notification("b")))
    #expect(other != first)
    try await desktop.waitUntilShown(2)
    await presenter.withdraw(id: "a", handle: first)
    try await desktop.waitUntilShown(1)
    // One of an earlier process, known by its handle alone.
    let next = try desktop.presenter()
    await next.withdraw(id: "b", handle: other)
    try await desktop.waitUntilShown(0)
    dunst.signal(SIGTERM)
    desktop.stop()
  }

  @Test func aDismissalIsTold() async throws {
    let desktop = try await DesktopFixture()
    let presenter = try desktop.presenter()
    let dunst = try await desktop.startDunst(presenter)
    _ = try await presenter.present(Self.notification("a"))
    try await desktop.waitUntilShown(1)
    try await desktop.run("xdotool", "mousemove", "200", "50", "click", "3")
    #expect(try await next(presenter) == .dismissed(id: "a"))
    dunst.signal(SIGTERM)
    desktop.stop()
  }

  @Test func withoutAnybodyToShowItANotificationWaits() async throws {
    let desktop = try await DesktopFixture()
    let presenter = try desktop.presenter()
    await #expect(throws: DesktopFault.self) { _ = try await presenter.present(Self.notification("a")) }
    let settings = DeviceRuntime.NotificationCenter.Configuration(
      dataFolder: desktop.directory.path + "/app", presenter: presenter)
    let center = try DeviceRuntime.NotificationCenter(settings)
    _ = try await center.requestAuthorization([.alert])
    await center.start()
    try await center.add(NotificationRequest(id: "a", content: NotificationContent(title: "Late", body: "B")))
    await center.settled()
    #expect(await center.deliveredNotifications.count == 1)
    let dunst = try await desktop.startDunst(presenter)
    try await desktop.waitUntilShown(1)
    await center.stop()
    dunst.signal(SIGTERM)
    desktop.stop()
  }

  @Test func theBadgeGoesToTheLaunchersEntry() async throws {
    let desktop = try await DesktopFixture()
    let heard = Watched<[String]>([])
    let listener = try Bus(address: desktop.bus) { signal, _ in
      var signal = signal
      guard signal.member == "Update", let entry = signal.string() else { return }
      heard.update { $0.append(entry) }
    }
    _ = listener.submit { $0.match("type='signal',interface='com.canonical.Unity.LauncherEntry'") }
    let presenter = try desktop.presenter()
    let deadline = ContinuousClock.now + .seconds(20)
    // The listener's wish may reach the bus after the first signal.
    while heard.current.isEmpty, ContinuousClock.now < deadline {
      await presenter.setBadge(3)
      await Task.yield()
    }
    #expect(heard.current.first == "application://org.example.dating.desktop")
    listener.stop()
    desktop.stop()
  }

  @Test func noBusIsTold() {
    #expect(throws: DesktopFault.self) {
      try DesktopPresenter(
        DesktopPresenter.Configuration(appName: "x", busAddress: "unix:path=/nowhere/at-all"))
    }
  }

  @Test func aBusThatGoesAwayFailsCallsAndStaysQuiet() async throws {
    let desktop = try await DesktopFixture()
    let presenter = try desktop.presenter()
    desktop.stop()
    await #expect(throws: DesktopFault.self) { _ = try await presenter.present(Self.notification("a")) }
    await presenter.withdraw(id: "a", handle: 1)
    await presenter.setBadge(1)
  }

  // MARK: Words

  func appearance(
    _ notification: PresentedNotification, _ capabilities: Set<String> = ["actions", "body-markup"]
  ) -> DesktopAppearance {
    DesktopAppearance(notification, DesktopPresenter.Configuration(appName: "App"), capabilities)
  }

  @Test func markupOfASenderIsText() {
    var notification = Self.notification("a")
    notification.content.subtitle = "<i>&"
    notification.content.body = "<img src='file:///etc/passwd'>"
    #expect(
      appearance(notification).body
        == "<b>&lt;i&gt;&amp;</b>\n&lt;img src='file:///etc/passwd'&gt;")
    #expect(appearance(notification, []).body == "<i>&\n<img src='file:///etc/passwd'>")
  }

  @Test func actionsAreOfferedWhereTheDesktopCan() {
    let notification = Self.notification(
      "a",
      actions: [.textInput(id: "reply", title: "Reply"), NotificationAction(id: "mute", title: "Mute")])
    #expect(appearance(notification, []).actions.isEmpty)
    #expect(appearance(notification).actions == ["default", "Open", "reply", "Reply", "mute", "Mute"])
    #expect(
      appearance(notification, ["actions", "inline-reply"]).actions
        == ["default", "Open", "inline-reply", "Reply", "mute", "Mute"])
  }

  @Test func urgencySoundAndPictureGoOver() {
    func hints(_ change: (inout PresentedNotification) -> Void) -> [String: BusValue] {
      var notification = Self.notification("a")
      change(&notification)
      return Dictionary(appearance(notification).hints) { $1 }
    }
    #expect(hints { _ in }["urgency"] == .byte(1))
    #expect(hints { $0.content.interruptionLevel = .critical }["urgency"] == .byte(2))
    #expect(hints { $0.content.interruptionLevel = .passive }["urgency"] == .byte(0))
    #expect(hints { $0.options = [.list] }["urgency"] == .byte(0))
    #expect(hints { $0.options = [.banner] }["transient"] == .bool(true))
    #expect(hints { _ in }["suppress-sound"] == .bool(true))
    let loud = hints {
      $0.options.insert(.sound)
      $0.content.sound = .named("/ring.wav")
    }
    #expect(loud["sound-file"] == .string("/ring.wav") && loud["suppress-sound"] == nil)
    let picture = hints {
      $0.content.attachments = [
        .init(path: "/a.wav", mediaType: "audio/wav"), .init(path: "/p.png", mediaType: "image/png"),
      ]
    }
    #expect(picture["image-path"] == .string("/p.png"))
  }
}
