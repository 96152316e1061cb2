import PushModel
import Seams
import Stores

/// A durable store that several nodes share, with the notices between them, as the one in PostgreSQL is.
///
/// It outlives every process. Its clock is the one that all nodes go by.
// Sendable by argument: as ``World``.
final class Cluster: @unchecked Sendable {
  /// As in production: how long a node counts as alive without a word, and how often it gives one.
  static let lease: Duration = .seconds(5)
  static let beatEvery: Duration = .milliseconds(1_250)

  let world: World
  let store: MemoryStore
  let clock: VirtualTime
  let canary: Canary?
  private var chance: SeededChance
  /// By number: those whose process is there.
  private(set) var members: [Int: SimBus] = [:]
  /// The database is away: nobody reaches it.
  private(set) var isAway = false
  private(set) var noticeCount = 0
  private(set) var lostNotices = 0
  private(set) var gapCount = 0

  init(_ world: World, limits: StoreLimits, canary: Canary?) {
    self.world = world
    self.canary = canary
    let clock = VirtualTime(world, origin: 0)
    self.clock = clock
    store = MemoryStore(limits: limits)
    store.setClock { clock.wall }
    chance = world.chance("cluster")
  }

  // MARK: Members

  /// A process joins under the name of its machine.
  func join(name: String, machine: VirtualTime) -> SimBus {
    let node = store.join(name: name, lease: Self.lease)
    // Known to about a round trip.
    let error = Int64(chance.within(-4...4))
    let bus = SimBus(
      self, node, clockAhead: .milliseconds(clock.wall.ms - machine.wall.ms + error),
      chance: SeededChance(seed: chance.next()))
    members[node.number] = bus
    world.say("joins", "\(name) as \(node.number), incarnation \(node.incarnation)")
    bus.begin()
    return bus
  }

  func left(_ bus: SimBus) {
    if members[bus.node] === bus { members[bus.node] = nil }
  }

  // MARK: Notices

  func send(_ event: BusEvent, from sender: SimBus, to node: Int?) {
    for number in members.keys.sorted() where number != sender.node && (node == nil || node == number) {
      guard let bus = members[number] else { continue }
      noticeCount += 1
      guard bus.isListening else {
        lostNotices += 1
        continue
      }
      // Each on its own: what was said later may come earlier.
      let delay =
        chance.percent(2) ? chance.time(.milliseconds(1), .seconds(1)) : chance.time(.zero, .milliseconds(8))
      let session = bus.session
      world.after(delay) { [self] in
        if bus.isListening, bus.session == session { bus.receive(event) } else { lostNotices += 1 }
      }
    }
  }

  func countGap() { gapCount += 1 }

  /// What a process asks behind each of its transactions: who else has the devices it wrote for.
  func tellOwners(of devices: [DeviceNumber], by bus: SimBus, _ desk: StoreDesk) {
    if canary == .ownerReadBeforeCommit {
      return tell(bus.ownersInTransaction.removeValue(forKey: desk.present) ?? [:], of: devices, by: bus)
    }
    world.after(chance.time(.zero, .milliseconds(2))) { [self] in
      guard bus.isOpen, !isAway else { return }
      for (node, devices) in store.owners(of: devices, otherThan: bus.node).sorted(by: { $0.key < $1.key }) {
        bus.send(.wake(devices), to: node)
      }
    }
  }

  private func tell(_ owners: [DeviceNumber: Int], of devices: [DeviceNumber], by bus: SimBus) {
    for device in devices {
      if let owner = owners[device], owner != bus.node { bus.send(.wake([device]), to: owner) }
    }
  }

  // MARK: Faults

  /// The database goes away, or comes back.
  func setAway(_ away: Bool) {
    isAway = away
    if away { for number in members.keys.sorted() { members[number]?.breakOff(for: nil) } }
  }

  var someMember: SimBus? {
    members.isEmpty ? nil : members[chance.pick(members.keys.sorted())]
  }
}

