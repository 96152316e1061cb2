import ConnectionServer
import PushModel
import Seams
import Stores
import Telemetry

/// A deliberate fault in the simulator's own wiring, which a run must notice.
package enum Canary: String, CaseIterable, Sendable {
  /// The store says durable and a kill shows that it was not.
  case storeForgets = "store-forgets"
  /// Devices do not remember what they handled.
  case deviceForgets = "device-forgets"
  /// The server does not know a repeat of a message.
  case serverForgets = "server-forgets"
  /// Which node holds a device is read within the transaction that writes its message, instead of after it.
  case ownerReadBeforeCommit = "owner-read-before-commit"
  /// Nodes that may have missed notices do not look at everything again.
  case gapIgnored = "gap-ignored"

  /// It is about nodes that share a store.
  var needsNodes: Bool {
    switch self {
    case .ownerReadBeforeCommit, .gapIgnored: true
    case .storeForgets, .deviceForgets, .serverForgets: false
    }
  }
}

/// One run of one seed: a server, app servers, devices, a network and their faults, on one clock.
// Sendable by argument: as ``World``.
final class Simulation: @unchecked Sendable {
  let seed: UInt64
  let canary: Canary?
  let swarm: Swarm
  let world: World
  let network: VirtualNetwork
  /// What the server's process goes by, or all nodes.
  let clock: VirtualTime
  /// What nodes share; nil for one server with a store of its own.
  let cluster: Cluster?
  let servers: [SimServer]
  /// The first of them.
  var server: SimServer { servers[0] }
  /// What nodes think of the time may differ by so much.
  var clockErrorMs: Int64 { cluster == nil ? 0 : 10 }
  private(set) var devices: [SimDevice] = []
  private(set) var appServers: [SimAppServer] = []
  private(set) var registrations: [SimRegistration] = []
  private var byToken: [String: SimRegistration] = [:]
  private(set) var groups: [(key: String, members: [Int])] = []
  private(set) lazy var ledger = Ledger(self)
  private(set) var faultCount = 0
  /// Everybody is registered.
  private var isReady = false
  /// Faults may happen.
  private(set) var isUnsafe = false
  private var incarnations = 0
  private var chance: SeededChance
  /// Registrations and the like that are under way.
  private var errands = 0
  private var watch: Watch?

  /// - Parameter nodes: Nodes that share a store, 1 for a server that is alone; nil lets the seed decide.
  init(
    seed: UInt64, canary: Canary? = nil, nodes: Int? = 1, swarm given: Swarm? = nil,
    output: ((String) -> Void)? = nil
  ) {
    self.seed = seed
    self.canary = canary
    world = World(seed: seed)
    world.trace.output = output
    var drawing = world.chance("swarm")
    var swarm = given ?? Swarm(&drawing)
    switch canary {
    case .serverForgets:
      swarm.server.dedupeIDsMax = 1
      swarm.server.dedupeHorizon = .zero
      // Devices hide repeats, so most that come are seen in the sums alone, which only a strict run has: its faults are
      // those that cut an ack off, and they come often.
      swarm.faults = [.cutLink, .halfOpen]
      swarm.faultEvery = .seconds(1)
      swarm.messages = max(swarm.messages, 150)
    case .storeForgets: if !swarm.faults.contains(.killServer) { swarm.faults.append(.killServer) }
    case .deviceForgets, .ownerReadBeforeCommit, .gapIgnored, nil: break
    }
    var nodeChance = world.chance("nodes")
    let drawn = nodeChance.percent(55) ? 1 : nodeChance.within(2...5)
    let count = canary.map { $0.needsNodes ? max(2, nodes ?? drawn) : 1 } ?? nodes ?? drawn
    swarm.nodes = count
    if count > 1, given == nil { swarm.drawNodes(&nodeChance, canary) }
    self.swarm = swarm
    chance = world.chance("run")
    network = VirtualNetwork(world, NetworkProfile())
    let cluster = count > 1 ? Cluster(world, limits: swarm.storeLimits, canary: canary) : nil
    self.cluster = cluster
    network.nodes = count
    servers = (0..<count).map { [world, network] index in
      let machine = VirtualTime(world, origin: 1_000_000_000_000 * Int64(index + 1))
      if cluster != nil { machine.stepWall(by: Int64(nodeChance.within(-300_000...300_000))) }
      return SimServer(
        world, network, clock: machine, settings: swarm.server, storeLimits: swarm.storeLimits,
        loops: swarm.loops, log: .off, index: index, cluster: cluster)
    }
    clock = cluster?.clock ?? servers[0].shown
    servers[0].forgetsOnKill = canary == .storeForgets
    world.say("swarm", swarm.summary)
  }

