import Seams

/// When messages are due.
package enum Arrivals: Sendable, Equatable {
  /// Every sender keeps its window full: each answer sends the next message.
  case closed
  /// Evenly, so many a second.
  case constant(Double)
  /// At random, so many a second on average.
  case poisson(Double)
  /// From one rate to another over the whole duration.
  case ramp(from: Double, to: Double)
  /// `base` a second, but `peak` from second `at` for `length` seconds.
  case spike(base: Double, peak: Double, at: Double, length: Double)

  /// Whether messages are due at times of their own, whatever the server does.
  package var isOpen: Bool { self != .closed }
}

/// Counts what is due in each millisecond of an open arrival process.
///
/// Times are whole milliseconds since the load began: a message is meant to leave at the end of the millisecond
/// it falls into. Its latency counts from there, also when it leaves later because a window was full or this
/// process was late (no coordinated omission).
package struct ArrivalClock: Sendable {
  private let arrivals: Arrivals
  private let durationMs: Int
  /// Milliseconds that were asked for.
  package private(set) var elapsedMs = 0
  /// Messages due, the fraction of the next one included.
  private var carry = 0.0
  /// When the next message of a Poisson process falls due, in milliseconds.
  private var nextAt = 0.0
  private var chance: SeededChance

  package init(_ arrivals: Arrivals, duration: Duration, seed: UInt64) {
    self.arrivals = arrivals
    durationMs = Int(clamping: duration.ns / 1_000_000)
    chance = SeededChance(seed: seed)
    if case .poisson(let rate) = arrivals { nextAt = Self.gap(rate, &chance) }
  }

  /// Messages due in the next millisecond; moves on by it.
  package mutating func step() -> Int {
    let at = elapsedMs
    elapsedMs += 1
    guard at < durationMs else { return 0 }
    if case .poisson(let rate) = arrivals {
      var count = 0
      while nextAt < Double(elapsedMs) {
        count += 1
        nextAt += Self.gap(rate, &chance)
      }
      return count
    }
    carry += rate(at: Double(at) / 1_000) / 1_000
    let count = Int(carry)
    carry -= Double(count)
    return count
  }

  /// Messages a second that are due at `second`; 0 for a closed loop.
  package func rate(at second: Double) -> Double {
    switch arrivals {
    case .closed: return 0
    case .constant(let rate), .poisson(let rate): return rate
    case .ramp(let from, let to):
      return from + (to - from) * min(1, second * 1_000 / Double(max(1, durationMs)))
    case .spike(let base, let peak, let at, let length):
      return second >= at && second < at + length ? peak : base
    }
  }

  /// Milliseconds to the next message of a Poisson process.
  private static func gap(_ rate: Double, _ chance: inout SeededChance) -> Double {
    guard rate > 0 else { return .infinity }
    return -logarithm(1 - Double.random(in: 0..<1, using: &chance)) * 1_000 / rate
  }
}
