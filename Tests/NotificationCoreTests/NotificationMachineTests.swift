import Seams
import Testing

@testable import NotificationCore

struct FixedZones: ZoneSource {
  var own = ZoneRules.utc
  func rules(_ name: String?) -> ZoneRules? {
    switch name {
    case nil: own
    case "Etc/UTC": .utc
    case "Plus/One": ZoneRules(fixedOffset: 3_600)
    default: nil
    }
  }
}

struct NotificationMachineTests {
  var machine = NotificationMachine()
  let zones = FixedZones()
  /// 2023-11-14 22:13:20 UTC.
  let start = WallTime(ms: 1_700_000_000_000)

  static func authorized(_ options: AuthorizationOptions = [.alert, .badge, .sound]) -> NotificationMachine {
    var machine = NotificationMachine()
    machine.answered(true, options: options)
    _ = machine.takeChanges()
    return machine
  }

  static func content(_ title: String = "T", badge: Int? = nil) -> NotificationContent {
    var content = NotificationContent(title: title, body: "B")
    content.badge = badge
    content.sound = .standard
    return content
  }

  static func after(_ seconds: Int, repeats: Bool = false) -> NotificationTrigger {
    .timeInterval(.seconds(seconds), repeats: repeats)
  }

  // MARK: Authorization

  @Test mutating func theUserIsAskedOnceAndTheAnswerIsKept() {
    #expect(machine.requestAuthorization([.alert]) == nil)
    machine.answered(true, options: [.alert])
    #expect(machine.requestAuthorization([.alert, .sound]) == true)
    #expect(machine.settings.authorizationStatus == .authorized)
    #expect(machine.settings.alert == .enabled)
    #expect(machine.settings.sound == .notSupported)
    var other = NotificationMachine()
    other.answered(false, options: [.alert])
    #expect(other.requestAuthorization([.alert]) == false)
    #expect(other.settings.authorizationStatus == .denied)
  }

  @Test mutating func provisionalIsGrantedWithoutAskingAndIsQuiet() {
    #expect(machine.requestAuthorization([.alert, .sound, .badge, .provisional]) == true)
    #expect(machine.settings.authorizationStatus == .provisional)
    machine.receive(NotificationRequest(remote: "1", content: Self.content(badge: 1)), now: start)
    #expect(machine.presented == [.init(id: "1", [.list, .badge])])
  }

  @Test mutating func keptAProvisionalAppStaysQuietAndTurnedOffItIsDenied() {
    _ = machine.requestAuthorization([.alert, .sound, .provisional])
    var other = machine
    machine.decideProvisional(keep: true)
    #expect(machine.settings.authorizationStatus == .authorized)
    machine.receive(NotificationRequest(remote: "1", content: Self.content()), now: start)
    #expect(machine.presented == [.init(id: "1", [.list])])
    other.decideProvisional(keep: false)
    #expect(other.settings.authorizationStatus == .denied)
    #expect(other.requestAuthorization([.alert, .provisional]) == false)
  }

  @Test mutating func aProvisionalAppMayAskForMore() {
    _ = machine.requestAuthorization([.alert, .provisional])
    #expect(machine.requestAuthorization([.alert]) == nil)
    machine.answered(true, options: [.alert])
    #expect(machine.settings.authorizationStatus == .authorized)
  }

  @Test mutating func withoutLeaveNothingIsShownAndTheBadgeStays() {
    machine.receive(NotificationRequest(remote: "1", content: Self.content(badge: 4)), now: start)
    #expect(machine.takeEffects().isEmpty)
    machine.answered(false, options: [.alert])
    machine.receive(NotificationRequest(remote: "2", content: Self.content(badge: 4)), now: start)
    #expect(machine.takeEffects().isEmpty)
    #expect(machine.badge == 0 && machine.delivered.isEmpty)
  }

  @Test mutating func schedulingWhileDeniedIsRefused() {
    machine.answered(false, options: [.alert])
    #expect(throws: NotificationError.self) {
      try machine.add(NotificationRequest(id: "a", content: Self.content()), now: start, zones: zones)
    }
    do {
      try machine.add(NotificationRequest(id: "a", content: Self.content()), now: start, zones: zones)
    } catch { #expect(error.code == .notificationsNotAllowed) }
  }

