import Seams
import Testing

@testable import EventLoops

@Suite struct TimerHeapTests {
  private let heap = TimerHeap()

  private func add(_ deadline: Int64) -> LoopTimer { heap.add(at: Moment(ns: deadline)) {} }

  private func due(at moment: Int64) -> [LoopTimer] {
    var due: [LoopTimer] = []
    heap.takeDue(at: Moment(ns: moment), into: &due)
    return due
  }

  @Test func whatWillStillFireIsCounted() {
    let timers = (1...10).map { add($0) }
    #expect(heap.activeCount == 10)
    timers[6].cancel()
    timers[8].cancel()
    #expect(heap.activeCount == 8)
    #expect(due(at: 4).map(\.deadline.ns) == [1, 2, 3, 4])
    #expect(heap.activeCount == 4)
    #expect(due(at: 10).map(\.deadline.ns) == [5, 6, 8, 10])
    #expect(heap.activeCount == 0 && heap.count == 0)
  }

  @Test func aTimerThatIsCancelledWhenItIsDueIsNotCountedTwice() {
    _ = add(1)
    _ = add(2)
    for timer in due(at: 1) { timer.cancel() }
    #expect(heap.activeCount == 1)
    #expect(due(at: 2).count == 1)
    #expect(heap.activeCount == 0)
  }

  @Test func cancelledTimersGoOnceTheyAreMostOfTheHeap() {
    let timers = (0..<200).map { add(Int64($0)) }
    for timer in timers.prefix(150) { timer.cancel() }
    #expect(heap.activeCount == 50)
    #expect(heap.count < 150)
    #expect(due(at: 1_000).map(\.deadline.ns) == Array(150..<200))
    #expect(heap.activeCount == 0)
  }
}
