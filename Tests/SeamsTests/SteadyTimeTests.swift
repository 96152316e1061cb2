import Seams
import Testing

@Suite struct SteadyTimeTests {
  @Test func aStepOfTheWallClockMovesNothing() {
    let machine = ManualTime(wall: WallTime(ms: 1_000_000))
    let steady = SteadyTime(machine)
    machine.advance(by: .seconds(10))
    machine.stepWall(by: .seconds(-7_200))
    #expect(steady.wall == WallTime(ms: 1_010_000))
    #expect(steady.stepped == .seconds(-7_200))
    machine.stepWall(by: .seconds(10_000))
    machine.advance(by: .seconds(1))
    #expect(steady.wall == WallTime(ms: 1_011_000))
    #expect(steady.stepped == .seconds(2_800))
    #expect(steady.moment == machine.moment)
    // A new process takes the clock as it finds it.
    #expect(SteadyTime(machine).wall == machine.wall)
  }

  @Test func whatPassesMayBeCountedByAnotherClock() {
    let (machine, pace) = (ManualTime(wall: WallTime(ms: 0)), ManualTime(moment: Moment(ns: 77)))
    let steady = SteadyTime(machine, pace: pace)
    // Suspended: the monotonic clock stood still, the other went on.
    pace.advance(by: .seconds(60))
    #expect(steady.wall == WallTime(ms: 60_000))
    #expect(steady.moment == machine.moment)
  }

  @Test func theMachinesOwnClockIsCloseToTheRealOne() {
    let steady = SteadyTime()
    let apart = steady.wall.ms - SystemTime().wall.ms
    #expect(abs(apart) < 1_000)
  }
}
