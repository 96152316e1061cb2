import CLinux
import Glibc
import Seams
import Stores

/// One piece of work for a lane.
struct LaneJob: Sendable {
  /// Queues statements without waiting.
  var send: @Sendable (Session) throws(PostgresFailure) -> Void
  /// Reads their rows, or asks step by step; what it returns is called once the work is durable.
  var take: @Sendable (Session) throws(PostgresFailure) -> @Sendable () -> Void
  /// Answers in place of `take`'s return.
  var fail: @Sendable (StoreFault) -> Void
}

/// A thread with a connection of its own: serves jobs in groups, each group one transaction.
///
/// A group that fails is taken apart, so that one job does not bring the others down. A connection that breaks fails
/// what was under way and is made anew for the next job.
final class Lane: Sendable {
  struct Options: Sendable {
    var role: Session.Role
    /// What it does changes the store: a lost answer leaves the outcome open.
    var writes = true
    /// Jobs ask step by step instead of queueing all at once.
    var isStepwise = false
    var queueMax = 65_536
    var groupMax = 256
    /// How long after a connection could not be made jobs fail without another try.
    var pause: Duration = .milliseconds(250)
    /// How often a group is tried that met a deadlock or another's insert.
    var triesMax = 6
  }

  private struct State: Sendable {
    var queue: [LaneJob] = []
    var idle = false
    var closed = false
    var atEnd: (@Sendable () -> Void)?
  }

  let options: Options
  private let address: PostgresAddress
  private let state = Guarded(State())
  private let wake = Signal()
  /// A question about the devices that a transaction wrote for, asked behind its end.
  struct AfterCommit: Sendable {
    var send: @Sendable (Session, Set<Int64>) throws(PostgresFailure) -> Void
    /// Called once the transaction is durable and answered.
    var take: @Sendable (Session) throws(PostgresFailure) -> Void
    /// The answer to the question was lost.
    var missed: @Sendable () -> Void
  }
  private let afterCommit: AfterCommit?

  init(
    _ address: PostgresAddress, _ options: Options,
    afterCommit: AfterCommit? = nil
  ) throws(StoreFault) {
    self.address = address
    self.options = options
    self.afterCommit = afterCommit
    let started = startThread(name: options.role.name) { [self] in
      work()
      state.withLock { $0.atEnd }?()
    }
    guard started else {
      throw .unavailable(outcomeUnknown: false, detail: "starting a thread: errno \(errno)")
    }
  }

  func submit(_ job: LaneJob, isFollowUp: Bool = false) {
    let refusal: String? = state.withLock { state in
      if state.closed, !isFollowUp { return "the store is closed" }
      if state.queue.count >= options.queueMax, !isFollowUp { return "the store's queue is full" }
      state.queue.append(job)
      if state.idle {
        state.idle = false
        wake.post()
      }
      return nil
    }
    if let refusal { job.fail(.unavailable(outcomeUnknown: false, detail: refusal)) }
  }

  /// Lets the thread finish what was submitted, end its connection and call `atEnd`.
  ///
  /// The first call counts.
  func close(_ atEnd: @escaping @Sendable () -> Void) {
    state.withLock { state in
      guard !state.closed else { return }
      state.closed = true
      state.atEnd = atEnd
      if state.idle {
        state.idle = false
        wake.post()
      }
    }
  }

  // MARK: On the thread

  /// What only the thread touches.
  private struct Place {
    var session: Session?
    var retryAt = Moment(ns: 0)
    var lastFault = StoreFault.unavailable(outcomeUnknown: false, detail: "not connected")
  }

  private func work() {
    var place = Place()
    while true {
      let (jobs, ended) = state.withLock { state in
        let jobs = state.queue
        state.queue = []
        state.idle = jobs.isEmpty && !state.closed
        return (jobs, jobs.isEmpty && state.closed)
      }
      if ended { return }
      if jobs.isEmpty { wake.wait() }
      var rest = jobs[...]
      while !rest.isEmpty {
        serve(rest.prefix(options.groupMax), &place)
        rest = rest.dropFirst(options.groupMax)
      }
    }
  }

  private func serve(_ jobs: ArraySlice<LaneJob>, _ place: inout Place) {
    for attempt in 1... {
      guard let session = connected(&place) else {
        for job in jobs { job.fail(place.lastFault) }
        return
      }
      do throws(PostgresFailure) {
        for answer in try run(jobs, session) { answer() }
        takeAfterCommit(session)
        return
      } catch {
        if session.isBroken { place.session = nil } else { session.abandon() }
        let mayRepeat = error.isTransient || (options.isStepwise && error.isRace)
        if mayRepeat, !session.isBroken, attempt < options.triesMax { continue }
        if jobs.count > 1, !session.isBroken, !error.outcomeUnknown {
          for job in jobs { serve([job], &place) }
        } else {
          for job in jobs { job.fail(error.fault) }
        }
        return
      }
    }
  }

  /// One transaction.
  private func run(
    _ jobs: ArraySlice<LaneJob>, _ session: Session
  ) throws(PostgresFailure) -> [@Sendable () -> Void] {
    var answers: [@Sendable () -> Void] = []
    answers.reserveCapacity(jobs.count)
    do throws(PostgresFailure) {
      if !options.isStepwise {
        for job in jobs { try job.send(session) }
        try session.sync()
        // One round trip for both: the server looks at it when the commit is through.
        try sendAfterCommit(session)
      }
      for job in jobs {
        if options.isStepwise {
          try job.send(session)
          try session.requestFlush()
        }
        answers.append(try job.take(session))
      }
      if options.isStepwise {
        try session.sync()
        try sendAfterCommit(session)
      }
      try session.synced()
      return answers
    } catch {
      var failure = error
      // Before the end of the transaction was sent nothing can have become durable.
      let isRefused = error.state == "25006"
      if session.isBroken, session.syncsAwaited > 0, options.writes, !isRefused {
        failure.outcomeUnknown = true
      }
      throw failure
    }
  }

  private func sendAfterCommit(_ session: Session) throws(PostgresFailure) {
    guard let afterCommit, !session.written.isEmpty else { return }
    try afterCommit.send(session, session.written)
    session.written.removeAll(keepingCapacity: true)
    try session.sync()
  }

  private func takeAfterCommit(_ session: Session) {
    guard let afterCommit, session.syncsAwaited > 0 else { return }
    do throws(PostgresFailure) {
      try afterCommit.take(session)
      try session.synced()
    } catch {
      // The jobs have been answered, and whoever has the devices has to look by itself.
      if !session.isBroken { session.abandon() }
      afterCommit.missed()
    }
  }

  private func connected(_ place: inout Place) -> Session? {
    if let session = place.session {
      // Better found before anything is sent: afterwards the outcome would be open.
      session.lookForEnd()
      if !session.isBroken { return session }
    }
    place.session = nil
    let now = SystemTime().moment
    guard now >= place.retryAt else { return nil }
    do throws(PostgresFailure) {
      let session = try Session(address, options.role)
      place.session = session
      return session
    } catch {
      place.retryAt = SystemTime().moment + options.pause
      place.lastFault = error.fault
      return nil
    }
  }
}
