import Bytes
import PushModel
import Seams
import StoreConformance
import StorePostgres
import Stores
import TestKit
import Testing

/// Several databases as one store, and moving between another number of them.
@Suite(.serialized) struct SplitStoreTests {
  private static let now = WallTime(ms: 1_700_000_000_000)
  private static let sender = SenderID(100_000_000_001)
  private static let limits = StoreLimits()

  /// A node on several databases.
  private struct Node {
    let store: SplitStore
    let bus: SplitBus
    let events = Watched<[BusEvent]>([])
  }

  private func open(_ schemas: [PostgresServer.Schema], _ name: String = "a") throws -> Node {
    let parts = try schemas.indices.map { index in
      try PostgresStore(
        PostgresAddress(schemas[index].url),
        options: .init(nodeName: name, place: .init(index: index, count: schemas.count)))
    }
    let bus = SplitBus(parts.map(\.bus))
    let node = Node(store: SplitStore(parts, bus: bus, limits: Self.limits), bus: bus)
    let events = node.events
    bus.listen { new in events.update { $0 += new } }
    return node
  }

  private func schemas(_ count: Int) async throws -> [PostgresServer.Schema] {
    var found: [PostgresServer.Schema] = []
    for _ in 0..<count { found.append(try await PostgresServer.shared().schema()) }
    return found
  }

  private func register(_ index: Int, in store: any Store, user: String? = nil) async throws -> Registration {
    try await store.register(
      RegistrationRequest(
        token: "token-\(index)", deviceID: "device-\(index)", secretHash: [1], sender: Self.sender,
        app: "app",
        platform: .linux, user: user, previousToken: nil), now: Self.now)
  }

  private func message(_ number: UInt64, for device: DeviceNumber) -> StoredMessage {
    StoredMessage(
      number: MessageNumber(number), device: device, sender: Self.sender, app: "app",
      key: MessageKey(Hash128(high: number, low: number)), collapse: nil, expires: Self.now + .seconds(3_600),
      body: Array("{}".utf8), receipt: [])
  }

  private func batch(_ fill: (inout WriteBatch) -> Void) -> WriteBatch {
    var batch = WriteBatch()
    fill(&batch)
    return batch
  }

  private func places(_ registrations: [Registration], among count: Int) -> Set<Int> {
    Set(registrations.map { StoreSlots.store(of: StoreSlots.slot(of: $0.device), among: count) })
  }

  @Test func theSlotOfANameAndTheStoreOfASlotNeverChange() {
    #expect(StoreSlots.slot(of: "device-1") == StoreSlots.slot(of: "device-1"))
    for stores in 1...20 {
      var counts = Array(repeating: 0, count: stores)
      for slot in 0..<StoreSlots.count {
        let now = StoreSlots.store(of: slot, among: stores)
        counts[now] += 1
        let then = StoreSlots.store(of: slot, among: stores + 1)
        #expect(then == now || then == stores, "with one more store a slot stays or goes to that one")
      }
      #expect(counts.allSatisfy { $0 > 1_024 / stores / 2 && $0 < 1_024 / stores * 2 }, "\(counts)")
    }
  }

