import ConnectionServer
import EventLoops
import PushModel
import Seams
import Stores
import TLSCore
import Telemetry

/// The server of a simulation: one process after another over the same store.
// Sendable by argument: as ``World``.
final class SimServer: @unchecked Sendable {
  /// One process, from its start to its end.
  // Sendable by argument: as ``World``.
  final class Process: @unchecked Sendable {
    let number: Int
    let loops: [VirtualLoop]
    let desk: StoreDesk
    let store: MemoryStore
    /// The way to the other nodes, where there are any.
    let bus: SimBus?
    var core: ServerCore?
    var keeping: Task<Void, Never>?
    var isDraining = false

    init(number: Int, loops: [VirtualLoop], desk: StoreDesk, store: MemoryStore, bus: SimBus?) {
      self.bus = bus
      self.number = number
      self.loops = loops
      self.desk = desk
      self.store = store
    }
  }

  /// What all processes counted together.
  struct Counts: Sendable {
    var accepted = 0
    var delivered = 0
    var expired = 0
    var collapsed = 0
    var dropped = 0
    var nacked = 0
    var ends: Int { delivered + expired + collapsed + dropped }
  }

  /// The owner number of the servers' machines on the network.
  static let owner = 0

  /// Among the nodes, from 0.
  let index: Int
  /// What it shares with the other nodes; nil for a store of its own.
  private let cluster: Cluster?

  let world: World
  let network: VirtualNetwork
  /// The machine's own.
  let clock: VirtualTime
  /// What the present process goes by: it follows no step of the machine's.
  let shown: VirtualTime
  let settings: ServerCore.Settings
  private let loopCount: Int
  private let log: Log
  private var chance: SeededChance
  private(set) var process: Process?
  private var kept: MemoryStore
  private var processCount = 0
  private(set) var killCount = 0
  private(set) var drainCount = 0
  private(set) var counts = Counts()
  var weather = StoreWeather()
  var houseEvery: Duration = .seconds(1)
  /// A canary: the store that a kill leaves is one of some time ago.
  var forgetsOnKill = false
  private var old: MemoryStore?
  /// Called when a process serves.
  var started: (() -> Void)?

  init(
    _ world: World, _ network: VirtualNetwork, clock: VirtualTime, settings: ServerCore.Settings,
    storeLimits: StoreLimits, loops: Int, log: Log, index: Int = 0, cluster: Cluster? = nil
  ) {
    self.index = index
    self.cluster = cluster
    self.world = world
    self.network = network
    self.clock = clock
    shown = VirtualTime(world, origin: 0)
    self.settings = settings
    loopCount = loops
    self.log = log
    chance = world.chance("server", index)
    kept = cluster?.store ?? MemoryStore(limits: storeLimits)
  }

  var isUp: Bool { process?.core != nil && process?.isDraining == false }
  var core: ServerCore? { process?.core }

  /// Starts a process over what the last one left.
  func start() {
    guard process == nil else { return }
    if cluster?.isAway == true {
      // No database, no node: a supervisor tries again.
      return world.after(.seconds(1)) { [self] in start() }
    }
    processCount += 1
    let number = processCount
    world.note("server starts", UInt64(number), UInt64(index))
    let bus = cluster?.join(name: "node-\(index)", machine: clock)
    let time: SteadyTime
    if let bus {
      time = SteadyTime(clock).restarted(ahead: bus.clockAhead)
    } else {
      shown.stepWall(by: clock.stepMs - shown.stepMs)
      time = SteadyTime(clock)
    }
    let desk = StoreDesk(world, weather, index: index * 1_000 + number, hasLanes: bus != nil)
    let store = open(desk, bus)
    store.setBeforeWrite { desk.fate($0) }
    store.setBeforeRead { desk.fate($0) }
    let name = bus == nil ? "s\(number)" : "n\(index).s\(number)"
    let loops = (0..<loopCount).map {
      VirtualLoop("\(name).\($0)", world, network, time: time, owner: Self.owner)
    }
    let process = Process(number: number, loops: loops, desk: desk, store: store, bus: bus)
    self.process = process
    Task(executorPreference: world.executor) { [self] in
      do {
        let core = try await ServerCore.start(
          settings, store: store, time: time, log: log, loops: loops, bus: bus, executor: world.executor)
        serve(process, core)
      } catch {
        startFailed(process)
      }
    }
  }

  private func open(_ desk: StoreDesk, _ bus: SimBus?) -> MemoryStore {
    guard let cluster, let bus else {
      return kept.restarted(arrive: { desk.arrive($0, $1) }, deliver: { desk.deliver($0) })
    }
    desk.isAway = cluster.isAway
    if cluster.canary == .ownerReadBeforeCommit {
      desk.inTransaction = { bus.ownersInTransaction[$0] = cluster.store.view().owners }
    }
    let store = cluster.store.joined(
      as: bus.identity, arrive: { desk.arrive($0, $1) }, deliver: { desk.deliver($0) },
      wrote: { cluster.tellOwners(of: $0, by: bus, desk) })
    bus.store = store
    return store
  }

  private func serve(_ process: Process, _ core: ServerCore) {
    guard self.process === process else { return }
    world.note("server serves", UInt64(process.number))
    process.core = core
    let pause = houseEvery
    process.keeping = Task(executorPreference: world.executor) { await core.keepHouse(every: pause) }
    network.listeners[index] = { [self] endpoint in accept(endpoint, process, core) }
    started?()
  }

