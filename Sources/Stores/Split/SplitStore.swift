package import PushModel
package import Seams
import Synchronization

/// Several stores as one, each with a share of the devices and all that is theirs.
///
/// A device and its registrations, messages and subscriptions are in the store of its slot, see ``StoreSlots``; upstream
/// messages in that of their sender, badges in that of their user; projects, keys and settings in the first. A fan-out is a
/// job in every store under one number. A call that concerns several stores is atomic in each: when one of them fails,
/// the outcome is open, and the same call again brings the rest about.
package final class SplitStore: Store {
  let parts: [any Store]
  private let bus: SplitBus?
  /// Whose turn it is to be swept.
  let sweeps = Atomic<Int>(0)
  let idleSweeps = Atomic<Int>(0)
  let limits: StoreLimits

  /// - Parameters:
  ///   - parts: Always in the same order; at least one.
  ///   - bus: Of the same stores.
  package init(_ parts: [any Store], bus: SplitBus? = nil, limits: StoreLimits) {
    precondition(!parts.isEmpty, "a store has a part at least")
    self.parts = parts
    self.bus = bus
    self.limits = limits
  }

  func place(of slot: Int) -> Int { StoreSlots.store(of: slot, among: parts.count) }
  func place(of device: DeviceNumber) -> Int { place(of: StoreSlots.slot(of: device)) }
  func place(of sender: SenderID) -> Int { place(of: StoreSlots.slot(of: sender)) }
  func part(of device: DeviceNumber) -> any Store { parts[place(of: device)] }

  /// Asks all stores and joins their answers.
  func all<Each: Sendable, Value: Sendable>(
    _ done: @escaping Completion<Value>, _ call: (any Store, @escaping Completion<Each>) -> Void,
    join: @escaping @Sendable ([Each]) -> Value
  ) {
    let gathered = Gathered<Each>(parts.count) { done($0.map(join)) }
    for (place, part) in parts.enumerated() { call(part) { gathered.take($0, at: place) } }
  }

  package func close(_ done: @escaping @Sendable () -> Void) {
    let gathered = Gathered<Void>(parts.count) { _ in done() }
    for (place, part) in parts.enumerated() { part.close { gathered.take(.success(()), at: place) } }
  }
}

// MARK: Messages

extension SplitStore {
  package func write(_ batch: WriteBatch, now: WallTime, _ done: @escaping Completion<WriteOutcome>) {
    var shares = Array(repeating: WriteBatch(), count: parts.count)
    var places: [Int] = []
    for row in batch.enqueue {
      let place = place(of: row.device)
      places.append(place)
      shares[place].enqueue.append(row)
    }
    for row in batch.settle { shares[place(of: row.device)].settle.append(row) }
    for row in batch.append { shares[place(of: row.sender)].append.append(row) }
    for row in batch.settleUpstream { shares[place(of: row.sender)].settleUpstream.append(row) }
    for told in batch.overflowTold { shares[place(of: told.device)].overflowTold.append(told) }
    // An entry stands beside the row that it tells of.
    for entry in batch.journal {
      shares[place(of: entry.device)].journal.append(entry)
    }
    // Counted once, wherever that is.
    shares[0].fanoutEnds = batch.fanoutEnds
    let asked = shares.indices.filter { !shares[$0].isEmpty }
    guard !asked.isEmpty else { return parts[0].write(batch, now: now, done) }
    let enqueued = places
    let gathered = Gathered<WriteOutcome>(asked.count) { result in
      done(
        result.map { outcomes in
          var whole = WriteOutcome()
          var verdicts: [Int: ArraySlice<WriteOutcome.Enqueue>] = [:]
          for (place, outcome) in zip(asked, outcomes) {
            verdicts[place] = outcome.enqueue[...]
            whole.ended += outcome.ended
          }
          whole.enqueue = enqueued.map { verdicts[$0]?.popFirst() ?? .unknownDevice }
          return whole
        })
    }
    for (index, place) in asked.enumerated() {
      parts[place].write(shares[place], now: now) { gathered.take($0, at: index) }
    }
  }

  package func backlog(
    of device: DeviceNumber, after: MessageNumber?, max: Int, now: WallTime,
    _ done: @escaping Completion<Backlog>
  ) {
    part(of: device).backlog(of: device, after: after, max: max, now: now, done)
  }

  package func backlogs(
    of devices: [DeviceNumber], max: Int, now: WallTime,
    _ each: @escaping @Sendable (DeviceNumber, Result<Backlog, StoreFault>) -> Void
  ) {
    for (place, devices) in Dictionary(grouping: devices, by: { place(of: $0) }).sorted(by: {
      $0.key < $1.key
    }) {
      parts[place].backlogs(of: devices, max: max, now: now, each)
    }
  }

  package func lease(
    for sender: SenderID, after: MessageNumber?, max: Int, node: Int, until: WallTime, now: WallTime,
    _ done: @escaping Completion<[StoredUpstream]>
  ) {
    let place = place(of: sender)
    parts[place].lease(
      for: sender, after: after, max: max, node: bus?.parts[place].node ?? node, until: until, now: now, done)
  }

  package func sendersWithUpstream(_ done: @escaping Completion<[SenderID]>) {
    all(done, { $0.sendersWithUpstream($1) }, join: { Set($0.joined()).sorted() })
  }

  package func sweep(now: WallTime, budget: Int, _ done: @escaping Completion<[WriteOutcome.Ended]>) {
    let turn = sweeps.wrappingAdd(1, ordering: .relaxed).oldValue
    parts[turn % parts.count].sweep(now: now, budget: budget, done)
  }

