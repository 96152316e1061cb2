import EventLoops
import Seams
import Testing

struct EventLoopTests {
  @Test func jobsSubmittedBeforeTheStartRunFirstAndInOrder() throws {
    let loop = EventLoop(name: "jobs")
    let seen = Watched<[Int]>([])
    for number in 0..<3 { loop.submit { seen.update { $0.append(number) } } }
    try loop.start()
    defer { loop.stop() }
    loop.submit { seen.update { $0.append(3) } }
    #expect(seen.wait { $0.count == 4 })
    #expect(seen.current == [0, 1, 2, 3])
  }

  @Test func everySubmittedJobRunsOrIsRefusedWhenTheLoopStops() throws {
    for _ in 0..<50 {
      let loop = EventLoop(name: "jobs")
      try loop.start()
      let ran = Watched(0)
      let other = EventLoop(name: "other")
      let taken = Watched(0)
      let isDone = Watched()
      other.submit {
        for _ in 0..<200 where loop.submit({ ran.update { $0 += 1 } }) { taken.update { $0 += 1 } }
        isDone.raise()
      }
      try other.start()
      loop.stop()
      #expect(isDone.wait())
      other.stop()
      #expect(ran.current == taken.current)
    }
  }

  @Test func stoppingTwiceAndWithoutAStartIsHarmless() throws {
    let loop = EventLoop(name: "stop")
    try loop.start()
    loop.stop()
    loop.stop()
    let unused = EventLoop(name: "unused")
    unused.stop()
    #expect(!unused.submit {})
    #expect(throws: NetworkFault.self) { try unused.start() }
  }

  @Test func aLoopStartsOnce() throws {
    let loop = EventLoop(name: "start")
    try loop.start()
    defer { loop.stop() }
    #expect(throws: NetworkFault.self) { try loop.start() }
  }

  @Test func aLoopMayStopItself() throws {
    let loop = EventLoop(name: "self")
    try loop.start()
    loop.submit { loop.stop() }
    loop.stop()
    #expect(!loop.submit {})
  }

  @Test func theLoopKnowsItsThread() async throws {
    let loop = EventLoop(name: "thread")
    try loop.start()
    #expect(!loop.isCurrent)
    let inside = try await loop.perform { loop.isCurrent }
    #expect(inside)
    loop.stop()
    await #expect(throws: NetworkFault.self) { try await loop.perform { 1 } }
  }

  @Test func hooksRunAfterTimersAndMailboxesOfTheSameRound() throws {
    let loop = EventLoop(name: "hooks")
    let events = Watched<[String]>([])
    loop.submit {
      loop.onRoundEnd { events.update { if $0.last != "flush" { $0.append("flush") } } }
      loop.after(.milliseconds(1)) {
        events.update { $0.append("timer") }
        loop.later { events.update { $0.append("later") } }
      }
    }
    try loop.start()
    defer { loop.stop() }
    #expect(events.wait { $0.suffix(3) == ["timer", "later", "flush"] })
  }

  @Test func theClockStandsWithinARound() throws {
    let loop = EventLoop(name: "clock")
    try loop.start()
    defer { loop.stop() }
    let same = Watched<Bool?>(nil)
    loop.submit {
      let first = loop.now
      let machine = SystemTime()
      while machine.moment <= first + .milliseconds(2) {}
      same.update { $0 = loop.now == first }
    }
    #expect(same.wait { $0 != nil })
    #expect(same.current == true)
    #expect(loop.statistics.longestRoundNs >= 0)
  }

  @Test func aLongRoundShowsInTheStatistics() throws {
    let loop = EventLoop(name: "long")
    try loop.start()
    defer { loop.stop() }
    let isDone = Watched()
    loop.submit {
      let machine = SystemTime()
      let start = machine.moment
      while machine.moment < start + .milliseconds(5) {}
      loop.after(.milliseconds(1)) { isDone.raise() }
    }
    #expect(isDone.wait())
    #expect(loop.statistics.longestRoundNs >= 5_000_000)
    #expect(loop.statistics.rounds > 0)
  }
}
