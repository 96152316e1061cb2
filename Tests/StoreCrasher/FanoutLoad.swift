import Bytes
import Glibc
import PushModel
import Seams
import StoreSQLite
import Stores
import Synchronization

/// Fans messages out without end and says on stdout what is durable, until it is killed.
///
/// Lines: `B job` when a job is durable, `A job matched done` when a slice is. Arguments: the data directory, the
/// first job number, `fanout`. The devices `f-0` to `f-199` are made when they are missing.
final class FanoutLoad: Sendable {
  static let crowd = 200

  private let store: SQLiteStore
  private let next: Mutex<UInt64>
  private let now = SystemTime().wall
  private let topic: TopicName

  init(store: SQLiteStore, first: UInt64) {
    self.store = store
    next = Mutex(first)
    guard let topic = TopicName("news") else { exit(1) }
    self.topic = topic
  }

  func start() { register(0) }

  private func register(_ index: Int) {
    guard index < Self.crowd else { return resume() }
    let request = RegistrationRequest(
      token: "f-\(index)", deviceID: "f-\(index)", secretHash: [1], sender: SenderID(1), app: "a",
      platform: .linux, user: nil, previousToken: nil)
    store.register(request, now: now) { [self] result in
      Self.check(result)
      let change = SubscriptionChange(
        token: "f-\(index)", sender: SenderID(1), topic: topic, isSubscribed: true)
      store.change([change], now: now) { [self] result in
        Self.check(result)
        register(index + 1)
      }
    }
  }

  /// Goes on with what the last process left, then begins new jobs.
  private func resume() {
    store.fanouts(since: now) { [self] result in
      advance(Self.check(result).map(\.number))
    }
  }

  private func begin() {
    let number = next.withLock { next in
      next += 1
      return MessageNumber(next << 20)
    }
    let job = FanoutJob(
      number: number, key: MessageKey(Hash128(high: 1, low: number.value)), sender: SenderID(1),
      audience: .topic(topic), begun: now, expires: now + .seconds(1_000_000),
      tail: Array(",\"data\":{}}".utf8))
    store.begin(job) { [self] result in
      Self.check(result)
      say("B \(number.value)")
      advance([number])
    }
  }

  private func advance(_ jobs: [MessageNumber]) {
    guard let job = jobs.first else { return begin() }
    store.advance(fanouts: jobs, max: 7, spares: [MessageNumber(job.value + 1)], now: now) { [self] result in
      let slices = Self.check(result)
      for slice in slices { say("A \(slice.job.value) \(slice.matched) \(slice.isDone ? 1 : 0)") }
      advance(slices.filter { !$0.isDone }.map(\.job))
    }
  }

  @discardableResult
  private static func check<Value>(_ result: Result<Value, StoreFault>) -> Value {
    switch result {
    case .success(let value): return value
    case .failure(let fault):
      say("fault: \(fault)")
      exit(1)
    }
  }
}