  @Test func eachSettingHoldsItsPartBack() {
    var machine = Self.authorized()
    var settings = machine.settings
    settings.sound = .disabled
    machine.change(settings)
    machine.receive(NotificationRequest(remote: "1", content: Self.content(badge: 1)), now: start)
    #expect(machine.presented == [.init(id: "1", [.list, .banner, .badge])])
    settings.alert = .disabled
    settings.badge = .disabled
    machine.change(settings)
    machine.receive(NotificationRequest(remote: "2", content: Self.content(badge: 2)), now: start)
    #expect(machine.presented == [.init(id: "2", [.list])])
    #expect(machine.badge == 1)
  }

  // MARK: Triggers

  @Test func aRequestWithoutTriggerIsShownAtOnce() throws {
    var machine = Self.authorized()
    try machine.add(NotificationRequest(id: "a", content: Self.content()), now: start, zones: zones)
    #expect(machine.presented == [.init(id: "a", [.list, .banner, .sound])])
    #expect(machine.pending.isEmpty)
    #expect(machine.delivered.map(\.request.id) == ["a"])
  }

  @Test func anIntervalFiresOnceOrAgainAndAgain() throws {
    var machine = Self.authorized()
    try machine.add(
      .init(id: "once", content: Self.content(), trigger: Self.after(10)), now: start, zones: zones)
    try machine.add(
      .init(id: "often", content: Self.content(), trigger: Self.after(60, repeats: true)), now: start,
      zones: zones)
    #expect(machine.nextDeadline == start + .seconds(10))
    machine.fire(now: start + .milliseconds(9_999), zones: zones)
    #expect(machine.presented.isEmpty)
    machine.fire(now: start + .seconds(10), zones: zones)
    #expect(machine.presented.map(\.id) == ["once"])
    #expect(machine.pending.map(\.request.id) == ["often"])
    for round in 1...3 {
      machine.fire(now: start + .seconds(60 * round), zones: zones)
      #expect(machine.presented.map(\.id) == ["often"])
    }
    #expect(machine.nextDeadline == start + .seconds(240))
  }

