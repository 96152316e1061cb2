import Glibc

/// A point on the monotonic clock, in nanoseconds from an origin of no meaning.
///
/// Deadlines, pauses and windows use it: stepping the wall clock moves none of them.
package struct Moment: Hashable, Comparable, Sendable {
  package var ns: Int64

  package init(ns: Int64) { self.ns = ns }

  package static func < (left: Moment, right: Moment) -> Bool { left.ns < right.ns }
  package static func + (moment: Moment, duration: Duration) -> Moment {
    Moment(ns: moment.ns &+ duration.ns)
  }
  package static func - (left: Moment, right: Moment) -> Duration {
    .nanoseconds(left.ns &- right.ns)
  }
}

/// A point on the wall clock, in milliseconds since 1970-01-01 UTC.
///
/// What is stored and shown uses it.
package struct WallTime: Hashable, Comparable, Sendable {
  package var ms: Int64

  package init(ms: Int64) { self.ms = ms }

  package static func < (left: WallTime, right: WallTime) -> Bool { left.ms < right.ms }
  package static func + (time: WallTime, duration: Duration) -> WallTime {
    WallTime(ms: time.ms &+ duration.ns / 1_000_000)
  }
}

extension Duration {
  /// Whole nanoseconds; good for 292 years.
  package var ns: Int64 {
    let (seconds, attoseconds) = components
    return seconds &* 1_000_000_000 &+ attoseconds / 1_000_000_000
  }
}

/// Where code that decides learns the time.
///
/// One real form, one that tests move by hand.
package protocol TimeSource: Sendable {
  var moment: Moment { get }
  var wall: WallTime { get }
  /// Comes back once `duration` has passed on this clock; throws when the task is cancelled first.
  func sleep(for duration: Duration) async throws
}

extension TimeSource {
  /// The machine's own time, also for a clock moved by hand: nobody would wake its sleepers.
  package func sleep(for duration: Duration) async throws { try await Task.sleep(for: duration) }
}

extension SteadyTime {
  package func sleep(for duration: Duration) async throws { try await source.sleep(for: duration) }
}

/// The machine's clocks.
package struct SystemTime: TimeSource {
  package init() {}

  package var moment: Moment {
    var spec = timespec()
    clock_gettime(CLOCK_MONOTONIC, &spec)
    return Moment(ns: Int64(spec.tv_sec) &* 1_000_000_000 &+ Int64(spec.tv_nsec))
  }

  package var wall: WallTime {
    var spec = timespec()
    clock_gettime(CLOCK_REALTIME, &spec)
    return WallTime(ms: Int64(spec.tv_sec) &* 1_000 &+ Int64(spec.tv_nsec) / 1_000_000)
  }
}
