package import Seams

/// At most so many in a length of time, which begins with the first of them.
///
/// The window is whole again when its time is over, so within any length of time at most twice the maximum pass.
/// Lengths are not aligned to the clock. 24 bytes, O(1).
/// - Source: Google's page on quotas: per minute, refilled at the minute's end, minutes of the sender's own.
package struct RateWindow: Sendable, Equatable {
  private var begun = Moment(ns: .min)
  private var count = 0

  package init() {}

  /// Takes `wanted` of them; when they do not fit none is taken.
  ///
  /// A whole window takes any number, else one larger than `max` would never pass.
  /// - Returns: Nil when taken; else how long until the window is whole again, more than zero.
  package mutating func take(_ wanted: Int = 1, max: Int, per length: Duration, now: Moment) -> Duration? {
    let isOver = count == 0 || now.ns >= (begun + length).ns
    if isOver {
      begun = now
      count = wanted
      return nil
    }
    guard count + wanted <= max else { return begun + length - now }
    count += wanted
    return nil
  }
}

/// A burst, which one token each pause makes good again.
///
/// Kept as the moment at which it will be full: 8 bytes, O(1).
package struct TokenBucket: Sendable, Equatable {
  private var full = Moment(ns: .min)

  package init() {}

  /// - Returns: Nil when a token was taken; else how long until there is one, more than zero.
  package mutating func take(burst: Int, refill: Duration, now: Moment) -> Duration? {
    let base = max(full, now)
    let depth = Duration.nanoseconds(refill.ns &* Int64(max(1, burst)))
    let after = base + refill
    guard after <= now + depth else { return after - (now + depth) }
    full = after
    return nil
  }

  /// It is full: nothing is lost by forgetting it.
  package func isFull(_ now: Moment) -> Bool { full <= now }
}

extension Duration {
  /// Whole seconds, rounded up; what a peer is told to wait.
  package var secondsUp: Int { Int((ns &+ 999_999_999) / 1_000_000_000) }
}
