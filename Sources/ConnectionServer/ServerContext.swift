import Bytes
import PushModel
import Seams
import Stores
import Synchronization
import Telemetry

/// What every part of a running server shares.
///
/// All of it may be used from any thread.
final class ServerContext: Sendable {
  let configuration: ServerConfiguration
  let limits: Limits
  let tuning: ShardTuning
  let store: any Store
  /// The other nodes; nil when the store is this process's own.
  let bus: (any NodeBus)?
  let accounts: AccountDirectory
  let keys: MessageKeys
  let credentials: Credentials
  let time: any TimeSource
  let metrics: Metrics
  let log: Log
  let shardCount: Int
  let post: any ShardPost
  let loginGuard: LoginGuard
  /// How far the time in numbers of messages is ahead of the clock: see ``NumberFloor``.
  let numbersAhead: Duration
  let faults = Faults()
  let watch = ConsoleWatch()
  /// Opens when the server has ended.
  let ended = Gate()
  private let draining = Atomic<Bool>(false)
  private let workerList = Mutex<[LoopWorker]>([])

  init(
    configuration: ServerConfiguration, limits: Limits, tuning: ShardTuning, store: any Store,
    accounts: AccountDirectory, keys: MessageKeys, credentials: Credentials, time: any TimeSource,
    metrics: Metrics, log: Log, shardCount: Int, post: any ShardPost,
    bus: (any NodeBus)? = nil, numbersAhead: Duration = .zero
  ) {
    self.numbersAhead = numbersAhead
    self.configuration = configuration
    self.limits = limits
    self.tuning = tuning
    self.store = store
    self.bus = bus
    self.accounts = accounts
    self.keys = keys
    self.credentials = credentials
    self.time = time
    self.metrics = metrics
    self.log = log
    self.shardCount = shardCount
    self.post = post
    loginGuard = LoginGuard(failuresPerMinuteMax: limits.loginFailuresPerAddressPerMinuteMax)
  }

  /// This node among those that share the store; 0 when it is alone.
  var node: Int { bus?.node ?? 0 }

  /// The loops' workers, by shard; set once at start, emptied at the end.
  var workers: [LoopWorker] {
    get { workerList.withLock { $0 } }
    set { workerList.withLock { $0 = newValue } }
  }

  /// The server has announced its end: new sends are refused, new logins too.
  var isDraining: Bool { draining.load(ordering: .relaxed) }
  func startDraining() { draining.store(true, ordering: .relaxed) }

  /// Runs on every shard's loop, in no order.
  func onEveryShard(_ work: @escaping @Sendable (Shard) -> Void) {
    for shard in 0..<shardCount { post.post(.perform(work), to: shard) }
  }

  /// Runs on each shard's loop and gathers what it found.
  func gather<Value: Sendable>(_ read: @escaping @Sendable (Shard) -> Value) async -> [Value] {
    await withTaskGroup(of: Value.self) { group in
      for shard in 0..<shardCount {
        group.addTask { [post] in
          await withCheckedContinuation { continuation in
            post.post(.perform { continuation.resume(returning: read($0)) }, to: shard)
          }
        }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
  }

  /// Makes every loop ask the store anew about a token, and about aliases of it.
  func forget(token: String) {
    onEveryShard { $0.tokens.removeAll() }
    bus?.send(.tokens, to: nil)
  }

  /// Reads a device's registrations anew for its open stream.
  func refreshRegistrations(of deviceID: String) async throws(StoreFault) {
    guard let found = try await store.credentials(of: deviceID) else { return }
    let home = Int(found.number.value.magnitude % UInt64(shardCount))
    post.post(.perform { $0.devices[found.number]?.stream.registrations = found.registrations }, to: home)
  }

  /// Marks a token's registration as gone: its stored messages end, sends to it are refused.
  ///
  /// - Returns: False when there was no such active registration.
  func unregister(_ token: String) async throws(StoreFault) -> Bool {
    let (found, ended) = try await store.unregister(token, now: time.wall)
    bus?.send(.tokens, to: nil)
    unregistered([token], ended)
    return found
  }

  /// Makes every loop forget registrations that the store has marked as gone.
  func unregistered(_ tokens: [String], _ ended: [WriteOutcome.Ended]) {
    let gone = Set(tokens)
    onEveryShard { shard in
      shard.tokens.removeAll()
      for slot in shard.devices.values { slot.stream.registrations.removeAll { gone.contains($0.token) } }
    }
    endedByRule(ended)
  }

  /// The machine's wall clock, steps included: what the clocks of others are compared with.
  ///
  /// The lives of messages go by ``time``, see ``SteadyTime``.
  var civilTime: WallTime { (time as? SteadyTime)?.source.wall ?? time.wall }

  /// Tells each row's home shard.
  func endedByRule(_ rows: [WriteOutcome.Ended]) {
    guard !rows.isEmpty else { return }
    let homes = Dictionary(grouping: rows) { Int($0.device.value.magnitude % UInt64(shardCount)) }
    for (home, rows) in homes { post.post(.ended(rows), to: home) }
  }
}
