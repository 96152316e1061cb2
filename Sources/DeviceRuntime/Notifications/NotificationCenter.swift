package import AppStorage
import Seams

/// The notifications of one app: what it may show, what waits, what is shown, and the number on its icon.
///
/// ```swift
/// let center = try NotificationCenter(.init(dataFolder: "data", presenter: TerminalPresenter { print($0) }))
/// await center.start()
/// if try await center.requestAuthorization([.alert, .badge, .sound]) {
///   let evening = NotificationTrigger.calendar(.init(hour: 20), repeats: true)
///   try await center.add(.init(id: "daily", content: .init(title: "Commit today?"), trigger: evening))
/// }
/// ```
///
/// All of it is kept in the app's data folder and survives the process, also one that is killed: what was to be shown is
/// shown at the next start, a repeating request that was missed is shown once.
public actor NotificationCenter {
  /// As it was made.
  public nonisolated let configuration: Configuration
  package nonisolated let store: AppStore

  private var machine: NotificationMachine
  private var delegate: (any NotificationCenterDelegate)?
  private var isStarted = false
  private var timer: Task<Void, Never>?
  private var listener: Task<Void, Never>?
  /// Effects are carried out one after the other.
  private var chain: Task<Void, Never>?
  private var sideTasks: [UInt64: Task<Void, Never>] = [:]
  private var lastSide: UInt64 = 0
  /// Taps from before there was a delegate.
  private var heldResponses: [NotificationResponse] = []
  /// Shown without a place in the list; their taps count all the same.
  private var banners: [DeliveredNotification] = []
  private var question: Task<Bool, Never>?
  private let attachments: AttachmentFolder

  /// Opens the app's data.
  ///
  /// - Throws: `NotificationError` when it cannot be read or another process uses it.
  public init(_ configuration: Configuration) throws(NotificationError) {
    self.configuration = configuration
    attachments = AttachmentFolder(configuration.dataFolder + "/attachments")
    do throws(AppStoreFault) {
      store = try AppStore(folder: configuration.dataFolder)
      machine = try store.notifications()
    } catch {
      throw NotificationError(.storeFailed, error.description)
    }
    machine.undecided = configuration.undecidedInForeground
  }

  deinit {
    timer?.cancel()
    listener?.cancel()
  }

  private var now: WallTime { WallTime(ms: configuration.nowMs()) }
  private var zones: any ZoneSource & Sendable { configuration.zones }

  // MARK: Life

  /// Shows what the last process could not, and what became due meanwhile; then listens.
  ///
  /// Set the delegate and the categories before.
  public func start() async {
    guard !isStarted else { return }
    isStarted = true
    let presenter = configuration.presenter
    var handles: [String: Int64] = [:]
    for notification in machine.delivered { handles[notification.request.id] = notification.handle }
    await presenter.adopt(handles)
    attachments.sweep(
      keeping: Set(
        machine.delivered.flatMap { $0.request.content.attachments.map(\.path) }
          + machine.pending.flatMap { $0.request.content.attachments.map(\.path) }))
    listener = Task { [weak self] in
      for await event in presenter.events {
        guard let self else { return }
        await self.receive(event)
      }
    }
    machine.resume()
    machine.fire(now: now, zones: zones)
    try? commit()
  }

  /// Finishes what is being shown and closes the app's data, which another center may open then.
  ///
  /// Not from within the delegate's `willPresent`, which it waits for.
  public func stop() async {
    timer?.cancel()
    listener?.cancel()
    await settled()
    isStarted = false
    store.close()
  }

  /// Waits until nothing is being prepared or shown.
  public func settled() async {
    while chain != nil || !sideTasks.isEmpty {
      for task in sideTasks.values { await task.value }
      await chain?.value
    }
  }

  /// Shows what is due.
  ///
  /// Called by timers, or by hand without them.
  public func tick() {
    machine.clockChanged(now: now, zones: zones)
    machine.fire(now: now, zones: zones)
    try? commit()
  }

  /// Whether the user looks at the app.
  public func setForeground(_ isForeground: Bool) { machine.isForeground = isForeground }

  /// Whether the user looks at the app.
  public var isForeground: Bool { machine.isForeground }

  /// Who decides and who hears of taps; those that came before are handed over now, as a cold start.
  public func setDelegate(_ delegate: (any NotificationCenterDelegate)?) {
    self.delegate = delegate
    machine.hasDelegate = delegate != nil
    guard delegate != nil else { return }
    let held = heldResponses
    heldResponses = []
    for response in held { tell(response) }
  }

  // MARK: Authorization

  /// Asks the user once; later calls give the stored answer.
  ///
  /// With `.provisional` among the options nobody is asked, and notifications come quietly.
  /// - Returns: Whether notifications may be shown.
  public func requestAuthorization(_ options: AuthorizationOptions) async throws(NotificationError) -> Bool {
    if let answer = machine.requestAuthorization(options) {
      try commit()
      return answer
    }
    if let question { return await question.value }
    let ask = configuration.askUser
    let question = Task { await ask(options) }
    self.question = question
    let answer = await question.value
    self.question = nil
    machine.answered(answer, options: options)
    try commit()
    return answer
  }

  /// What the app may do.
  public var settings: NotificationSettings { machine.settings }

  /// The user changed the settings.
  public func changeSettings(_ settings: NotificationSettings) throws(NotificationError) {
    machine.change(settings)
    try commit()
  }

  /// The user chose Keep or Turn Off below a quiet notification.
  public func decideProvisional(keep: Bool) throws(NotificationError) {
    machine.decideProvisional(keep: keep)
    try commit()
  }

  // MARK: Requests

  /// Shows a notification at its time, or now when it has no trigger.
  ///
  /// Of more than 64 that wait the soonest are kept.
  public func add(_ request: NotificationRequest) throws(NotificationError) {
    var request = request
    if !request.content.attachments.isEmpty {
      // Files are moved only for a request that is accepted.
      var trial = machine
      try trial.add(request, now: now, zones: zones)
      request.content.attachments = try attachments.take(request.content.attachments)
    }
    try machine.add(request, now: now, zones: zones)
    try commit()
  }

  /// Requests that wait, the soonest first.
  public var pendingRequests: [NotificationRequest] { machine.pending.map(\.request) }

  /// When a request is next shown, in milliseconds since 1970; nil for never.
  public func nextTriggerDateMs(of request: NotificationRequest) -> Int64? {
    machine.nextDate(request, now: now, zones: zones)?.ms
  }

  /// Requests that are no longer wanted.
  public func removePending(_ ids: [String]) throws(NotificationError) {
    machine.removePending(ids)
    try commit()
  }

  /// None is wanted any more.
  public func removeAllPending() throws(NotificationError) {
    machine.removeAllPending()
    try commit()
  }

  // MARK: Delivered

  /// What is shown, the oldest first.
  public var deliveredNotifications: [DeliveredNotification] { machine.delivered }

  /// Takes notifications from the list and the screen.
  public func removeDelivered(_ ids: [String]) throws(NotificationError) {
    for id in ids { machine.delivered(id).map { attachments.drop($0.request.content.attachments) } }
    machine.removeDelivered(ids)
    try commit()
  }

  /// Takes all from the list and the screen.
  public func removeAllDelivered() throws(NotificationError) {
    try removeDelivered(machine.delivered.map(\.request.id))
  }

  /// The number on the icon.
  public var badgeCount: Int { machine.badge }

  /// Sets the number on the icon; 0 takes it away.
  public func setBadgeCount(_ count: Int) throws(NotificationError) {
    try machine.setBadge(count)
    try commit()
  }

  /// Replaces all categories.
  public func setCategories(_ categories: [NotificationCategory]) {
    machine.categories = Dictionary(categories.map { ($0.id, $0) }) { _, last in last }
  }

  /// The categories.
  public var categories: [NotificationCategory] { machine.categories.values.sorted { $0.id < $1.id } }

  // MARK: Pushes

  /// A push with something for the user: written down, with its message's id, before this returns.
  package func receive(
    _ request: NotificationRequest, message id: String, stage: AppStore.Stage
  ) throws(NotificationError) {
    machine.receive(request, now: now)
    try commit(message: id, stage: stage)
  }

  // MARK: Effects

  /// Writes what changed, then does what follows from it.
  ///
  /// When the disk refuses, the effects still happen: better shown and lost at a restart than not shown.
  private func commit(message id: String? = nil, stage: AppStore.Stage = .noted) throws(NotificationError) {
    let changes = machine.takeChanges()
    let effects = machine.takeEffects()
    var fault: AppStoreFault?
    do throws(AppStoreFault) { try store.write(changes, message: id, stage: stage) } catch { fault = error }
    enqueue(effects)
    arm()
    if let fault { throw NotificationError(.storeFailed, fault.description) }
  }

  private func arm() {
    timer?.cancel()
    timer = nil
    guard isStarted, configuration.runsTimers, let next = machine.nextDeadline else { return }
    // In steps: a wall clock that is set, or a machine that sleeps, is noticed within a minute.
    let wait = Duration.milliseconds(max(0, min(60_000, next.ms - now.ms)))
    timer = Task { [weak self] in
      guard (try? await Task.sleep(for: wait)) != nil else { return }
      await self?.tick()
    }
  }

  private func enqueue(_ effects: [NotificationMachine.Effect]) {
    guard !effects.isEmpty else { return }
    let before = chain
    let task = Task {
      await before?.value
      for effect in effects { await self.perform(effect) }
    }
    chain = task
    onSide { [weak self] in
      await task.value
      await self?.ended(task)
    }
  }

  private func ended(_ task: Task<Void, Never>) { if chain == task { chain = nil } }

  /// Something that may take its time and holds nobody up.
  private func onSide(_ work: @escaping @Sendable () async -> Void) {
    lastSide += 1
    let number = lastSide
    sideTasks[number] = Task {
      await work()
      self.sideEnded(number)
    }
  }

  private func sideEnded(_ number: UInt64) { sideTasks[number] = nil }

  private func perform(_ effect: NotificationMachine.Effect) async {
    switch effect {
    case .badge(let count): await configuration.presenter.setBadge(count)
    case .withdraw(let id, let handle): await configuration.presenter.withdraw(id: id, handle: handle)
    case .present(let notification, _), .askApp(let notification):
      guard let service = configuration.serviceExtension, notification.request.content.isMutable else {
        return await show(notification)
      }
      let limit = configuration.extensionTimeLimit
      onSide {
        let content = await ExtensionRun.content(for: notification.request, by: service, limit: limit)
        await self.prepared(notification, content)
      }
    }
  }

  private func prepared(_ notification: DeliveredNotification, _ content: NotificationContent) async {
    // Another one with the same id may have come meanwhile.
    guard let current = machine.delivered(notification.request.id), current.dateMs == notification.dateMs
    else {
      return
    }
    machine.replaceContent(notification.request.id, content)
    try? commit()
    if let prepared = machine.delivered(notification.request.id) { await show(prepared) }
  }

  /// Asks the app in the foreground, or shows.
  private func show(_ stale: DeliveredNotification) async {
    guard let notification = machine.delivered(stale.request.id), notification.dateMs == stale.dateMs,
      !notification.isShown
    else { return }
    if notification.isUndecided {
      let wish = await delegate?.willPresent(notification) ?? configuration.undecidedInForeground
      machine.decided(notification.request.id, wish)
      try? commit()
      return
    }
    let content = notification.request.content
    let category = content.categoryID.flatMap { machine.categories[$0] }
    let presented = PresentedNotification(
      id: notification.request.id, content: content, options: notification.options,
      actions: Array((category?.actions ?? []).prefix(NotificationCategory.actionsMax)),
      replaces: notification.handle)
    let handle: Int64?
    do { handle = try await configuration.presenter.present(presented) } catch { return }
    if !notification.options.contains(.list) {
      banners.append(notification)
      if banners.count > 64 { banners.removeFirst() }
    }
    machine.presented(notification.request.id, dateMs: notification.dateMs, handle: handle)
    try? commit()
  }

  // MARK: The user

  private func receive(_ event: PresenterEvent) async {
    switch event {
    case .activated(let id, let action, let text): respond(to: id, action: action, text: text)
    case .dismissed(let id): respond(to: id, action: NotificationResponse.dismissActionID)
    case .available:
      machine.resume()
      try? commit()
    }
  }

  /// The user did something with a notification that is shown: presenters tell it so, and programs that are started
  /// by a tap.
  public func respond(to id: String, action: String, text: String? = nil) {
    guard let notification = machine.delivered(id) ?? banners.last(where: { $0.request.id == id }) else {
      return
    }
    banners.removeAll { $0.request.id == id }
    attachments.drop(notification.request.content.attachments)
    let response = machine.respond(to: notification, action: action, text: text)
    try? commit()
    if let response { tell(response) }
  }

  private func tell(_ response: NotificationResponse) {
    guard let delegate else {
      var response = response
      response.isColdStart = true
      heldResponses.append(response)
      if heldResponses.count > 64 { heldResponses.removeFirst() }
      return
    }
    let link = configuration.router.link(for: response)
    // Nobody waits for it: it may do what it likes, stop the center for instance.
    Task { await delegate.didReceive(response, link: link) }
  }
}
