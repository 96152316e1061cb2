import PushModel
import Seams

/// The tables of a ``MemoryStore``: a value, so that a crash is a copy.
struct MemoryContents: Sendable {
  struct Device: Sendable {
    var id: String
    var secretHash: [UInt8]
    var node: Int?
    var epoch: Int64 = 0
    var overflowed = 0
    var lastSeen: WallTime
    /// The one whose share of a fan-out has the number of the job.
    var firstRegistration: RegistrationNumber?
  }

  struct Lease: Sendable {
    var node: Int
    var until: WallTime
    /// The incarnation that it ends with, where nodes share the store.
    var by: Int64?
  }

  struct Upstream: Sendable {
    var row: StoredUpstream
    var lease: Lease?
  }

  var limits: StoreLimits
  var devices: [DeviceNumber: Device] = [:]
  var deviceNumbers: [String: DeviceNumber] = [:]
  var registrations: [String: Registration] = [:]
  var shelves: [DeviceNumber: MemoryShelf] = [:]
  /// In number order for each sender.
  var upstream: [SenderID: [Upstream]] = [:]
  /// One element a batch that carried entries, in the order of writing.
  var journal: [[JournalEntry]] = []
  var projects: [Project] = []
  var keys: [AccountKey] = []
  var settings: [String: [UInt8]] = [:]

  /// Tokens in the order of registration: the number of the first one is 1.
  var tokens: [String] = []
  var numbers: [String: RegistrationNumber] = [:]
  /// In rising order.
  var numbersOfSender: [SenderID: [RegistrationNumber]] = [:]
  var topics: [TopicPlace: Topic] = [:]
  var topicsOf: [RegistrationNumber: [TopicName: WallTime]] = [:]
  var fanouts: [MessageNumber: Fanout] = [:]
  var groups: [String: Group] = [:]
  var badges: [UserPlace: Int64] = [:]

  // Where nodes share the store:
  var nodes: [Int: NodeRow] = [:]
  var lastIncarnation: Int64 = 0
  /// The store's own clock, by which the leases of nodes run out.
  var clock: (@Sendable () -> WallTime)?
  /// Who asks.
  var caller: MemoryNode?
  /// Devices that the call wrote messages for.
  var written: Set<DeviceNumber> = []

  init(limits: StoreLimits) { self.limits = limits }

  // MARK: Messages

  mutating func apply(_ batch: WriteBatch, now: WallTime) -> WriteOutcome {
    var outcome = WriteOutcome()
    outcome.enqueue.reserveCapacity(batch.enqueue.count)
    for row in batch.enqueue {
      outcome.enqueue.append(enqueue(row, now: now, ended: &outcome.ended))
    }
    for gone in batch.settle {
      let row = shelves[gone.device]?.remove(gone.number)
      if let job = row?.shared?.job, let end = gone.end { fanouts[job]?.counts.add(end) }
      if shelves[gone.device]?.isEmpty == true { shelves[gone.device] = nil }
    }
    for end in batch.fanoutEnds { fanouts[end.job]?.counts.add(end.state, end.count) }
    countShares(outcome.ended)
    for row in batch.append { append(row) }
    for gone in batch.settleUpstream {
      guard let index = upstream[gone.sender]?.firstIndex(where: { $0.row.number == gone.number }) else {
        continue
      }
      upstream[gone.sender]?.remove(at: index)
      if upstream[gone.sender]?.isEmpty == true { upstream[gone.sender] = nil }
    }
    for told in batch.overflowTold {
      guard let stored = devices[told.device]?.overflowed else { continue }
      devices[told.device]?.overflowed = max(0, stored - told.count)
    }
    if !batch.journal.isEmpty { journal.append(batch.journal) }
    return outcome
  }