  func nextIncarnation() -> Int {
    incarnations += 1
    return incarnations
  }

  func registration(ofToken token: String) -> SimRegistration? { byToken[token] }

  // MARK: The run

  /// - Parameter livenessMax: Virtual time within which a healed world must come to rest.
  func perform(livenessMax: Duration = .seconds(1_500)) -> SeedOutcome {
    setUp()
    if ledger.failures.isEmpty {
      safetyPhase()
      livenessPhase(livenessMax)
      closingPhase()
    }
    let outcome = SeedOutcome(self)
    dispose()
    return outcome
  }

  /// Starts the server, registers everybody and starts the clients.
  func setUp(startingDevices: Bool = true) {
    server.saveHashKey((0..<16).map { _ in UInt8(truncatingIfNeeded: chance.next()) })
    for server in servers { server.start() }
    world.run(until: world.now + 10_000_000_000) { [self] in isUp }
    guard isUp else { return ledger.fail("the server did not start") }
    drawCast()
    Task(executorPreference: world.executor) { [self] in
      do {
        try await registerAll()
        isReady = true
      } catch { ledger.fail("setting up failed: \(error)") }
    }
    world.run(until: world.now + 60_000_000_000) { [self] in isReady || !ledger.failures.isEmpty }
    if !isReady, ledger.failures.isEmpty { ledger.fail("setting up did not end") }
    setWeather(swarm.weather)
    if let cluster {
      let watch = Watch(self, cluster)
      watch.begin()
      self.watch = watch
    }
    network.profile = swarm.profile
    startClients(startingDevices)
  }

  /// Every node serves.
  var isUp: Bool { servers.allSatisfy(\.isUp) }

  /// A node that serves, by chance.
  private var someCore: ServerCore? {
    let up = servers.filter(\.isUp).compactMap(\.core)
    return up.count > 1 ? chance.pick(up) : up.first
  }

  func setWeather(_ weather: StoreWeather) {
    for server in servers {
      server.weather = weather
      server.applyWeather()
    }
  }

  /// The store does not work as it should, so that what waits for it may wait.
  var isStoreTroubled: Bool {
    cluster?.isAway == true
      || servers.contains {
        $0.weather.failing + $0.weather.losingAnswers > 0 || $0.weather.readMost > .seconds(1)
      }
  }

  private func startClients(_ startingDevices: Bool) {
    for device in devices where startingDevices {
      if swarm.features.contains(.slowReaders), chance.percent(40) {
        network.slowReaders[device.number + 1] = (
          chance.within(50...2_000), chance.time(.milliseconds(5), .milliseconds(400))
        )
      }
      device.start()
    }
    for server in appServers { server.start() }
  }

  private func safetyPhase() {
    isUnsafe = true
    let end = world.now + swarm.safety.ns
    Workload(self, until: end).begin()
    if !swarm.faults.isEmpty { Faults(self, until: end).begin() }
    world.run(until: end)
    isUnsafe = false
  }

