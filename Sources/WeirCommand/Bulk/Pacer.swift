import Synchronization

/// Lets so many pass a second, evenly, whoever they are.
final class Pacer: Sendable {
  private let gap: Duration
  private let next: Mutex<ContinuousClock.Instant>

  /// - Parameter perSecond: Above 0.
  init(perSecond: Double) {
    gap = .nanoseconds(Int64(1e9 / max(perSecond, 1e-6)))
    next = Mutex(ContinuousClock.now)
  }

  /// Returns when it is the caller's turn; at once when the task is cancelled.
  func wait() async {
    let turn = take(at: ContinuousClock.now)
    // Sleeping costs more than a short wait is worth.
    if turn > .milliseconds(2) { try? await Task.sleep(for: turn) }
  }

  /// How long from `now` until the caller's turn, which is taken.
  ///
  /// After a pause what was missed is not made up for, but for a twentieth of a second.
  func take(at now: ContinuousClock.Instant) -> Duration {
    next.withLock { next in
      next = max(next, now - .milliseconds(50))
      let turn = next
      next += gap
      return now.duration(to: turn)
    }
  }
}
