import PushModel
import Seams
import StoreConformance
import Stores
import TestKit
import Testing

@testable import StorePostgres

/// What holds a node's writes and what it tells other nodes together, in cases that a whole store meets seldom.
@Suite struct PostgresLinkTests {
  private static let now = WallTime(ms: 1_700_000_000_000)

  /// The question about the owners of what was written is asked behind the commit: when its answer is lost, the jobs
  /// stay answered, and everybody is told to look.
  @Test func aLostAnswerAboutOwnersIsToldAndTheWriteStands() async throws {
    let schema = try await PostgresServer.shared().schema()
    let address = try PostgresAddress(schema.url)
    let store = try PostgresStore(address, options: .init(nodeName: "a"))
    await store.close()

    let seen = Watched<[String]>([])
    let lane = try Lane(
      address, .init(role: .init(name: "test", statements: [.insertProject, .owners])),
      afterCommit: .init(
        send: { session, _ throws(PostgresFailure) in
          var parameters = Parameters()
          parameters.text("no list of numbers")
          parameters.int4(0)
          try session.send(.owners, parameters)
        },
        take: { session throws(PostgresFailure) in
          _ = try session.rows()
          seen.update { $0.append("taken") }
        },
        missed: { seen.update { $0.append("missed") } }))
    for (index, name) in ["one", "two"].enumerated() {
      lane.submit(
        LaneJob(
          send: { session throws(PostgresFailure) in
            var parameters = Parameters()
            parameters.text(name)
            parameters.int(Int64(index))
            parameters.int(0)
            try session.send(.insertProject, parameters)
            session.written.insert(1)
          },
          take: { session throws(PostgresFailure) in
            _ = try session.rows()
            return { seen.update { $0.append(name) } }
          },
          fail: { fault in seen.update { $0.append("\(fault)") } }))
      // The connection goes on: the second write takes the same way.
      _ = try await seen.wait(for: "\(name) and its question", within: .seconds(20)) {
        $0.count == 2 * (index + 1) ? true : nil
      }
    }
    #expect(seen.current == ["one", "missed", "two", "missed"])
    #expect(try await schema.sql("SELECT count(*) FROM project") == "2")
    await withCheckedContinuation { continuation in lane.close { continuation.resume() } }
  }

  @Test func aMissedAnswerSendsEveryNodeToLook() async throws {
    let schema = try await PostgresServer.shared().schema()
    func store(_ name: String) throws -> PostgresStore {
      try PostgresStore(PostgresAddress(schema.url), options: .init(nodeName: name))
    }
    let stores = [try store("a"), try store("b")]
    let events = stores.map { store in
      let events = Watched<[BusEvent]>([])
      store.bus.listen { new in events.update { $0 += new } }
      return events
    }
    // Each begins with one of its own.
    for seen in events {
      _ = try await seen.wait(for: "the first gap", within: .seconds(20)) { $0.contains(.gap) ? true : nil }
      seen.update { $0 = [] }
    }
    PostgresStore.tellingOwners(stores[0].bus).missed()
    for seen in events {
      _ = try await seen.wait(for: "a gap", within: .seconds(20)) { $0.contains(.gap) ? true : nil }
    }
    for store in stores { await store.close() }
  }

  // MARK: Room

  /// Whether a row for each device would be counted by the database.
  private func plan(_ room: StoredRoom, _ devices: [DeviceNumber]) -> StoredRoom.Plan {
    var stage = Stage(
      StoreUnderTest(
        store: MemoryStore(), crash: { throw StoreFault.refused(detail: "") }, failWrites: { _ in }),
      limits: StoreLimits())
    return room.plan(devices.map { stage.message(for: $0) })
  }

  @Test func beyondItsBoundAllRoomIsForgottenAndCountedAnew() {
    let room = StoredRoom(cap: 100, devicesMax: 2)
    let (first, second, third) = (DeviceNumber(1), DeviceNumber(2), DeviceNumber(3))
    let begun = plan(room, [first, second])
    #expect(begun.isCounted == [true, true])
    room.note([(first, 1), (second, 100)], for: begun)
    // One has room, the other is full.
    #expect(plan(room, [first, second]).isCounted == [false, true])
    let beyond = plan(room, [third])
    room.note([(third, 1)], for: beyond)
    #expect(plan(room, [first, third]).isCounted == [true, true], "three were known where two may be")
    // A count of a plan from before the forgetting says nothing about what was sent since.
    room.note([(second, 0)], for: begun)
    #expect(plan(room, [second]).isCounted == [true])
  }

  @Test func roomEndsWithTheCapAndIsAFourthBesideOthers() {
    let room = StoredRoom(cap: 9, devicesMax: 10)
    let device = DeviceNumber(1)
    room.note([(device, 1)], for: plan(room, [device]))
    // Eight more fit uncounted, the ninth is looked at.
    #expect(
      plan(room, Array(repeating: device, count: 9)).isCounted == Array(repeating: false, count: 8) + [true])
    room.share(among: 2)
    let again = plan(room, [device])
    #expect(again.isCounted == [true], "what one node's room allowed is too much for two")
    room.note([(device, 1)], for: again)
    #expect(plan(room, [device, device]).isCounted == [false, true])
  }
}
