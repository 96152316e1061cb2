import Bytes
import DeliveryCore
import PushModel
import Seams
import Stores
import Synchronization
import Telemetry

@testable import ConnectionServer

/// Shards over the memory store, without loops and sockets: mail and the store's answers are delivered by hand.
final class ShardHarness {
  /// Messages between shards, in the order posted.
  final class Mail: ShardPost {
    private let queue = Guarded<[(Int, ShardMessage)]>([])

    func post(_ message: ShardMessage, to shard: Int) { queue.withLock { $0.append((shard, message)) } }
    func post(contentsOf messages: inout [ShardMessage], to shard: Int) {
      let batch = messages
      messages = []
      queue.withLock { queue in queue += batch.map { (shard, $0) } }
    }
    func takeAll() -> [(Int, ShardMessage)] {
      queue.withLock { queue in
        defer { queue = [] }
        return queue
      }
    }
  }

  /// Answers of the store that were not delivered yet.
  final class Answers: Sendable {
    private let queue = Guarded<[@Sendable () -> Void]>([])
    func add(_ answer: @escaping @Sendable () -> Void) { queue.withLock { $0.append(answer) } }
    var isEmpty: Bool { queue.withLock { $0.isEmpty } }
    func takeAll() -> [@Sendable () -> Void] {
      queue.withLock { queue in
        defer { queue = [] }
        return queue
      }
    }
  }

  final class FakeDevice: DeviceStream {
    let reference: StreamRef
    var registrations: [Registration] = []
    var backlogBytes = 0
    var delivered: [Downstream] = []
    var deletedCounts: [Int] = []
    var upstreamAnswers: [(String, UpstreamAnswer)] = []
    var isReplaced = false

    init(_ reference: StreamRef) { self.reference = reference }
    func deliver(_ record: Downstream) { delivered.append(record) }
    func tellDeleted(count: Int) { deletedCounts.append(count) }
    func upstreamAnswered(_ rawMessageID: [UInt8], _ answer: UpstreamAnswer) {
      upstreamAnswers.append((String(decoding: rawMessageID, as: UTF8.self), answer))
    }
    func replaced() { isReplaced = true }
  }

  final class FakeSender: SenderStream {
    var answers: [UInt32: [Answer]] = [:]
    var upstream: [Upstream] = []
    var isDraining = false
    var pendingCount: Int { 0 }
    func answered(_ slot: UInt32, _ answer: Answer) { answers[slot, default: []].append(answer) }
    func write(_ upstream: Upstream) { self.upstream.append(upstream) }
    func resolved(_ slot: UInt32, _ text: [UInt8], _ meaning: TokenMeaning?) {}
    func announceDraining() { isDraining = true }
  }

  let time: ManualTime
  /// What the shards go by: steps of `time`'s wall clock do not move it.
  let steady: SteadyTime
  let mail = Mail()
  let answers: Answers
  let store: MemoryStore
  let context: ServerContext
  let shards: [Shard]
  let sender = SenderID(100_000_000_001)
  /// Held answers stay with the store until ``settle()`` or ``releaseStore()``.
  var holdsStore = false

  /// - Parameter answers: Where `given` delivers its answers.
  init(
    shards count: Int = 2, time: ManualTime = ManualTime(), tuning: ShardTuning = ShardTuning(),
    store given: MemoryStore? = nil, bus: (any NodeBus)? = nil,
    answers: Answers = Answers(), limits change: (inout Limits) -> Void = { _ in }
  ) {
    self.answers = answers
    self.time = time
    steady = SteadyTime(time)
    var limits = Limits()
    change(&limits)
    let store = given ?? MemoryStore(deliver: { answers.add($0) })
    self.store = store
    let accounts = AccountDirectory(limits: limits, tuning: tuning)
    accounts.load(
      projects: [Project(id: "demo", sender: sender, createdAt: WallTime(ms: 0))], keys: [])
    context = ServerContext(
      configuration: ServerConfiguration(), limits: limits, tuning: tuning, store: store,
      accounts: accounts, keys: MessageKeys(key: Array(0..<16)), credentials: .none, time: steady,
      metrics: Metrics(), log: .off, shardCount: count, post: mail, bus: bus)
    shards = (0..<count).map { [context, time, steady] in
      Shard(index: $0, context, now: time.moment, wall: steady.wall)
    }
  }

  /// Runs rounds until nothing moves without time passing.
  func settle() {
    for _ in 0..<100 {
      if !holdsStore { for answer in answers.takeAll() { answer() } }
      let batch = mail.takeAll()
      for (index, message) in batch {
        shards[index].now = time.moment
        shards[index].wall = steady.wall
        shards[index].handle(message)
      }
      for shard in shards {
        shard.now = time.moment
        shard.wall = steady.wall
        _ = shard.endRound()
      }
      if batch.isEmpty, mail.isEmpty, holdsStore || answers.isEmpty { return }
    }
  }

  func advance(_ duration: Duration) {
    settle()
    time.advance(by: duration)
    settle()
  }

