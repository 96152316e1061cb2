import Seams
import Telemetry
import Testing

struct HistogramTests {
  @Test func everyValueFallsIntoABucketThatIsAtMostOne32ndWide() {
    var chance = SeededChance(seed: 1)
    var values: [UInt64] = [0, 1, 63, 64, 65, 127, 128, .max, .max - 1, 1 << 63]
    for shift in 0..<64 { values.append(chance.next() >> UInt64(shift)) }
    for value in values {
      let histogram = Histogram()
      histogram.record(value)
      let bound = histogram.snapshot().quantile(1)
      // One value: the quantile is capped by the largest, so it is the value itself.
      #expect(bound == value)
    }
    for bucket in 1..<LogLinear.bucketCount {
      let low = LogLinear.upperBound(of: bucket - 1)
      let high = LogLinear.upperBound(of: bucket)
      #expect(low < high)
      #expect(high - low <= max(1, low / 32 + 1))
    }
    #expect(LogLinear.upperBound(of: LogLinear.bucketCount - 1) == .max)
  }

  @Test func quantilesAreWithinAThirtySecondOfTheTruth() throws {
    let histogram = Histogram()
    var chance = SeededChance(seed: 7)
    var values: [UInt64] = []
    for _ in 0..<20_000 {
      let value = chance.next() >> UInt64(20 + chance.next() % 40)
      values.append(value)
      histogram.record(value)
    }
    values.sort()
    let snapshot = histogram.snapshot()
    #expect(snapshot.count == 20_000)
    for fraction in [0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
      let rank = max(1, Int((20_000 * fraction).rounded(.up)))
      let truth = values[rank - 1]
      let said = try #require(snapshot.quantile(fraction))
      #expect(said >= truth && said <= truth + truth / 31 + 1, "\(fraction)")
    }
    #expect(snapshot.largest == values.last)
  }

  @Test func nothingRecordedHasNoQuantileAndNoMean() {
    let empty = Histogram().snapshot()
    #expect(empty.quantile(0.5) == nil)
    #expect(empty.mean == nil)
    #expect(empty == HistogramSnapshot())
  }

  @Test func mergedShardsAreTheWhole() {
    let (left, right, whole) = (Histogram(), Histogram(), Histogram())
    for value in UInt64(0)..<1_000 {
      (value % 3 == 0 ? left : right).record(value * value)
      whole.record(value * value)
    }
    var merged = left.snapshot()
    merged.merge(right.snapshot())
    #expect(merged == whole.snapshot())
    #expect(merged.mean == whole.snapshot().mean)
  }

  @Test func aNegativeDurationCountsAsZero() {
    let histogram = Histogram()
    histogram.record(Duration.seconds(-5))
    histogram.record(Duration.microseconds(3))
    #expect(histogram.snapshot().quantile(0) == 0)
    #expect(histogram.snapshot().largest == 3_000)
  }
}
