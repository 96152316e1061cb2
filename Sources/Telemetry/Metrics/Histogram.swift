package import Seams
import Synchronization

/// How values fall into buckets: exact below 64, then 32 buckets for each doubling, so that a bucket is at
/// most 1/32 (3.1 %) of its value wide.
///
/// Covers all of `UInt64` in 1,920 buckets, 15 KB.
///
/// - Source: the idea of HdrHistogram (Gil Tene), with binary sub-buckets.
package enum LogLinear {
  package static let bucketCount = 1_920

  /// The bucket of a value; 0 to 1,919.
  @inline(__always)
  static func bucket(of value: UInt64) -> Int {
    let shift = max(0, 58 &- value.leadingZeroBitCount)
    return shift &* 32 &+ Int(truncatingIfNeeded: value &>> UInt64(truncatingIfNeeded: shift))
  }

  /// The largest value of a bucket.
  package static func upperBound(of bucket: Int) -> UInt64 {
    if bucket < 64 { return UInt64(bucket) }
    let shift = UInt64(bucket / 32 - 1)
    let head = UInt64(bucket) - shift * 32
    return ((head << shift) | ((1 << shift) - 1))
  }
}

/// Counts values, nanoseconds mostly, in fixed memory; one recording costs a few nanoseconds and never allocates.
///
/// One thread records, any thread reads: a cell belongs to a loop, and the exposition merges a series' cells. (Two
/// threads recording into one cell would lose counts now and then, and do no other harm.)
package final class Histogram: @unchecked Sendable {
  // Unchecked because of the pointer: it is set once, freed in deinit, and what it points to is atomic.
  private let buckets: UnsafeMutablePointer<Atomic<UInt64>>
  private let sum = Atomic<UInt64>(0)
  private let largest = Atomic<UInt64>(0)

  package init() {
    buckets = .allocate(capacity: LogLinear.bucketCount)
    for index in 0..<LogLinear.bucketCount {
      (buckets + index).initialize(to: Atomic(0))
    }
  }

  deinit {
    buckets.deinitialize(count: LogLinear.bucketCount)
    buckets.deallocate()
  }

  /// Records one value.
  ///
  /// Plain loads and stores, since one thread writes.
  package func record(_ value: UInt64) {
    let index = LogLinear.bucket(of: value)
    // proof: `bucket(of:)` is at most 58 * 32 + 63 = 1,919.
    Self.bump(buckets[index], by: 1)
    Self.bump(sum, by: value)
    if value > largest.load(ordering: .relaxed) { largest.store(value, ordering: .relaxed) }
  }

  /// Records a duration in nanoseconds; a negative one counts as 0.
  package func record(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    record(UInt64(clamping: seconds &* 1_000_000_000 &+ attoseconds / 1_000_000_000))
  }

  /// Records the time from one moment to a later one.
  package func record(from start: Moment, to end: Moment) {
    record(UInt64(clamping: end.ns &- start.ns))
  }

  @inline(__always)
  private static func bump(_ cell: borrowing Atomic<UInt64>, by amount: UInt64) {
    cell.store(cell.load(ordering: .relaxed) &+ amount, ordering: .relaxed)
  }

  /// What was recorded so far.
  ///
  /// Values recorded meanwhile may be in it or not.
  package func snapshot() -> HistogramSnapshot {
    var counts = [UInt64](repeating: 0, count: LogLinear.bucketCount)
    for index in 0..<LogLinear.bucketCount {
      counts[index] = buckets[index].load(ordering: .relaxed)
    }
    return HistogramSnapshot(
      counts: counts, sum: sum.load(ordering: .relaxed), largest: largest.load(ordering: .relaxed))
  }
}

/// The counts of a histogram at one time, as a value: merged over loops, asked for quantiles.
package struct HistogramSnapshot: Sendable, Equatable {
  private var counts: [UInt64]
  /// The sum of all values; wraps at 2^64.
  package private(set) var sum: UInt64
  package private(set) var largest: UInt64

  package init() {
    self.init(counts: [UInt64](repeating: 0, count: LogLinear.bucketCount), sum: 0, largest: 0)
  }

  init(counts: [UInt64], sum: UInt64, largest: UInt64) {
    self.counts = counts
    self.sum = sum
    self.largest = largest
  }

  package var count: UInt64 { counts.reduce(0, &+) }

  package mutating func merge(_ other: HistogramSnapshot) {
    for index in counts.indices { counts[index] &+= other.counts[index] }
    sum &+= other.sum
    largest = max(largest, other.largest)
  }

  /// What was recorded after an earlier snapshot of the same histogram; all of it for nil.
  ///
  /// The largest value stays that of the whole.
  package func since(_ earlier: HistogramSnapshot?) -> HistogramSnapshot {
    guard let earlier else { return self }
    return HistogramSnapshot(
      counts: zip(counts, earlier.counts).map { $0 >= $1 ? $0 - $1 : 0 }, sum: sum &- earlier.sum,
      largest: largest)
  }

  /// The value that `fraction` of all recorded values do not exceed, at most 1/32 too high.
  ///
  /// - Parameter fraction: 0 to 1; others are clamped.
  /// - Returns: nil when nothing was recorded.
  package func quantile(_ fraction: Double) -> UInt64? {
    let total = count
    guard total > 0 else { return nil }
    let rank = max(1, min(total, UInt64((Double(total) * min(max(fraction, 0), 1)).rounded(.up))))
    var seen: UInt64 = 0
    for index in counts.indices {
      seen &+= counts[index]
      if seen >= rank { return min(LogLinear.upperBound(of: index), largest) }
    }
    return largest
  }

  package var mean: Double? {
    let total = count
    return total > 0 ? Double(sum) / Double(total) : nil
  }

  /// How many values were less than 2^exponent; exact, since bucket borders fall on powers of two.
  func count(belowPowerOfTwo exponent: Int) -> UInt64 {
    let end = LogLinear.bucket(of: UInt64(1) << UInt64(exponent))
    return counts[..<end].reduce(0, &+)
  }
}
