import PushModel
import Seams
import Stores

extension ConformanceCase {
  /// The store and the memory store as its model take the same random calls and must answer alike.
  static let models: [ConformanceCase] = (1...6 as ClosedRange<UInt64>).map { seed in
    let limits = StoreLimits(storedPerDeviceMax: 6, collapseKeysPerDeviceMax: 3)
    return .init("random calls have the model's answers, seed \(seed)", limits: limits) { stage in
      var walk = ModelWalk(seed: seed, limits: limits)
      for step in 0..<250 {
        do {
          try await walk.step(&stage)
        } catch let failure as ConformanceFailure {
          throw ConformanceFailure(description: "step \(step): \(failure)")
        }
      }
      await walk.model.close()
    }
  }
}

/// One seeded run of random calls.
private struct ModelWalk {
  var model: MemoryStore
  private var chance: SeededChance
  private var devices: [DeviceNumber] = []
  private var epochs: [DeviceNumber: Int64] = [:]
  private var tokens: [String] = []
  private var rows: [StoredMessage] = []
  private var upstream: [StoredUpstream] = []

  init(seed: UInt64, limits: StoreLimits) {
    model = MemoryStore(limits: limits)
    chance = SeededChance(seed: seed)
  }

  private mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &chance) }

  mutating func step(_ stage: inout Stage) async throws {
    stage.now = stage.now + .milliseconds(below(2_000))
    switch devices.count < 3 ? 0 : below(20) {
    case 0: try await register(stage)
    case 1: try await unregister(stage)
    case 2, 3: try await stream(stage)
    case 4:
      var found = try await stage.store.sweep(now: stage.now, budget: 1_000)
      var wanted = try await model.sweep(now: stage.now, budget: 1_000)
      found.sort { ($0.device, $0.number) < ($1.device, $1.number) }
      wanted.sort { ($0.device, $0.number) < ($1.device, $1.number) }
      try expectEqual(found, wanted, "sweep")
    case 5:
      let node = below(3)
      let until = stage.now + .milliseconds(below(4_000))
      let max = below(6)
      let found = try await stage.store.lease(
        for: Stage.sender, max: max, node: node, until: until, now: stage.now)
      let wanted = try await model.lease(
        for: Stage.sender, max: max, node: node, until: until, now: stage.now)
      try expectEqual(found, wanted, "lease")
    case 6 where below(4) == 0:
      try await stage.crash()
      model = model.restarted()
    default:
      try await write(&stage)
    }
    if below(3) == 0 { try await compare(stage) }
  }

  private mutating func register(_ stage: Stage) async throws {
    let device = devices.isEmpty ? 0 : below(devices.count + 1)
    let request = stage.request(
      "t-\(below(30))", device: "d-\(device)", app: "app-\(below(2))",
      previous: tokens.isEmpty || below(2) == 0 ? nil : tokens[below(tokens.count)])
    let found = await answer { () throws(StoreFault) in
      try await stage.store.register(request, now: stage.now)
    }
    let model = model
    let wanted = await answer { () throws(StoreFault) in try await model.register(request, now: stage.now) }
    try expectEqual(found, wanted, "register")
    if case .success(let made) = wanted {
      tokens.append(made.token)
      if !devices.contains(made.device) { devices.append(made.device) }
    }
  }

  private mutating func unregister(_ stage: Stage) async throws {
    let token = tokens[below(tokens.count)]
    let found = try await stage.store.unregister(token, now: stage.now)
    let wanted = try await model.unregister(token, now: stage.now)
    try expectEqual(found.0, wanted.0, "unregister")
    try expectEqual(found.1, wanted.1, "unregister")
  }

  private mutating func stream(_ stage: Stage) async throws {
    let device = devices[below(devices.count)]
    if let epoch = epochs[device], below(2) == 0 {
      try await stage.store.release(device, epoch: epoch, now: stage.now)
      try await model.release(device, epoch: epoch, now: stage.now)
    } else {
      let node = below(3)
      let found = try await stage.store.claim(device, node: node, now: stage.now)
      try expectEqual(found, try await model.claim(device, node: node, now: stage.now), "claim")
      epochs[device] = found.epoch
    }
  }

  private mutating func write(_ stage: inout Stage) async throws {
    var batch = WriteBatch()
    for _ in 0..<below(8) {
      if !rows.isEmpty, below(10) == 0 {
        batch.enqueue.append(rows[below(rows.count)])
        continue
      }
      let device = below(15) == 0 ? DeviceNumber(5_000) : devices[below(devices.count)]
      let row = stage.message(
        for: device, app: "app-\(below(2))", collapse: below(3) == 0 ? "k\(below(5))" : nil,
        expires: stage.now + .milliseconds(below(20_000)), live: below(3) == 0)
      batch.enqueue.append(row)
      rows.append(row)
    }
    batch.enqueue.shuffle(using: &chance)
    for _ in 0..<below(5) where !rows.isEmpty {
      let row = rows[below(rows.count)]
      batch.settle.append(.init(device: row.device, number: row.number))
    }
    for _ in 0..<below(3) {
      let row = stage.upstream(expires: stage.now + .milliseconds(below(20_000)))
      batch.append.append(row)
      upstream.append(row)
    }
    if !upstream.isEmpty, below(2) == 0 {
      let row = upstream[below(upstream.count)]
      batch.settleUpstream.append(.init(sender: row.sender, number: row.number))
    }
    if below(6) == 0 {
      batch.overflowTold.append(.init(device: devices[below(devices.count)], count: below(4)))
    }
    batch.journal = batch.enqueue.map {
      JournalEntry(key: $0.key, sender: $0.sender, device: $0.device, state: .stored, at: stage.now)
    }
    let found = try await stage.store.write(batch, now: stage.now)
    try expectEqual(found, try await model.write(batch, now: stage.now), "write")
  }

  private mutating func compare(_ stage: Stage) async throws {
    for device in devices {
      let found = try await stage.store.backlog(of: device, max: 50, now: stage.now)
      try expectEqual(found, try await model.backlog(of: device, max: 50, now: stage.now), "backlog")
    }
    for index in devices.indices {
      let found = try await stage.store.credentials(of: "d-\(index)")
      try expectEqual(found, try await model.credentials(of: "d-\(index)"), "credentials")
    }
    let all = (0..<30).map { "t-\($0)" }
    try expectEqual(try await stage.store.lookUp(all), try await model.lookUp(all), "lookUp")
    try expectEqual(try await stage.store.counts(), try await model.counts(), "counts")
    let since = stage.now + .seconds(-20)
    try expectEqual(
      try await stage.store.journal(since: since, max: 40),
      try await model.journal(since: since, max: 40), "journal")
    if let row = rows.last {
      try expectEqual(try await stage.store.find(row.key), try await model.find(row.key), "find")
    }
  }
}

private func answer<Value>(
  _ call: () async throws(StoreFault) -> Value
) async -> Result<Value, StoreFault> {
  do throws(StoreFault) {
    return .success(try await call())
  } catch {
    return .failure(error)
  }
}
