import Bytes
import Foundation
import PushModel
import Seams
import StoreConformance
import StorePostgres
import Stores
import TestKit
import Testing

/// What PostgreSQL may do to a store that SQLite cannot: go away, refuse writes, leave an outcome open.
@Suite(.serialized) struct PostgresStoreTests {
  private static let now = WallTime(ms: 1_700_000_000_000)

  private func store(
    _ url: String, node: String = "test", lease: Duration = .seconds(60)
  ) throws -> PostgresStore {
    var options = PostgresStore.Options(nodeName: node)
    options.nodeLease = lease
    return try PostgresStore(PostgresAddress(url), options: options)
  }

  private func stage(_ store: PostgresStore) -> Stage {
    Stage(
      StoreUnderTest(store: store, crash: { throw StoreFault.refused(detail: "") }, failWrites: { _ in }),
      limits: StoreLimits())
  }

  /// Repeats a call until it goes well, as the server does.
  private func eventually<Value>(
    _ call: () async throws(StoreFault) -> Value
  ) async throws -> Value {
    let end = ContinuousClock.now + .seconds(30)
    while true {
      do throws(StoreFault) {
        return try await call()
      } catch {
        guard ContinuousClock.now < end else { throw error }
        await Task.yield()
      }
    }
  }

  // MARK: Going away

  @Test func nothingThatWasAnsweredIsLostWhenTheServerIsKilled() async throws {
    let server = try await PostgresServer.start()
    let store = try store(server.url())
    var stage = stage(store)
    let device = try await stage.device()
    var answered: [MessageNumber] = []
    for round in 0..<3 {
      for _ in 0..<20 {
        let row = stage.message(for: device)
        _ = try await stage.write([row])
        answered.append(row.number)
      }
      try await server.kill()
      let row = stage.message(for: device)
      // The same batch under the same numbers, until it is taken.
      let batch = stage.batch([row])
      let refused = await result { () throws(StoreFault) in try await store.write(batch, now: Self.now) }
      #expect(refused.isUnavailable, "\(refused)")
      try await server.restart()
      let outcome = try await eventually { () throws(StoreFault) in
        try await store.write(batch, now: Self.now)
      }
      #expect(outcome.enqueue == [.stored], "round \(round)")
      answered.append(row.number)
    }
    let found = try await store.backlog(of: device, max: 1_000, now: Self.now).messages.map(\.number)
    #expect(found == answered)
    await store.close()
    try await server.kill()
  }