  /// Everything works from here on: all that was promised must come about within a bounded time.
  private func livenessPhase(_ most: Duration) {
    world.note("heals")
    network.heal()
    setWeather(StoreWeather())
    cluster?.setAway(false)
    for server in servers { server.process?.desk.isAway = false }
    for device in devices { device.start() }
    let deadline = world.now + most.ns
    // What a handler could not deal with comes again on another stream.
    if swarm.features.contains(.failingHandlers) { renewStreams() }
    while world.now < deadline {
      for server in servers where server.process == nil { server.start() }
      if isSettled { break }
      world.run(until: world.now + 250_000_000)
    }
    let settledAt = world.now
    if !isSettled { ledger.fail("not at rest after \(most): \(unrest)") }
    world.note("settled")
    ledger.close(self, settledAt: settledAt)
  }

  private func renewStreams() {
    world.run(until: world.now + 20_000_000_000)
    for link in network.links {
      link.client.breakDown()
      link.server.breakDown()
    }
  }

  var isSettled: Bool {
    guard isUp, errands == 0 else { return false }
    guard ledger.sent.allSatisfy({ $0.isOver }), ledger.upstream.allSatisfy({ $0.end != nil }) else {
      return false
    }
    guard devices.allSatisfy({ $0.isConnected && $0.upstreamCount == 0 }) else { return false }
    guard appServers.allSatisfy({ $0.isConnected && $0.messageCount == 0 }) else { return false }
    return servers.allSatisfy { $0.core?.census().isQuiet == true } && server.storedCount == 0
  }

  private var unrest: String {
    let open = ledger.sent.filter { !$0.isOver }.map(\.id).prefix(5)
    let up = ledger.upstream.filter { $0.end == nil }.map(\.id).prefix(5)
    let away = devices.filter { !$0.isConnected }.map(\.number)
    let silent = appServers.filter { !$0.isConnected }.map(\.number)
    return
      "servers \(servers.map(\.isUp)), errands \(errands), open \(open), upstream \(up), away devices \(away), "
      + "app servers \(silent), stored \(server.storedCount) \(server.stored) \(server.storedUpstream), "
      + servers.map { $0.core.map { "\($0.census())" } ?? "no server" }.joined(separator: "; ")
  }

  /// Clients leave and the server drains: nothing may be left of them.
  private func closingPhase() {
    guard ledger.failures.isEmpty else { return }
    for device in devices { device.close() }
    for server in appServers { server.close() }
    world.run(until: world.now + 60_000_000_000) { [self] in
      devices.allSatisfy { $0.isClosed } && appServers.allSatisfy { $0.isClosed }
        && servers.allSatisfy { ($0.core?.census().connections ?? 0) == 0 }
    }
    for server in servers {
      if let census = server.core?.census(), census.connections + census.devices + census.senderStreams > 0 {
        ledger.fail("all clients left and the server holds \(census)")
      }
    }
    var drained = 0
    for server in servers { server.drain { drained += 1 } }
    world.run(until: world.now + 60_000_000_000) { [servers] in drained == servers.count }
    if drained < servers.count { ledger.fail("the server did not end its drain") }
    world.run(until: world.now + 200_000_000_000) { [self] in network.links.isEmpty }
    if !network.links.isEmpty { ledger.fail("\(network.links.count) connections outlived both ends") }
  }

  /// Lets go of everything; the world is over.
  func dispose() {
    for device in devices { device.abort() }
    for server in servers { server.dispose() }
    network.forgetAll()
    for device in devices { device.loop.die() }
    for server in appServers { server.loop.die() }
    world.clear()
  }

  // MARK: Cast

  private func drawCast() {
    for number in 0..<swarm.devices {
      let loop = VirtualLoop(
        "d\(number)", world, network, time: VirtualTime(world, origin: 0), owner: number + 1)
      devices.append(
        SimDevice(
          number: number, deviceID: Self.text(22, &chance), secret: Self.text(30, &chance), loop: loop,
          run: self))
    }
    for number in 0..<swarm.appServers {
      let loop = VirtualLoop(
        "a\(number)", world, network, time: VirtualTime(world, origin: 0), owner: 1_000 + number)
      appServers.append(SimAppServer(number: number, loop: loop, run: self))
    }
    var cast: [SimRegistration] = []
    for device in devices {
      for app in 0..<chance.pick([1, 1, 1, 2]) {
        let user = swarm.features.contains(.users) && chance.percent(60) ? "user-\(chance.below(3))" : nil
        let registration = SimRegistration(
          number: cast.count, device: device.number, app: "org.example.app\(app)", user: user,
          token: newToken())
        if swarm.features.contains(.topics) {
          for topic in ["news", "sport"] where chance.percent(60) { registration.topics.insert(topic) }
        }
        cast.append(registration)
        byToken[registration.token] = registration
      }
    }
    registrations = cast
  }

