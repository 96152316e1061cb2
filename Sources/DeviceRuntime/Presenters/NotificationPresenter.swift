/// A notification as a presenter gets it.
public struct PresentedNotification: Sendable, Hashable {
  /// The request's id: a newer one with the same takes the place of an older.
  public var id: String
  /// What is shown.
  public var content: NotificationContent
  /// How.
  public var options: PresentationOptions
  /// What the user is offered, the first ten of its category.
  public var actions: [NotificationAction]
  /// What the presenter called the one it replaces, which may have been shown by an earlier process.
  public var replaces: Int64?

  /// Puts one together.
  public init(
    id: String, content: NotificationContent, options: PresentationOptions,
    actions: [NotificationAction] = [],
    replaces: Int64? = nil
  ) {
    self.id = id
    self.content = content
    self.options = options
    self.actions = actions
    self.replaces = replaces
  }
}

/// What a presenter hears from the user.
public enum PresenterEvent: Sendable, Hashable {
  /// The user chose an action, or tapped the notification itself; `text` is what was typed.
  case activated(id: String, actionID: String, text: String?)
  /// The user closed it.
  case dismissed(id: String)
  /// It can present again after it could not.
  case available
}

/// Shows notifications to the user: on a desktop, a terminal, or to a test.
public protocol NotificationPresenter: AnyObject, Sendable {
  /// Shows one.
  ///
  /// - Returns: What the presenter calls it, if its screen outlives the process.
  /// - Throws: When it cannot be shown now; it is tried again after ``PresenterEvent/available`` and at the next start.
  func present(_ notification: PresentedNotification) async throws -> Int64?
  /// Takes one from the screen.
  func withdraw(id: String, handle: Int64?) async
  /// Puts a number on the app's icon; 0 takes it away.
  func setBadge(_ count: Int) async
  /// Notifications that an earlier process showed and that may still be there: their events are wanted.
  func adopt(_ shown: [String: Int64]) async
  /// What the user does, for one listener.
  var events: AsyncStream<PresenterEvent> { get }
}

extension NotificationPresenter {
  /// Nothing outlives the process.
  public func adopt(_ shown: [String: Int64]) async {}
}
