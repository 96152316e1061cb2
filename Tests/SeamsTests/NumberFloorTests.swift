import Seams
import Testing

@Suite struct NumbersAheadTests {
  @Test func numbersOfAllMakersAreAheadOfTheClockByTheSame() {
    let now = WallTime(ms: 1_800_000_000_000)
    var plain = NumberMaker(node: 3)
    var first = NumberMaker(node: 3, ahead: .seconds(60))
    var second = NumberMaker(node: 4, ahead: .seconds(60))
    for _ in 0..<5 { _ = first.next(now) }
    // Also of one that made fewer before.
    #expect(second.next(now + .milliseconds(5)) > first.next(now + .milliseconds(3)))
    #expect(second.next(now + .seconds(1)) > plain.next(now + .seconds(60)))
  }
}
