import Bytes
import Connections
package import EventLoops
import Seams
import Synchronization
import Telemetry

/// Why a load test could not be made.
package struct LoadFault: Error, Sendable, CustomStringConvertible {
  /// The server refused the credentials of the app server.
  package var wasRefused: Bool
  package let description: String

  init(_ description: String, wasRefused: Bool = false) {
    self.description = description
    self.wasRefused = wasRefused
  }
}

/// One load test: devices and senders on one loop, from the first connection to the verdict.
///
/// `@unchecked Sendable`: constants aside, everything is touched on the loop's thread alone.
package final class LoadRun: @unchecked Sendable {
  /// Whom the load is for, and as whom.
  package struct Setup: Sendable {
    package var server: LeanServer
    /// Where devices connect, when that is another node than ``server``.
    package var deviceServer: LeanServer?
    package var senderID: String
    package var serverKey: String
    /// Devices that connect; empty for targets that belong to somebody else.
    package var devices: [LoadIdentity]
    /// Targets when there are no devices.
    package var tokens: [String]
    /// Asks the server for a fault; called on the loop, must not wait.
    package var arm: @Sendable (LoadScenario.Fault) -> Void = { _ in }

    package init(
      server: LeanServer, deviceServer: LeanServer? = nil, senderID: String, serverKey: String,
      devices: [LoadIdentity], tokens: [String] = []
    ) {
      self.server = server
      self.deviceServer = deviceServer
      self.senderID = senderID
      self.serverKey = serverKey
      self.devices = devices
      self.tokens = tokens
    }
  }

  enum Phase { case idle, connecting, loading, settling, done }

  /// Messages due and not written, of all senders together; further ones are counted as skipped.
  static let backlogMax = 1_000_000

  package let loop: EventLoop
  package let scenario: LoadScenario
  package let plan: LoadPlan
  let setup: Setup
  /// Part of every id, so that no run takes what another one left for its own.
  let runID: String
  let runMark: [UInt8]
  let scratch = LeanStream.Scratch()
  var output = ByteWriter(capacity: 8_192)
  var tokens: [[UInt8]] = []
  var devices: [LoadDevice] = []
  var senders: [LoadSender] = []
  var upstream = SendLedger(countsDeliveries: true)
  var chance: SeededChance
  var phase = Phase.idle

  // What the ledgers do not know.
  var repeated = 0
  var doubled = 0
  var strayed = 0
  var upstreamRepeated = 0
  var skipped = 0
  var nacks: [String: Int] = [:]
  var losses: [String: Int] = [:]
  /// Devices that are logged in; each counts itself.
  var connected = 0
  var lastSurprise: String?

  // Times, in nanoseconds of the loop's clock.
  var start = Moment(ns: 0)
  var loadStart = Moment(ns: 0)
  var loadEnd: Moment?
  var lastEvent = Moment(ns: 0)
  var settleDeadline = Moment(ns: 0)
  var lastTick = Moment(ns: 0)
  var lastProgress = Moment(ns: 0)
  var nextAllowance = Moment(ns: 0)
  var arrivals: ArrivalClock
  var nextSender = 0
  var connectQueue: [Int] = []
  var connectNext = 0
  var connectBudget = 0.0
  /// Devices that connect at present.
  var connecting = 0
  var churnBudget = 0.0
  var upstreamBudget = 0.0
  var waves: [LoadScenario.Wave]
  var faults: [LoadScenario.Fault]
  var processorNs: Int64 = 0
  var atLoadEnd: (acked: Int, delivered: Int)?

  // The present second, and all of them.
  var second = LoadSecond()
  var seconds: [LoadSecond] = []
  var ackNow = Histogram()
  var deliveryNow = Histogram()
  var ackAll = HistogramSnapshot()
  var deliveryAll = HistogramSnapshot()
  let connectTimes = Histogram()
  var each: @Sendable (LoadSecond) -> Void = { _ in }
  var completion: ((Result<LoadResult, LoadFault>) -> Void)?

  package init(_ scenario: LoadScenario, _ setup: Setup) {
    self.scenario = scenario
    self.setup = setup
    loop = EventLoop(name: "weir-load")
    loop.loopbackSources = 1 + scenario.devices.count / 5_000
    let digits = String(UInt64.random(in: .min ... .max), radix: 36)
    runID = String(digits.suffix(10))
    runMark = Array(runID.utf8)
    let count = setup.devices.isEmpty ? setup.tokens.count : setup.devices.count
    plan = LoadPlan(scenario, deviceCount: count)
    chance = SeededChance(seed: scenario.seed)
    arrivals = ArrivalClock(scenario.arrivals, duration: scenario.duration, seed: scenario.seed)
    waves = scenario.devices.waves.sorted { $0.at < $1.at }
    faults = scenario.faults.sorted { $0.at < $1.at }
  }

  var hasDevices: Bool { !setup.devices.isEmpty }
  var isOpenLoop: Bool { scenario.arrivals.isOpen }
  var isLoading: Bool { phase == .loading }
  var window: Int { scenario.senders.window }
  /// The time now, not that of the round.
  var clock: Moment { loop.time.moment }

  /// Runs it.
  ///
  /// - Parameter each: Called on the loop for every second.
  package func run(each: @escaping @Sendable (LoadSecond) -> Void) async throws -> LoadResult {
    try loop.start()
    defer { loop.stop() }
    return try await withCheckedThrowingContinuation { continuation in
      loop.submit { [self] in
        self.each = each
        completion = { continuation.resume(with: $0.mapError { $0 as any Error }) }
        begin()
      }
    }
  }

  /// Ends the load early and settles; the verdict comes as usual.
  package func stop() {
    loop.submit { [self] in
      switch phase {
      case .loading: endLoad()
      case .connecting: fail(LoadFault("stopped before all were connected"))
      case .idle, .settling, .done: break
      }
    }
  }

  // MARK: Phases

  private func begin() {
    phase = .connecting
    start = clock
    (lastTick, lastProgress, lastEvent, nextAllowance) = (start, start, start, start)
    processorNs = threadProcessorNs()
    tokens = (hasDevices ? setup.devices.map(\.token) : setup.tokens).map { Array($0.utf8) }
    devices = setup.devices.enumerated().map { index, identity in
      LoadDevice(index, identity, habit: habit(of: index), run: self)
    }
    connectQueue = Array(devices.indices)
    senders = (0..<scenario.senders.count).map { LoadSender($0, run: self) }
    for sender in senders { sender.connect() }
    tickLater()
  }

  /// Habits are given from the last device on, so that topics, which begin at the first, meet all kinds.
  private func habit(of index: Int) -> LoadDevice.Habit {
    let settings = scenario.devices
    var place = setup.devices.count - 1 - index
    if place < settings.halfOpen { return .halfOpen }
    place -= settings.halfOpen
    if place < settings.slowReaders { return .slow(settings.slowReaderBytes) }
    place -= settings.slowReaders
    if place < settings.slowAcks { return .late(settings.slowAckDelay) }
    return .prompt
  }

  private func tickLater() {
    loop.after(.milliseconds(isOpenLoop && phase == .loading ? 1 : 5)) { [weak self] in self?.tick() }
  }

  private func tick() {
    guard phase != .done else { return }
    let now = clock
    let passed = now - lastTick
    second.lagMs = max(second.lagMs, Double(passed.ns) / 1e6)
    lastTick = now
    connectDue(passed)
    switch phase {
    case .connecting: checkConnected(now)
    case .loading: load(now, passed)
    case .settling: checkSettled(now)
    case .idle, .done: break
    }
    if nextAllowance <= now {
      nextAllowance = now + .milliseconds(100)
      for device in devices { device.mayRead() }
      for sender in senders { sender.look(now) }
    }
    if now - start >= .seconds(seconds.count + 1) { endSecond(now) }
    if phase != .done { tickLater() }
  }

  private func checkConnected(_ now: Moment) {
    if connected == devices.count, senders.allSatisfy(\.isUp) {
      phase = .loading
      loadStart = clock
      lastEvent = loadStart
      if !isOpenLoop { for sender in senders { sender.pump() } }
    } else if now - lastProgress > .seconds(30) {
      let missing = devices.count - connected
      let why = lastSurprise ?? losses.max { $0.value < $1.value }?.key
      fail(LoadFault("\(missing) devices cannot connect\(why.map { ": " + $0 } ?? "")"))
    }
  }

  private func load(_ now: Moment, _ passed: Duration) {
    let sinceStart = now - loadStart
    if isOpenLoop { takeArrivals(until: Int(sinceStart.ns / 1_000_000)) }
    let share = Double(passed.ns) / 1e9
    churnBudget += scenario.devices.churn * share
    while churnBudget >= 1 {
      churnBudget -= 1
      cutSomeDevice()
    }
    upstreamBudget += scenario.upstreamRate * share
    while upstreamBudget >= 1 {
      upstreamBudget -= 1
      sendUpstream(now)
    }
    while let fault = faults.first, Double(sinceStart.ns) / 1e9 >= fault.at {
      faults.removeFirst()
      second.events.append(fault.kind)
      setup.arm(fault)
    }
    while let wave = waves.first, Double(sinceStart.ns) / 1e9 >= wave.at {
      waves.removeFirst()
      second.events.append("wave")
      for device in devices where device.isUp && Double.random(in: 0..<1, using: &chance) < wave.share {
        cut(device)
      }
    }
    if sinceStart >= scenario.duration { endLoad() }
  }

  private func takeArrivals(until ms: Int) {
    while arrivals.elapsedMs < ms {
      let count = arrivals.step()
      // The end of the millisecond they fall into.
      let intended = loadStart.ns + Int64(arrivals.elapsedMs) * 1_000_000
      for _ in 0..<count {
        second.due += 1
        let sender = senders[nextSender % senders.count]
        nextSender += 1
        if sender.backlog >= Self.backlogMax / senders.count {
          skipped += 1
        } else {
          _ = sender.ledger.take(intended: intended)
        }
      }
    }
    for sender in senders where sender.backlog > 0 { sender.pump() }
  }

  func endLoad() {
    guard phase == .loading else { return }
    phase = .settling
    loadEnd = clock
    lastEvent = clock
    settleDeadline = clock + scenario.settle
    atLoadEnd = (
      senders.reduce(0) { $0 + $1.ledger.acked }, senders.reduce(0) { $0 + $1.ledger.delivered }
    )
    for device in devices {
      let habit = device.habit
      device.behave()
      if habit == .halfOpen, device.isUp { cut(device) }
    }
  }

  private func checkSettled(_ now: Moment) {
    let isAnswered = senders.allSatisfy(\.isAnswered) && upstream.unanswered == 0
    let isDelivered = senders.allSatisfy { $0.ledger.undelivered == 0 } && upstream.undelivered == 0
    let isQuiet = connected == devices.count && now - lastEvent > .seconds(2)
    if isAnswered, isDelivered || isQuiet || now >= settleDeadline { return finish() }
    if now >= settleDeadline { finish() }
  }

  private func finish() {
    endSecond(clock)
    phase = .done
    let result = makeResult()
    tearDown()
    completion?(.success(result))
    completion = nil
  }

  func fail(_ fault: LoadFault) {
    guard phase != .done else { return }
    phase = .done
    tearDown()
    completion?(.failure(fault))
    completion = nil
  }

  private func tearDown() {
    for device in devices { device.cut() }
    for sender in senders { sender.close() }
  }
}
