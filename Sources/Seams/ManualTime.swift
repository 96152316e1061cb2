import Synchronization

/// A clock that stands until it is moved: for tests and simulation.
package final class ManualTime: TimeSource {
  private struct State {
    var moment: Moment
    var wall: WallTime
  }
  private let state: Mutex<State>

  package init(moment: Moment = Moment(ns: 0), wall: WallTime = WallTime(ms: 1_700_000_000_000)) {
    state = Mutex(State(moment: moment, wall: wall))
  }

  package var moment: Moment { state.withLock { $0.moment } }
  package var wall: WallTime { state.withLock { $0.wall } }

  /// Moves both clocks forward.
  package func advance(by duration: Duration) {
    state.withLock {
      $0.moment = $0.moment + duration
      $0.wall = $0.wall + duration
    }
  }

  /// Steps the wall clock alone, as an administrator or a time server would.
  package func stepWall(by duration: Duration) {
    state.withLock { $0.wall = $0.wall + duration }
  }
}
