import EventLoops
import Seams
import Testing

struct LoopTimerTests {
  @Test func timersFireInTheOrderOfTheirDeadlines() throws {
    let loop = EventLoop(name: "timers")
    let fired = Watched<[Int]>([])
    loop.submit {
      for ms in [9, 3, 7, 1, 5, 3] { loop.after(.milliseconds(ms)) { fired.update { $0.append(ms) } } }
    }
    try loop.start()
    defer { loop.stop() }
    #expect(fired.wait { $0.count == 6 })
    #expect(fired.current == [1, 3, 3, 5, 7, 9])
  }

  @Test func aCancelledTimerStaysSilentAlsoWhenCancelledByAnotherOfTheSameMoment() throws {
    let loop = EventLoop(name: "timers")
    let fired = Watched<[String]>([])
    loop.submit {
      var second: LoopTimer?
      loop.after(.milliseconds(1)) {
        fired.update { $0.append("first") }
        second?.cancel()
        second?.cancel()
      }
      second = loop.after(.milliseconds(1)) { fired.update { $0.append("second") } }
      loop.after(.milliseconds(2)) { fired.update { $0.append("last") } }
      #expect(second?.isActive == true)
    }
    try loop.start()
    defer { loop.stop() }
    #expect(fired.wait { $0.contains("last") })
    #expect(fired.current == ["first", "last"])
  }

  @Test func theClockGivenDecidesWhenTimersAreDue() throws {
    let time = ManualTime()
    let loop = EventLoop(name: "timers", time: time)
    try loop.start()
    defer { loop.stop() }
    let fired = Watched<[Int]>([])
    let isReady = Watched()
    loop.submit {
      loop.after(.seconds(3600)) { fired.update { $0.append(1) } }
      loop.after(.seconds(7200)) { fired.update { $0.append(2) } }
      isReady.raise()
    }
    #expect(isReady.wait())
    time.advance(by: .seconds(3600))
    loop.wake()
    #expect(fired.wait { $0 == [1] })
    time.advance(by: .seconds(3600))
    loop.wake()
    #expect(fired.wait { $0 == [1, 2] })
  }

  @Test func twentyThousandTimersWithMostCancelledFireRight() throws {
    let time = ManualTime()
    let loop = EventLoop(name: "timers", time: time)
    let fired = Watched<[Int]>([])
    let isReady = Watched()
    loop.submit {
      var timers: [(Int, LoopTimer)] = []
      var chance = SeededChance(seed: 7)
      for _ in 0..<20_000 {
        let ms = Int.random(in: 1...1_000_000, using: &chance)
        timers.append((ms, loop.after(.milliseconds(ms)) { fired.update { $0.append(ms) } }))
      }
      for (index, timer) in timers.enumerated() where index % 10 != 0 { timer.1.cancel() }
      isReady.raise()
    }
    try loop.start()
    defer { loop.stop() }
    #expect(isReady.wait())
    time.advance(by: .seconds(1_000))
    loop.wake()
    #expect(fired.wait { $0.count == 2_000 })
    let order = fired.current
    #expect(order == order.sorted())
  }

  @Test func aTimerSetByATimerWaitsForTheNextRound() throws {
    let loop = EventLoop(name: "timers")
    let count = Watched(0)
    @Sendable func again() {
      let number = count.update { count in
        count += 1
        return count
      }
      if number < 5 { loop.after(.zero) { again() } }
    }
    loop.submit { loop.after(.zero) { again() } }
    try loop.start()
    defer { loop.stop() }
    #expect(count.wait { $0 == 5 })
  }
}