  @Test func aWaitForTheStandbyThatIsCutShortLeavesTheOutcomeOpen() async throws {
    let server = try await PostgresServer.start()
    let store = try store(server.url())
    var stage = stage(store)
    let device = try await stage.device()
    try await server.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    try await server.sql("SELECT pg_reload_conf()")
    let batch = stage.batch([stage.message(for: device)])
    async let written: Result<WriteOutcome, StoreFault> = result { () throws(StoreFault) in
      try await store.write(batch, now: Self.now)
    }
    // Cancelled once it waits.
    let end = ContinuousClock.now + .seconds(30)
    while ContinuousClock.now < end {
      let cancelled = try await server.sql(
        "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
      if cancelled != "0" { break }
    }
    let found = await written
    guard case .failure(.unavailable(outcomeUnknown: true, _)) = found else {
      Issue.record("\(found)")
      return
    }
    try await server.sql("ALTER SYSTEM RESET synchronous_standby_names")
    try await server.sql("SELECT pg_reload_conf()")
    let again = try await eventually { () throws(StoreFault) in try await store.write(batch, now: Self.now) }
    #expect(again.enqueue == [.duplicate], "it had been committed here")
    await store.close()
    try await server.kill()
  }

  @Test func aPrimaryThatTakesNoWritesCountsAsAway() async throws {
    let server = try await PostgresServer.start()
    let store = try store(server.url())
    var stage = stage(store)
    let device = try await stage.device()
    try await server.sql("ALTER SYSTEM SET default_transaction_read_only = on")
    try await server.sql("SELECT pg_reload_conf()")
    let batch = stage.batch([stage.message(for: device)])
    let end = ContinuousClock.now + .seconds(30)
    var seen = await result { () throws(StoreFault) in try await store.write(batch, now: Self.now) }
    while !seen.isUnavailable, ContinuousClock.now < end {
      seen = await result { () throws(StoreFault) in try await store.write(batch, now: Self.now) }
    }
    guard case .failure(.unavailable(outcomeUnknown: false, _)) = seen else {
      Issue.record("\(seen)")
      return
    }
    // A second look finds it closed at the door.
    #expect(throws: StoreFault.self) { try self.store(server.url(), node: "other") }
    try await server.sql("ALTER SYSTEM RESET default_transaction_read_only")
    try await server.sql("SELECT pg_reload_conf()")
    _ = try await eventually { () throws(StoreFault) in try await store.write(batch, now: Self.now) }
    await store.close()
    try await server.kill()
  }

  private func result<Value: Sendable>(
    _ call: () async throws(StoreFault) -> Value
  ) async -> Result<Value, StoreFault> {
    do throws(StoreFault) {
      return .success(try await call())
    } catch {
      return .failure(error)
    }
  }

  // MARK: Opening

  @Test func aNewerSchemaIsRefused() async throws {
    let schema = try await PostgresServer.shared().schema()
    await (try store(schema.url)).close()
    try await schema.sql("UPDATE weir_schema SET version = 99")
    #expect(throws: StoreFault.schemaTooNew(found: 99, known: 3)) { try self.store(schema.url) }
    try await schema.sql("UPDATE weir_schema SET version = 3")
  }

  @Test func aDatabaseOfTheFirstVersionIsBroughtForward() async throws {
    let schema = try await PostgresServer.shared().schema()
    await (try store(schema.url)).close()
    // What the first version had in its place.
    try await schema.sql(
      """
      UPDATE weir_schema SET version = 1; DROP FUNCTION weir_enqueue; DROP INDEX registration_place;
      ALTER TABLE message RESET (autovacuum_vacuum_insert_threshold)
      """
    )
    let store = try store(schema.url)
    var stage = stage(store)
    let device = try await stage.device()
    #expect(try await stage.write([stage.message(for: device)]).enqueue == [.stored])
    #expect(try await schema.sql("SELECT version FROM weir_schema") == "3")
    await store.close()
  }

  @Test func severalNodesMayOpenAnEmptyDatabaseAtOnce() async throws {
    let schema = try await PostgresServer.shared().schema()
    try await schema.sql("DROP SCHEMA \(schema.name) CASCADE; CREATE SCHEMA \(schema.name)")
    let numbers = try await withThrowingTaskGroup(of: Int.self) { group in
      for index in 0..<4 {
        group.addTask {
          let store = try self.store(schema.url, node: "n-\(index)")
          await store.close()
          return store.bus.node
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(numbers.sorted() == [1, 2, 3, 4])
    let again = try store(schema.url, node: "n-0")
    #expect(numbers.contains(again.bus.node), "a node keeps its number")
    await again.close()
  }

  @Test(arguments: [
    (
      "postgres://ana:secret@db1:5432,db2:5433/weir?sslmode=require",
      "postgres://ana:***@db1:5432,db2:5433/weir?sslmode=require"
    ),
    ("postgresql://db/weir?password=secret&user=ana", "postgres://ana:***@db/weir"),
    (
      "postgres://ana@db/weir?sslcert=c.pem&sslpassword=secret",
      "postgres://ana@db/weir?sslcert=c.pem&sslpassword=***"
    ),
  ])
  func aURLIsShownWithoutItsPasswords(_ url: String, _ shown: String) throws {
    let address = try PostgresAddress(url)
    // libpq adds what the environment says; the parts of the URL are there and the password is not.
    #expect(!address.description.contains("secret"))
    #expect(address.description == shown || address.description.hasPrefix(shown.prefix(20)))
  }

  @Test(arguments: ["mysql://db", "weir.sqlite", "postgres://[::1/x", ""])
  func anotherTextIsNoURL(_ text: String) {
    let refusal = #expect(throws: StoreFault.self) { try PostgresAddress(text) }
    #expect("\(String(describing: refusal))".contains("refused"))
  }

  // MARK: Nodes

  /// Gathers what a bus says.
  private func watch(_ store: PostgresStore) -> Watched<[BusEvent]> {
    let events = Watched<[BusEvent]>([])
    store.bus.listen { new in events.update { $0 += new } }
    return events
  }

  private func wait(for event: BusEvent, in events: Watched<[BusEvent]>) async throws {
    _ = try await events.wait(for: "\(event)", within: .seconds(20)) { $0.contains(event) ? true : nil }
  }

  @Test func theNodeThatHoldsADeviceIsWoken() async throws {
    let schema = try await PostgresServer.shared().schema()
    let (first, second) = (try store(schema.url, node: "a"), try store(schema.url, node: "b"))
    let events = watch(second)
    var stage = stage(first)
    let (held, other) = (try await stage.device(), try await stage.device())
    let grant = try await second.claim(held, node: second.bus.node, now: Self.now)
    _ = try await stage.write([stage.message(for: held), stage.message(for: other)])
    try await wait(for: .wake([held]), in: events)
    let taken = try await first.claim(held, node: first.bus.node, now: Self.now)
    #expect(taken.previousNode == second.bus.node && taken.epoch == grant.epoch + 1)
    first.bus.send(.kick(held, epoch: taken.epoch), to: taken.previousNode)
    try await wait(for: .kick(held, epoch: taken.epoch), in: events)
    for event in [BusEvent.tokens, .accounts, .upstream([SenderID(5), SenderID(6)])] {
      first.bus.send(event, to: nil)
      try await wait(for: event, in: events)
    }
    let many = (1...5_000).map { DeviceNumber(Int64($0) + 1_000_000_000_000) }
    first.bus.send(.wake(many), to: second.bus.node)
    _ = try await events.wait(for: "all of a long list", within: .seconds(20)) { events in
      let woken = events.flatMap { event -> [DeviceNumber] in
        if case .wake(let list) = event { list } else { [] }
      }
      return Set(woken).isSuperset(of: many) ? true : nil
    }
    await first.close()
    await second.close()
  }

  /// A notice may come together with the answer to something that this node says at that moment.
  @Test func aNoticeIsNotKeptBackByWhatTheNodeSaysItself() async throws {
    let schema = try await PostgresServer.shared().schema()
    // So long that no heartbeat brings to light what is kept back.
    let (first, second) = (
      try store(schema.url, node: "a", lease: .seconds(600)),
      try store(schema.url, node: "b", lease: .seconds(600))
    )
    let events = watch(second)
    // It listens from then on.
    try await wait(for: .gap, in: events)
    for round in 1...500 {
      let device = DeviceNumber(Int64(round))
      first.bus.send(.wake([device]), to: second.bus.node)
      for _ in 0..<round % 4 { second.bus.send(.tokens, to: first.bus.node) }
      try await wait(for: .wake([device]), in: events)
    }
    await first.close()
    await second.close()
  }

  @Test func theEpochOfADeviceIsThatOfItsLastClaim() async throws {
    let schema = try await PostgresServer.shared().schema()
    let (here, there) = (try store(schema.url, node: "a"), try store(schema.url, node: "b"))
    var stage = stage(here)
    let (device, other) = (try await stage.device(), try await stage.device())
    let first = try await here.claim(device, node: here.bus.node, now: Self.now)
    let second = try await there.claim(device, node: there.bus.node, now: Self.now)
    #expect(second.epoch > first.epoch)
    let unknown = DeviceNumber(device.value + 1_000_000)
    let epochs = try await here.epochs(of: [device, other, unknown])
    #expect(epochs[device] == second.epoch)
    #expect(epochs.keys.sorted() == [device, other].sorted())
    await here.close()
    await there.close()
  }

  @Test func aBusThatLostItsConnectionSaysSo() async throws {
    let schema = try await PostgresServer.shared().schema()
    let store = try store(schema.url)
    let events = watch(store)
    // The first connection may have missed something as well.
    try await wait(for: .gap, in: events)
    events.update { $0 = [] }
    try await schema.sql(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'weir bus'")
    try await wait(for: .gap, in: events)
    await store.close()
  }

  @Test func aNodeThatDiesLeavesItsLeasesAndIsMissed() async throws {
    let schema = try await PostgresServer.shared().schema()
    let mortal = try store(schema.url, node: "mortal", lease: .seconds(1))
    let other = try store(schema.url, node: "other", lease: .seconds(1))
    let events = watch(other)
    try await wait(for: .gap, in: events)
    var stage = stage(mortal)
    let rows = [stage.upstreamRow(isHeld: true), stage.upstreamRow(isHeld: false)]
    var batch = WriteBatch()
    batch.append = rows
    _ = try await mortal.write(batch, now: Self.now)
    func lease() async throws(StoreFault) -> [MessageNumber] {
      try await other.lease(
        for: rows[0].sender, max: 10, node: other.bus.node, until: Self.now + .seconds(60), now: Self.now
      ).map(\.number)
    }
    #expect(try await lease() == [rows[1].number], "the other one is held")
    events.update { $0 = [] }
    await mortal.close()
    try await wait(for: .gap, in: events)
    #expect(try await lease() == rows.map(\.number))
    let nodes = try await withCheckedThrowingContinuation { continuation in
      other.bus.nodes { continuation.resume(with: $0) }
    }
    #expect(nodes.map(\.name) == ["mortal", "other"])
    #expect(nodes.map(\.isAlive) == [false, true])
    #expect(nodes.map(\.isSelf) == [false, true])
    await other.close()
  }

  @Test func whatANodeHandsOverIsForTheOthers() async throws {
    let schema = try await PostgresServer.shared().schema()
    let (first, second) = (try store(schema.url, node: "a"), try store(schema.url, node: "b"))
    let events = watch(second)
    var stage = stage(first)
    let row = stage.upstreamRow(isHeld: true)
    var batch = WriteBatch()
    batch.append = [row]
    _ = try await first.write(batch, now: Self.now)
    first.bus.handOver(upstreamOf: row.sender)
    try await wait(for: .upstream([row.sender]), in: events)
    let leased = try await second.lease(
      for: row.sender, max: 10, node: second.bus.node, until: Self.now + .seconds(60), now: Self.now)
    #expect(leased.map(\.number) == [row.number])
    await first.close()
    await second.close()
  }

  /// The order of things that strands messages when the owner is read before the commit.
  ///
  /// A device is claimed on one node while another writes for it. In every second round the writer held the device
  /// itself and had handed the message to the stream that is being replaced.
  @Test func noneOf6000MessagesIsStrandedBetweenAWriteHereAndAClaimThere() async throws {
    let schema = try await PostgresServer.shared().schema()
    let (here, there) = (try store(schema.url, node: "a"), try store(schema.url, node: "b"))
    let events = watch(there)
    var stage = stage(here)
    var devices: [DeviceNumber] = []
    for _ in 0..<60 { devices.append(try await stage.device()) }
    let now = Self.now
    var tried = 0
    var told = 0
    for round in 0..<100 {
      let isHeldHere = !round.isMultiple(of: 2)
      if isHeldHere {
        try await claimAll(devices, on: here)
      }
      var rows: [StoredMessage] = []
      for device in devices {
        var row = stage.message(for: device)
        row.live = isHeldHere
        rows.append(row)
      }
      // Whom the claim's own read of the backlog did not show the message must be told of it.
      let unread = try await withThrowingTaskGroup(of: DeviceNumber?.self) { group in
        for row in rows {
          let batch = stage.batch([row])
          group.addTask {
            _ = try await here.write(batch, now: now)
            return nil
          }
          group.addTask {
            _ = try await there.claim(row.device, node: there.bus.node, now: now)
            let page = try await there.backlog(of: row.device, max: 10, now: now)
            return page.messages.contains { $0.number == row.number } ? nil : row.device
          }
        }
        return try await group.reduce(into: Set<DeviceNumber>()) { set, device in
          if let device { set.insert(device) }
        }
      }
      tried += rows.count
      told += unread.count
      _ = try await events.wait(for: "wakes of \(unread.count) devices", within: .seconds(30)) { events in
        let woken = events.flatMap { event -> [DeviceNumber] in
          if case .wake(let list) = event { list } else { [] }
        }
        return Set(woken).isSuperset(of: unread) ? true : nil
      }
      let pages = try await there.backlogs(of: devices, max: 10, now: now)
      #expect(devices.allSatisfy { pages[$0]?.messages.count == 1 }, "they are there to be read")
      events.update { $0 = [] }
      try await stage.settle(rows)
      try await schema.sql("UPDATE device SET node = NULL")
    }
    #expect(tried == 6_000)
    #expect(told > 0 && told < tried, "both orders were met: \(told)")
    await here.close()
    await there.close()
  }

  private func claimAll(_ devices: [DeviceNumber], on store: PostgresStore) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for device in devices {
        group.addTask { _ = try await store.claim(device, node: store.bus.node, now: Self.now) }
      }
      try await group.waitForAll()
    }
  }

  /// A device that another node holds is not away: more may wait for it than for one that is.
  @Test func theCapOfADeviceThatAnotherNodeHoldsIsTheOneForConnectedDevices() async throws {
    let schema = try await PostgresServer.shared().schema()
    let (here, there) = (try store(schema.url, node: "a"), try store(schema.url, node: "b"))
    var stage = stage(here)
    let device = try await stage.device()
    let grant = try await there.claim(device, node: there.bus.node, now: Self.now)
    for _ in 0..<6 {
      var rows: [StoredMessage] = []
      for _ in 0..<50 { rows.append(stage.message(for: device)) }
      let outcome = try await stage.write(rows)
      #expect(outcome.enqueue.allSatisfy { $0 == .stored })
    }
    #expect(try await here.backlog(of: device, max: 1_000, now: Self.now).messages.count == 300)
    // Once it is away they are too many.
    try await there.release(device, epoch: grant.epoch, now: Self.now)
    let outcome = try await stage.write([stage.message(for: device)])
    #expect(outcome.enqueue == [.overflowed])
    #expect(try await here.backlog(of: device, max: 1_000, now: Self.now).messages.isEmpty)
    await here.close()
    await there.close()
  }

  /// Each node counts a device now and then only, so beside others the cap may be passed by less than a fourth.
  @Test func theCapOfADeviceHoldsRoughlyWhenTwoNodesWriteForIt() async throws {
    let schema = try await PostgresServer.shared().schema()
    let lease = Duration.milliseconds(800)
    let (here, there) = (
      try store(schema.url, node: "a", lease: lease), try store(schema.url, node: "b", lease: lease)
    )
    var stage = stage(here)
    let cap = StoreLimits().storedPerDeviceMax
    let end = ContinuousClock.now + .seconds(20)
    // Until each has heard of the other.
    var most = Int.max
    while most >= cap * 5 / 4, ContinuousClock.now < end {
      let device = try await stage.device()
      most = 0
      while most < 2 * cap {
        let near = stage.batch([stage.message(for: device)])
        let first = try await here.write(near, now: Self.now).enqueue
        let far = stage.batch([stage.message(for: device)])
        let second = try await there.write(far, now: Self.now).enqueue
        if (first + second).contains(.overflowed) { break }
        most += 2
      }
      #expect(most >= cap - 2, "and no device loses messages before that")
    }
    #expect(most < cap * 5 / 4)
    await here.close()
    await there.close()
  }

  /// A node alone keeps to the cap exactly, although it counts seldom.
  @Test func theCapOfADeviceIsExactOnOneNode() async throws {
    let schema = try await PostgresServer.shared().schema()
    let store = try store(schema.url)
    var stage = stage(store)
    let cap = StoreLimits().storedPerDeviceMax
    for step in [1, 7, cap] {
      let device = try await stage.device()
      for round in 1...2 {
        var stored = 0
        while stored + step <= cap {
          let outcome = try await stage.write((0..<step).map { _ in stage.message(for: device) })
          #expect(outcome.enqueue == Array(repeating: .stored, count: step))
          stored += step
        }
        for _ in stored..<cap {
          #expect(try await stage.write([stage.message(for: device)]).enqueue == [.stored])
        }
        let backlog = try await store.backlog(of: device, max: 1_000, now: Self.now)
        #expect(backlog.messages.count == cap, "steps of \(step), round \(round)")
        #expect(try await stage.write([stage.message(for: device)]).enqueue == [.overflowed])
        #expect(try await store.backlog(of: device, max: 1_000, now: Self.now).messages.isEmpty)
      }
    }
    await store.close()
  }

  /// Nodes whose own clocks differ go by the database's.
  @Test func aNodeKnowsHowFarTheDatabasesClockIsAhead() async throws {
    let schema = try await PostgresServer.shared().schema()
    let store = try store(schema.url, node: "a")
    // Both run on this machine.
    #expect(abs(store.bus.clockAhead.ns) < 2_000_000_000)
    await store.close()
    // A lease that ends later than any could: the clock was moved back, and the node begins at the lease's end.
    try await schema.sql("UPDATE node SET until = now() + interval '1 hour' WHERE name = 'a'")
    let back = try self.store(schema.url, node: "a")
    #expect(abs(back.bus.clockAhead.ns - 3_600_000_000_000) < 10_000_000_000)
    await back.close()
  }
}

extension Result where Failure == StoreFault {
  var isUnavailable: Bool { if case .failure(.unavailable) = self { true } else { false } }
}

extension Stage {
  func batch(_ rows: [StoredMessage]) -> WriteBatch {
    var batch = WriteBatch()
    batch.enqueue = rows
    return batch
  }

  func write(_ rows: [StoredMessage]) async throws(StoreFault) -> WriteOutcome {
    try await store.write(batch(rows), now: now)
  }

  func settle(_ rows: [StoredMessage]) async throws(StoreFault) {
    var batch = WriteBatch()
    batch.settle = rows.map { .init(device: $0.device, number: $0.number) }
    _ = try await store.write(batch, now: now)
  }

  mutating func upstreamRow(isHeld: Bool) -> StoredUpstream {
    let number = message(for: DeviceNumber(1)).number
    var row = StoredUpstream(
      number: number, sender: SenderID(77), key: Self.anyKey(number), device: nil,
      expires: now + .seconds(3_600),
      body: [], messageID: "m", from: "f")
    row.isHeld = isHeld
    return row
  }

  static func anyKey(_ number: MessageNumber) -> MessageKey {
    MessageKey(Hash128(high: number.value, low: number.value))
  }
}