  package func journal(since: WallTime, max: Int, _ done: @escaping Completion<[JournalEntry]>) {
    all(
      done, { $0.journal(since: since, max: max, $1) },
      join: { Array($0.joined().sorted { $0.at > $1.at }.prefix(max)) })
  }

  package func pruneJournal(before: WallTime, _ done: @escaping Completion<Void>) {
    all(done, { $0.pruneJournal(before: before, $1) }, join: { (_: [Void]) in })
  }

  package func find(_ key: MessageKey, _ done: @escaping Completion<[StoredMessage]>) {
    all(done, { $0.find(key, $1) }, join: { Array($0.joined()) })
  }
}

// MARK: Devices

extension SplitStore {
  package func register(
    _ request: RegistrationRequest, now: WallTime, _ done: @escaping Completion<Registration>
  ) {
    let place = place(of: StoreSlots.slot(of: request.deviceID))
    // A token that another store has is taken.
    lookUp([request.token]) { [parts] result in
      switch result {
      case .failure(let fault): done(.failure(fault))
      case .success(let found):
        if let known = found.first ?? nil,
          StoreSlots.store(
            of: StoreSlots.slot(of: known.device), among: parts.count) != place
        {
          return done(.failure(.refused(detail: "the token is taken")))
        }
        parts[place].register(request, now: now, done)
      }
    }
  }

  package func lookUp(_ tokens: [String], _ done: @escaping Completion<[Registration?]>) {
    // A token does not say whose it is.
    all(
      done, { $0.lookUp(tokens, $1) },
      join: { found in tokens.indices.map { index in found.lazy.compactMap { $0[index] }.first } })
  }

  package func credentials(of deviceID: String, _ done: @escaping Completion<DeviceCredentials?>) {
    parts[place(of: StoreSlots.slot(of: deviceID))].credentials(of: deviceID, done)
  }

  package func unregister(
    _ token: String, now: WallTime, _ done: @escaping Completion<(Bool, [WriteOutcome.Ended])>
  ) {
    all(
      done, { $0.unregister(token, now: now, $1) },
      join: { found in (found.contains { $0.0 }, found.flatMap { $0.1 }) })
  }

  package func claim(
    _ device: DeviceNumber, node: Int, awaySince: WallTime?, now: WallTime,
    _ done: @escaping Completion<StreamGrant>
  ) {
    let place = place(of: device)
    let own = bus?.parts[place].node ?? node
    let isShared = bus != nil
    parts[place].claim(device, node: own, awaySince: awaySince, now: now) { result in
      done(
        result.map { grant in
          guard isShared, let previous = grant.previousNode else { return grant }
          var grant = grant
          grant.previousNode = previous == own ? node : SplitBus.shown(previous, at: place)
          return grant
        })
    }
  }

  package func release(
    _ device: DeviceNumber, epoch: Int64, now: WallTime, _ done: @escaping Completion<Void>
  ) {
    part(of: device).release(device, epoch: epoch, now: now, done)
  }

  package func touch(_ devices: [DeviceNumber], now: WallTime, _ done: @escaping Completion<Void>) {
    let groups = Dictionary(grouping: devices) { place(of: $0) }.sorted { $0.key < $1.key }
    let gathered = Gathered<Void>(groups.count) { done($0.map { _ in }) }
    for (index, group) in groups.enumerated() {
      parts[group.key].touch(group.value, now: now) { gathered.take($0, at: index) }
    }
  }

  package func epochs(of devices: [DeviceNumber], _ done: @escaping Completion<[DeviceNumber: Int64]>) {
    let groups = Dictionary(grouping: devices) { place(of: $0) }.sorted { $0.key < $1.key }
    let gathered = Gathered<[DeviceNumber: Int64]>(groups.count) { result in
      done(result.map { $0.reduce(into: [:]) { all, part in all.merge(part) { first, _ in first } } })
    }
    for (index, group) in groups.enumerated() {
      parts[group.key].epochs(of: group.value) { gathered.take($0, at: index) }
    }
  }

  package func sweepIdle(
    seenBefore: WallTime, budget: Int, now: WallTime, _ done: @escaping Completion<IdleSweep>
  ) {
    let turn = idleSweeps.wrappingAdd(1, ordering: .relaxed).oldValue
    parts[turn % parts.count].sweepIdle(seenBefore: seenBefore, budget: budget, now: now, done)
  }

  package func registrations(
    sender: SenderID?, after: String?, max: Int, _ done: @escaping Completion<[Registration]>
  ) {
    all(
      done, { $0.registrations(sender: sender, after: after, max: max, $1) },
      join: { Array($0.joined().sorted { $0.token < $1.token }.prefix(max)) })
  }
}

// MARK: Accounts

extension SplitStore {
  package func createProject(_ project: Project, _ done: @escaping Completion<Project>) {
    parts[0].createProject(project, done)
  }
  package func projects(_ done: @escaping Completion<[Project]>) { parts[0].projects(done) }
  package func addKey(_ key: AccountKey, _ done: @escaping Completion<Void>) { parts[0].addKey(key, done) }
  package func keys(_ done: @escaping Completion<[AccountKey]>) { parts[0].keys(done) }
  package func revokeKey(hash: [UInt8], _ done: @escaping Completion<Bool>) {
    parts[0].revokeKey(hash: hash, done)
  }
  package func setting(_ name: String, _ done: @escaping Completion<[UInt8]?>) {
    parts[0].setting(name, done)
  }
  package func saveSetting(_ name: String, _ value: [UInt8], _ done: @escaping Completion<Void>) {
    parts[0].saveSetting(name, value, done)
  }
  package func counts(_ done: @escaping Completion<[String: Int]>) {
    all(done, { $0.counts($1) }, join: { $0.reduce(into: [:]) { $0.merge($1) { $0 + $1 } } })
  }
}