  /// Lets the held answers of the store through.
  func releaseStore() {
    holdsStore = false
    for answer in answers.takeAll() { answer() }
    settle()
  }

  /// A registered device with the token `dev-<name>`.
  func register(_ name: String) async throws -> Registration {
    let answers = answers
    let drain = Task {
      while !Task.isCancelled {
        for answer in answers.takeAll() { answer() }
        await Task.yield()
      }
    }
    defer { drain.cancel() }
    return try await store.register(
      RegistrationRequest(
        token: "dev-\(name)", deviceID: name, secretHash: [], sender: sender, app: "org.example.app",
        platform: .linux, user: nil, previousToken: nil), now: steady.wall)
  }

  func connect(_ registration: Registration) -> (FakeDevice, DeviceSlot) {
    let shard = shards[shards[0].home(of: registration.device)]
    let device = FakeDevice(StreamRef(loop: UInt8(shard.index), stream: shard.nextStreamNumber()))
    shard.deviceStreams[device.reference.stream] = device
    let granted = Guarded<StreamGrant?>(nil)
    store.claim(
      registration.device, node: 0,
      awaySince: steady.wall + .seconds(-context.limits.deviceAwaySecondsMax), now: steady.wall
    ) { result in
      granted.withLock { $0 = try? result.get() }
    }
    for answer in answers.takeAll() { answer() }
    shard.now = time.moment
    shard.wall = steady.wall
    let grant = granted.withLock { $0 } ?? StreamGrant(epoch: 0, previousNode: nil)
    shard.endedByRule(grant.ended)
    let slot = shard.deviceOpened(registration.device, device, epoch: grant.epoch)
    settle()
    return (device, slot)
  }

  func disconnect(_ device: FakeDevice, _ slot: DeviceSlot) {
    let shard = shards[shards[0].home(of: slot.device)]
    shard.deviceStreams[device.reference.stream] = nil
    shard.deviceClosed(slot)
    store.release(slot.device, epoch: slot.epoch, now: steady.wall) { _ in }
    settle()
  }

  func openSender(on loop: Int = 0) -> (FakeSender, StreamRef) {
    let stream = FakeSender()
    let reference = StreamRef(loop: UInt8(loop), stream: shards[loop].nextStreamNumber())
    shards[loop].senderStreams[reference.stream] = stream
    shards[loop].send(.senderOpened(sender, reference), to: shards[loop].home(of: sender))
    settle()
    return (stream, reference)
  }

  func key(_ id: String) -> MessageKey {
    Array(id.utf8).withUnsafeBytes { context.keys.downstream(sender, $0) }
  }

  /// Sends as a sender's stream would after validation.
  func send(
    _ id: String, to registration: Registration, from stream: StreamRef, slot: UInt32, ttl: Int64 = 3600,
    collapse: String? = nil, high: Bool = true
  ) {
    let shard = shards[Int(stream.loop)]
    let home = shard.home(of: registration.device)
    let origin = Origin(stream: stream, slot: slot)
    if let taker = context.accounts.sender(sender)?.firstTaker(of: key(id), shard: home, now: steady.wall) {
      shard.send(.repeated(key(id), origin), to: taker)
      return
    }
    for shard in shards {
      shard.now = time.moment
      shard.wall = steady.wall
    }
    shard.send(
      .downstream(
        Downstream(
          number: MessageNumber(shard.numbers.next(steady.wall)), key: key(id), device: registration.device,
          sender: sender, app: registration.app, collapse: collapse,
          expires: WallTime(ms: steady.wall.ms + ttl * 1000), highPriority: high, body: Array(id.utf8),
          receipt: [], origin: origin, write: ttl == 0 ? .never : .queued)), to: home)
  }

  /// As ``advance(_:)``, in steps, so that what is due in between happens then.
  func advance(_ duration: Duration, inStepsOf step: Duration) {
    var left = duration
    while left > .zero {
      advance(min(step, left))
      left -= step
    }
  }

  func deviceAcks(_ id: String, _ slot: DeviceSlot) {
    shards[shards[0].home(of: slot.device)].deviceAcked(key(id), slot)
  }

  /// The latest state of a message that any shard noted.
  func state(_ id: String) -> MessageState? {
    let key = key(id)
    return shards.flatMap { $0.events.history(max: 100) { $0.key == key } }.last?.state
  }

  func storedCount() -> Int {
    let found = Mutex(0)
    store.counts { result in
      if case .success(let counts) = result { found.withLock { $0 = counts["messages"] ?? 0 } }
    }
    for answer in answers.takeAll() { answer() }
    return found.withLock { $0 }
  }
}

extension ShardHarness.Mail {
  var isEmpty: Bool {
    let all = takeAll()
    for (shard, message) in all { post(message, to: shard) }
    return all.isEmpty
  }
}

extension Credentials {
  static var none: Credentials {
    Credentials(directory: "", serverKey: "", apiKey: "", adminKey: "")
  }
}
