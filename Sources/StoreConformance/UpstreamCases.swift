import PushModel
import Seams
import Stores

extension ConformanceCase {
  static let upstreams: [ConformanceCase] = [
    .init("upstream comes in number order, by sender, in pages, and survives a crash") { stage in
      let device = try await stage.device()
      let other = SenderID(200_000_000_002)
      let rows = (0..<10).map { stage.upstream(device: $0.isMultiple(of: 2) ? device : nil) }
      let others = [stage.upstream(for: other)]
      try await stage.append(rows.reversed() + others)
      try await stage.crash()
      try expectEqual(try await stage.lease(max: 4), Array(rows[..<4]))
      try expectEqual(try await stage.lease(after: rows[3].number), Array(rows[4...]))
      try expectEqual(try await stage.lease(for: other), others)
      try expectEqual(try await stage.store.sendersWithUpstream(), [Stage.sender, other])
      try expectEqual(try await stage.lease(max: 0), [])
    },
    .init("a leased row goes to no other node until its time") { stage in
      let rows = (0..<3).map { _ in stage.upstream() }
      try await stage.append(rows)
      try expectEqual(try await stage.lease(node: 1, max: 2, seconds: 60), Array(rows[..<2]))
      try expectEqual(try await stage.lease(node: 2, seconds: 60), [rows[2]])
      try expectEqual(try await stage.lease(node: 1, seconds: 60), Array(rows[..<2]), "its own again")
      stage.now = stage.now + .seconds(60)
      try expectEqual(try await stage.lease(node: 2, seconds: 60), rows)
    },
    .init("leases of an earlier process are void") { stage in
      let rows = (0..<3).map { _ in stage.upstream() }
      try await stage.append(rows)
      _ = try await stage.lease(node: 1, seconds: 3_600)
      try await stage.crash()
      try expectEqual(try await stage.lease(node: 2), rows)
    },
    .init("settled and expired upstream is not leased") { stage in
      let gone = stage.upstream()
      let short = stage.upstream(expires: stage.now + .seconds(5))
      let kept = stage.upstream()
      try await stage.append([gone, short, kept])
      var batch = WriteBatch()
      batch.settleUpstream = [
        .init(sender: gone.sender, number: gone.number), .init(sender: gone.sender, number: gone.number),
        .init(sender: SenderID(5), number: kept.number),
      ]
      _ = try await stage.store.write(batch, now: stage.now)
      stage.now = stage.now + .seconds(5)
      try expectEqual(try await stage.lease(), [kept])
      batch.settleUpstream = [.init(sender: kept.sender, number: kept.number)]
      _ = try await stage.store.write(batch, now: stage.now)
      try expectEqual(try await stage.store.sweep(now: stage.now, budget: 10), [])
      try expectEqual(try await stage.store.sendersWithUpstream(), [])
    },
  ]

  static let journals: [ConformanceCase] = [
    .init("the journal is read last written first, bounded by time and count, after a crash too") { stage in
      let entries = (0..<30).map { index in
        JournalEntry(
          key: Stage.key(UInt64(index)), sender: Stage.sender, device: DeviceNumber(Int64(index) + 1),
          state: MessageState.allCases[index % MessageState.allCases.count],
          at: stage.now + .seconds(index))
      }
      for slice in [entries[..<10], entries[10..<11], entries[11...]] {
        var batch = WriteBatch()
        batch.journal = Array(slice)
        _ = try await stage.store.write(batch, now: stage.now)
      }
      let start = WallTime(ms: 0)
      try expectEqual(try await stage.store.journal(since: start, max: 100), entries.reversed())
      try expectEqual(
        try await stage.store.journal(since: entries[15].at, max: 100), entries[15...].reversed())
      try expectEqual(try await stage.store.journal(since: start, max: 3), entries[27...].reversed())
      try expectEqual(try await stage.store.journal(since: start, max: 0), [])
      try await stage.crash()
      try expectEqual(try await stage.store.journal(since: start, max: 100), entries.reversed())
    },
    .init("pruning forgets the batches that are older as a whole") { stage in
      for second in 0..<600 {
        var batch = WriteBatch()
        batch.journal = [0, 1].map { extra in
          JournalEntry(
            key: Stage.key(UInt64(second)), sender: Stage.sender, device: DeviceNumber(1),
            state: .accepted, at: stage.now + .seconds(second + extra))
        }
        stage.store.write(batch, now: stage.now) { _ in }
      }
      try await stage.store.pruneJournal(before: stage.now + .seconds(550))
      let left = try await stage.store.journal(since: WallTime(ms: 0), max: 10_000)
      // The batch of second 549 has an entry of 550.
      try expectEqual(left.count, 102)
      try expectEqual(left.last?.at, stage.now + .seconds(549))
      try expectEqual(try await stage.store.counts()["journal"], 51)
    },
  ]
}
