import Glibc
import Seams
import Stores
import Synchronization

/// One piece of work for a thread that owns a `Context`.
struct Job<Context>: Sendable {
  /// Does the work.
  ///
  /// What it returns is called once the work is durable.
  let run: @Sendable (Context) throws(SQLiteFailure) -> @Sendable () -> Void
  /// Answers in place of `run`'s return.
  let fail: @Sendable (StoreFault) -> Void
  /// May wait for company, so that thousands of them at once are not as many transactions.
  var isPatient = false
}

/// A thread that makes a `Context`, serves jobs with it in batches, and ends it.
///
/// The context never leaves it.
final class WorkThread<Context>: Sendable {
  private struct State: Sendable {
    var queue: [Job<Context>] = []
    /// Of the queue, those that do not wait for company.
    var urgent = 0
    /// The thread waits on `wake`.
    var idle = false
    /// The thread waits on `wake` for a job that is not patient, or for some time.
    var lingering = false
    /// Until then patient jobs alone are left in the queue.
    var lingerUntil = Moment(ns: 0)
    /// Runs on the thread at its end; set by `close`.
    var atEnd: (@Sendable () -> Void)?
    var closed = false
  }

  private let state = Guarded(State())
  private let wake = Semaphore()
  private let queueMax: Int
  private let batchMax: Int
  private let patience: Duration
  private let time: any TimeSource

  /// Starts the thread and waits until the context is made.
  /// - Parameters:
  ///   - queueMax: Jobs that may wait; further ones are turned away.
  ///   - batchMax: Jobs that are served together at most.
  ///   - patience: Groups of patient jobs alone begin at least so far apart.
  init(
    name: String, queueMax: Int, batchMax: Int, patience: Duration = .zero,
    make: @escaping @Sendable () throws(StoreFault) -> Context,
    serve: @escaping @Sendable (Context, ArraySlice<Job<Context>>) -> Void
  ) throws(StoreFault) {
    self.queueMax = queueMax
    self.batchMax = batchMax
    self.patience = patience
    time = SystemTime()
    let start = Start()
    let started = startThread(name: name) { [self] in
      runToEnd(start, make, serve)
      // The context is gone here: its files are closed.
      state.withLock { $0.atEnd }?()
    }
    guard started else {
      throw .unavailable(outcomeUnknown: false, detail: "starting a thread: errno \(errno)")
    }
    start.done.wait()
    if let fault = start.fault.withLock({ $0 }) { throw fault }
  }

  /// What the starting thread waits for.
  private final class Start: Sendable {
    let done = Semaphore()
    let fault = Guarded<StoreFault?>(nil)
  }

  private func runToEnd(
    _ start: Start, _ make: () throws(StoreFault) -> Context,
    _ serve: (Context, ArraySlice<Job<Context>>) -> Void
  ) {
    do throws(StoreFault) {
      let context = try make()
      start.done.post()
      work(context, serve)
    } catch {
      start.fault.withLock { $0 = error }
      start.done.post()
    }
  }

  private func work(_ context: Context, _ serve: (Context, ArraySlice<Job<Context>>) -> Void) {
    while true {
      let (jobs, ended, due) = state.withLock { state -> ([Job<Context>], Bool, Moment?) in
        state.lingering = false
        if let due = lingers(&state) { return ([], false, due) }
        let jobs = state.queue
        state.queue = []
        state.urgent = 0
        state.idle = jobs.isEmpty && !state.closed
        return (jobs, jobs.isEmpty && state.closed, nil)
      }
      if ended { break }
      if let due {
        wake.wait(until: due)
        continue
      }
      if jobs.isEmpty { wake.wait() }
      var rest = jobs[...]
      while !rest.isEmpty {
        serve(context, rest.prefix(batchMax))
        rest = rest.dropFirst(batchMax)
      }
    }
  }

  /// Whether the queue holds patient jobs alone, and such a group began a moment ago.
  ///
  /// - Returns: How long they wait for company.
  private func lingers(_ state: inout State) -> Moment? {
    guard patience > .zero, state.urgent == 0, !state.queue.isEmpty, !state.closed else { return nil }
    let now = time.moment
    guard now < state.lingerUntil, state.queue.count < queueMax / 2 else {
      state.lingerUntil = now + patience
      return nil
    }
    state.lingering = true
    return state.lingerUntil
  }

  /// Hands a job over, or fails it at once when the queue is full or the thread has been closed.
  /// - Parameter isFollowUp: The job goes on with one that was accepted: no bound, and taken while closing.
  func submit(_ job: Job<Context>, isFollowUp: Bool = false) {
    let refusal: String? = state.withLock { state in
      if state.closed, !isFollowUp { return "the store is closed" }
      if state.queue.count >= queueMax, !isFollowUp { return "the store's queue is full" }
      state.queue.append(job)
      if !job.isPatient { state.urgent += 1 }
      if state.idle || (state.lingering && (!job.isPatient || state.queue.count >= queueMax / 2)) {
        state.idle = false
        state.lingering = false
        wake.post()
      }
      return nil
    }
    if let refusal { job.fail(.unavailable(outcomeUnknown: false, detail: refusal)) }
  }

  /// Lets the thread finish what was submitted, end its context and call `atEnd`.
  ///
  /// The first call counts.
  func close(_ atEnd: @escaping @Sendable () -> Void) {
    state.withLock { state in
      guard !state.closed else { return }
      state.closed = true
      state.atEnd = atEnd
      if state.idle || state.lingering {
        state.idle = false
        state.lingering = false
        wake.post()
      }
    }
  }
}
