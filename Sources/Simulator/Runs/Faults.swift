import Seams

/// What goes wrong, and when, during the safety phase.
final class Faults {
  private unowned let run: Simulation
  private let end: Int64
  private var chance: SeededChance

  init(_ run: Simulation, until end: Int64) {
    self.run = run
    self.end = end
    chance = run.world.chance("faults")
  }

  private var world: World { run.world }

  func begin() {
    if run.canary == .storeForgets { rememberStore() }
    next()
  }

  private func rememberStore() {
    world.after(.seconds(2)) { [self] in
      guard world.now < end else { return }
      run.server.rememberStore()
      rememberStore()
    }
  }

  private func next() {
    let pause = Duration.nanoseconds(run.swarm.faultEvery.ns * Int64(chance.within(10...200)) / 100)
    world.after(pause) { [self] in
      guard world.now < end, run.isUnsafe else { return }
      happen(chance.pick(run.swarm.faults))
      next()
    }
  }

  private func happen(_ fault: Fault) {
    run.countFault()
    world.say("fault", "\(fault)")
    switch fault {
    case .cutLink:
      guard let link = someLink() else { return }
      link.client.breakDown()
      link.server.breakDown()
    case .halfOpen:
      guard let link = someLink() else { return }
      if chance.percent(50) { link.client.breakDown() } else { link.server.breakDown() }
    case .oneWay:
      guard let link = someLink() else { return }
      let endpoint = chance.percent(50) ? link.client : link.server
      endpoint.stall()
      world.after(chance.time(.milliseconds(50), .seconds(120))) { endpoint.resume() }
    case .blackout: blackout()
    case .killServer: kill(silently: false)
    case .vanishServer: kill(silently: true)
    case .drainServer: drain()
    case .stepWall:
      let seconds = chance.time(.milliseconds(1), .seconds(900))
      someServer().clock.stepWall(by: (chance.percent(50) ? 1 : -1) * seconds.ns / 1_000_000)
    case .pauseLoop:
      guard let loops = someServer().process?.loops else { return }
      chance.pick(loops).stall(for: chance.time(.milliseconds(5), .seconds(3)))
    case .storeFails, .storeLosesAnswers, .storeSlow: storm(fault)
    case .restartAppServer: chance.pick(run.appServers).restart()
    case .deviceLeaves: leave()
    case .lateSegments: break
    case .busBreaks: run.cluster?.someMember?.breakOff(for: chance.time(.milliseconds(100), .seconds(12)))
    case .nodeFreezes: freeze()
    case .storeAway: takeStoreAway()
    case .moveDevice:
      // Its connection ends, and the next one goes to any node.
      let owner = chance.pick(run.devices).number + 1
      for link in run.network.links(of: owner) {
        link.client.breakDown()
        if chance.percent(50) { link.server.breakDown() }
      }
    }
    if run.swarm.features.contains(.ghosts), chance.percent(20) {
      chance.pick(run.devices).haunt(for: chance.time(.milliseconds(100), .seconds(20)))
    }
  }

  private func someLink() -> VirtualNetwork.Link? {
    let links = run.network.links
    return links.isEmpty ? nil : chance.pick(links)
  }

  private func someOwner() -> Int {
    chance.percent(75) ? chance.pick(run.devices).number + 1 : 1_000 + chance.pick(run.appServers).number
  }

  private func blackout() {
    let owner = someOwner()
    run.network.cutOff(owner)
    world.after(chance.time(.milliseconds(100), .seconds(150))) { [self] in run.network.rejoin(owner) }
  }

  /// The device's connections end and no new one comes about for a while, as when it is switched off.
  private func leave() {
    let owner = chance.pick(run.devices).number + 1
    for link in run.network.links(of: owner) {
      link.client.breakDown()
      if chance.percent(70) { link.server.breakDown() }
    }
    run.network.cutOff(owner)
    world.after(chance.time(.seconds(1), .seconds(100))) { [self] in run.network.rejoin(owner) }
  }

  private func someServer() -> SimServer {
    run.servers.count > 1 ? chance.pick(run.servers) : run.server
  }

  private func kill(silently: Bool) {
    let server = someServer()
    guard server.isUp else { return }
    server.kill(silently: silently)
    world.after(chance.time(.milliseconds(1), .seconds(15))) { server.start() }
  }

  private func drain() {
    let server = someServer()
    guard server.isUp else { return }
    let pause = chance.time(.milliseconds(1), .seconds(10))
    server.drain { [self] in world.after(pause) { server.start() } }
  }

  /// A whole process stands still, longer than its lease now and then, and goes on as if nothing had been.
  private func freeze() {
    guard let process = someServer().process else { return }
    let pause = chance.time(.milliseconds(200), .seconds(15))
    process.bus?.freeze(for: pause)
    for loop in process.loops { loop.stall(for: pause) }
  }

  /// Nobody reaches the database.
  private func takeStoreAway() {
    guard let cluster = run.cluster, !cluster.isAway else { return }
    cluster.setAway(true)
    for server in run.servers { server.process?.desk.isAway = true }
    world.after(chance.time(.milliseconds(100), .seconds(12))) { [self] in
      cluster.setAway(false)
      for server in run.servers { server.process?.desk.isAway = false }
    }
  }

  private func storm(_ fault: Fault) {
    var weather = run.swarm.weather
    switch fault {
    case .storeFails: weather.failing = chance.within(1...100)
    case .storeLosesAnswers: weather.losingAnswers = chance.within(1...60)
    default:
      weather.writeMost = chance.time(.milliseconds(100), .seconds(4))
      weather.readMost = chance.time(.milliseconds(50), .seconds(2))
    }
    let troubled = run.servers.count > 1 && chance.percent(60) ? [someServer()] : run.servers
    apply(weather, to: troubled)
    world.after(chance.time(.milliseconds(100), .seconds(10))) { [self] in
      apply(run.isUnsafe ? run.swarm.weather : StoreWeather(), to: troubled)
    }
  }

  private func apply(_ weather: StoreWeather, to servers: [SimServer]) {
    for server in servers {
      server.weather = weather
      server.applyWeather()
    }
  }
}