  @Test func intervalsOfNothingAndShortRepeatsAreRefused() {
    var machine = Self.authorized()
    for trigger in [
      Self.after(0), Self.after(-1), Self.after(59, repeats: true),
      .timeInterval(.seconds(Int64.max), repeats: false),
      .calendar(CalendarFields(month: 13), repeats: true), .calendar(CalendarFields(), repeats: false),
      .calendar(CalendarFields(hour: 9), zone: "No/Where", repeats: false),
      .calendar(CalendarFields(year: 2001), repeats: false),
    ] {
      do throws(NotificationError) {
        try machine.add(.init(id: "a", content: Self.content(), trigger: trigger), now: start, zones: zones)
        Issue.record("accepted \(trigger)")
      } catch { #expect(error.code == .notificationInvalidNoDate) }
    }
    #expect(machine.pending.isEmpty)
  }

  @Test func emptyContentAndNegativeBadgesAreRefused() {
    var machine = Self.authorized()
    do throws(NotificationError) {
      try machine.add(.init(id: "a", content: NotificationContent()), now: start, zones: zones)
      Issue.record("accepted")
    } catch { #expect(error.code == .notificationInvalidNoContent) }
    do throws(NotificationError) {
      try machine.add(.init(id: "a", content: Self.content(badge: -1)), now: start, zones: zones)
      Issue.record("accepted")
    } catch { #expect(error.code == .badgeInputInvalid) }
    do throws(NotificationError) {
      try machine.setBadge(-1)
      Issue.record("accepted")
    } catch { #expect(error.code == .badgeInputInvalid) }
  }

  @Test func aDailyReminderComesEachDayAndOnceAfterDowntime() throws {
    var machine = Self.authorized()
    let nine = NotificationTrigger.calendar(CalendarFields(hour: 9), repeats: true)
    try machine.add(.init(id: "daily", content: Self.content(), trigger: nine), now: start, zones: zones)
    let first = WallTime(ms: 1_700_038_800_000)
    #expect(machine.nextDeadline == first)
    // Ten days without power.
    machine.fire(now: first + .seconds(864_000 + 7), zones: zones)
    #expect(machine.presented.map(\.id) == ["daily"])
    #expect(machine.nextDeadline == first + .seconds(864_000 + 86_400))
    machine.fire(now: first + .seconds(864_000 + 8), zones: zones)
    #expect(machine.presented.isEmpty)
  }

  @Test func anotherZoneMovesRemindersOfTheDevicesOwnZoneAlone() throws {
    var machine = Self.authorized()
    let fields = CalendarFields(hour: 9)
    try machine.add(
      .init(id: "own", content: Self.content(), trigger: .calendar(fields, repeats: true)), now: start,
      zones: zones)
    try machine.add(
      .init(id: "named", content: Self.content(), trigger: .calendar(fields, zone: "Etc/UTC", repeats: true)),
      now: start, zones: zones)
    machine.clockChanged(now: start, zones: FixedZones(own: ZoneRules(fixedOffset: 3_600)))
    #expect(
      machine.pending.map { [$0.request.id: $0.next.ms] } == [
        ["own": 1_700_035_200_000], ["named": 1_700_038_800_000],
      ])
  }

  @Test func theSoonest64AreKeptAndARepeatingOneCountsOnce() throws {
    var machine = Self.authorized()
    for number in 1...64 {
      try machine.add(
        .init(
          id: "\(number)", content: Self.content(), trigger: Self.after(60 + number, repeats: number == 1)),
        now: start, zones: zones)
    }
    #expect(machine.pending.count == 64)
    try machine.add(
      .init(id: "soon", content: Self.content(), trigger: Self.after(5)), now: start, zones: zones)
    #expect(machine.pending.count == 64)
    #expect(machine.pending.first?.request.id == "soon")
    #expect(!machine.pending.contains { $0.request.id == "64" })
    try machine.add(
      .init(id: "late", content: Self.content(), trigger: Self.after(999)), now: start, zones: zones)
    #expect(!machine.pending.contains { $0.request.id == "late" })
  }

  @Test func theSameIdReplacesWhatWaitsAndWhatIsShown() throws {
    var machine = Self.authorized()
    try machine.add(
      .init(id: "a", content: Self.content("1"), trigger: Self.after(9)), now: start, zones: zones)
    try machine.add(
      .init(id: "a", content: Self.content("2"), trigger: Self.after(5)), now: start, zones: zones)
    #expect(machine.pending.map(\.request.content.title) == ["2"])
    machine.fire(now: start + .seconds(5), zones: zones)
    machine.presented("a", dateMs: start.ms + 5_000, handle: 7)
    try machine.add(.init(id: "a", content: Self.content("3")), now: start + .seconds(6), zones: zones)
    #expect(machine.delivered.map(\.request.content.title) == ["3"])
    // The presenter is told what to replace.
    #expect(machine.delivered.first?.handle == 7)
  }

  @Test func removedRequestsDoNotFire() throws {
    var machine = Self.authorized()
    for id in ["a", "b", "c"] {
      try machine.add(
        .init(id: id, content: Self.content(), trigger: Self.after(5)), now: start, zones: zones)
    }
    machine.removePending(["a", "nobody"])
    #expect(machine.pending.map(\.request.id) == ["b", "c"])
    machine.removeAllPending()
    machine.fire(now: start + .seconds(9), zones: zones)
    #expect(machine.presented.isEmpty)
  }

  @Test func removedNotificationsLeaveTheScreen() {
    var machine = Self.authorized()
    for id in ["a", "b", "c"] {
      machine.receive(NotificationRequest(remote: id, content: Self.content()), now: start)
      machine.presented(id, dateMs: machine.delivered(id)?.dateMs ?? 0, handle: 5)
    }
    _ = machine.takeEffects()
    machine.removeDelivered(["b"])
    #expect(machine.takeEffects() == [.withdraw(id: "b", handle: 5)])
    machine.removeAllDelivered()
    #expect(machine.takeEffects() == [.withdraw(id: "a", handle: 5), .withdraw(id: "c", handle: 5)])
    #expect(machine.delivered.isEmpty)
  }

  // MARK: Foreground

  @Test func inTheForegroundTheAppDecides() {
    var machine = Self.authorized()
    machine.isForeground = true
    machine.hasDelegate = true
    machine.receive(NotificationRequest(remote: "1", content: Self.content(badge: 3)), now: start)
    guard case .askApp(let asked)? = machine.takeEffects().first else {
      Issue.record("the app is not asked")
      return
    }
    #expect(machine.badge == 0)
    machine.decided(asked.request.id, [.banner, .badge])
    #expect(
      machine.takeEffects() == [.badge(3), .present(asked.with([.banner, .badge]), [.banner, .badge])])
    // A banner alone does not stay in the list.
    machine.presented("1", dateMs: start.ms, handle: nil)
    #expect(machine.delivered.isEmpty)
    machine.receive(NotificationRequest(remote: "2", content: Self.content()), now: start)
    _ = machine.takeEffects()
    machine.decided("2", [])
    #expect(machine.takeEffects().isEmpty && machine.delivered.isEmpty)
  }

  @Test func inTheForegroundWithoutADelegateASwitchDecides() {
    var machine = Self.authorized()
    machine.isForeground = true
    machine.receive(NotificationRequest(remote: "1", content: Self.content()), now: start)
    #expect(machine.presented.isEmpty)
    machine.undecided = [.banner, .list]
    machine.receive(NotificationRequest(remote: "2", content: Self.content()), now: start)
    #expect(machine.presented == [.init(id: "2", [.banner, .list])])
  }

  // MARK: Responses

  @Test func aTapReachesTheAppAndLeavesTheList() {
    var machine = Self.authorized()
    machine.receive(NotificationRequest(remote: "1", content: Self.content()), now: start)
    let shown = machine.delivered[0]
    let response = machine.respond(to: shown, action: NotificationResponse.defaultActionID, text: nil)
    #expect(response?.actionID == NotificationResponse.defaultActionID)
    #expect(machine.delivered.isEmpty)
  }

  @Test func aDismissalReachesTheAppOnlyWhenItsCategoryAsks() {
    var machine = Self.authorized()
    machine.categories = [
      "quiet": NotificationCategory(id: "quiet", actions: []),
      "loud": NotificationCategory(id: "loud", actions: [], options: .customDismissAction),
    ]
    for category in ["quiet", "loud"] {
      var content = Self.content()
      content.categoryID = category
      machine.receive(NotificationRequest(remote: category, content: content), now: start)
      let response = machine.respond(
        to: machine.delivered[0], action: NotificationResponse.dismissActionID, text: nil)
      #expect((response != nil) == (category == "loud"))
      #expect(machine.delivered.isEmpty)
    }
  }

  @Test func textGoesWithAResponse() {
    var machine = Self.authorized()
    machine.receive(NotificationRequest(remote: "1", content: Self.content()), now: start)
    #expect(machine.respond(to: machine.delivered[0], action: "reply", text: "hi")?.userText == "hi")
  }

  // MARK: What is written

  @Test func aRestoredMachineGoesOnWhereTheOldOneWas() throws {
    var machine = Self.authorized()
    try machine.add(
      .init(id: "p", content: Self.content(), trigger: Self.after(60, repeats: true)), now: start,
      zones: zones)
    machine.receive(NotificationRequest(remote: "shown", content: Self.content(badge: 2)), now: start)
    machine.presented("shown", dateMs: start.ms, handle: 3)
    machine.receive(NotificationRequest(remote: "not yet", content: Self.content()), now: start + .seconds(1))
    let copy = machine
    var next = NotificationMachine(
      settings: NotificationSettings(json: copy.settings.json), badge: copy.badge,
      pending: copy.pending.compactMap { .init(json: $0.json) },
      delivered: copy.delivered.compactMap { .init(json: $0.json) })
    #expect(next.pending == copy.pending)
    #expect(next.delivered == copy.delivered)
    #expect(next.settings == copy.settings)
    next.resume()
    #expect(next.presented.map(\.id) == ["not yet"])
    #expect(next.badge == 2)
  }

  @Test func whatTheAppWasNotAskedAboutIsShownAfterARestartWithItsBadge() {
    var machine = Self.authorized()
    machine.isForeground = true
    machine.hasDelegate = true
    machine.receive(NotificationRequest(remote: "1", content: Self.content(badge: 6)), now: start)
    var next = NotificationMachine(
      settings: machine.settings, badge: machine.badge, pending: [], delivered: machine.delivered)
    next.resume()
    #expect(next.badge == 6)
    #expect(next.presented.map(\.id) == ["1"])
  }

  @Test func everyChangeIsToldOnce() throws {
    var machine = Self.authorized()
    machine.receive(NotificationRequest(remote: "1", content: Self.content(badge: 2)), now: start)
    let changes = machine.takeChanges()
    #expect(changes.contains(.badge(2)))
    #expect(changes.contains(.delivered(machine.delivered[0])))
    #expect(machine.takeChanges().isEmpty)
  }
}

extension DeliveredNotification {
  func with(_ options: PresentationOptions) -> DeliveredNotification {
    var copy = self
    copy.options = options
    copy.isUndecided = false
    return copy
  }
}

extension NotificationMachine {
  struct Presented: Equatable {
    var id: String
    var options: PresentationOptions
    init(id: String, _ options: PresentationOptions) {
      self.id = id
      self.options = options
    }
  }

  /// What was to be presented since the last look.
  var presented: [Presented] {
    mutating get {
      takeEffects().compactMap { effect in
        guard case .present(let notification, let options) = effect else { return nil }
        return Presented(id: notification.request.id, options)
      }
    }
  }
}
