import Synchronization
package import Telemetry

/// What a loop did, readable from any thread.
///
/// The loop's thread alone writes.
package final class LoopStatistics: Sendable {
  private let roundCount = Atomic<UInt64>(0)
  private let wakeUpCount = Atomic<UInt64>(0)
  private let longest = Atomic<Int64>(0)
  private let stallCount = Atomic<UInt64>(0)
  private let timerCount = Atomic<Int>(0)

  /// A round that takes longer is a stall: whoever waits for the loop notices.
  package static let stallNs: Int64 = 100_000_000

  /// How long each round took, in nanoseconds.
  package let roundNs = Histogram()

  package init() {}

  /// Times the loop came back from waiting.
  package var rounds: UInt64 { roundCount.load(ordering: .relaxed) }

  /// Times another thread woke the loop; many messages share one.
  package var wakeUps: UInt64 { wakeUpCount.load(ordering: .relaxed) }

  /// The longest round, in nanoseconds: the time during which the loop answered nobody else.
  package var longestRoundNs: Int64 { longest.load(ordering: .relaxed) }

  /// Rounds that took longer than ``stallNs``.
  package var stalls: UInt64 { stallCount.load(ordering: .relaxed) }

  /// Timers that waited when the last round ended.
  package var timers: Int { timerCount.load(ordering: .relaxed) }

  func countRound() {
    roundCount.store(roundCount.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
  }

  func countWakeUp() {
    wakeUpCount.store(wakeUpCount.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
  }

  func roundTook(ns: Int64, timers: Int) {
    roundNs.record(UInt64(clamping: ns))
    timerCount.store(timers, ordering: .relaxed)
    if ns > longest.load(ordering: .relaxed) { longest.store(ns, ordering: .relaxed) }
    if ns > Self.stallNs { stallCount.store(stallCount.load(ordering: .relaxed) &+ 1, ordering: .relaxed) }
  }
}