  @Test func messagesGoToTheDatabaseOfTheirDevice() async throws {
    let schemas = try await schemas(2)
    let node = try open(schemas)
    var made: [Registration] = []
    for index in 0..<20 { made.append(try await register(index, in: node.store)) }
    #expect(places(made, among: 2) == [0, 1])
    let found = try await node.store.lookUp(["token-3", "nobody", "token-4"])
    #expect(found.map { $0?.device } == [made[3].device, nil, made[4].device])
    #expect(try await node.store.credentials(of: "device-7")?.number == made[7].device)

    let rows = made.enumerated().map { message(UInt64(1_000 + $0.offset), for: $0.element.device) }
    let unknown = message(5_000, for: DeviceNumber(1 << 40))
    let outcome = try await node.store.write(batch { $0.enqueue = rows + [unknown, rows[0]] }, now: Self.now)
    #expect(outcome.enqueue == Array(repeating: .stored, count: 20) + [.unknownDevice, .duplicate])
    let pages = try await node.store.backlogs(of: made.map(\.device), max: 10, now: Self.now)
    for (row, registration) in zip(rows, made) { #expect(pages[registration.device]?.messages == [row]) }
    for schema in schemas { #expect(try await schema.sql("SELECT count(*) FROM message") != "0") }
    #expect(try await node.store.counts()["messages"] == 20)
    let (was, ended) = try await node.store.unregister("token-3", now: Self.now)
    #expect(was && ended.map(\.number) == [rows[3].number])
    await node.store.close()
  }

  @Test func aTopicMessageIsAJobInEachDatabase() async throws {
    let node = try open(try await schemas(2))
    var made: [Registration] = []
    for index in 0..<30 { made.append(try await register(index, in: node.store)) }
    let topic = try #require(TopicName("news"))
    let outcomes = try await node.store.change(
      made.map { .init(token: $0.token, sender: Self.sender, topic: topic, isSubscribed: true) }
        + [.init(token: "nobody", sender: Self.sender, topic: topic, isSubscribed: true)], now: Self.now)
    #expect(outcomes == Array(repeating: .changed, count: 30) + [.unknownToken])
    #expect(
      try await node.store.topics(sender: Self.sender, after: nil, max: 10).map(\.subscribers) == [30])
    let number = MessageNumber(77_000)
    let job = FanoutJob(
      number: number, key: MessageKey(Hash128(high: 7, low: 7)), sender: Self.sender, audience: .topic(topic),
      begun: Self.now, expires: Self.now + .seconds(3_600), tail: Array(",\"data\":{}}".utf8))
    try await node.store.begin(job)
    var matched = 0
    for round in 0..<100 {
      let spares = (0..<10).map { MessageNumber(UInt64(80_000 + round * 10 + $0)) }
      let slice = try #require(
        try await node.store.advance(fanouts: [number], max: 10, spares: spares, now: Self.now).first)
      matched += slice.matched
      if slice.isDone { break }
    }
    #expect(matched == 30)
    let progress = try #require(try await node.store.fanout(of: job.key))
    #expect(progress.isDone && progress.counts.matched == 30)
    for one in made {
      #expect(try await node.store.backlog(of: one.device, max: 10, now: Self.now).messages.count == 1)
    }
    await node.store.close()
  }

