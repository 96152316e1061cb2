import Bytes
import Connections
import DeliveryCore
package import EventLoops
package import PushModel
package import Seams
package import Stores
package import Telemetry

/// A server put together on the loops it is given: accounts, shards, mailboxes.
///
/// No thread, file or listener.
///
/// ``ConnectionServer`` puts it on threads behind sockets, a simulator on a virtual clock behind a virtual network.
package final class ServerCore: Sendable {
  let context: ServerContext
  private let loops: [any Loop]
  private let mailboxes: ShardMailboxes

  init(
    _ configuration: ServerConfiguration, _ ready: StartUp, _ limits: Limits, _ tuning: ShardTuning,
    time: any TimeSource, log: Log, loops: [any Loop], bus: (any NodeBus)? = nil,
    executor: (any TaskExecutor)? = nil
  ) {
    self.loops = loops
    mailboxes = ShardMailboxes(loops)
    context = ServerContext(
      configuration: configuration, limits: limits, tuning: tuning, store: ready.store,
      accounts: ready.accounts, keys: ready.keys, credentials: ready.credentials, time: time,
      metrics: Metrics(), log: log, shardCount: loops.count, post: mailboxes, bus: bus,
      numbersAhead: ready.numbersAhead, executor: executor)
  }

  /// Puts a shard on every loop.
  func begin() async throws {
    var workers: [LoopWorker] = []
    for (index, loop) in loops.enumerated() {
      watch(loop, index)
      workers.append(
        try await loop.perform { [context, mailboxes] in
          let worker = LoopWorker(
            loop: loop, context: context,
            shard: Shard(index: index, context, now: loop.now, wall: loop.wall))
          worker.begin(mailboxes[index])
          return worker
        })
    }
    context.workers = workers
    context.listenToNodes()
  }

  /// Metrics of a loop; one of a simulator has none.
  private func watch(_ loop: any Loop, _ index: Int) {
    guard let statistics = (loop as? EventLoop)?.statistics else { return }
    let name = String(index)
    context.metrics.reading(.loopRoundSeconds, name, from: statistics.roundNs)
    context.metrics.reading(.loopLongestRoundSeconds, name) { Double(statistics.longestRoundNs) / 1e9 }
    context.metrics.reading(.loopStalls, name) { Double(statistics.stalls) }
    context.metrics.reading(.loopTimers, name) { Double(statistics.timers) }
  }

  /// Takes up what an earlier run left: upstream messages and fan-outs.
  func resume(_ ready: StartUp) {
    for sender in ready.sendersWithUpstream {
      let home = Int(sender.value.magnitude % UInt64(loops.count))
      mailboxes.post(.perform { $0.upstreamLeft(sender) }, to: home)
    }
    let fanouts = ready.fanouts
    mailboxes.post(.perform { $0.resumeFanouts(fanouts) }, to: 0)
  }
}

extension ServerCore {
  /// What is done now and then, until the task is cancelled.
  /// - Parameter pause: Between two sweeps.
  package func keepHouse(every pause: Duration = .seconds(1)) async {
    await withTaskGroup(of: Void.self) { group in
      if context.bus == nil { group.addTask { [context] in await NumberFloor.keep(context) } }
      group.addTask { [context] in await Housekeeping(context: context, sweepEvery: pause).run() }
    }
  }
}

// For a simulator, which has no other way in.
extension ServerCore {
  /// What a simulated server is made with; the rest is as in production.
  package struct Settings: Sendable {
    package var serverKey = "simulated-server-key"
    package var project = "demo"
    package var senderID: Int64 = 100_000_000_001
    package var limits = Limits()
    package var deviceWindow = 100
    package var dedupeIDsMax = 1_000_000
    package var dedupeHorizon: Duration = .seconds(600)
    package var connectedBacklogMax = 10_000
    package var fanoutSlice = 200
    package var tokensKept = 200_000
    package var drainDeadline: Duration = .seconds(10)
    /// Upstream messages of one sender kept in memory beside the store.
    package var upstreamKept = 10_000

    package init() {}
  }

  /// The whole start of a server, from the store's content to shards that wait for connections.
  /// - Parameters:
  ///   - bus: The way to the other nodes, where they share the store.
  ///   - executor: Runs what the server does beside its loops.
  package static func start(
    _ settings: Settings, store: any Store, time: any TimeSource, log: Log, loops: [any Loop],
    bus: (any NodeBus)? = nil, executor: (any TaskExecutor)? = nil
  ) async throws -> ServerCore {
    var configuration = ServerConfiguration()
    configuration.project = settings.project
    configuration.senderID = settings.senderID
    configuration.drainDeadline = settings.drainDeadline
    var tuning = ShardTuning()
    tuning.deviceWindow = settings.deviceWindow
    tuning.dedupeIDsMax = settings.dedupeIDsMax
    tuning.dedupeHorizon = settings.dedupeHorizon
    tuning.connectedBacklogMax = settings.connectedBacklogMax
    tuning.fanoutSlice = settings.fanoutSlice
    tuning.tokensKept = settings.tokensKept
    tuning.upstreamKept = settings.upstreamKept
    tuning.eventsKept = 8_192
    let ready = try await StartUp.prepare(
      configuration,
      Credentials(
        directory: "", serverKey: settings.serverKey, apiKey: "simulated-api-key",
        adminKey: "simulated-admin-key"),
      store: store, limits: settings.limits, tuning: tuning, time: time, log: log, isShared: bus != nil)
    let core = ServerCore(
      configuration, ready, settings.limits, tuning, time: time, log: log, loops: loops, bus: bus,
      executor: executor)
    try await core.begin()
    core.resume(ready)
    return core
  }

