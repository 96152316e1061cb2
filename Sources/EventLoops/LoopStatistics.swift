import Synchronization

/// What a loop did, readable from any thread.
///
/// The loop's thread alone writes, except for the reset of `longestRoundNs`.
package final class LoopStatistics: Sendable {
  private let roundCount = Atomic<UInt64>(0)
  private let wakeUpCount = Atomic<UInt64>(0)
  private let longest = Atomic<Int64>(0)

  package init() {}

  /// Times the loop came back from waiting.
  package var rounds: UInt64 { roundCount.load(ordering: .relaxed) }

  /// Times another thread woke the loop; many messages share one.
  package var wakeUps: UInt64 { wakeUpCount.load(ordering: .relaxed) }

  /// The longest round since the last call, in nanoseconds: the time during which the loop answered nobody else.
  package func takeLongestRoundNs() -> Int64 { longest.exchange(0, ordering: .relaxed) }

  func countRound() {
    roundCount.store(roundCount.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
  }

  func countWakeUp() {
    wakeUpCount.store(wakeUpCount.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
  }

  func roundTook(ns: Int64) {
    if ns > longest.load(ordering: .relaxed) { longest.store(ns, ordering: .relaxed) }
  }
}