  @Test func groupsAndUsersSpanDatabases() async throws {
    let node = try open(try await schemas(3))
    var made: [Registration] = []
    for index in 0..<12 { made.append(try await register(index, in: node.store, user: "user-\(index % 2)")) }
    #expect(places(made, among: 3).count > 1)
    let tokens = made.map(\.token)
    let created = try await node.store.createGroup(
      key: "group-key", name: "all", sender: Self.sender, tokens: tokens + ["nobody"], now: Self.now)
    guard case .done(let group) = created else {
      Issue.record("\(created)")
      return
    }
    #expect(Set(group.members.map(\.registration.token)) == Set(tokens))
    let again = try await node.store.createGroup(
      key: "other", name: "all", sender: Self.sender, tokens: tokens, now: Self.now)
    #expect(again == .nameTaken)
    let smaller = try await node.store.changeGroup(
      key: "group-key", name: nil, sender: Self.sender, adding: [], removing: Array(tokens.dropFirst()))
    guard case .done(let one) = smaller else {
      Issue.record("\(smaller)")
      return
    }
    #expect(one.members.map(\.registration.token) == [tokens[0]])
    let larger = try await node.store.changeGroup(
      key: "group-key", name: "all", sender: Self.sender, adding: tokens, removing: [])
    guard case .done(let all) = larger else {
      Issue.record("\(larger)")
      return
    }
    #expect(all.members.count == 12)
    let none = try await node.store.changeGroup(
      key: "group-key", name: "all", sender: Self.sender, adding: [], removing: tokens)
    #expect(none == .deleted)

    #expect(
      try await node.store.countBadges(["user-0", "user-1", "user-0"], sender: Self.sender, step: 2) == [
        2, 2, 4,
      ])
    let user = try await node.store.devices(ofUser: "user-0", sender: Self.sender, max: 100)
    #expect(user.registrations.count == 6 && user.badge == 4)
    let users = try await node.store.users(sender: Self.sender, after: nil, max: 10)
    #expect(
      users == [
        .init(user: "user-0", registrations: 6, badge: 4), .init(user: "user-1", registrations: 6, badge: 2),
      ])
    await node.store.close()
  }

  @Test func nodesReachEachOtherOverEveryDatabase() async throws {
    let schemas = try await schemas(2)
    // The nodes have other numbers in the second database than in the first.
    let extra = try PostgresStore(
      PostgresAddress(schemas[1].url), options: .init(nodeName: "z", place: .init(index: 1, count: 2)))
    let (first, second) = (try open(schemas, "a"), try open(schemas, "b"))
    for index in 0..<10 {
      let device = try await register(index, in: first.store).device
      let held = try await second.store.claim(device, node: second.bus.node, now: Self.now)
      _ = try await first.store.write(
        batch { $0.enqueue = [message(UInt64(1_000 + index), for: device)] }, now: Self.now)
      _ = try await second.events.wait(for: "a wake", within: .seconds(20)) { events in
        events.contains { if case .wake(let list) = $0 { list.contains(device) } else { false } } ? true : nil
      }
      let taken = try await first.store.claim(device, node: first.bus.node, now: Self.now)
      #expect(taken.epoch == held.epoch + 1 && taken.previousNode != nil)
      #expect(taken.previousNode != first.bus.node)
      first.bus.send(.kick(device, epoch: taken.epoch), to: taken.previousNode)
      _ = try await second.events.wait(for: "a kick", within: .seconds(20)) {
        $0.contains(.kick(device, epoch: taken.epoch)) ? true : nil
      }
      let mine = try await first.store.claim(device, node: first.bus.node, now: Self.now)
      #expect(mine.previousNode == first.bus.node)
    }
    await first.store.close()
    await second.store.close()
    await extra.close()
  }

  @Test func aDatabaseIsAddedByARebalance() async throws {
    let schemas = try await schemas(2)
    let alone = try PostgresStore(PostgresAddress(schemas[0].url), options: .init(nodeName: "a"))
    var made: [Registration] = []
    for index in 0..<60 { made.append(try await register(index, in: alone, user: "user-\(index)")) }
    let rows = made.enumerated().map { message(UInt64(1_000 + $0.offset), for: $0.element.device) }
    _ = try await alone.write(batch { $0.enqueue = rows }, now: Self.now)
    let topic = try #require(TopicName("news"))
    _ = try await alone.change(
      made.map { .init(token: $0.token, sender: Self.sender, topic: topic, isSubscribed: true) },
      now: Self.now)
    _ = try await alone.createGroup(
      key: "key", name: "some", sender: Self.sender, tokens: made.prefix(20).map(\.token), now: Self.now)
    _ = try await alone.countBadges(made.map { $0.user ?? "" }, sender: Self.sender, step: 3)
    let addresses = try schemas.map { try PostgresAddress($0.url) }
    // Not while a node is there.
    #expect(throws: StoreFault.self) { try PostgresRebalance(from: [addresses[0]], to: addresses) }
    await alone.close()
    try await schemas[0].sql("UPDATE node SET until = now()")
    // Nor may it be named as one of two before.
    #expect(throws: StoreFault.self) { try open(schemas) }

    let moved = try PostgresRebalance(from: [addresses[0]], to: addresses).run { _, _, _ in }
    let expected = made.count { StoreSlots.store(of: StoreSlots.slot(of: $0.device), among: 2) == 1 }
    #expect(moved == expected && moved > 15 && moved < 45)
    // Again, as after an interruption: nothing is left to move.
    #expect(try PostgresRebalance(from: [addresses[0]], to: addresses).run { _, _, _ in } == 0)
    #expect(throws: StoreFault.self) {
      try PostgresStore(PostgresAddress(schemas[0].url), options: .init(nodeName: "a"))
    }

    let node = try open(schemas)
    let pages = try await node.store.backlogs(of: made.map(\.device), max: 10, now: Self.now)
    for (row, registration) in zip(rows, made) { #expect(pages[registration.device]?.messages == [row]) }
    #expect(try await node.store.lookUp(made.map(\.token)).map { $0?.device } == made.map(\.device))
    #expect(
      try await node.store.topics(sender: Self.sender, after: nil, max: 10).map(\.subscribers) == [60])
    #expect(try await node.store.group(key: "key")?.members.count == 20)
    for one in made {
      let user = try await node.store.devices(ofUser: one.user ?? "", sender: Self.sender, max: 9)
      #expect(user.badge == 3 && user.registrations.count == 1)
    }
    // New ones do not meet the old numbers.
    for index in 100..<130 { _ = try await register(index, in: node.store) }
    #expect(try await node.store.counts()["devices"] == 90)
    await node.store.close()
  }
}
