import PushModel
import Seams
import Stores
import Synchronization

extension ConformanceCase {
  static let failures: [ConformanceCase] = [
    .init("a batch that fails leaves nothing behind, and the store goes on") { stage in
      let device = try await stage.device()
      let before = [stage.message(for: device), stage.message(for: device, collapse: "k")]
      _ = try await stage.enqueue(before)
      var batch = WriteBatch()
      let newer = stage.message(for: device, collapse: "k")
      let long = String(repeating: "x", count: 3_000)
      batch.enqueue = [newer]
      batch.enqueue += (0..<400).map { _ in stage.message(for: device, live: true, body: long) }
      batch.settle = [.init(device: device, number: before[0].number)]
      let store = stage.store
      let now = stage.now
      let failing = batch
      try await stage.subject.failWrites(true)
      for _ in 0..<2 {
        try await expectFault(
          "a write", { () throws(StoreFault) in try await store.write(failing, now: now) },
          where: \.isUnavailable)
      }
      try expectEqual(try await stage.backlog(of: device), before)
      try await stage.subject.failWrites(false)
      try expectEqual(try await stage.backlog(of: device), before)
      let outcome = try await stage.store.write(batch, now: stage.now)
      try expect(outcome.enqueue.allSatisfy { $0 == .stored }, "all rows are stored")
      try expectEqual(outcome.ended, [before[1].ended(as: .collapsed)])
      try expectEqual(try await stage.backlog(of: device).count, 401)
    },
    .init("counts under the cap are right after a failure", limits: StoreLimits(storedPerDeviceMax: 3)) {
      stage in
      let device = try await stage.device()
      let spare = try await stage.device()
      _ = try await stage.enqueue([stage.message(for: device)])
      let long = String(repeating: "x", count: 3_000)
      let big = (0..<400).map { _ in stage.message(for: spare, live: true, body: long) }
      let failing = [stage.message(for: device), stage.message(for: device)] + big
      let failed = stage
      try await stage.subject.failWrites(true)
      do {
        _ = try await failed.enqueue(failing)
        throw ConformanceFailure(description: "the write was to fail")
      } catch is StoreFault {}
      try await stage.subject.failWrites(false)
      let outcome = try await stage.enqueue((0..<3).map { _ in stage.message(for: device) })
      try expectEqual(outcome.enqueue, [.stored, .stored, .overflowed])
    },
  ]

  static let races: [ConformanceCase] = [
    .init("batches of one caller are applied and answered in order") { stage in
      let device = try await stage.device()
      let box = Answers()
      for index in 0..<200 {
        var batch = WriteBatch()
        batch.enqueue = [stage.message(for: device, collapse: "same")]
        stage.store.write(batch, now: stage.now) { result in
          box.list.withLock { $0.append((index, (try? result.get())?.ended.count ?? -1)) }
        }
      }
      // Applied after all of them.
      _ = try await stage.enqueue([])
      let list = box.list.withLock { $0 }
      try expectEqual(list.map(\.0), Array(0..<200))
      try expectEqual(list.map(\.1), [0] + Array(repeating: 1, count: 199))
    },
    .init("many callers at once lose nothing", limits: StoreLimits(storedPerDeviceMax: 100_000)) { stage in
      let shared = try await stage.device()
      let start = stage
      try await withThrowingTaskGroup(of: Void.self) { group in
        for worker in 0..<8 {
          group.addTask {
            var stage = start
            let own = try await stage.store.register(
              stage.request("w-\(worker)", device: "w-\(worker)"), now: stage.now
            ).device
            for round in 0..<40 {
              let base = UInt64(worker * 1_000_000 + round * 100 + 1)
              let rows = (0..<10).map { index in
                stage.message(
                  for: index.isMultiple(of: 2) ? own : shared,
                  number: MessageNumber(base + UInt64(index)))
              }
              let outcome = try await stage.enqueue(rows)
              try expect(outcome.enqueue.allSatisfy { $0 == .stored }, "all stored")
              try await stage.settle([rows[0], rows[1]])
              _ = try await stage.store.lookUp(["w-\(worker)"])
            }
            try expectEqual(try await stage.backlog(of: own).count, 160)
          }
        }
        try await group.waitForAll()
      }
      let rows = try await stage.backlog(of: shared, page: 100)
      try expectEqual(rows.count, 8 * 160)
      try expect(zip(rows, rows.dropFirst()).allSatisfy { $0.number < $1.number }, "in order")
    },
    .init("a message written while its device connects is read or routed") { stage in
      // The node that claims says so after the claim is durable and before it reads the backlog; the writer
      // looks after its write is durable. So one of them sees the other.
      for _ in 0..<150 {
        let device = try await stage.device()
        let row = stage.message(for: device)
        let owned = Flag()
        let stage = stage
        async let routed: Bool = {
          _ = try await stage.enqueue([row])
          return owned.value
        }()
        async let read: [StoredMessage] = {
          _ = try await stage.store.claim(device, node: 1, now: stage.now)
          owned.set()
          return try await stage.backlog(of: device)
        }()
        let (seenByWriter, seenByReader) = (try await routed, try await read)
        try expect(seenByWriter || seenByReader == [row], "the message is stranded")
      }
    },
    .init("concurrent claims get different epochs") { stage in
      let device = try await stage.device()
      let store = stage.store
      let now = stage.now
      let epochs = try await withThrowingTaskGroup(of: StreamGrant.self) { group in
        for node in 0..<20 { group.addTask { try await store.claim(device, node: node, now: now) } }
        return try await group.reduce(into: [StreamGrant]()) { $0.append($1) }
      }
      try expectEqual(Set(epochs.map(\.epoch)).count, 20)
      try expectEqual(epochs.count { $0.previousNode == nil }, 1)
    },
  ]
}

private final class Answers: Sendable {
  let list = Mutex<[(Int, Int)]>([])
}

private final class Flag: Sendable {
  private let state = Atomic(false)
  func set() { state.store(true, ordering: .sequentiallyConsistent) }
  var value: Bool { state.load(ordering: .sequentiallyConsistent) }
}
