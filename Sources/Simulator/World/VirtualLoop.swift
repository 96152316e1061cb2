import EventLoops
import Seams

/// A loop on the virtual clock: rounds like those of an `EventLoop`, one at a time with all other loops.
// Sendable by argument: as ``World``.
final class VirtualLoop: Loop, @unchecked Sendable {
  let name: String
  let time: any TimeSource
  let world: World
  let network: VirtualNetwork
  /// Who connects from here, to the network.
  let owner: Int
  private var chance: SeededChance
  private let timers = TimerHeap()
  private var due: [LoopTimer] = []
  private var inputs: [() -> Void] = []
  private var deferred: [() -> Void] = []
  private var mail: [any WaitingMail] = []
  private var jobs: [@Sendable () -> Void] = []
  private var hooks: [() -> Void] = []
  private var locals: [ObjectIdentifier: AnyObject] = [:]
  /// When the next round was asked for.
  private var roundAt = Int64.max
  /// The machine is busy until then.
  private var busyUntil: Int64 = 0
  private(set) var isStopped = false
  private var streams: [Int: VirtualStream] = [:]

  init(_ name: String, _ world: World, _ network: VirtualNetwork, time: any TimeSource, owner: Int) {
    self.name = name
    self.world = world
    self.network = network
    self.time = time
    self.owner = owner
    chance = world.chance("loop", owner &* 64 &+ name.utf8.reduce(0) { $0 &* 31 &+ Int($1) })
  }

  // MARK: Loop

  var now: Moment { time.moment }
  var wall: WallTime { time.wall }
  /// Work takes no time here.
  var load: Double { 0 }
  func random() -> UInt64 { chance.next() }

  func assertCurrent() {
    precondition(
      world.currentLoop === self, "must run on loop \(name), not on \(world.currentLoop?.name ?? "none")")
  }

  func after(_ delay: Duration, _ body: @escaping () -> Void) -> LoopTimer {
    assertCurrent()
    return timers.add(at: now + delay, body)
  }

  func later(_ body: @escaping () -> Void) {
    assertCurrent()
    deferred.append(body)
  }

  /// Its rounds are as long as what is to be done.
  func wrote(to connections: Int, joined: Int) {}
  func onRoundEnd(_ hook: @escaping () -> Void) { hooks.append(hook) }

  func local<Value: AnyObject>(_ type: Value.Type, make: () -> Value) -> Value {
    if let found = locals[ObjectIdentifier(type)] as? Value { return found }
    let made = make()
    locals[ObjectIdentifier(type)] = made
    return made
  }

  func submit(_ job: @escaping @Sendable () -> Void) -> Bool {
    guard !isStopped else { return false }
    jobs.append(job)
    poke()
    return true
  }

  func announce(_ mailbox: any WaitingMail) -> Bool {
    guard !isStopped else { return false }
    mail.append(mailbox)
    poke()
    return true
  }

  func stop() {
    // As a thread is: ended when this returns, unless it is called from a loop.
    if world.currentLoop == nil { tearDown() } else { world.after(.zero) { [self] in tearDown() } }
  }

  func connect(
    host: String, port: UInt16, timeout: Duration,
    completion: @escaping (Result<any ByteStream, NetworkFault>) -> Void
  ) -> any ConnectAttempt {
    network.connect(from: self, timeout: timeout, completion)
  }

  // MARK: Rounds

  /// Something came for this loop: `body` runs in a round soon.
  func input(_ body: @escaping () -> Void) {
    guard !isStopped else { return }
    inputs.append(body)
    poke()
  }

  private func poke() {
    // Its own round looks again before it ends.
    if world.currentLoop === self { return }
    schedule(world.now + Int64(chance.below(50_000)))
  }

  private func schedule(_ moment: Int64) {
    let moment = max(moment, busyUntil)
    guard moment < roundAt else { return }
    roundAt = moment
    world.at(moment) { [self] in
      guard roundAt <= world.now, !isStopped else { return }
      round()
    }
  }

  /// A long pause of the machine: nothing runs here for a while.
  func stall(for duration: Duration) {
    busyUntil = max(busyUntil, world.now + duration.ns)
    if roundAt < busyUntil {
      roundAt = .max
      schedule(busyUntil)
    }
  }

  private func round() {
    roundAt = .max
    world.currentLoop = self
    var passes = 0
    repeat {
      let batch = inputs
      inputs = []
      for body in batch { body() }
      fireTimers()
      deliver()
      passes += 1
    } while passes < 4 && hasWork
    world.currentLoop = nil
    guard !isStopped else { return }
    if hasWork { schedule(world.now + 20_000) }
    if let earliest = timers.earliest {
      // A wait ends up to a millisecond late.
      let at = earliest.ns - now.ns + world.now
      schedule(max(world.now + 1_000, at + Int64(chance.below(1_000_000))))
    }
  }

  private var hasWork: Bool { !inputs.isEmpty || !mail.isEmpty || !jobs.isEmpty || !deferred.isEmpty }

  private func deliver() {
    let boxes = mail
    mail = []
    for mailbox in boxes { mailbox.deliver() }
    let submitted = jobs
    jobs = []
    for job in submitted { job() }
    let batch = deferred
    deferred = []
    for body in batch { body() }
    for hook in hooks { hook() }
  }

  private func fireTimers() {
    guard let earliest = timers.earliest, earliest <= now else { return }
    timers.takeDue(at: now, into: &due)
    let batch = due
    due = []
    for timer in batch { timer.fire() }
  }

  // MARK: Streams and the end

  func add(_ stream: VirtualStream) { streams[stream.endpoint.number] = stream }
  func remove(_ stream: VirtualStream) { streams[stream.endpoint.number] = nil }

  /// As when a loop is stopped: streams end, then nothing runs here any more.
  func tearDown() {
    guard !isStopped else { return }
    let outer = world.currentLoop
    world.currentLoop = self
    for number in streams.keys.sorted() { streams[number]?.loopStops() }
    for _ in 0..<3 { deliver() }
    isStopped = true
    timers.removeAll()
    inputs = []
    deferred = []
    mail = []
    jobs = []
    hooks = []
    locals = [:]
    world.currentLoop = outer
  }

  /// As when its process is killed: nothing that ends here is told to anybody.
  ///
  /// Its sockets were cut before.
  func die() {
    guard !isStopped else { return }
    isStopped = true
    let outer = world.currentLoop
    world.currentLoop = self
    for number in streams.keys.sorted() { streams[number]?.loopStops() }
    // What the connections hold on to is let go.
    for _ in 0..<3 {
      let batch = deferred
      deferred = []
      for body in batch { body() }
    }
    timers.removeAll()
    inputs = []
    deferred = []
    mail = []
    jobs = []
    hooks = []
    locals = [:]
    world.currentLoop = outer
  }
}
