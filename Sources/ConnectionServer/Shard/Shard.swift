import Bytes
import Connections
import DeliveryCore
import PushModel
import Seams
import Stores
import Telemetry

/// One loop's share of the server: the devices and senders whose home it is, and the streams on its loop.
///
/// A plain class, touched only on its loop. It takes what streams read, what other shards and the store say
/// (``handle(_:)``), and the end of each round (``endRound()``); it writes to streams, posts to shards and
/// hands batches to the store. It asks no clock: ``now`` and ``wall`` are set by the loop's driver.
final class Shard {
  let index: Int
  let shardCount: Int
  let limits: Limits
  let tuning: ShardTuning
  let store: any Store
  let accounts: AccountDirectory
  let keys: MessageKeys
  let post: any ShardPost
  let bus: (any NodeBus)?
  let counters: ShardCounters
  let log: Log

  /// Set by the driver before each call.
  var now: Moment
  var wall: WallTime
  /// The share of time in which the loop works, 0 to 1.
  var load = 0.0

  // Streams on this loop, by number. Weak references would cost an atomic each; streams remove themselves.
  var senderStreams: [UInt32: any SenderStream] = [:]
  var deviceStreams: [UInt32: any DeviceStream] = [:]
  private var lastStream: UInt32 = 0
  /// What this round has for each other shard.
  private var outboxes: [[ShardMessage]]

  /// What tokens mean, as this loop asked the store lately.
  var tokens: TokenCache
  /// Messages that wait for the store to say what their token means.
  var lookUps: [Hash128: [WaitingSend]] = [:]
  let scratch: Scratch
  let faults: Faults
  /// Whether the console's tail is looked at, and what it shows of this shard.
  let watch: ConsoleWatch
  var tail = MessageTail()
  /// The loop's side of this shard.
  weak var worker: LoopWorker?

  // Devices at home here that are connected.
  var devices: [DeviceNumber: DeviceSlot] = [:]
  /// Devices whose stream was asked of the store and not yet granted; kept where nodes share the store.
  var claims: [DeviceNumber: PendingClaims] = [:]
  /// As ``DeviceSlot/settling``, of devices that are not connected; gone with the write that removes the rows.
  var settlingOfAbsent: [DeviceNumber: Set<MessageNumber>] = [:]
  // Senders at home here.
  var desks: [SenderID: UpstreamDesk] = [:]
  var upstreamSeen: DedupeWindow

  /// Messages for several registrations that came on this loop and are not answered.
  var manySends: [MessageKey: ManySend] = [:]
  /// Of the whole node; in use on one shard, see ``fanoutHome``.
  var fanouts = FanoutDesk()

  /// Nil while no limit asks for it.
  var meters: DeviceMeters?
  /// What is to be done at a time of its own.
  var later = DueQueue<(Shard) -> Void>()

  var writing: WriteQueue
  /// When the batch that is out was handed to the store.
  var submittedAt = Moment(ns: 0)
  var events: EventRing
  var numbers: NumberMaker
  /// What devices at home here were handed lately.
  var deliveries: DeliveryLog
  /// Repeats that came before what they repeat; looked at again when due.
  var deferredRepeats: [(due: Moment, key: MessageKey, origin: Origin)] = []

  /// Reads of the store that failed; tried again when due.
  var failedReads: [(due: Moment, read: FailedRead)] = []

  init(index: Int, _ context: ServerContext, now: Moment, wall: WallTime) {
    self.index = index
    self.now = now
    self.wall = wall
    shardCount = context.shardCount
    limits = context.limits
    tuning = context.tuning
    store = context.store
    accounts = context.accounts
    keys = context.keys
    post = context.post
    bus = context.bus
    faults = context.faults
    watch = context.watch
    counters = ShardCounters(context.metrics, shard: index)
    log = context.log
    upstreamSeen = DedupeWindow(idsMax: tuning.dedupeIDsMax, horizon: tuning.dedupeHorizon)
    scratch = Scratch(limits: limits)
    tokens = TokenCache(entriesMax: tuning.tokensKept)
    meters = DeviceMeters(limits, entriesMax: tuning.metersKept, now: now)
    writing = WriteQueue()
    deliveries = DeliveryLog(capacity: tuning.deliveriesKept)
    events = EventRing(capacity: tuning.eventsKept)
    outboxes = Array(repeating: [], count: shardCount)
    numbers =
      context.bus.map { NumberMaker(node: $0.node, part: index % 64, ahead: context.numbersAhead) }
      ?? NumberMaker(node: index % 1024, ahead: context.numbersAhead)
  }