  /// Serves a connection that was accepted on a loop, without TLS.
  ///
  /// On that loop.
  package func accept(_ stream: any ByteStream, on loop: Int) {
    _ = XMPPConnection(worker: context.workers[loop], channel: Channel(stream))
  }

  /// The whole end of a server, in order.
  package func drain() async { await Drain(context: context, loops: loops).run() }

  /// As the registration interface does it.
  package func register(_ request: RegistrationRequest) async throws(StoreFault) -> Registration {
    let registration = try await context.store.register(request, now: context.time.wall)
    if let previous = request.previousToken { context.forget(token: previous) }
    try await context.refreshRegistrations(of: request.deviceID)
    return registration
  }

  /// - Returns: False when there was no such active registration.
  package func unregister(_ token: String) async throws(StoreFault) -> Bool {
    try await context.unregister(token)
  }

  /// What a server has in memory that must be gone when nothing is under way.
  package struct Census: Sendable, Equatable {
    package var connections = 0
    package var senderStreams = 0
    package var deviceStreams = 0
    package var devices = 0
    package var inFlight = 0
    package var behind = 0
    package var settling = 0
    package var pendingSends = 0
    package var lookUps = 0
    package var manySends = 0
    package var fanouts = 0
    package var deferredRepeats = 0
    package var upstreamRecords = 0
    package var upstreamWaiting = 0
    package var unwritten = 0

    package init() {}

    /// Nothing is on its way anywhere; streams may be open.
    package var isQuiet: Bool {
      inFlight + behind + settling + pendingSends + lookUps + manySends + fanouts + deferredRepeats
        + upstreamRecords + upstreamWaiting + unwritten == 0
    }
  }

  /// Counts what is in memory.
  ///
  /// Not while loops run on threads of their own.
  package func census() -> Census {
    var census = Census()
    for worker in context.workers {
      let shard = worker.shard
      census.connections += worker.connections.count
      census.senderStreams += shard.senderStreams.count
      census.deviceStreams += shard.deviceStreams.count
      census.devices += shard.devices.count
      for slot in shard.devices.values {
        census.inFlight += slot.inFlight.count
        census.settling += slot.settling.count
        if slot.behind || slot.reading { census.behind += 1 }
      }
      census.settling += shard.settlingOfAbsent.values.reduce(0) { $0 + $1.count }
      for stream in shard.senderStreams.values where !(stream is ManySend) {
        census.pendingSends += stream.pendingCount
      }
      census.lookUps += shard.lookUps.count
      census.manySends += shard.manySends.count
      census.fanouts += shard.fanouts.count
      census.deferredRepeats += shard.deferredRepeats.count
      for desk in shard.desks.values {
        census.upstreamRecords += desk.records.count
        census.upstreamWaiting += desk.board.waitingCount + desk.board.pendingCount
      }
      if !shard.writing.isIdle { census.unwritten += 1 }
    }
    return census
  }

  /// What a node does about messages that it was not handed but that the store holds.
  package struct Attention: Sendable {
    /// Streams that are open for a device or a sender.
    package var streams = 0
    /// One of them has something to do: a read under way, something in flight, or exactly this message.
    package var isBusy = false
  }

  /// Whether a stream of the device is open here, and waits for nothing although the store holds this message for it.
  ///
  /// Not while loops run on threads of their own.
  package func attention(to number: MessageNumber, of device: DeviceNumber) -> Attention {
    var attention = Attention()
    for worker in context.workers {
      guard let slot = worker.shard.devices[device] else { continue }
      attention.streams += 1
      if slot.behind || slot.reading || slot.inFlight.count > 0 || !slot.held.isEmpty
        || slot.settling.contains(number)
      {
        attention.isBusy = true
      }
    }
    return attention
  }

  /// The same for an upstream message.
  package func attention(toUpstream number: MessageNumber, of sender: SenderID) -> Attention {
    var attention = Attention()
    for worker in context.workers {
      guard let desk = worker.shard.desks[sender] else { continue }
      if desk.board.hasOpenStream { attention.streams += 1 }
      if desk.records[number] != nil || desk.settling.contains(number) || desk.leasing
        || (desk.behind && desk.board.hasOpenStream) || !worker.shard.writing.isIdle
      {
        attention.isBusy = true
      }
    }
    return attention
  }

  /// The node advances this fan-out.
  package func advances(_ job: MessageNumber) -> Bool {
    context.workers.contains { $0.shard.fanouts.knows(job) }
  }

  /// The id that devices see in place of a sender's message id.
  package func deviceMessageID(_ id: String) -> String {
    let sender = SenderID(context.configuration.senderID)
    return Array(id.utf8).withUnsafeBytes { context.keys.downstream(sender, $0).hash.hex }
  }

  /// The steps of a message that inspection would show, in the order noted.
  ///
  /// Not while loops run on threads.
  package func history(of id: String) -> [MessageState] {
    let sender = SenderID(context.configuration.senderID)
    let key = Array(id.utf8).withUnsafeBytes { context.keys.downstream(sender, $0) }
    return context.workers.flatMap { worker in
      worker.shard.events.history(max: 64) { $0.key == key }.map(\.state)
    }
  }

  /// How many downstream messages came to each state.
  package func count(of state: MessageState) -> Int {
    Int(context.metrics.value(.messages, "downstream", state.name) ?? 0)
  }
}
