import Bytes
import DeliveryCore
import PushModel
import Seams
import Stores
import Synchronization
import TLSCore

/// Projects and keys, all in memory, and what is shared by a sender's streams on every loop.
///
/// Reading takes a lock for a few lines; changes are written to the store first.
final class AccountDirectory: Sendable {
  private struct State {
    var byID: [String: Project] = [:]
    var bySender: [SenderID: Project] = [:]
    var keys: [[UInt8]: AccountKey] = [:]
    var senders: [SenderID: SenderState] = [:]

    mutating func add(_ project: Project, _ limits: Limits, _ tuning: ShardTuning) {
      byID[project.id] = project
      bySender[project.sender] = project
      if senders[project.sender] == nil {
        senders[project.sender] = SenderState(project.sender, limits, tuning)
      }
    }
  }
  private let state = Mutex(State())
  private let limits: Limits
  private let tuning: ShardTuning
  let serviceAccounts: ServiceAccounts

  init(
    limits: Limits, tuning: ShardTuning, serviceAccounts: ServiceAccounts = ServiceAccounts(secret: [])
  ) {
    self.serviceAccounts = serviceAccounts
    self.limits = limits
    self.tuning = tuning
  }

  func load(projects: [Project], keys: [AccountKey]) {
    state.withLock {
      for project in projects { $0.add(project, limits, tuning) }
      for key in keys where !key.revoked { $0.keys[key.hash] = key }
    }
  }

  func add(_ project: Project) { state.withLock { $0.add(project, limits, tuning) } }
  func add(_ key: AccountKey) { state.withLock { $0.keys[key.hash] = key } }
  func removeKey(hash: [UInt8]) { state.withLock { _ = $0.keys.removeValue(forKey: hash) } }

  func project(_ id: String) -> Project? { state.withLock { $0.byID[id] } }
  func project(_ sender: SenderID) -> Project? { state.withLock { $0.bySender[sender] } }
  var projects: [Project] { state.withLock { $0.byID.values.sorted { $0.id < $1.id } } }
  func sender(_ id: SenderID) -> SenderState? { state.withLock { $0.senders[id] } }

  /// The account key with this text; nil when there is none or it was revoked.
  func key(_ text: String, _ purpose: AccountKey.Purpose) -> AccountKey? {
    guard let hash = try? Secrets.sha256(Array(text.utf8)) else { return nil }
    return state.withLock { $0.keys[hash] }.flatMap { $0.purpose == purpose ? $0 : nil }
  }
}

/// What the streams of one sender share across loops.
final class SenderState: Sendable {
  let sender: SenderID
  let rates: SenderRates
  private let seen: Mutex<DedupeWindow>
  private let streams = Mutex<Set<StreamRef>>([])

  init(_ sender: SenderID, _ limits: Limits, _ tuning: ShardTuning) {
    self.sender = sender
    rates = SenderRates(limits)
    seen = Mutex(DedupeWindow(idsMax: tuning.dedupeIDsMax, horizon: tuning.dedupeHorizon))
  }

  /// Records that `shard` takes the message.
  ///
  /// Nil: it is new; else the shard that took it first.
  func firstTaker(of key: MessageKey, shard: Int, now: WallTime) -> Int? {
    seen.withLock { $0.insert(key, shard: UInt8(truncatingIfNeeded: shard), now: now) }.map(Int.init)
  }

  /// A refused message may be sent again under its id.
  func forget(_ key: MessageKey) { seen.withLock { $0.remove(key) } }

  /// False when the sender has `max` streams already.
  func open(_ stream: StreamRef, max: Int) -> Bool {
    streams.withLock {
      guard $0.count < max else { return false }
      $0.insert(stream)
      return true
    }
  }

  func close(_ stream: StreamRef) { streams.withLock { _ = $0.remove(stream) } }
  var streamCount: Int { streams.withLock { $0.count } }
}