  mutating func enqueue(
    _ row: StoredMessage, now: WallTime, ended: inout [WriteOutcome.Ended]
  ) -> WriteOutcome.Enqueue {
    guard let device = devices[row.device] else { return .unknownDevice }
    if let caller { return enqueue(row, for: device, by: caller, now: now, ended: &ended) }
    var overflowed = 0
    // The trigger looks at the row as it came; what is kept is live only while somebody holds the stream.
    let outcome = shelves[row.device, default: MemoryShelf()].enqueue(
      row, limits: limits, now: now, ended: &ended, overflowed: &overflowed)
    if overflowed > 0 { devices[row.device]?.overflowed += overflowed }
    if row.live, device.node == nil { shelves[row.device]?.streamEnded() }
    return outcome
  }

  private mutating func append(_ row: StoredUpstream) {
    var rows = upstream[row.sender] ?? []
    guard !rows.contains(where: { $0.row.number == row.number }) else { return }
    upstream[row.sender] = nil
    let place = rows.firstIndex { $0.row.number > row.number } ?? rows.count
    let lease =
      row.isHeld ? caller.map { Lease(node: $0.number, until: row.expires, by: $0.incarnation) } : nil
    rows.insert(Upstream(row: row, lease: lease), at: place)
    upstream[row.sender] = rows
  }

  func backlog(of device: DeviceNumber, after: MessageNumber?, max: Int, now: WallTime) -> Backlog {
    let limit = Swift.max(0, max)
    let page = shelves[device]?.page(after: after, max: limit, now: now) ?? []
    return Backlog(
      messages: Array(page.prefix(limit)), hasMore: page.count > limit,
      overflowed: devices[device]?.overflowed ?? 0)
  }

  mutating func lease(
    for sender: SenderID, after: MessageNumber?, max: Int, node: Int, until: WallTime, now: WallTime
  ) -> [StoredUpstream] {
    guard var rows = upstream[sender] else { return [] }
    var page: [StoredUpstream] = []
    for index in rows.indices where page.count < max {
      let entry = rows[index]
      if let after, entry.row.number <= after { continue }
      if entry.row.expires <= now { continue }
      if let lease = entry.lease, lease.node != node, lease.until > now, lease.by.map(lives) ?? true {
        continue
      }
      rows[index].lease = Lease(node: node, until: until, by: caller?.incarnation)
      page.append(entry.row)
    }
    upstream[sender] = rows
    return page
  }

  mutating func sweep(now: WallTime, budget: Int) -> [WriteOutcome.Ended] {
    var ended: [WriteOutcome.Ended] = []
    for device in shelves.keys.sorted() where ended.count < budget {
      shelves[device]?.remove(endingAs: .expired, &ended, max: budget - ended.count) { $0.expires <= now }
      if shelves[device]?.isEmpty == true { shelves[device] = nil }
    }
    var left = budget - ended.count
    for sender in upstream.keys.sorted() where left > 0 {
      upstream[sender]?.removeAll { entry in
        guard left > 0, entry.row.expires <= now else { return false }
        left -= 1
        return true
      }
      if upstream[sender]?.isEmpty == true { upstream[sender] = nil }
    }
    countShares(ended)
    return ended
  }

  func journal(since: WallTime, max: Int) -> [JournalEntry] {
    var found: [JournalEntry] = []
    for row in journal.reversed() {
      for entry in row.reversed() where entry.at >= since {
        guard found.count < max else { return found }
        found.append(entry)
      }
    }
    return found
  }

  mutating func pruneJournal(before: WallTime) {
    journal.removeAll { row in row.allSatisfy { $0.at < before } }
  }

  func find(_ key: MessageKey) -> [StoredMessage] {
    shelves.values.flatMap { $0.rows.filter { $0.key == key } }
      .sorted { ($0.number, $0.device) < ($1.number, $1.device) }
  }

  // MARK: Restart

  /// What a new process finds: streams are over, leases of the old process are void.
  mutating func restart() {
    for device in shelves.keys { shelves[device]?.streamEnded() }
    for sender in upstream.keys {
      for index in upstream[sender, default: []].indices { upstream[sender]?[index].lease = nil }
    }
  }
}