  func home(of device: DeviceNumber) -> Int { Int(device.value.magnitude % UInt64(shardCount)) }
  func home(of sender: SenderID) -> Int { Int(sender.value.magnitude % UInt64(shardCount)) }

  /// A number for a new stream on this loop; wraps after four thousand million.
  func nextStreamNumber() -> UInt32 {
    lastStream &+= 1
    return lastStream
  }

  /// Hands a message to a shard: at once when it is this one, else with the round's others.
  func send(_ message: ShardMessage, to shard: Int) {
    if shard == index { handle(message) } else { outboxes[shard].append(message) }
  }

  func handle(_ message: ShardMessage) {
    switch message {
    case .downstream(let record): take(record)
    case .fanout(let send): takeFanout(send)
    case .shares(let rows, let stored): takeShares(rows, stored: stored)
    case .repeated(let key, let origin): takeRepeat(key, origin, deferred: false)
    case .answer(let origin, let answer):
      senderStreams[origin.stream.stream]?.answered(origin.slot, answer)
    case .upstream(let record): takeUpstream(record)
    case .repeatedUpstream(let key, let sender, let origin): takeUpstreamRepeat(key, sender, origin)
    case .forgetUpstream(let key): upstreamSeen.remove(key)
    case .upstreamAnswer(let origin, let answer):
      // A refused message may be sent again under its id.
      if case .nack = answer, let key = origin.key { upstreamSeen.remove(key) }
      deviceStreams[origin.stream.stream]?.upstreamAnswered(origin.rawMessageID, answer)
    case .handUpstream(let stream, let record): handOut(record, to: stream)
    case .upstreamAcked(let sender, let number, let stream): upstreamAcked(sender, number, on: stream)
    case .senderOpened(let sender, let stream): senderOpened(sender, stream)
    case .senderDrains(let sender, let stream): desks[sender]?.board.streamDrains(stream)
    case .senderClosed(let sender, let stream): senderClosed(sender, stream)
    case .written(let result): written(result)
    case .backlogRead(let device, let epoch, let result): backlogRead(device, epoch, result)
    case .leased(let sender, let result): leased(sender, result)
    case .ended(let rows): endedByRule(rows)
    case .perform(let work): work(self)
    }
  }

  /// Ends a round: looks at what is due and hands the store its batch.
  ///
  /// - Returns: When to be called again without other cause; nil for never.
  func endRound() -> Moment? {
    while let work = later.popDue(now) { work(self) }
    for answer in deliveries.takeWoken() { answer(self) }
    lookAtDeferredRepeats()
    lookAtFailedReads()
    submitIfDue()
    if index == fanoutHome { advanceFanoutsIfDue() }
    for shard in outboxes.indices where !outboxes[shard].isEmpty {
      post.post(contentsOf: &outboxes[shard], to: shard)
    }
    var due = writing.nextDue(tuning, load: load)
    if let repeatDue = deferredRepeats.first?.due { due = min(due ?? repeatDue, repeatDue) }
    if let readDue = failedReads.first?.due { due = min(due ?? readDue, readDue) }
    if let sliceDue = fanouts.nextDue(now) { due = min(due ?? sliceDue, sliceDue) }
    if let laterDue = later.nextDue { due = min(due ?? laterDue, laterDue) }
    return due
  }

  /// Does something when `pause` is over, at the end of a round.
  func after(_ pause: Duration, _ work: @escaping (Shard) -> Void) { later.add(work, due: now + pause) }

  /// Notes a step of a message for inspection.
  func note(_ record: Downstream, _ state: MessageState) {
    counters.count(state)
    events.record(
      .init(key: record.key, sender: record.sender, device: record.device, state: state, at: wall))
  }
}

/// Claims of a device that are with the store.
struct PendingClaims {
  var count = 0
  /// Another node said that it has the device: what is granted below this epoch is over already.
  var kickedBelow: Int64 = 0
}

