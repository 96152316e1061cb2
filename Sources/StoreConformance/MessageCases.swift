import PushModel
import Seams
import Stores

extension ConformanceCase {
  static let messages: [ConformanceCase] = [
    .init("a backlog comes in number order, whatever the order of writing") { stage in
      let device = try await stage.device()
      let rows = (0..<30).map { _ in stage.message(for: device, body: "{\"text\":\"ü\"}") }
      let outcome = try await stage.enqueue([rows[20], rows[3]])
      try expectEqual(outcome.enqueue, [.stored, .stored])
      for row in rows.reversed() where row.number != rows[20].number && row.number != rows[3].number {
        _ = try await stage.enqueue([row])
      }
      try expectEqual(try await stage.backlog(of: device), rows)
    },
    .init("a backlog comes in pages, the last of which says so") { stage in
      let device = try await stage.device()
      let rows = (0..<25).map { _ in stage.message(for: device) }
      _ = try await stage.enqueue(rows)
      let first = try await stage.store.backlog(of: device, max: 10, now: stage.now)
      try expectEqual(first.messages, Array(rows[..<10]))
      try expect(first.hasMore, "rows follow")
      let last = try await stage.store.backlog(of: device, after: rows[14].number, max: 10, now: stage.now)
      try expectEqual(last.messages, Array(rows[15...]))
      try expect(!last.hasMore, "no rows follow")
      try expectEqual(try await stage.backlog(of: device, page: 7), rows)
    },
    .init("the backlogs of several devices are those of each") { stage in
      let devices = [try await stage.device(), try await stage.device(), try await stage.device()]
      let rows = (0..<12).map { stage.message(for: devices[$0 % 2]) }
      var expired = stage.message(for: devices[2])
      expired.expires = stage.now
      _ = try await stage.enqueue(rows + [expired])
      let unknown = DeviceNumber(1 << 40)
      let found = try await stage.store.backlogs(of: devices.reversed() + [unknown], max: 5, now: stage.now)
      try expectEqual(found.count, 4)
      for index in 0..<2 {
        let theirs = rows.enumerated().filter { $0.offset % 2 == index }.map(\.element)
        try expectEqual(found[devices[index]]?.messages, Array(theirs[..<5]))
        try expectEqual(found[devices[index]]?.hasMore, true)
      }
      for device in [devices[2], unknown] {
        try expectEqual(found[device], Backlog(messages: [], hasMore: false, overflowed: 0))
      }
    },
    .init("every member of a row survives") { stage in
      let device = try await stage.device()
      var plain = stage.message(for: device)
      plain.highPriority = false
      plain.body = []
      plain.receipt = []
      var full = stage.message(for: device, app: "app", collapse: "app\u{0}key")
      full.body = (0...255).map { UInt8($0) } + [UInt8](repeating: 120, count: 9_000)
      full.receipt = Array("r".utf8)
      full.key = Stage.key(.max)
      _ = try await stage.enqueue([plain, full])
      try expectEqual(try await stage.backlog(of: device), [plain, full])
      try expectEqual(try await stage.store.find(full.key), [full])
      try await stage.crash()
      try expectEqual(try await stage.backlog(of: device), [plain, full])
    },
    .init("one number may stand for several devices") { stage in
      let (first, second) = (try await stage.device(), try await stage.device())
      let number = stage.number()
      let rows = [first, second].map { stage.message(for: $0, number: number) }
      try expectEqual(try await stage.enqueue(rows).enqueue, [.stored, .stored])
      try await stage.settle([rows[0]])
      try expectEqual(try await stage.backlog(of: first), [])
      try expectEqual(try await stage.backlog(of: second), [rows[1]])
      try expectEqual(try await stage.store.find(rows[0].key), [rows[1]])
    },
    .init("an expired message is not read, and a sweep ends it") { stage in
      let device = try await stage.device()
      let short = stage.message(for: device, expires: stage.now + .seconds(10))
      let long = stage.message(for: device)
      _ = try await stage.enqueue([short, long])
      stage.now = stage.now + .milliseconds(9_999)
      try expectEqual(try await stage.backlog(of: device), [short, long])
      stage.now = stage.now + .milliseconds(1)
      try expectEqual(try await stage.backlog(of: device), [long])
      try expectEqual(
        try await stage.store.sweep(now: stage.now, budget: 100), [short.ended(as: .expired)])
      try expectEqual(try await stage.store.sweep(now: stage.now, budget: 100), [])
      try expectEqual(try await stage.store.counts()["messages"], 1)
    },
    .init("a sweep keeps to its budget and gets round to every row") { stage in
      let device = try await stage.device()
      let rows = (0..<40).map { _ in stage.message(for: device, expires: stage.now + .seconds(1)) }
      let kept = (0..<40).map { _ in stage.message(for: device) }
      _ = try await stage.enqueue(zip(rows, kept).flatMap { [$0, $1] })
      try await stage.append((0..<5).map { _ in stage.upstream(expires: stage.now + .seconds(1)) })
      stage.now = stage.now + .seconds(2)
      var swept: [WriteOutcome.Ended] = []
      for _ in 0..<30 {
        let slice = try await stage.store.sweep(now: stage.now, budget: 7)
        try expect(slice.count <= 7, "at most the budget")
        swept += slice
      }
      try expectEqual(swept.map(\.number).sorted(), rows.map(\.number))
      try expect(swept.allSatisfy { $0.state == .expired }, "ended as expired")
      try expectEqual(try await stage.backlog(of: device), kept)
      try expectEqual(try await stage.store.counts()["upstream"], 0)
      try expectEqual(try await stage.store.sweep(now: stage.now, budget: 0), [])
    },
    .init("settling is idempotent and needs no row") { stage in
      let device = try await stage.device()
      let rows = (0..<3).map { _ in stage.message(for: device) }
      _ = try await stage.enqueue(rows)
      try await stage.settle([rows[1], rows[1]])
      try await stage.settle([rows[1]])
      try await stage.settle([stage.message(for: DeviceNumber(999_999))])
      try expectEqual(try await stage.backlog(of: device), [rows[0], rows[2]])
    },
    .init("a batch may write and settle the same number") { stage in
      let device = try await stage.device()
      let row = stage.message(for: device)
      var batch = WriteBatch()
      batch.enqueue = [row]
      batch.settle = [.init(device: device, number: row.number)]
      try expectEqual(try await stage.store.write(batch, now: stage.now).enqueue, [.stored])
      try expectEqual(try await stage.backlog(of: device), [])
    },
    .init("a batch that is sent again writes nothing twice") { stage in
      let device = try await stage.device()
      var batch = WriteBatch()
      batch.enqueue = [stage.message(for: device), stage.message(for: device, collapse: "k")]
      batch.append = [stage.upstream()]
      let first = try await stage.store.write(batch, now: stage.now)
      let again = try await stage.store.write(batch, now: stage.now)
      try expectEqual(first.enqueue, [.stored, .stored])
      try expectEqual(again.enqueue, [.duplicate, .duplicate])
      try expectEqual(again.ended, [])
      try expectEqual(try await stage.backlog(of: device), batch.enqueue)
      try expectEqual(try await stage.lease(), batch.append)
    },
    .init("a message for a device that was never made is turned away alone") { stage in
      let device = try await stage.device()
      let outcome = try await stage.enqueue([
        stage.message(for: DeviceNumber(424_242)), stage.message(for: device),
      ])
      try expectEqual(outcome.enqueue, [.unknownDevice, .stored])
      try expectEqual(try await stage.backlog(of: DeviceNumber(424_242)), [])
    },
    .init("a device is known to the batch after its registration") { stage in
      let other = try await stage.device()
      let next = DeviceNumber(other.value + 1)
      let early = stage.message(for: next)
      try expectEqual(try await stage.enqueue([early]).enqueue, [.unknownDevice])
      try expectEqual(try await stage.device(), next)
      try expectEqual(try await stage.enqueue([early]).enqueue, [.stored])
    },
    .init("what was answered is there after a crash") { stage in
      let device = try await stage.device()
      let rows = (0..<50).map { _ in stage.message(for: device) }
      _ = try await stage.enqueue(rows)
      try await stage.settle(Array(rows[..<10]))
      try await stage.crash()
      try expectEqual(try await stage.backlog(of: device), Array(rows[10...]))
      try await stage.settle([rows[10]])
      try await stage.crash()
      try expectEqual(try await stage.backlog(of: device), Array(rows[11...]))
    },
  ]
}