  private static func text(_ count: Int, _ chance: inout SeededChance) -> String {
    let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
    return String((0..<count).map { _ in digits[chance.below(digits.count)] })
  }

  func newToken() -> String {
    let random = (0..<RegistrationToken.randomByteCount).map { _ in UInt8(truncatingIfNeeded: chance.next()) }
    return RegistrationToken(random: random).text
  }

  func request(_ registration: SimRegistration, token: String, previous: String? = nil) -> RegistrationRequest
  {
    let device = devices[registration.device]
    return RegistrationRequest(
      token: token, deviceID: device.deviceID, secretHash: SimServer.hash(device.secret),
      sender: SenderID(swarm.server.senderID), app: registration.app, platform: .linux,
      user: registration.user,
      previousToken: previous)
  }

  private func registerAll() async throws {
    let cast = registrations
    guard let first = server.core, let store = server.process?.store else { return }
    for registration in cast {
      let core = someCore ?? first
      _ = try await core.register(request(registration, token: registration.token))
    }
    let sender = SenderID(swarm.server.senderID)
    var changes: [SubscriptionChange] = []
    for registration in cast {
      for topic in registration.topics.sorted() {
        if let name = TopicName(topic) {
          changes.append(.init(token: registration.token, sender: sender, topic: name, isSubscribed: true))
        }
      }
    }
    if !changes.isEmpty { _ = try await store.change(changes, now: clock.wall) }
    if swarm.features.contains(.groups), cast.count > 1 {
      for index in 0..<2 {
        let members = cast.filter { _ in chance.percent(50) }
        guard !members.isEmpty else { continue }
        let key = NotificationKey(
          random: (0..<NotificationKey.randomByteCount).map { _ in UInt8(truncatingIfNeeded: chance.next()) }
        ).text
        _ = try await store.createGroup(
          key: key, name: "group-\(index)", sender: sender, tokens: members.map(\.token), now: clock.wall)
        groups.append((key, members.map(\.number)))
      }
    }
  }

  // MARK: Errands

  /// A registration takes the place of the present one; the old token becomes its alias.
  func renew(_ registration: SimRegistration) {
    guard registration.leftAt == nil, !registration.isRenewing else { return }
    registration.isRenewing = true
    let old = registration.token
    let new = newToken()
    byToken[new] = registration
    world.say("renews", "registration \(registration.number)")
    errand { [self] core in
      _ = try await core.register(request(registration, token: new, previous: old))
      registration.tokens.append(new)
      registration.isRenewing = false
    }
  }

  func unregister(_ registration: SimRegistration) {
    guard registration.leftAt == nil, !registration.isRenewing else { return }
    registration.leftAt = world.now
    world.say("unregisters", "registration \(registration.number)")
    let token = registration.token
    errand { core in _ = try await core.unregister(token) }
  }

  /// Does something over and over until a server has done it.
  private func errand(_ work: @escaping (ServerCore) async throws -> Void) {
    errands += 1
    let box = Errand(work: work)
    Task(executorPreference: world.executor) { [self] in
      while true {
        do {
          if let core = someCore {
            try await box.work(core)
            errands -= 1
            return
          }
        } catch {}
        do { try await clock.sleep(for: .milliseconds(500)) } catch { return }
      }
    }
  }

  // Sendable by argument: as ``World``.
  private struct Errand: @unchecked Sendable {
    let work: (ServerCore) async throws -> Void
  }

  func countFault() { faultCount += 1 }
}
