import Seams

/// The closures submitted to a loop.
///
/// Unlike a ``Mailbox`` it does not hold its loop, which holds it.
final class JobQueue: WaitingMail {
  enum Outcome { case first, queued, refused }

  private struct State {
    var jobs: [@Sendable () -> Void] = []
    var isShut = false
  }
  private let state = Guarded(State())

  func add(_ job: @escaping @Sendable () -> Void) -> Outcome {
    state.withLock { state in
      guard !state.isShut else { return .refused }
      state.jobs.append(job)
      return state.jobs.count == 1 ? .first : .queued
    }
  }

  func refuse() {
    let dropped = state.withLock { state in
      state.isShut = true
      let dropped = state.jobs
      state.jobs = []
      return dropped
    }
    // What a job holds may end here and submit again: not under the lock.
    withExtendedLifetime(dropped) {}
  }

  package func deliver() {
    let batch = state.withLock { state in
      let batch = state.jobs
      state.jobs = []
      return batch
    }
    for job in batch { job() }
  }
}
