import EventLoops
import Seams
import Testing

struct LoopLoadTests {
  private func moment(ms: Int64) -> Moment { Moment(ns: ms * 1_000_000) }

  @Test func itIsTheShareOfTheLastWholeSpan() {
    var load = LoopLoad(since: moment(ms: 0))
    #expect(load.share(at: moment(ms: 0)) == 0)
    load.worked(from: moment(ms: 0), to: moment(ms: 10))
    #expect(load.share(at: moment(ms: 10)) == 0)
    load.worked(from: moment(ms: 15), to: moment(ms: 20))
    #expect(load.share(at: moment(ms: 20)) == 0.75)
    load.worked(from: moment(ms: 35), to: moment(ms: 40))
    #expect(load.share(at: moment(ms: 40)) == 0.25)
  }

  @Test func aLoopThatNeverWaitsIsFullyBusy() {
    var load = LoopLoad(since: moment(ms: 0))
    for round in 0..<10 {
      load.worked(from: moment(ms: Int64(round) * 7), to: moment(ms: Int64(round + 1) * 7))
    }
    #expect(load.share(at: moment(ms: 70)) == 1)
  }

  @Test func aLongWaitCountsBeforeItsEnd() {
    var load = LoopLoad(since: moment(ms: 0))
    load.worked(from: moment(ms: 0), to: moment(ms: 100))
    #expect(load.share(at: moment(ms: 110)) == 1)
    #expect(load.share(at: moment(ms: 1_000)) == 0)
    load.worked(from: moment(ms: 1_000), to: moment(ms: 1_009))
    #expect(load.share(at: moment(ms: 1_009)) == 9.0 / 909)
  }

  @Test func aRunningLoopTellsHowBusyItIs() throws {
    let machine = SystemTime()
    let loop = EventLoop(name: "load")
    try loop.start()
    defer { loop.stop() }
    let seen = Watched<[Double]>([])
    loop.submit {
      let begin = machine.moment
      while machine.moment < begin + .milliseconds(50) {}
      loop.submit { seen.update { $0.append(loop.load) } }
      loop.after(.milliseconds(1)) { seen.update { $0.append(loop.load) } }
    }
    #expect(seen.wait { $0.count == 2 })
    #expect((seen.current.last ?? 0) > 0.5)
  }
}
