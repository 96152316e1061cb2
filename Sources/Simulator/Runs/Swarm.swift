import ConnectionServer
import DeliveryCore
import PushModel
import Seams
import Stores

/// What the messages of a run may be like.
enum Feature: Int, CaseIterable {
  case nowOrNever, shortLife, collapseKeys, topics, groups, users, receipts, upstream, dryRun, invalid
  case unregister, renewToken, slowHandlers, failingHandlers, slowReaders, ghosts, bursts, bigBodies
}

/// What may go wrong in a run.
enum Fault: Int, CaseIterable {
  case cutLink, halfOpen, oneWay, blackout, killServer, vanishServer, drainServer, stepWall, pauseLoop
  case storeFails, storeLosesAnswers, storeSlow, restartAppServer, deviceLeaves, lateSegments
  // Of nodes that share a store.
  case busBreaks, nodeFreezes, storeAway, moveDevice

  static let ofNodes: Set<Fault> = [.busBreaks, .nodeFreezes, .storeAway, .moveDevice]
}

/// Everything that a seed decides before a run begins.
///
/// Each run has some features and faults switched off altogether, so that rare mixtures are not drowned by the
/// common ones (swarm testing).
struct Swarm {
  /// Nodes that share a store; 1 is a server with a store of its own.
  var nodes = 1
  var loops = 1
  var devices = 1
  var appServers = 1
  var messages = 50
  var upstreamMessages = 0
  var safety: Duration = .seconds(30)
  var features: Set<Feature> = []
  var faults: [Fault] = []
  /// Mean time between two faults.
  var faultEvery: Duration = .seconds(5)
  var profile = NetworkProfile()
  var weather = StoreWeather()
  var server = ServerCore.Settings()
  var storeLimits = StoreLimits()
  var sender = SenderMachine.Settings()
  var device = SenderMachine.Settings()
  var connectTimeout: Duration = .seconds(10)

  /// Nothing but one sender, one device and plain messages.
  static var plain: Swarm { Swarm() }

  init() {}

  init(_ chance: inout SeededChance) {
    loops = chance.within(1...4)
    devices = chance.within(1...7)
    appServers = chance.within(1...3)
    messages = chance.within(30...300)
    safety = .seconds(chance.within(10...120))
    for feature in Feature.allCases where chance.percent(45) { features.insert(feature) }
    // One run in eight has no faults: there the strictest rules hold.
    if !chance.percent(12) {
      for fault in Fault.allCases where !Fault.ofNodes.contains(fault) && chance.percent(35) {
        faults.append(fault)
      }
      faultEvery = chance.time(.milliseconds(700), .seconds(25))
    }
    if features.contains(.upstream) { upstreamMessages = chance.within(5...80) }
    drawNetwork(&chance)
    drawStore(&chance)
    drawServer(&chance)
    drawClients(&chance)
  }

  /// What a run of several nodes has beside the rest.
  mutating func drawNodes(_ chance: inout SeededChance, _ canary: Canary?) {
    loops = chance.within(1...2)
    if !faults.isEmpty {
      for fault in Fault.allCases where Fault.ofNodes.contains(fault) && chance.percent(45) {
        faults.append(fault)
      }
    }
    switch canary {
    case .ownerReadBeforeCommit:
      // Logins that meet long transactions, and little else that would make a node look again.
      faults = [.moveDevice]
      faultEvery = .milliseconds(500)
      features.subtract([.bursts, .failingHandlers, .ghosts, .slowReaders, .slowHandlers])
      weather.writeLeast = .milliseconds(40)
      weather.writeMost = .milliseconds(200)
      messages = 60
      safety = .seconds(60)
    case .gapIgnored:
      faults = [.busBreaks, .killServer]
      faultEvery = .seconds(2)
      messages = max(messages, 200)
    default: break
    }
  }

  private mutating func drawNetwork(_ chance: inout SeededChance) {
    profile.latencyMost = chance.time(.microseconds(200), .milliseconds(150))
    profile.isChopped = chance.percent(50)
    profile.isMinced = profile.isChopped && chance.percent(10)
    profile.capacity = chance.pick([4_096, 16_384, 65_536, 262_144])
    if faults.contains(.lateSegments) {
      profile.latePerHundredThousand = chance.within(10...2_000)
      profile.lateMost = chance.time(.milliseconds(200), .seconds(40))
    }
  }

  private mutating func drawStore(_ chance: inout SeededChance) {
    weather.writeMost = chance.time(.microseconds(400), .milliseconds(60))
    weather.readMost = chance.time(.microseconds(100), .milliseconds(40))
    storeLimits.storedPerDeviceMax = chance.pick([3, 10, 30, 100, 100, 100])
    storeLimits.collapseKeysPerDeviceMax = chance.within(1...4)
  }

  private mutating func drawServer(_ chance: inout SeededChance) {
    server.deviceWindow = chance.pick([2, 5, 20, 100])
    server.limits.storedPerDeviceMax = storeLimits.storedPerDeviceMax
    server.limits.collapseKeysPerDeviceMax = storeLimits.collapseKeysPerDeviceMax
    server.limits.pendingPerStreamMax = chance.pick([3, 20, 100])
    server.limits.heldPerStreamMax = chance.pick([5, 100])
    server.limits.upstreamPendingPerDeviceMax = chance.pick([3, 20])
    server.limits.writeBacklogBytesMax = chance.pick([24_576, 131_072, 1_048_576])
    server.fanoutSlice = chance.pick([1, 3, 200])
    server.upstreamKept = chance.pick([4, 40, 10_000])
    server.tokensKept = chance.pick([2, 16, 200_000])
    server.drainDeadline = chance.time(.seconds(1), .seconds(12))
  }

  private mutating func drawClients(_ chance: inout SeededChance) {
    sender.windowMax = chance.pick([1, 3, server.limits.pendingPerStreamMax])
    sender.messagesMax = 1_000
    sender.ackTimeout = chance.time(.seconds(4), .seconds(60))
    sender.retry.totalTimeout = chance.time(.seconds(60), .seconds(600))
    sender.retry.triesMax = chance.within(2...8)
    sender.backoff.waitMax = chance.time(.seconds(1), .seconds(30))
    sender.drainTimeout = chance.time(.seconds(5), .seconds(60))
    device = sender
    device.windowMax = chance.within(1...server.limits.upstreamPendingPerDeviceMax)
    device.messagesMax = 200
    device.backoff.dropSpread = chance.percent(50) ? .seconds(2) : .zero
    connectTimeout = chance.time(.seconds(2), .seconds(10))
  }

  /// The server is the same process from the beginning to the end, with a store and a clock that work.
  var isStrict: Bool {
    // Steps and counts are spread over nodes, and a repeat may come to another one.
    guard nodes == 1 else { return false }
    let unsettling: Set<Fault> = [
      .killServer, .vanishServer, .drainServer, .stepWall, .storeFails, .storeLosesAnswers,
    ]
    return unsettling.isDisjoint(with: faults)
  }

  var summary: String {
    let names = features.sorted { $0.rawValue < $1.rawValue }.map { "\($0)" }.joined(separator: ",")
    let wrongs = faults.map { "\($0)" }.joined(separator: ",")
    return
      (nodes > 1 ? "\(nodes) nodes, " : "")
      + "\(loops) loops, \(devices) devices, \(appServers) app servers, \(messages)+\(upstreamMessages) messages in "
      + "\(safety); features [\(names)]; faults [\(wrongs)] every \(faultEvery)"
  }
}
