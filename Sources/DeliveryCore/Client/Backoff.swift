package import Seams

/// Decides how long a client waits before it connects again.
///
/// A stream that was lost after it had worked is opened again at once; a connection or log-in that failed
/// is tried again after a growing, jittered wait. A peer that accepts the log-in and drops the stream every
/// time is treated as failing from the second time on, so that it cannot make a client spin.
/// - Source: FCM XMPP protocol, connection life cycle.
package struct Backoff: Sendable, Equatable {
  package struct Settings: Sendable, Equatable {
    /// Ceiling of the first wait; doubles with every failure.
    package var waitFirst: Duration
    /// Ceiling of every wait.
    package var waitMax: Duration
    /// A lost stream is opened again after a moment between 0 and this: keeps thousands of devices of a
    /// server that restarts from coming in the same instant.
    ///
    /// Zero is "at once".
    package var dropSpread: Duration
    /// A stream that lived this long had worked, even when nothing was acked on it.
    package var stableAfter: Duration

    package init(
      waitFirst: Duration = .seconds(1), waitMax: Duration = .seconds(60), dropSpread: Duration = .zero,
      stableAfter: Duration = .seconds(5)
    ) {
      self.waitFirst = max(waitFirst, .milliseconds(1))
      self.waitMax = max(waitMax, self.waitFirst)
      self.dropSpread = max(dropSpread, .zero)
      self.stableAfter = stableAfter
    }
  }

  package var settings: Settings
  /// Failures in a row.
  package private(set) var failures = 0

  package init(_ settings: Settings = Settings()) { self.settings = settings }

  /// A connection could not be made, or the log-in was refused or timed out.
  ///
  /// - Returns: Evenly between 0 and the ceiling ("full jitter").
  package mutating func failed(using chance: inout SeededChance) -> Duration {
    failures = min(failures + 1, 1_000)
    let shift = Int64(min(failures - 1, 30))
    let (grown, overflow) = settings.waitFirst.ns.multipliedReportingOverflow(by: Int64(1) << shift)
    let ceiling = overflow ? settings.waitMax.ns : min(settings.waitMax.ns, grown)
    return .nanoseconds(Int64.random(in: 0...max(0, ceiling), using: &chance))
  }

  /// The peer asked for a pause.
  ///
  /// - Returns: `wait`, or the pause and up to as much again, so that all who were asked do not come in step. At
  ///   most an hour.
  package func heeding(_ pause: Duration?, _ wait: Duration, using chance: inout SeededChance) -> Duration {
    guard let pause, pause > .zero else { return wait }
    let ns = min(pause, .seconds(1_800)).ns
    return max(wait, .nanoseconds(ns + Int64.random(in: 0...ns, using: &chance)))
  }

  /// A stream was lost, or is about to be, after the log-in succeeded.
  ///
  /// - Parameters:
  ///   - lived: From the end of the log-in until now.
  ///   - progressed: Whether the peer acked or sent anything on it.
  package mutating func dropped(
    lived: Duration, progressed: Bool, using chance: inout SeededChance
  ) -> Duration {
    if progressed || lived >= settings.stableAfter {
      failures = 0
    } else if failures > 0 {
      return failed(using: &chance)
    } else {
      failures = 1
    }
    guard settings.dropSpread > .zero else { return .zero }
    return .nanoseconds(Int64.random(in: 0...settings.dropSpread.ns, using: &chance))
  }
}
