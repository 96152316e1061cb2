import AppStorage
import Foundation
import NotificationCore
import Seams
import Synchronization
import TestKit
import Testing

@testable import DeviceRuntime

struct NotificationCenterTests {
  @Test func theUserIsAskedOnceAlsoAfterARestart() async throws {
    let fixture = try CenterFixture()
    fixture.answer.withLock { $0 = false }
    do {
      let center = try NotificationCenter(fixture.configuration())
      async let first = center.requestAuthorization([.alert])
      async let second = center.requestAuthorization([.alert])
      #expect(try await (first, second) == (false, false))
    }
    let center = try NotificationCenter(fixture.configuration())
    #expect(try await center.requestAuthorization([.alert]) == false)
    #expect(await center.settings.authorizationStatus == .denied)
    #expect(fixture.questions.withLock { $0.count } == 1)
  }

  @Test func schedulingWhileDeniedThrows() async throws {
    let fixture = try CenterFixture()
    fixture.answer.withLock { $0 = false }
    let center = try await fixture.center()
    let error = await #expect(throws: NotificationError.self) {
      try await center.add(NotificationRequest(id: "a", content: CenterFixture.content("A")))
    }
    #expect(error?.code == .notificationsNotAllowed)
  }

  @Test func aDailyReminderSurvivesRestartsAndComesOnceAfterDowntime() async throws {
    let fixture = try CenterFixture()
    do {
      let center = try await fixture.center { $0.zones = UTCZones() }
      let trigger = NotificationTrigger.calendar(CalendarFields(hour: 20), repeats: true)
      try await center.add(
        NotificationRequest(id: "daily", content: CenterFixture.content("Commit today?"), trigger: trigger))
      await center.stop()
    }
    // Five evenings pass while nothing runs.
    fixture.time.stepWall(by: .seconds(5 * 86_400))
    let center = try NotificationCenter(fixture.configuration { $0.zones = UTCZones() })
    #expect(await center.pendingRequests.map(\.id) == ["daily"])
    await center.start()
    await center.settled()
    #expect(fixture.presenter.shown.map(\.content.title) == ["Commit today?"])
    let request = try #require(await center.pendingRequests.first)
    let next = try #require(await center.nextTriggerDateMs(of: request))
    #expect(next > fixture.time.wall.ms && next <= fixture.time.wall.ms + 86_400_000)
    #expect(next % 86_400_000 == 20 * 3_600_000)
  }

  @Test func timersOfTheirOwnShowWhatIsDue() async throws {
    let fixture = try CenterFixture()
    let center = try await fixture.center {
      $0.runsTimers = true
      $0.nowMs = { SystemTime().wall.ms }
    }
    try await center.add(
      NotificationRequest(
        id: "soon", content: CenterFixture.content("Soon"),
        trigger: .timeInterval(.milliseconds(30), repeats: false)))
    let deadline = ContinuousClock.now + .seconds(20)
    while fixture.presenter.shown.isEmpty, ContinuousClock.now < deadline { await Task.yield() }
    #expect(fixture.presenter.shown.map(\.id) == ["soon"])
    await center.stop()
  }

  @Test func everythingSurvivesARestart() async throws {
    let fixture = try CenterFixture()
    do {
      let center = try await fixture.center()
      try await center.receive(
        NotificationRequest(remote: "r", content: CenterFixture.content("R", badge: 4)), message: "m1",
        stage: .handled)
      try await center.add(
        NotificationRequest(
          id: "p", content: CenterFixture.content("P"), trigger: .timeInterval(.seconds(60), repeats: false)))
      await center.stop()
    }
    let center = try NotificationCenter(fixture.configuration())
    #expect(await center.settings.authorizationStatus == .authorized)
    #expect(await center.badgeCount == 4)
    #expect(await center.deliveredNotifications.map(\.request.id) == ["r"])
    #expect(await center.pendingRequests.map(\.id) == ["p"])
    #expect(try center.store.stage(of: "m1") == .handled)
    await center.start()
    await center.settled()
    // Shown before, not again.
    #expect(fixture.presenter.shown.map(\.id) == ["r"])
    #expect(fixture.presenter.badge == 4)
  }

  @Test func twoProcessesCannotShareAFolder() async throws {
    let fixture = try CenterFixture()
    let center = try NotificationCenter(fixture.configuration())
    let error = #expect(throws: NotificationError.self) {
      try NotificationCenter(fixture.configuration())
    }
    #expect(error?.code == .storeFailed)
    _ = await center.badgeCount
  }

  @Test func secretsAreReadableForTheirOwnerAlone() async throws {
    let fixture = try CenterFixture()
    _ = try await fixture.center()
    let attributes = try FileManager.default.attributesOfItem(atPath: fixture.folder + "/app.sqlite")
    #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o600)
  }

  @Test func removedNotificationsLeaveTheScreenAndTheList() async throws {
    let fixture = try CenterFixture()
    let center = try await fixture.center()
    for id in ["a", "b"] {
      try await center.add(NotificationRequest(id: id, content: CenterFixture.content(id)))
    }
    await center.settled()
    try await center.removeDelivered(["a"])
    try await center.removeAllDelivered()
    await center.settled()
    #expect(fixture.presenter.withdrawn == ["a", "b"])
    #expect(await center.deliveredNotifications.isEmpty)
  }

  @Test func theBadgeIsSetAndClearedAndNeverNegative() async throws {
    let fixture = try CenterFixture()
    let center = try await fixture.center()
    try await center.setBadgeCount(3)
    await center.settled()
    #expect(fixture.presenter.badge == 3)
    try await center.setBadgeCount(0)
    await center.settled()
    #expect(fixture.presenter.badge == 0)
    await #expect(throws: NotificationError.self) { try await center.setBadgeCount(-1) }
  }

  @Test func inTheForegroundTheDelegateDecides() async throws {
    let fixture = try CenterFixture()
    let center = try await fixture.center()
    let delegate = RecordingDelegate(wish: [.banner, .sound])
    await center.setDelegate(delegate)
    await center.setForeground(true)
    try await center.receive(
      NotificationRequest(remote: "1", content: CenterFixture.content("1", badge: 2)), message: "m1",
      stage: .handled)
    await center.settled()
    #expect(delegate.heard.current.asked == ["1"])
    #expect(fixture.presenter.shown.map(\.options) == [[.banner, .sound]])
    // It did not ask for the list, nor for the badge.
    #expect(await center.deliveredNotifications.isEmpty)
    #expect(await center.badgeCount == 0)
    await center.setForeground(false)
    try await center.receive(
      NotificationRequest(remote: "2", content: CenterFixture.content("2", badge: 2)), message: "m2",
      stage: .handled)
    await center.settled()
    #expect(delegate.heard.current.asked == ["1"])
    #expect(fixture.presenter.shown.last?.options == [.banner, .sound, .list, .badge])
    #expect(await center.badgeCount == 2)
  }

  @Test func withoutADelegateASwitchDecidesInTheForeground() async throws {
    let fixture = try CenterFixture()
    let center = try await fixture.center()
    await center.setForeground(true)
    try await center.add(NotificationRequest(id: "a", content: CenterFixture.content("a")))
    await center.settled()
    #expect(fixture.presenter.shown.isEmpty)
    let other = try CenterFixture()
    let loud = try await other.center { $0.undecidedInForeground = [.banner] }
    await loud.setForeground(true)
    try await loud.add(NotificationRequest(id: "a", content: CenterFixture.content("a")))
    await loud.settled()
    #expect(other.presenter.shown.map(\.options) == [[.banner]])
  }

  // MARK: Taps

  static let router: NotificationRouter = {
    var router = NotificationRouter()
    router.route(action: "reply", to: "app://reply/{chat_id}")
    router.route(type: "chat", to: "app://chat/{chat_id}")
    router.route(types: ["like", "match"], to: "app://notifications")
    return router
  }()

  func push(_ id: String, _ data: [String: String], category: String? = nil) -> NotificationRequest {
    var content = CenterFixture.content(id)
    content.userInfo = data
    content.categoryID = category
    return NotificationRequest(remote: id, content: content)
  }

  @Test func aTapOpensTheRightScreen() async throws {
    let fixture = try CenterFixture()
    let center = try await fixture.center { $0.router = Self.router }
    let delegate = RecordingDelegate()
    await center.setDelegate(delegate)
    for (id, data, link) in [
      ("m", ["type": "chat", "chat_id": "7"], "app://chat/7"), ("l", ["type": "like"], "app://notifications"),
    ] {
      try await center.receive(push(id, data), message: id, stage: .handled)
      await center.settled()
      fixture.presenter.tap(id)
      let (response, found) = try await delegate.waitForResponse()
      #expect(found == link)
      #expect(!response.isColdStart)
    }
    #expect(await center.deliveredNotifications.isEmpty)
  }

  @Test func anActionWithTextReachesItsRoute() async throws {
    let fixture = try CenterFixture()
    let center = try await fixture.center { $0.router = Self.router }
    await center.setCategories([
      NotificationCategory(
        id: "chat",
        actions: [.textInput(id: "reply", title: "Reply"), NotificationAction(id: "mute", title: "Mute")]
          + (0..<20).map { NotificationAction(id: "x\($0)", title: "X") })
    ])
    let delegate = RecordingDelegate()
    await center.setDelegate(delegate)
    try await center.receive(
      push("m", ["type": "chat", "chat_id": "7"], category: "chat"), message: "m", stage: .handled)
    await center.settled()
    #expect(fixture.presenter.shown.first?.actions.count == NotificationCategory.actionsMax)
    #expect(fixture.presenter.shown.first?.actions.first?.title == "Reply")
    fixture.presenter.tap("m", action: "reply", text: "hello")
    let (response, link) = try await delegate.waitForResponse()
    #expect(response.userText == "hello" && response.actionID == "reply")
    #expect(link == "app://reply/7")
  }

  @Test func aTapFromBeforeTheAppListensIsAColdStart() async throws {
    let fixture = try CenterFixture()
    do {
      let center = try await fixture.center()
      try await center.receive(push("m", ["type": "chat", "chat_id": "9"]), message: "m", stage: .handled)
      await center.stop()
    }
    // Another process; the tap is there before its delegate.
    let center = try NotificationCenter(fixture.configuration { $0.router = Self.router })
    await center.respond(to: "m", action: NotificationResponse.defaultActionID)
    await center.start()
    let delegate = RecordingDelegate()
    await center.setDelegate(delegate)
    let (response, link) = try await delegate.waitForResponse()
    #expect(response.isColdStart)
    #expect(link == "app://chat/9")
  }

  @Test func dismissalsAreHeardOnlyWhenTheCategoryAsks() async throws {
    let fixture = try CenterFixture()
    let center = try await fixture.center()
    await center.setCategories([
      NotificationCategory(id: "loud", actions: [], options: .customDismissAction)
    ])
    let delegate = RecordingDelegate()
    await center.setDelegate(delegate)
    try await center.receive(push("quiet", [:]), message: "1", stage: .handled)
    try await center.receive(push("loud", [:], category: "loud"), message: "2", stage: .handled)
    await center.settled()
    fixture.presenter.dismiss("quiet")
    fixture.presenter.dismiss("loud")
    let (response, _) = try await delegate.waitForResponse()
    #expect(response.notification.request.id == "loud")
    #expect(response.actionID == NotificationResponse.dismissActionID)
    #expect(await center.deliveredNotifications.isEmpty)
  }

  // MARK: Attachments of local requests

  @Test func attachmentsOfLocalRequestsAreCheckedAndMoved() async throws {
    let fixture = try CenterFixture()
    let center = try await fixture.center()
    let path = fixture.directory.path + "/picture"
    try Data(TestPictures.png).write(to: URL(fileURLWithPath: path))
    var content = CenterFixture.content("with a picture")
    content.attachments = [.init(path: path, mediaType: "wrong/anyway")]
    try await center.add(NotificationRequest(id: "a", content: content))
    await center.settled()
    let shown = try #require(fixture.presenter.shown.first?.content.attachments.first)
    #expect(shown.mediaType == "image/png" && shown.path.hasSuffix(".png"))
    #expect(!FileManager.default.fileExists(atPath: path))
    #expect(FileManager.default.fileExists(atPath: shown.path))
    try await center.removeDelivered(["a"])
    #expect(!FileManager.default.fileExists(atPath: shown.path))
  }

  @Test func badAttachmentsOfLocalRequestsAreRefused() async throws {
    let fixture = try CenterFixture()
    let center = try await fixture.center()
    let text = fixture.directory.path + "/text"
    try Data("no picture".utf8).write(to: URL(fileURLWithPath: text))
    let large = fixture.directory.path + "/large"
    #expect(FileManager.default.createFile(atPath: large, contents: Data(TestPictures.gif)))
    #expect(truncate(large, 10_000_001) == 0)
    for (path, code) in [
      ("/nowhere", NotificationError.Code.attachmentInvalidURL), (text, .attachmentUnrecognizedType),
      (large, .attachmentInvalidFileSize),
    ] {
      var content = CenterFixture.content("a")
      content.attachments = [.init(path: path, mediaType: "image/png")]
      let error = await #expect(throws: NotificationError.self) {
        try await center.add(NotificationRequest(id: "a", content: content))
      }
      #expect(error?.code == code)
    }
    #expect(fixture.presenter.shown.isEmpty)
  }

  // MARK: Presenters

  @Test func whatCannotBeShownNowIsShownWhenItCan() async throws {
    let fixture = try CenterFixture()
    let center = try await fixture.center()
    fixture.presenter.setAvailable(false)
    try await center.receive(push("m", [:]), message: "m", stage: .handled)
    await center.settled()
    #expect(fixture.presenter.shown.isEmpty)
    #expect(await center.deliveredNotifications.map(\.request.id) == ["m"])
    fixture.presenter.setAvailable(true)
    let deadline = ContinuousClock.now + .seconds(20)
    while fixture.presenter.shown.isEmpty, ContinuousClock.now < deadline { await Task.yield() }
    await center.settled()
    #expect(fixture.presenter.shown.map(\.id) == ["m"])
  }

  @Test func aTerminalGetsLinesWithoutControlCharacters() async throws {
    var content = NotificationContent(title: "A\u{1b}[31m", subtitle: "S", body: "b\nc\u{9b}d")
    content.attachments = [.init(path: "/p.png", mediaType: "image/png")]
    let lines = TerminalPresenter.lines(
      PresentedNotification(
        id: "1", content: content, options: [.banner], actions: [NotificationAction(id: "r", title: "Reply")])
    )
    #expect(lines == ["* A [31m · S", "  b c d", "  [image/png /p.png]", "  <Reply>"])
  }
}

struct UTCZones: ZoneSource, Sendable {
  func rules(_ name: String?) -> ZoneRules? { .utc }
}
