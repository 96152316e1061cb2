import Bytes
import DeliveryCore
import PushModel
import Seams
import StoreSQLite
import Stores
import TLSCore
import Telemetry

/// What a server reads, and makes when it is missing, before it listens.
struct StartUp: Sendable {
  let store: any Store
  let accounts: AccountDirectory
  let keys: MessageKeys
  let credentials: Credentials
  let project: Project
  let sendersWithUpstream: [SenderID]
  /// How far the time in numbers of messages is ahead of the clock: see ``NumberFloor``.
  let numbersAhead: Duration
  /// Fan-outs that the last run did not finish.
  let fanouts: [FanoutDesk.Run]

  static func prepare(
    _ configuration: ServerConfiguration, store: any Store, limits: Limits, tuning: ShardTuning,
    time: any TimeSource, log: Log, isShared: Bool = false
  ) async throws -> StartUp {
    let credentials = try Credentials.loadOrMake(
      in: configuration.dataDirectory + "/credentials", now: time.wall)
    return try await prepare(
      configuration, credentials, store: store, limits: limits, tuning: tuning, time: time, log: log,
      isShared: isShared)
  }

  /// The same with credentials that need no files.
  static func prepare(
    _ configuration: ServerConfiguration, _ credentials: Credentials, store: any Store, limits: Limits,
    tuning: ShardTuning, time: any TimeSource, log: Log, isShared: Bool = false
  ) async throws -> StartUp {
    let now = time.wall
    let accounts = AccountDirectory(
      limits: limits, tuning: tuning, serviceAccounts: try await ServiceAccounts.load(store))

    var projects = try await store.projects()
    if projects.isEmpty {
      do throws(StoreFault) {
        projects = [
          try await store.createProject(
            Project(id: configuration.project, sender: SenderID(configuration.senderID), createdAt: now))
        ]
      } catch {
        // Another node that starts on the same empty store may have been first.
        projects = try await store.projects()
        if projects.isEmpty { throw error }
      }
    }
    guard
      let project = projects.first(where: { $0.sender.value == configuration.senderID }) ?? projects.first
    else { throw StoreFault.corrupt(detail: "no project") }

    try await keep(credentials.serverKey, .server, project.sender, in: store, now)
    try await keep(credentials.apiKey, .api, project.sender, in: store, now)
    try await keep(credentials.adminKey, .admin, nil, in: store, now)
    accounts.load(projects: projects, keys: try await store.keys())

    let hashKey: [UInt8]
    if let kept = try await store.setting(hashKeySetting) {
      hashKey = kept
    } else {
      hashKey = try Secrets.random(16)
      try await store.saveSetting(hashKeySetting, hashKey)
    }
    try await remember(store, accounts, limits, tuning, now, log)
    let fanouts = try await unfinishedFanouts(store, accounts, tuning, now, log)
    // Nodes that share a store go by one clock, and see to it when they join.
    let numbersAhead = isShared ? .zero : try await NumberFloor.take(from: store, now: now)
    return StartUp(
      store: store, accounts: accounts, keys: MessageKeys(key: hashKey), credentials: credentials,
      project: project, sendersWithUpstream: try await store.sendersWithUpstream(),
      numbersAhead: numbersAhead, fanouts: fanouts)
  }

  /// Jobs that go on, and the ids of all of late, so that a repeat is known.
  private static func unfinishedFanouts(
    _ store: any Store, _ accounts: AccountDirectory, _ tuning: ShardTuning, _ now: WallTime, _ log: Log
  ) async throws -> [FanoutDesk.Run] {
    let since = WallTime(ms: now.ms - tuning.dedupeHorizon.ns / 1_000_000)
    let found = try await store.fanouts(since: since)
    for job in found { _ = accounts.sender(job.sender)?.firstTaker(of: job.key, shard: 0, now: job.begun) }
    let open = found.filter { !$0.isDone }
    if !open.isEmpty { log.info("Fan-outs go on", ["count": .init(open.count)]) }
    return open.map { FanoutDesk.Run(number: $0.number, sender: $0.sender) }
  }

  private static let hashKeySetting = "message-hash-key"

  /// The store knows the keys that stand in the files.
  private static func keep(
    _ text: String, _ purpose: AccountKey.Purpose, _ sender: SenderID?, in store: any Store, _ now: WallTime
  ) async throws {
    let hash = try Secrets.sha256(Array(text.utf8))
    if try await store.keys().contains(where: { $0.hash == hash }) { return }
    try await store.addKey(
      AccountKey(
        hash: hash, purpose: purpose, sender: sender, createdAt: now, hint: String(text.prefix(6))))
  }

  /// Fills the dedupe windows from the journal, so that a repeat is known across a restart.
  private static func remember(
    _ store: any Store, _ accounts: AccountDirectory, _ limits: Limits, _ tuning: ShardTuning,
    _ now: WallTime,
    _ log: Log
  ) async throws {
    let since = WallTime(ms: now.ms - tuning.dedupeHorizon.ns / 1_000_000)
    let entries = try await store.journal(since: since, max: tuning.dedupeIDsMax)
    // Oldest first, so that the newest are kept longest.
    for entry in entries.reversed() {
      _ = accounts.sender(entry.sender)?.firstTaker(of: entry.key, shard: 0, now: entry.at)
    }
    log.info("Read the journal", ["entries": .init(entries.count)])
  }
}