/// One node's end of the notices.
// Sendable by argument: as ``World``.
final class SimBus: NodeBus, @unchecked Sendable {
  private let cluster: Cluster
  let identity: MemoryNode
  var node: Int { identity.number }
  let clockAhead: Duration
  private var chance: SeededChance
  private var handler: (@Sendable ([BusEvent]) -> Void)?
  /// Nobody listened yet when there was something to say.
  ///
  /// A process that starts looks at everything.
  private var hasMissed = true
  private var isConnected = true
  /// Rises with every new connection.
  private(set) var session = 0
  private(set) var isOpen = true
  /// The process stands still until then; what comes waits for it.
  private var frozenUntil: Int64 = 0
  private var outgoing: [(event: BusEvent, node: Int?)] = []
  private var living: Set<Int64> = []
  /// The node's way to the store.
  var store: MemoryStore?
  /// A canary's: by call, who had which device when its transaction looked.
  var ownersInTransaction: [Int: [DeviceNumber: Int]] = [:]

  init(_ cluster: Cluster, _ identity: MemoryNode, clockAhead: Duration, chance: SeededChance) {
    self.cluster = cluster
    self.identity = identity
    self.clockAhead = clockAhead
    self.chance = chance
  }

  var isListening: Bool { isOpen && isConnected }
  /// Its process hears nothing, or stands still.
  var isOutOfReach: Bool { !isConnected || frozenUntil > cluster.world.now }

  // MARK: NodeBus

  func listen(_ handler: @escaping @Sendable ([BusEvent]) -> Void) {
    self.handler = handler
    guard hasMissed else { return }
    hasMissed = false
    tell([.gap])
  }

  func send(_ event: BusEvent, to node: Int?) {
    guard isOpen, node != self.node else { return }
    if isConnected { cluster.send(event, from: self, to: node) } else { outgoing.append((event, node)) }
  }

  func handOver(upstreamOf sender: SenderID) {
    guard isOpen, let store else { return }
    store.handOver(upstreamOf: sender) { [self] result in
      if case .failure = result {
        cluster.world.after(.milliseconds(250)) { [self] in handOver(upstreamOf: sender) }
      } else {
        send(.upstream([sender]), to: nil)
      }
    }
  }

  func nodes(_ done: @escaping Completion<[NodeSummary]>) {
    guard let store else { return done(.success([])) }
    store.nodes(done)
  }

  // MARK: Life

  func begin() { beat() }

  private func beat() {
    guard isOpen else { return }
    let world = cluster.world
    if frozenUntil > world.now {
      return world.at(frozenUntil) { [self] in beat() }
    }
    if isConnected {
      let found = cluster.store.beat(identity, lease: Cluster.lease)
      // What a node had taken and told nobody of when it ended is found by looking.
      if !living.isSubset(of: found) { tell([.gap]) }
      living = found
    }
    world.after(Cluster.beatEvery) { [self] in beat() }
  }

  func receive(_ event: BusEvent) { tell([event]) }

  private func tell(_ events: [BusEvent]) {
    let world = cluster.world
    if frozenUntil > world.now {
      return world.at(frozenUntil) { [self] in
        if isOpen { tell(events) }
      }
    }
    guard let handler else {
      hasMissed = true
      return
    }
    world.say("notice", "to \(node): \(events)")
    if events.contains(.gap) {
      cluster.countGap()
      if cluster.canary == .gapIgnored { return }
    }
    handler(events)
  }

  /// The connection to the database ends; what is said to this node meanwhile is lost.
  ///
  /// - Parameter duration: Until it is there again; nil for until the database is.
  func breakOff(for duration: Duration?) {
    guard isOpen, isConnected else { return }
    isConnected = false
    cluster.world.note("bus breaks", UInt64(node))
    cluster.world.after(duration ?? .milliseconds(250)) { [self] in reconnect() }
  }

  private func reconnect() {
    guard isOpen, !isConnected else { return }
    if cluster.isAway {
      return cluster.world.after(chance.time(.milliseconds(50), .milliseconds(400))) { [self] in reconnect() }
    }
    isConnected = true
    session += 1
    cluster.world.note("bus is back", UInt64(node))
    tell([.gap])
    let waiting = outgoing
    outgoing = []
    for note in waiting { send(note.event, to: note.node) }
  }

  /// The whole process stands still, and its sockets stay.
  func freeze(for duration: Duration) { frozenUntil = max(frozenUntil, cluster.world.now + duration.ns) }

  /// The process ends.
  func close() {
    guard isOpen else { return }
    isOpen = false
    handler = nil
    store = nil
    outgoing = []
    cluster.left(self)
  }
}
