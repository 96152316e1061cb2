import Seams
import Testing

@Suite struct NumberFloorTests {
  @Test func numbersLieAboveThoseOfTheFloorThoughTheClockIsBehindIt() {
    let floor = WallTime(ms: 1_800_000_060_000)
    var earlier = NumberMaker(node: 3)
    var later = NumberMaker(node: 3, floor: floor)
    let last = earlier.next(floor)
    let next = later.next(WallTime(ms: 1_800_000_000_000))
    #expect(next > last)
    #expect(later.next(WallTime(ms: 1_800_000_000_000)) > next)
  }

  @Test func aFloorThatTheClockHasPassedChangesNothing() {
    let now = WallTime(ms: 1_800_000_000_000)
    var without = NumberMaker(node: 0)
    var with = NumberMaker(node: 0, floor: WallTime(ms: 1_700_000_000_000))
    #expect(without.next(now) == with.next(now))
  }
}
