import PushModel
import Seams
import Stores

extension ConformanceCase {
  private static let five = StoreLimits(storedPerDeviceMax: 5)

  static let caps: [ConformanceCase] = [
    .init("the row that passes the cap discards all, itself too, and is counted", limits: five) { stage in
      let device = try await stage.device()
      let rows = (0..<5).map { _ in stage.message(for: device) }
      try expectEqual(try await stage.enqueue(rows).enqueue, [.stored, .stored, .stored, .stored, .stored])
      let keyed = stage.message(for: device, collapse: "k")
      let last = stage.message(for: device)
      let after = stage.message(for: device)
      let outcome = try await stage.enqueue([keyed, last, after])
      try expectEqual(outcome.enqueue, [.stored, .overflowed, .stored])
      try expectEqual(outcome.ended, (rows + [last]).map { $0.ended(as: .droppedOverflow) })
      try expectEqual(try await stage.backlog(of: device), [keyed, after])
      try expectEqual(try await stage.overflowed(device), 6)
    },
    .init("the default cap is 100") { stage in
      let device = try await stage.device()
      let outcome = try await stage.enqueue((0..<102).map { _ in stage.message(for: device) })
      try expectEqual(outcome.enqueue.count { $0 == .stored }, 101)
      try expectEqual(outcome.enqueue[100], .overflowed)
      try expectEqual(outcome.ended.count, 101)
      try expectEqual(try await stage.overflowed(device), 101)
    },
    .init("the overflow count adds up until it is cleared, and outlives a crash", limits: five) { stage in
      let device = try await stage.device()
      for _ in 0..<2 {
        _ = try await stage.enqueue((0..<6).map { _ in stage.message(for: device) })
      }
      try await stage.crash()
      try expectEqual(try await stage.overflowed(device), 12)
      var batch = WriteBatch()
      // What is told leaves what came after the telling.
      for (told, left) in [(5, 7), (4, 3), (9, 0)] {
        batch.overflowTold = [
          .init(device: device, count: told), .init(device: DeviceNumber(77_777), count: 1),
        ]
        _ = try await stage.store.write(batch, now: stage.now)
        try expectEqual(try await stage.overflowed(device), left)
      }
    },
    .init("settled rows make room", limits: five) { stage in
      let device = try await stage.device()
      for _ in 0..<10 {
        let rows = (0..<5).map { _ in stage.message(for: device) }
        try expectEqual(try await stage.enqueue(rows).ended, [])
        try await stage.settle(rows)
      }
      try expectEqual(try await stage.overflowed(device), 0)
    },
    .init("expired rows make room before the cap is held to be passed", limits: five) { stage in
      let device = try await stage.device()
      let short = (0..<2).map { _ in stage.message(for: device, expires: stage.now + .seconds(1)) }
      let long = (0..<3).map { _ in stage.message(for: device) }
      _ = try await stage.enqueue(short + long)
      stage.now = stage.now + .seconds(1)
      let next = stage.message(for: device)
      let outcome = try await stage.enqueue([next])
      try expectEqual(outcome.enqueue, [.stored])
      try expectEqual(outcome.ended, short.map { $0.ended(as: .expired) })
      try expectEqual(try await stage.backlog(of: device), long + [next])
    },
    .init("the cap counts what a crash left", limits: five) { stage in
      let device = try await stage.device()
      _ = try await stage.enqueue((0..<4).map { _ in stage.message(for: device) })
      try await stage.crash()
      let outcome = try await stage.enqueue((0..<2).map { _ in stage.message(for: device) })
      try expectEqual(outcome.enqueue, [.stored, .overflowed])
      try expectEqual(outcome.ended.count, 6)
    },
    .init("a duplicate at the cap is a duplicate, not an overflow", limits: five) { stage in
      let device = try await stage.device()
      let rows = (0..<5).map { _ in stage.message(for: device) }
      _ = try await stage.enqueue(rows)
      try expectEqual(
        try await stage.enqueue(rows).enqueue, [.duplicate, .duplicate, .duplicate, .duplicate, .duplicate])
      try expectEqual(try await stage.overflowed(device), 0)
    },
    .init("live rows never trigger the cap, count towards it, and are not discarded", limits: five) { stage in
      let device = try await stage.device()
      let grant = try await stage.store.claim(device, node: 1, now: stage.now)
      let live = (0..<7).map { _ in stage.message(for: device, live: true) }
      try expectEqual(try await stage.enqueue(live).ended, [])
      try expectEqual(try await stage.backlog(of: device), live)
      let waiting = stage.message(for: device)
      let outcome = try await stage.enqueue([waiting])
      try expectEqual(outcome.enqueue, [.overflowed])
      try expectEqual(outcome.ended, [waiting.ended(as: .droppedOverflow)])
      try expectEqual(try await stage.overflowed(device), 1)
      try await stage.settle(Array(live[..<3]))
      let fits = stage.message(for: device)
      try expectEqual(try await stage.enqueue([fits]).enqueue, [.stored])
      try expectEqual(try await stage.backlog(of: device), live[3...] + [fits])

      // With the stream gone they are plain rows.
      try await stage.store.release(device, epoch: grant.epoch, now: stage.now)
      try expect(try await stage.backlog(of: device).allSatisfy { !$0.live }, "no row is live")
      let next = stage.message(for: device)
      let over = try await stage.enqueue([next])
      try expectEqual(over.enqueue, [.overflowed])
      try expectEqual(over.ended.map(\.number), live[3...].map(\.number) + [fits.number, next.number])
    },
    .init("a new claim and a crash end what was live", limits: five) { stage in
      let device = try await stage.device()
      _ = try await stage.store.claim(device, node: 1, now: stage.now)
      _ = try await stage.enqueue([stage.message(for: device, live: true)])
      _ = try await stage.store.claim(device, node: 1, now: stage.now)
      try expectEqual(try await stage.backlog(of: device).map(\.live), [false])
      _ = try await stage.enqueue([stage.message(for: device, live: true)])
      try expectEqual(try await stage.backlog(of: device).map(\.live), [false, true])
      try await stage.crash()
      try expectEqual(try await stage.backlog(of: device).map(\.live), [false, false])
    },
    .init("a row is not live when nobody holds the stream") { stage in
      let device = try await stage.device()
      _ = try await stage.enqueue([stage.message(for: device, live: true)])
      try expectEqual(try await stage.backlog(of: device).map(\.live), [false])
    },
  ]

