import Synchronization

/// A number that only rises.
///
/// One object is one cell of a series: each loop registers its own, and the exposition adds them up, so that
/// counting never contends.
package final class Counter: Sendable {
  private let value = Atomic<UInt64>(0)
  // Keeps two loops' cells off one cache line: malloc may place small objects side by side.
  private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0)

  package init() {}

  /// Any thread may call; wraps at 2^64.
  package func add(_ amount: UInt64 = 1) {
    value.wrappingAdd(amount, ordering: .relaxed)
  }

  package var count: UInt64 { value.load(ordering: .relaxed) }
}

/// A number that rises and falls.
///
/// Cells of one series are added up, as with ``Counter``.
package final class Gauge: Sendable {
  private let value = Atomic<Int64>(0)
  private let padding: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0)

  package init() {}

  package func set(_ now: Int64) { value.store(now, ordering: .relaxed) }

  package func add(_ amount: Int64) { value.wrappingAdd(amount, ordering: .relaxed) }

  package var current: Int64 { value.load(ordering: .relaxed) }
}