  /// The store did not answer: a supervisor starts the process again.
  private func startFailed(_ process: Process) {
    guard self.process === process else { return }
    world.note("server fails to start", UInt64(process.number))
    end(process, silently: false)
    world.after(.seconds(1)) { [self] in start() }
  }

  private func accept(_ endpoint: Endpoint, _ process: Process, _ core: ServerCore) {
    let index = chance.below(loopCount)
    let loop = process.loops[index]
    loop.input {
      core.accept(VirtualStream(endpoint, on: loop), on: index)
    }
  }

  // MARK: Ends

  /// Kills the process: what it had in memory is gone, what the store had carried out stays.
  func kill(silently: Bool) {
    guard let process else { return }
    killCount += 1
    world.note("server killed", UInt64(process.number), silently ? 1 : 0)
    end(process, silently: silently)
  }

  private func end(_ process: Process, silently: Bool) {
    count(process)
    network.listeners[index] = nil
    network.serverDied(index, silently: silently)
    if let bus = process.bus {
      process.desk.carryOutSome()
      process.store.close {}
      bus.close()
    } else {
      if forgetsOnKill, let old { kept = old } else { kept = process.store.snapshot() }
      // From here on the store of the dead process takes nothing.
      _ = process.store.restarted()
    }
    self.process = nil
    process.keeping?.cancel()
    for loop in process.loops { loop.die() }
    process.desk.close()
    // The system closes what a process leaves open.
    network.closeServerSide(index)
    world.executor.drain()
  }

  /// Ends the process in order, then it is gone.
  func drain(_ done: @escaping () -> Void) {
    guard let process, let core = process.core, !process.isDraining else { return done() }
    process.isDraining = true
    drainCount += 1
    world.note("server drains", UInt64(process.number))
    network.listeners[index] = nil
    process.keeping?.cancel()
    let done = Handover(done)
    Task(executorPreference: world.executor) { [self] in
      await core.drain()
      // The loops end with the events of this moment.
      world.after(.milliseconds(1)) { [self] in
        guard self.process === process else { return }
        world.note("server drained", UInt64(process.number))
        count(process)
        if let bus = process.bus { bus.close() } else { kept = process.store.restarted() }
        process.desk.close()
        self.process = nil
        done.value()
      }
    }
  }

  /// Puts something into the store before there is a server.
  func beforeFirstStart(_ work: (MemoryStore) -> Void) { work(kept) }

  /// A canary's memory of how the store was.
  func rememberStore() {
    if let process { old = process.store.snapshot() }
  }

  private func count(_ process: Process) {
    guard let core = process.core else { return }
    counts.add(core)
  }

  /// With the running process' share.
  var countsNow: Counts {
    var all = counts
    if let core = process?.core { all.add(core) }
    return all
  }

  /// The end of the world.
  func dispose() {
    if let process { end(process, silently: true) }
    started = nil
  }
}

extension SimServer.Counts {
  fileprivate mutating func add(_ core: ServerCore) {
    accepted += core.count(of: .accepted)
    delivered += core.count(of: .delivered)
    expired += core.count(of: .expired)
    collapsed += core.count(of: .collapsed)
    nacked += core.count(of: .nacked)
    dropped += core.count(of: .droppedOverflow) + core.count(of: .droppedOffline)
    dropped += core.count(of: .droppedUnregistered)
  }
}

extension SimServer {
  /// The key of message ids, which a server draws at its first start: here the seed decides.
  func saveHashKey(_ key: [UInt8]) {
    beforeFirstStart { $0.saveSetting("message-hash-key", key) { _ in } }
  }

  func applyWeather() { process?.desk.weather = weather }

  /// The store that the last process left, or that all nodes share.
  private var present: MemoryStore? { cluster?.store ?? process?.store }

  /// Rows of messages, both ways, that the store holds now.
  var storedCount: Int {
    guard let present else { return 0 }
    let found = Guarded(0)
    present.snapshot().counts { result in
      if case .success(let counts) = result {
        let sum = (counts[StoreTable.messages.rawValue] ?? 0) + (counts[StoreTable.upstream.rawValue] ?? 0)
        found.withLock { $0 = sum }
      }
    }
    return found.withLock { $0 }
  }

  /// The downstream rows that the store holds now, for people.
  var stored: String {
    guard let present else { return "" }
    let found = Guarded("")
    for device in 1...Int64(32) {
      present.snapshot().backlog(of: DeviceNumber(device), after: nil, max: 5, now: WallTime(ms: 0)) {
        result in
        guard case .success(let page) = result, !page.messages.isEmpty else { return }
        let rows = page.messages.map {
          "\($0.number.value) \(String(decoding: $0.wholeBody, as: UTF8.self).suffix(60)) live \($0.live) until \($0.expires.ms)"
        }
        found.withLock { $0 += "[device \(device): \(rows.joined(separator: "; "))]" }
      }
    }
    return found.withLock { $0 }
  }

  /// The upstream rows, the same way.
  var storedUpstream: String {
    guard let present else { return "" }
    let found = Guarded("")
    present.snapshot().lease(
      for: SenderID(settings.senderID), after: nil, max: 5, node: 0, until: WallTime(ms: 0),
      now: WallTime(ms: 0)
    ) { result in
      guard case .success(let rows) = result else { return }
      found.withLock { $0 = rows.map { "\($0.number.value) \($0.messageID)" }.joined(separator: "; ") }
    }
    return found.withLock { $0 }
  }

  static func hash(_ secret: String) -> [UInt8] { (try? Secrets.sha256(Array(secret.utf8))) ?? [] }
}
