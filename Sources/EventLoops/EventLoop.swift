import CUV
import Glibc
package import Seams
import Synchronization

/// One thread with one libuv loop: sockets, timers and wake-ups.
///
/// Everything that belongs to a loop is made, used and closed on its thread; `submit`, ``Mailbox`` and the
/// lifecycle calls are for any thread. A round is: wait, all reads, due timers, mailboxes, then the hooks that
/// flush. What timers and mailboxes queue is flushed before the loop waits again.
// Sendable by argument: stored state is a constant, guarded by `door` or `joining`, or touched on the loop's
// thread alone (before `start` returns and after the join there is no such thread and no other user).
package final class EventLoop: @unchecked Sendable {
  enum Phase { case idle, running, stopping, stopped }

  struct Door {
    var phase = Phase.idle
    var waiting: [any WaitingMail] = []
  }

  struct Joining {
    var thread = pthread_t()
    var isNeeded = false
  }

  /// Bytes one read takes at most; the buffer is shared by all streams of the loop.
  package static let receiveBytesMax = 64 * 1024

  /// Names the thread, cut to 15 bytes.
  package let name: String
  package let statistics = LoopStatistics()
  package let time: any TimeSource

  let uv: UnsafeMutablePointer<uv_loop_t>
  let receiveBuffer: UnsafeMutableRawPointer
  private let handles: LoopHandles
  private let thread = Atomic<UInt>(0)
  private let door = Guarded(Door())
  private let hasMail = Atomic<Bool>(false)
  private let joining = Guarded(Joining())
  private let jobs = JobQueue()

  // The loop's thread only.
  private let timers = TimerHeap()
  private var dueTimers: [LoopTimer] = []
  private var armedFor: Int64?
  private var deferred: [() -> Void] = []
  private var mail: [any WaitingMail] = []
  private var hooks: [() -> Void] = []
  private var stopHooks: [() -> Void] = []
  private var locals: [ObjectIdentifier: AnyObject] = [:]
  private var moment: Moment?
  private var wallTime: WallTime?
  private var lately: LoopLoad
  private var callbacks: UInt64 = 0
  private(set) var length = RoundLength()
  var resolving: [ObjectIdentifier: TCPConnector] = [:]
  private(set) var isStopping = false

  package init(name: String, time: any TimeSource = SystemTime()) {
    self.name = name
    self.time = time
    lately = LoopLoad(since: time.moment)
    uv = .allocate(capacity: 1)
    handles = LoopHandles()
    receiveBuffer = .allocate(byteCount: Self.receiveBytesMax, alignment: 64)
  }

  deinit {
    uv.deallocate()
    receiveBuffer.deallocate()
    handles.deallocate()
  }

  // MARK: Lifecycle

  /// Starts the thread.
  ///
  /// What was submitted before runs first.
  ///
  /// - Throws: ``NetworkFault`` when the system has no descriptors or threads left, or the loop was started.
  package func start() throws(NetworkFault) {
    let code = door.withLock { door -> CInt in
      guard door.phase == .idle else { return UV_EALREADY.rawValue }
      let code = handles.open(uv, owner: self)
      guard code == 0 else { return code }
      var id = pthread_t()
      let context = Unmanaged.passRetained(self)
      let failed = pthread_create(&id, nil, runLoopThread, context.toOpaque())
      guard failed == 0 else {
        context.release()
        handles.abandon(uv)
        return -failed
      }
      joining.withLock { $0 = Joining(thread: id, isNeeded: true) }
      door.phase = .running
      return 0
    }
    if code != 0 { throw NetworkFault(.startLoop, code: code) }
  }

  /// Closes every stream, listener and timer of the loop and waits for its thread to end.
  ///
  /// Jobs submitted before still run; streams' delegates hear `ended(.loopStopped)`. May be called from any
  /// thread and any number of times; on the loop's own thread it asks only and does not wait.
  package func stop() {
    door.withLock { door in
      switch door.phase {
      case .idle: door.phase = .stopped
      case .running:
        door.phase = .stopping
        handles.wake()
      case .stopping, .stopped: break
      }
    }
    guard !isCurrent else { return }
    joining.withLock { joining in
      if joining.isNeeded { pthread_join(joining.thread, nil) }
      joining.isNeeded = false
    }
  }

  fileprivate func runThread() {
    thread.store(UInt(pthread_self()), ordering: .releasing)
    _ = name.withCString { name in
      var short = [CChar](repeating: 0, count: 16)
      strncpy(&short, name, 15)
      return pthread_setname_np(pthread_self(), short)
    }
    blockPipeSignal()
    uv_run(uv, UV_RUN_DEFAULT)
    tearDown()
    thread.store(0, ordering: .releasing)
  }

  private func tearDown() {
    isStopping = true
    for hook in stopHooks { hook() }
    // Twice, since what ends may begin something; then the door shuts.
    for pass in 0..<3 {
      for connector in resolving.values { connector.cancel() }
      uv_walk(uv, closeOwnedHandle, nil)
      endRound()
      if pass == 1 { shutDoor() }
    }
    timers.removeAll()
    handles.close()
    while uv_run(uv, UV_RUN_DEFAULT) != 0 {}
    runDeferred()
    uv_loop_close(uv)
    hooks = []
    stopHooks = []
    locals = [:]
  }

  private func shutDoor() {
    // A job that posts for ever must not hold the stop up.
    for _ in 0..<1_000 {
      deliverMail()
      let isShut = door.withLock { door in
        if door.waiting.isEmpty { door.phase = .stopped }
        return door.phase == .stopped
      }
      if isShut { return }
    }
    door.withLock { door in
      door.phase = .stopped
      door.waiting = []
    }
  }

  // MARK: From any thread

  /// Runs `job` on the loop's thread, after what was submitted before.
  ///
  /// For rare things; a ``Mailbox`` is cheaper.
  ///
  /// - Returns: Whether it will run: false once the loop has stopped.
  @discardableResult
  package func submit(_ job: @escaping @Sendable () -> Void) -> Bool {
    switch jobs.add(job) {
    case .refused: return false
    case .queued: return true
    case .first:
      if announce(jobs) { return true }
      jobs.refuse()
      return false
    }
  }

  /// Whether the caller runs on the loop's thread.
  package var isCurrent: Bool { thread.load(ordering: .relaxed) == UInt(pthread_self()) }

  /// Traps in debug builds when called on another thread.
  package func assertCurrent() {
    assert(isCurrent, "must run on the thread of loop \(name)")
  }

  /// Puts a mailbox that became non-empty on the list; wakes the loop if it may be waiting.
  package func announce(_ mailbox: any WaitingMail) -> Bool {
    let isHere = isCurrent
    return door.withLock { door in
      guard door.phase != .stopped else { return false }
      door.waiting.append(mailbox)
      hasMail.store(true, ordering: .releasing)
      // On its own thread the loop looks again before it waits.
      if !isHere, door.waiting.count == 1, door.phase != .idle { handles.wake() }
      return true
    }
  }

  // MARK: On the loop's thread

  /// From how many addresses connections to 127.0.0.1 come in turn: 127.0.0.1, 127.0.0.2 and so on.
  ///
  /// One address has some 28,000 ports, and Linux finds a free one slowly once half of them are taken.
  package var loopbackSources = 1
  private var lastLoopbackSource = 0

  func nextLoopbackSource(for address: sockaddr_storage) -> sockaddr_storage? {
    guard loopbackSources > 1, isLoopback(address) else { return nil }
    lastLoopbackSource = lastLoopbackSource % loopbackSources + 1
    return numericAddress("127.0.0.\(lastLoopbackSource)", port: 0)
  }

  /// The monotonic time, read once a round.
  package var now: Moment {
    if let moment { return moment }
    let read = time.moment
    moment = read
    return read
  }

  /// The wall clock, read once a round.
  package var wall: WallTime {
    if let wallTime { return wallTime }
    let read = time.wall
    wallTime = read
    return read
  }

  package var load: Double { lately.share(at: now) }

  /// Calls `body` once `delay` has passed, a millisecond late at most if the loop is not busy.
  ///
  /// The loop keeps `body` until it fired or was cancelled. O(log timers).
  @discardableResult
  package func after(_ delay: Duration, _ body: @escaping () -> Void) -> LoopTimer {
    assertCurrent()
    return timers.add(at: now + delay, body)
  }

  /// Calls `hook` at the end of every round, for as long as the loop runs: the place to flush.
  ///
  /// It runs after reads, timers and mailboxes, and often with nothing to do: make that case cheap.
  package func onRoundEnd(_ hook: @escaping () -> Void) {
    assertCurrent()
    hooks.append(hook)
  }

  /// Calls `hook` when the loop stops, before its streams are closed.
  package func onStop(_ hook: @escaping () -> Void) {
    assertCurrent()
    stopHooks.append(hook)
  }

  /// Calls `body` in this round, after the current callback has returned and before the flush.
  package func later(_ body: @escaping () -> Void) {
    assertCurrent()
    deferred.append(body)
  }

  /// The loop's one instance of a class, made at first use; kept until the loop stops.
  package func local<Value: AnyObject>(_ type: Value.Type, make: () -> Value) -> Value {
    assertCurrent()
    if let found = locals[ObjectIdentifier(type)] as? Value { return found }
    let made = make()
    locals[ObjectIdentifier(type)] = made
    return made
  }

  /// Makes the loop look at its timers and mailboxes: for tests that move a clock by hand.
  package func wake() { submit {} }

  // MARK: Rounds

  /// The start of I/O callbacks: from here on the round is timed.
  func beginCallback() {
    if moment == nil { moment = time.moment }
  }

  /// The end of a read, or of accepting: ends a round that has become long, looked at every few reads.
  ///
  /// After a full batch of events (1,024) libuv polls again before it comes back, up to 48 times. Thousands of peers
  /// that come or leave together would make one round of all of it, and nobody's answer would leave before its end.
  func readEnded() {
    callbacks &+= 1
    guard callbacks & 7 == 0, let moment, time.moment.ns &- moment.ns > length.ns else { return }
    endRound()
    finishTiming()
  }

  package func wrote(to connections: Int, joined: Int) { length.wrote(to: connections, joined: joined) }

  func wokenUp() {
    beginCallback()
    statistics.countWakeUp()
    if door.withLock({ $0.phase == .stopping }) { uv_stop(uv) }
  }

  func waitEnded() {
    statistics.countRound()
    beginCallback()
    endRound()
    finishTiming()
  }

  func waitBegins() {
    beginCallback()
    endRound()
    finishTiming()
    armTimer()
  }

  private func finishTiming() {
    if let moment {
      let end = time.moment
      statistics.roundTook(ns: end.ns &- moment.ns, timers: timers.activeCount)
      lately.worked(from: moment, to: end)
    }
    moment = nil
    wallTime = nil
  }

  private func endRound() {
    fireTimers()
    // Handlers post to each other; a few passes let one round finish what it began.
    var passes = 0
    repeat {
      deliverMail()
      runDeferred()
      for hook in hooks { hook() }
      passes += 1
    } while passes < 4 && (hasMail.load(ordering: .acquiring) || !deferred.isEmpty)
    if hasMail.load(ordering: .acquiring) || !deferred.isEmpty { handles.wake() }
  }

  private func deliverMail() {
    guard hasMail.load(ordering: .acquiring) else { return }
    door.withLock { door in
      swap(&door.waiting, &mail)
      hasMail.store(false, ordering: .releasing)
    }
    let batch = mail
    mail = []
    for mailbox in batch { mailbox.deliver() }
    if mail.isEmpty {
      mail = batch
      mail.removeAll(keepingCapacity: true)
    }
  }

  private func runDeferred() {
    guard !deferred.isEmpty else { return }
    let batch = deferred
    deferred = []
    for body in batch { body() }
  }

  private func fireTimers() {
    guard let earliest = timers.earliest, earliest <= now else { return }
    timers.takeDue(at: now, into: &dueTimers)
    let batch = dueTimers
    dueTimers = []
    for timer in batch { timer.fire() }
  }

  private func armTimer() {
    guard let earliest = timers.earliest else {
      if armedFor != nil { handles.disarm() }
      armedFor = nil
      return
    }
    if armedFor == earliest.ns, handles.isArmed { return }
    armedFor = earliest.ns
    let ns = max(0, earliest.ns &- time.moment.ns)
    handles.arm(uv, ms: UInt64(ns / 1_000_000 + 1))
  }
}

/// A C entry point: the thread owns the reference it is given.
private func runLoopThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  if let context {
    Unmanaged<EventLoop>.fromOpaque(context).takeRetainedValue().runThread()
  }
  return nil
}

/// A write to a peer that left must fail with EPIPE, not end the process; libuv writes without MSG_NOSIGNAL.
private func blockPipeSignal() {
  var signals = sigset_t()
  sigemptyset(&signals)
  sigaddset(&signals, SIGPIPE)
  pthread_sigmask(SIG_BLOCK, &signals, nil)
}

private func closeOwnedHandle(
  _ handle: UnsafeMutablePointer<uv_handle_t>?, _ context: UnsafeMutableRawPointer?
) {
  guard let handle, uv_is_closing(handle) == 0, let data = handle.pointee.data else { return }
  Unmanaged<LoopHandle>.fromOpaque(data)._withUnsafeGuaranteedRef { $0.loopStops() }
}
