package import Seams

/// Where the machine learns about zones.
package protocol ZoneSource: Sendable {
  /// - Parameter name: Nil for the device's own.
  func rules(_ name: String?) -> ZoneRules?
}

/// Authorization, pending and delivered notifications, and the badge of one app.
///
/// A value: time and zones are given, what is to be done comes out. ``takeChanges()`` tells what must be on the disk
/// before ``takeEffects()`` is acted upon.
package struct NotificationMachine: Sendable {
  /// What is to be done.
  package enum Effect: Sendable, Hashable {
    /// The app decides how: it is in the foreground.
    case askApp(DeliveredNotification)
    /// To be shown so.
    case present(DeliveredNotification, PresentationOptions)
    /// To be taken from the screen; handles of the presenter.
    case withdraw(id: String, handle: Int64?)
    /// The icon's number changed.
    case badge(Int)
  }

  /// What is to be written.
  package enum Change: Sendable, Hashable {
    case pending(Pending)
    case pendingGone(String)
    case delivered(DeliveredNotification)
    case deliveredGone(String)
    case badge(Int)
    case settings(NotificationSettings)
  }

  /// A request that waits.
  package struct Pending: Sendable, Hashable {
    package var request: NotificationRequest
    /// When it is next shown.
    package var next: WallTime
    /// When it was asked for: the origin of intervals.
    package var since: WallTime

    package init(request: NotificationRequest, next: WallTime, since: WallTime) {
      self.request = request
      self.next = next
      self.since = since
    }
  }

  /// Pending requests that are kept: the soonest.
  package static let pendingMax = 64

  package private(set) var settings = NotificationSettings()
  package private(set) var badge = 0
  package var categories: [String: NotificationCategory] = [:]
  /// Whether the user looks at the app.
  package var isForeground = false
  /// What happens in the foreground when nobody decides.
  package var undecided: PresentationOptions = []
  /// Whether there is somebody to decide.
  package var hasDelegate = false

  private var waiting: [String: Pending] = [:]
  private var shown: [String: DeliveredNotification] = [:]
  private var effects: [Effect] = []
  private var changes: [Change] = []
  /// Dates rise, so that they tell notifications of one id apart.
  private var lastDateMs: Int64 = 0

  package init() {}

  /// Restores what was written.
  package init(
    settings: NotificationSettings, badge: Int, pending: [Pending], delivered: [DeliveredNotification]
  ) {
    self.settings = settings
    self.badge = badge
    for item in pending { waiting[item.request.id] = item }
    for item in delivered {
      shown[item.request.id] = item
      lastDateMs = max(lastDateMs, item.dateMs)
    }
  }

  package mutating func takeEffects() -> [Effect] {
    defer { effects = [] }
    return effects
  }

  package mutating func takeChanges() -> [Change] {
    defer { changes = [] }
    return changes
  }

  // MARK: Authorization

  /// - Returns: The answer when there is one; nil: the user is to be asked, then ``answered(_:options:)``.
  package mutating func requestAuthorization(_ options: AuthorizationOptions) -> Bool? {
    switch settings.authorizationStatus {
    case .denied: return false
    case .authorized: return true
    case .provisional: return options.contains(.provisional) ? true : nil
    case .notDetermined:
      guard options.contains(.provisional) else { return nil }
      grant(options, status: .provisional)
      return true
    }
  }

  /// The user's word.
  package mutating func answered(_ isGranted: Bool, options: AuthorizationOptions) {
    if isGranted {
      grant(options, status: .authorized)
    } else {
      settings.authorizationStatus = .denied
      changes.append(.settings(settings))
    }
  }

  private mutating func grant(_ options: AuthorizationOptions, status: AuthorizationStatus) {
    func setting(_ option: AuthorizationOptions) -> NotificationSetting {
      options.contains(option) ? .enabled : .notSupported
    }
    settings.authorizationStatus = status
    settings.alert = setting(.alert)
    settings.sound = setting(.sound)
    settings.badge = setting(.badge)
    settings.criticalAlert = setting(.criticalAlert)
    settings.notificationCenter = .enabled
    changes.append(.settings(settings))
  }

  /// Keep or Turn Off below a quiet notification of a provisional app.
  package mutating func decideProvisional(keep: Bool) {
    guard settings.authorizationStatus == .provisional else { return }
    settings.authorizationStatus = keep ? .authorized : .denied
    // Kept, it stays quiet until the user turns banners and sounds on.
    if keep {
      if settings.alert == .enabled { settings.alert = .disabled }
      if settings.sound == .enabled { settings.sound = .disabled }
    }
    changes.append(.settings(settings))
  }

  /// The user changed the settings.
  package mutating func change(_ settings: NotificationSettings) {
    guard settings != self.settings else { return }
    self.settings = settings
    changes.append(.settings(settings))
  }

  private var isAllowed: Bool {
    settings.authorizationStatus == .authorized || settings.authorizationStatus == .provisional
  }

  /// How much of a presentation the settings let through.
  private func allowed(_ content: NotificationContent) -> PresentationOptions {
    guard isAllowed else { return [] }
    var options: PresentationOptions = []
    if settings.notificationCenter != .disabled, content.hasAlert { options.insert(.list) }
    let isQuiet = settings.authorizationStatus == .provisional || content.interruptionLevel == .passive
    if settings.alert == .enabled, content.hasAlert, !isQuiet { options.insert(.banner) }
    if settings.sound == .enabled, content.sound != nil, !isQuiet { options.insert(.sound) }
    if settings.badge == .enabled, content.badge != nil { options.insert(.badge) }
    return options
  }

  // MARK: Requests

  /// Puts a local request on the list, or shows it when it has no trigger.
  package mutating func add(
    _ request: NotificationRequest, now: WallTime, zones: some ZoneSource
  ) throws(NotificationError) {
    guard settings.authorizationStatus != .denied else {
      throw NotificationError(.notificationsNotAllowed, "the user does not allow notifications")
    }
    let content = request.content
    guard content.hasAlert || content.badge != nil || content.sound != nil else {
      throw NotificationError(.notificationInvalidNoContent, "nothing to show")
    }
    guard (content.badge ?? 0) >= 0 else {
      throw NotificationError(.badgeInputInvalid, "a badge below zero")
    }
    var request = request
    request.origin = .local
    guard let trigger = request.trigger else {
      if waiting.removeValue(forKey: request.id) != nil { changes.append(.pendingGone(request.id)) }
      deliver(request, now: now)
      return
    }
    guard let next = next(trigger, after: now, since: now, zones) else {
      throw NotificationError(.notificationInvalidNoDate, "the trigger never fires, or repeats too often")
    }
    let pending = Pending(request: request, next: next, since: now)
    waiting[request.id] = pending
    changes.append(.pending(pending))
    keepSoonest()
  }

  /// Beyond the limit the latest go; a repeating one counts once.
  private mutating func keepSoonest() {
    guard waiting.count > Self.pendingMax else { return }
    for item in pending.dropFirst(Self.pendingMax) {
      waiting[item.request.id] = nil
      changes.append(.pendingGone(item.request.id))
    }
  }

  private func next(
    _ trigger: NotificationTrigger, after now: WallTime, since: WallTime, _ zones: some ZoneSource
  ) -> WallTime? {
    switch trigger {
    case .timeInterval(let interval, let repeats):
      let (seconds, rest) = interval.components
      guard seconds < 3_200_000_000, seconds > 0 || rest > 0, !repeats || seconds >= 60 else { return nil }
      let ms = max(1, interval.ns / 1_000_000)
      guard repeats else { return WallTime(ms: since.ms &+ ms) }
      let passed = max(0, now.ms &- since.ms) / ms
      return WallTime(ms: since.ms &+ (passed &+ 1) &* ms)
    case .calendar(let fields, let zone, _):
      guard let rules = zones.rules(zone) else { return nil }
      return fields.nextMoment(after: floorDivide(now.ms, 1_000), in: rules).map { WallTime(ms: $0 &* 1_000) }
    }
  }

  /// When a request would next be shown.
  package func nextDate(_ request: NotificationRequest, now: WallTime, zones: some ZoneSource) -> WallTime? {
    if let item = waiting[request.id], item.request == request { return item.next }
    return request.trigger.flatMap { next($0, after: now, since: now, zones) }
  }

  /// When ``fire(now:zones:)`` is next to be called.
  package var nextDeadline: WallTime? { waiting.values.map(\.next).min() }

  /// Shows what is due.
  ///
  /// A repeating request that was missed several times, since nothing ran, is shown once.
  package mutating func fire(now: WallTime, zones: some ZoneSource) {
    for item in pending where item.next <= now {
      if let trigger = item.request.trigger, trigger.repeats,
        let next = next(trigger, after: now, since: item.since, zones)
      {
        var item = item
        item.next = next
        waiting[item.request.id] = item
        changes.append(.pending(item))
      } else {
        waiting[item.request.id] = nil
        changes.append(.pendingGone(item.request.id))
      }
      deliver(item.request, now: now)
    }
  }

  /// The device's own zone, or the wall clock, is another now.
  package mutating func clockChanged(now: WallTime, zones: some ZoneSource) {
    for item in pending where item.next > now {
      guard case .calendar? = item.request.trigger, let trigger = item.request.trigger,
        let next = next(trigger, after: now, since: item.since, zones), next != item.next
      else { continue }
      var item = item
      item.next = next
      waiting[item.request.id] = item
      changes.append(.pending(item))
    }
  }

  /// The pending requests, the soonest first.
  package var pending: [Pending] {
    waiting.values.sorted { ($0.next.ms, $0.request.id) < ($1.next.ms, $1.request.id) }
  }

  package mutating func removePending(_ ids: some Sequence<String>) {
    for id in ids where waiting.removeValue(forKey: id) != nil { changes.append(.pendingGone(id)) }
  }

  package mutating func removeAllPending() { removePending(pending.map(\.request.id)) }

  // MARK: Delivery

  /// A push with something for the user.
  ///
  /// Nothing is shown without leave, and the badge stays.
  package mutating func receive(_ request: NotificationRequest, now: WallTime) { deliver(request, now: now) }

  private mutating func deliver(_ request: NotificationRequest, now: WallTime) {
    let options = allowed(request.content)
    guard isAllowed, !options.isEmpty else { return }
    lastDateMs = max(lastDateMs &+ 1, now.ms)
    var notification = DeliveredNotification(request: request, dateMs: lastDateMs)
    notification.handle = shown[request.id]?.handle
    if !isForeground {
      settle(notification, options)
    } else if hasDelegate {
      // Written down at once, so that it is not lost while the app thinks.
      notification.options = options
      notification.isUndecided = true
      shown[request.id] = notification
      changes.append(.delivered(notification))
      effects.append(.askApp(notification))
    } else {
      settle(notification, options.intersection(undecided))
    }
  }

  /// The app's answer to ``Effect/askApp(_:)``.
  package mutating func decided(_ id: String, _ wish: PresentationOptions) {
    guard let notification = shown[id], notification.isUndecided else { return }
    settle(notification, notification.options.intersection(wish))
  }

  private mutating func settle(_ notification: DeliveredNotification, _ options: PresentationOptions) {
    let id = notification.request.id
    if options.contains(.badge), let badge = notification.request.content.badge { set(badge) }
    guard options.contains(.list) || options.contains(.banner) || options.contains(.sound) else {
      if shown.removeValue(forKey: id) != nil { changes.append(.deliveredGone(id)) }
      return
    }
    var notification = notification
    notification.options = options
    notification.isUndecided = false
    shown[id] = notification
    changes.append(.delivered(notification))
    effects.append(.present(notification, options))
  }

  /// What was to be shown when the last process ended: it is shown now.
  package mutating func resume() {
    effects.append(.badge(badge))
    let all = delivered
    for notification in all where !notification.isShown {
      guard notification.isUndecided else {
        effects.append(.present(notification, notification.options))
        continue
      }
      // Nobody was asked before the end; its badge counts unless a later one was set.
      let isLast = notification.request.id == all.last?.request.id
      settle(notification, isLast ? notification.options : notification.options.subtracting(.badge))
    }
  }

  /// The content was changed before it was shown.
  package mutating func replaceContent(_ id: String, _ content: NotificationContent) {
    guard var notification = shown[id], !notification.isShown else { return }
    notification.request.content = content
    notification.request.content.isMutable = false
    shown[id] = notification
    changes.append(.delivered(notification))
  }

  /// The presenter has it.
  package mutating func presented(_ id: String, dateMs: Int64, handle: Int64?) {
    guard var notification = shown[id], notification.dateMs == dateMs else { return }
    notification.isShown = true
    notification.handle = handle
    // A banner alone is gone with it.
    if notification.options.contains(.list) {
      shown[id] = notification
      changes.append(.delivered(notification))
    } else {
      shown[id] = nil
      changes.append(.deliveredGone(id))
    }
  }

  /// The delivered notifications, the oldest first.
  package var delivered: [DeliveredNotification] {
    shown.values.sorted { ($0.dateMs, $0.request.id) < ($1.dateMs, $1.request.id) }
  }

  package func delivered(_ id: String) -> DeliveredNotification? { shown[id] }

  package mutating func removeDelivered(_ ids: some Sequence<String>) {
    for id in ids {
      guard let notification = shown.removeValue(forKey: id) else { continue }
      changes.append(.deliveredGone(id))
      effects.append(.withdraw(id: id, handle: notification.handle))
    }
  }

  package mutating func removeAllDelivered() { removeDelivered(delivered.map(\.request.id)) }

  // MARK: Badge and responses

  package mutating func setBadge(_ count: Int) throws(NotificationError) {
    guard count >= 0 else { throw NotificationError(.badgeInputInvalid, "a badge below zero") }
    set(count)
  }

  private mutating func set(_ count: Int) {
    guard count != badge else { return }
    badge = count
    changes.append(.badge(count))
    effects.append(.badge(count))
  }

  /// The user did something with a notification: it leaves the list.
  ///
  /// - Parameter notification: As it was shown, for one that has no place in the list.
  /// - Returns: What the app hears; nil for a dismissal that its category does not ask for.
  package mutating func respond(
    to notification: DeliveredNotification, action: String, text: String?
  ) -> NotificationResponse? {
    let id = notification.request.id
    if shown.removeValue(forKey: id) != nil { changes.append(.deliveredGone(id)) }
    let category = notification.request.content.categoryID.flatMap { categories[$0] }
    if action == NotificationResponse.dismissActionID {
      guard category?.options.contains(.customDismissAction) == true else { return nil }
    } else {
      effects.append(.withdraw(id: id, handle: notification.handle))
    }
    return NotificationResponse(notification: notification, actionID: action, userText: text)
  }
}