/// Settings of the server's own working, apart from the protocol's ``Limits``.
struct ShardTuning: Sendable {
  /// How long a message that is with its device waits for the device's ack before it is written: so long on a loop
  /// with time to spare, see ``liveLinger(at:)``.
  var liveLinger: Duration = .milliseconds(3)
  /// The same on a loop that never waits.
  ///
  /// There the ack itself waits to be read, and a row that is written and removed again would cost more than anything
  /// else that is done for the message.
  var liveLingerMax: Duration = .milliseconds(250)
  /// How long settlements and journal entries, which nobody waits for, may gather.
  var settleLinger: Duration = .milliseconds(20)
  /// The same on a loop that never waits.
  var settleLingerMax: Duration = .milliseconds(100)
  /// How long a repeat waits for what it repeats, which may still be on its way from another loop.
  var repeatPause: Duration = .milliseconds(50)
  /// Messages a device's stream may hold unacked.
  var deviceWindow = 100
  /// Messages that may wait in the store for a connected device that lags behind its senders; more are refused.
  var connectedBacklogMax = 10_000
  /// Messages in memory, not yet durable, at which new ones are refused as SERVICE_UNAVAILABLE.
  var unwrittenMax = 200_000
  /// Upstream messages of one sender kept in memory beside the store.
  var upstreamKept = 10_000
  var dedupeIDsMax = 1_000_000
  var dedupeHorizon: Duration = .seconds(600)
  var eventsKept = 131_072
  /// Messages handed to devices of a shard that administration can show; each holds its body.
  var deliveriesKept = 1_024
  var tokensKept = 200_000
  /// How long a message with a time to live of 0 may take to the node that its device is connected to.
  var carriedOver: Duration = .seconds(5)
  /// Devices of a shard whose rates are remembered.
  var metersKept = 500_000
  /// Registrations that one step of all fan-outs visits together, and how many jobs share a step.
  ///
  /// A slice of 200 holds the store's writer for some 3 ms. Smaller ones delay other writes less and cost more commits.
  var fanoutSlice = 200
  var fanoutJobsAtOnce = 64
  /// How long a topic message with a time to live of 0 looks for connected subscribers.
  var fanoutNowMax: Duration = .seconds(60)
  /// Registrations of one user that a message reaches at most.
  var userDevicesMax = 1_000
  /// Pause before a batch that the store did not take is sent again, and how often.
  var writeRetryPause: Duration = .milliseconds(200)
  var writeTriesMax = 5
  /// Pause before the store is asked again who has a device.
  var lookAgainPause: Duration = .seconds(1)
  /// How long a stream stands after a notice of discarded messages before that counts as told without an ack.
  var noticePause: Duration = .seconds(60)
  /// Devices whose backlogs are read in one go.
  var backlogsAtOnce = 200

  /// How long a message that is with its device waits for the ack on a loop that works for this share of time.
  func liveLinger(at load: Double) -> Duration { Self.linger(liveLinger, liveLingerMax, load) }

  /// How long what nobody waits for may gather there.
  func settleLinger(at load: Double) -> Duration { Self.linger(settleLinger, settleLingerMax, load) }

  /// The shortest up to a load of a half, from there evenly more.
  private static func linger(_ shortest: Duration, _ longest: Duration, _ load: Double) -> Duration {
    guard load > 0.5 else { return shortest }
    let more = Double((longest - shortest).ns) * (min(1, load) * 2 - 1)
    return .nanoseconds(shortest.ns &+ Int64(more))
  }
}

/// What one loop's streams read and write with, one after the other.
final class Scratch {
  var downstream: DownstreamReader
  var device: DeviceUpstreamReader
  var json = ByteWriter(capacity: 8192)
  /// The decoded text of the stanza being read.
  var text: [UInt8] = []
  /// What a stream's machine answers.
  var reply = ByteWriter(capacity: 1024)
  /// One stanza on its way out.
  var output = ByteWriter(capacity: 8192)
  let webSocket = WebSocketScratch()

  init(limits: Limits) {
    downstream = DownstreamReader(limits: limits)
    device = DeviceUpstreamReader(limits: limits)
  }
}

/// A message that waits in its stream's slot for a look-up.
struct WaitingSend {
  var stream: StreamRef
  var slot: UInt32
  /// The decoded JSON text.
  var text: [UInt8]
}
