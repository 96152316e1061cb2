import Synchronization

/// Keeps what is shown, and plays the user: for tests.
public final class RecordingPresenter: NotificationPresenter {
  /// Why it does not present.
  public struct Unavailable: Error, Sendable {
    /// Makes one.
    public init() {}
  }

  private struct State {
    var shown: [PresentedNotification] = []
    var withdrawn: [String] = []
    var badge = 0
    var isAvailable = true
  }

  private let state = Mutex(State())
  private let continuation: AsyncStream<PresenterEvent>.Continuation
  /// What was played.
  public let events: AsyncStream<PresenterEvent>

  /// Makes one that has shown nothing.
  public init() { (events, continuation) = AsyncStream.makeStream() }

  /// All that was shown, in order.
  public var shown: [PresentedNotification] { state.withLock { $0.shown } }
  /// Ids of what was taken from the screen.
  public var withdrawn: [String] { state.withLock { $0.withdrawn } }
  /// The number on the icon.
  public var badge: Int { state.withLock { $0.badge } }

  /// Whether presenting works.
  public func setAvailable(_ isAvailable: Bool) {
    state.withLock { $0.isAvailable = isAvailable }
    if isAvailable { continuation.yield(.available) }
  }

  /// The user taps a notification, or chooses an action.
  public func tap(_ id: String, action: String = NotificationResponse.defaultActionID, text: String? = nil) {
    continuation.yield(.activated(id: id, actionID: action, text: text))
  }

  /// The user closes a notification.
  public func dismiss(_ id: String) { continuation.yield(.dismissed(id: id)) }

  /// Keeps it.
  public func present(_ notification: PresentedNotification) async throws -> Int64? {
    try state.withLock { state in
      guard state.isAvailable else { throw Unavailable() }
      state.shown.append(notification)
    }
    return nil
  }

  /// Notes it.
  public func withdraw(id: String, handle: Int64?) async { state.withLock { $0.withdrawn.append(id) } }

  /// Notes it.
  public func setBadge(_ count: Int) async { state.withLock { $0.badge = count } }
}
