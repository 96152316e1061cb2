import Glibc

/// A wall clock that no step moves: where the source's stood at the start, and what has passed since.
///
/// A message that waits 60 seconds waits 60 seconds whatever is done to the machine's clock meanwhile: it neither ends
/// early nor comes back to life. A new process begins with the clock as it is then.
package struct SteadyTime: TimeSource {
  package let source: any TimeSource
  private let pace: any TimeSource
  private let wallAtStart: WallTime
  private let paceAtStart: Moment
  private let ahead: Duration

  /// - Parameters:
  ///   - pace: Counts what passes; by default `source`'s own moments.
  ///   - ahead: How far this clock is ahead of the source's.
  package init(_ source: any TimeSource, pace: (any TimeSource)? = nil, ahead: Duration = .zero) {
    self.source = source
    self.pace = pace ?? source
    self.ahead = ahead
    wallAtStart = source.wall + ahead
    paceAtStart = self.pace.moment
  }

  /// The same clocks, read anew, with another lead.
  package func restarted(ahead: Duration) -> SteadyTime { SteadyTime(source, pace: pace, ahead: ahead) }

  /// The machine's clocks; time in which it was suspended counts as passed.
  package init() { self.init(SystemTime(), pace: BootTime()) }

  package var moment: Moment { source.moment }
  package var wall: WallTime { wallAtStart + (pace.moment - paceAtStart) }

  /// How far the source's wall clock was stepped since the start; positive when it is ahead.
  package var stepped: Duration { .milliseconds((source.wall + ahead).ms &- wall.ms) }
}

/// A monotonic clock that goes on while the machine is suspended.
private struct BootTime: TimeSource {
  var moment: Moment {
    var spec = timespec()
    clock_gettime(CLOCK_BOOTTIME, &spec)
    return Moment(ns: Int64(spec.tv_sec) &* 1_000_000_000 &+ Int64(spec.tv_nsec))
  }
  var wall: WallTime { SystemTime().wall }
}