  static let collapses: [ConformanceCase] = [
    .init("a newer message takes the place of the older one of its key") { stage in
      let device = try await stage.device()
      let other = try await stage.device()
      let old = stage.message(for: device, collapse: "k")
      let elsewhere = stage.message(for: other, collapse: "k")
      let new = stage.message(for: device, collapse: "k")
      _ = try await stage.enqueue([old, elsewhere])
      let outcome = try await stage.enqueue([new])
      try expectEqual(outcome.enqueue, [.stored])
      try expectEqual(outcome.ended, [old.ended(as: .collapsed)])
      try expectEqual(try await stage.backlog(of: device), [new])
      try expectEqual(try await stage.backlog(of: other), [elsewhere])
    },
    .init("an older message that comes after a newer one of its key ends itself") { stage in
      let device = try await stage.device()
      let old = stage.message(for: device, collapse: "k")
      let new = stage.message(for: device, collapse: "k")
      let outcome = try await stage.enqueue([new, old])
      try expectEqual(outcome.enqueue, [.stored, .stored])
      try expectEqual(outcome.ended, [old.ended(as: .collapsed)])
      try expectEqual(try await stage.backlog(of: device), [new])
    },
    .init("a fifth key ends the oldest of the others") { stage in
      let device = try await stage.device()
      let rows = (0..<5).map { stage.message(for: device, collapse: "k\($0)") }
      let plain = stage.message(for: device)
      try expectEqual(try await stage.enqueue(rows[..<4] + [plain]).ended, [])
      let outcome = try await stage.enqueue([rows[4]])
      try expectEqual(outcome.enqueue, [.stored])
      try expectEqual(outcome.ended, [rows[0].ended(as: .collapsed)])
      try expectEqual(try await stage.backlog(of: device), rows[1...4] + [plain])
    },
    .init("a batch with five keys may be sent again without ending another") { stage in
      let device = try await stage.device()
      let rows = (0..<5).map { stage.message(for: device, collapse: "k\($0)") }
      _ = try await stage.enqueue(rows)
      let again = try await stage.enqueue(rows)
      try expectEqual(again.ended, [rows[0].ended(as: .collapsed)])
      try expectEqual(try await stage.backlog(of: device), Array(rows[1...]))
    },
    .init("collapsible messages do not count towards the cap", limits: StoreLimits(storedPerDeviceMax: 2)) {
      stage in
      let device = try await stage.device()
      let rows = (0..<4).map { stage.message(for: device, collapse: "k\($0)") }
      let plain = (0..<2).map { _ in stage.message(for: device) }
      try expectEqual(try await stage.enqueue(rows + plain).ended, [])
      try await stage.crash()
      try expectEqual(try await stage.enqueue([stage.message(for: device, collapse: "k3")]).ended.count, 1)
      try expectEqual(try await stage.enqueue([stage.message(for: device)]).enqueue, [.overflowed])
      try expectEqual(try await stage.backlog(of: device).count, 4)
    },
    .init("a key is free again when its message is settled") { stage in
      let device = try await stage.device()
      let rows = (0..<4).map { stage.message(for: device, collapse: "k\($0)") }
      _ = try await stage.enqueue(rows)
      try await stage.settle([rows[2]])
      try expectEqual(try await stage.enqueue([stage.message(for: device, collapse: "new")]).ended, [])
    },
  ]
}
