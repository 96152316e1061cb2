import Bytes
import PushModel
import Seams
import Stores

extension Stage {
  static let tail = Array(",\"ttl\":60,\"data\":{\"k\":\"v\"}}".utf8)

  mutating func job(
    _ audience: String, seconds: Int = 3_600, collapse: String? = nil, onlyApp: String? = nil,
    isStored: Bool = true
  ) throws -> FanoutJob {
    guard let audience = FanoutJob.Audience(text: audience) else {
      throw ConformanceFailure(description: "\(audience) is no audience")
    }
    let number = number()
    return FanoutJob(
      number: number, key: Self.key(number.value), sender: Self.sender, audience: audience, onlyApp: onlyApp,
      collapseKey: collapse, begun: now, expires: now + .seconds(seconds), isStored: isStored, tail: Self.tail
    )
  }

  /// One step of one job.
  mutating func step(_ job: FanoutJob, max: Int = 1_000) async throws -> FanoutSlice {
    let spares = (0..<max).map { _ in number() }
    let slices = try await store.advance(fanouts: [job.number], max: max, spares: spares, now: now)
    try expectEqual(slices.map(\.job), [job.number])
    return slices[0]
  }

  /// Begins a job and takes it to its end.
  mutating func fanOut(_ job: FanoutJob, max: Int = 1_000) async throws -> [FanoutSlice] {
    try await store.begin(job)
    var slices: [FanoutSlice] = []
    repeat { slices.append(try await step(job, max: max)) } while slices.last?.isDone != true
    return slices
  }

  func counts(_ job: FanoutJob) async throws -> FanoutCounts? { try await store.fanout(of: job.key)?.counts }

  /// The bodies that wait for a device.
  func bodies(_ registration: Registration) async throws -> [String] {
    try await backlog(of: registration.device).map { String(decoding: $0.wholeBody, as: UTF8.self) }
  }
}

extension ConformanceCase {
  private static let five = StoreLimits(storedPerDeviceMax: 5)

  static let fanouts: [ConformanceCase] = [
    .init("a topic message reaches each subscriber once, whatever the slice") { stage in
      for slice in [1, 3, 7, 100] {
        let made = try await stage.crowd("s\(slice)", 7, ["topic-\(slice)"])
        let other = try await stage.crowd("o\(slice)", 2, ["other"])
        let job = try stage.job("/topics/topic-\(slice)", collapse: nil)
        let slices = try await stage.fanOut(job, max: slice)
        try expectEqual(slices.reduce(0) { $0 + $1.matched }, 7)
        try expect(slices.allSatisfy { $0.rows.isEmpty && $0.matched <= slice }, "nobody is connected")
        for one in made {
          let rows = try await stage.backlog(of: one.device)
          try expectEqual(rows.count, 1)
          try expectEqual(rows[0].number, job.number)
          try expectEqual(rows[0].expires, job.expires)
          try expectEqual(rows[0].shared?.bytes, Stage.tail)
          let body = String(decoding: rows[0].wholeBody, as: UTF8.self)
          try expectEqual(
            body,
            """
            {"message_id":"\(rows[0].key.hash.hex)","from":"/topics/topic-\(slice)","category":"org.example.app",\
            "token":"\(one.token)","ttl":60,"data":{"k":"v"}}
            """)
        }
        for one in other { try expectEqual(try await stage.backlog(of: one.device), []) }
        let progress = try await stage.store.fanout(of: job.key)
        try expect(progress?.isDone == true, "done")
        try expectEqual(progress?.counts.matched, 7)
        try expectEqual(progress?.counts.waiting, 7)
      }
    },
    .init("a job goes on after a crash where it stopped, each subscriber exactly once") { stage in
      let made = try await stage.crowd("t", 10, ["news"])
      let job = try stage.job("/topics/news")
      try await stage.store.begin(job)
      try await stage.crash()
      try expectEqual(
        try await stage.store.fanouts(since: stage.now + .seconds(1)).map(\.number), [job.number])
      var seen = 0
      while true {
        let slice = try await stage.step(job, max: 3)
        seen += slice.matched
        try await stage.crash()
        try expectEqual(try await stage.counts(job)?.matched, seen)
        if slice.isDone { break }
      }
      try expectEqual(seen, 10)
      for one in made { try expectEqual(try await stage.backlog(of: one.device).count, 1) }
      try expectEqual(try await stage.store.fanouts(since: stage.now + .seconds(1)), [])
      try expectEqual(try await stage.store.fanouts(since: stage.now).map(\.isDone), [true])
    },
    .init("beginning a job again, or advancing one that is done or unknown, changes nothing") { stage in
      let made = try await stage.crowd("t", 2, ["news"])
      let job = try stage.job("/topics/news")
      _ = try await stage.fanOut(job)
      try await stage.store.begin(job)
      let slice = try await stage.step(job)
      try expect(slice.isDone && slice.matched == 0, "it stays done")
      try expect(try await stage.step(try stage.job("/topics/news")).isDone, "unknown")
      for one in made { try expectEqual(try await stage.backlog(of: one.device).count, 1) }
    },
    .init("a topic that nobody is in is done at once") { stage in
      let slices = try await stage.fanOut(try stage.job("/topics/nobody"))
      try expectEqual(slices.map(\.isDone), [true])
    },
    .init("several jobs advance in one call, each by its own slice") { stage in
      _ = try await stage.crowd("t", 5, ["a", "b"])
      let jobs = [try stage.job("/topics/a"), try stage.job("/topics/b"), try stage.job("/topics/none")]
      for job in jobs { try await stage.store.begin(job) }
      let spares = (0..<9).map { _ in stage.number() }
      let slices = try await stage.store.advance(
        fanouts: jobs.map(\.number), max: 3, spares: spares, now: stage.now)
      try expectEqual(slices.map(\.matched), [3, 3, 0])
      try expectEqual(slices.map(\.isDone), [false, false, true])
    },
    .init("a condition reaches those it holds for, at any slice") { stage in
      let users = try await stage.crowd("t", 12)
      // Registration i is in the topics that its bits name.
      for (index, user) in users.enumerated() {
        for (bit, topic) in ["a", "b", "c"].enumerated() where index >> bit & 1 == 1 {
          try expectEqual(try await stage.change(user.token, topic), .changed)
        }
      }
      let conditions: [(String, (Int) -> Bool)] = [
        ("'a' in topics", { $0 & 1 == 1 }), ("'a' in topics && 'b' in topics", { $0 & 3 == 3 }),
        ("'a' in topics || 'c' in topics", { $0 & 5 != 0 }),
        ("'c' in topics && !('a' in topics)", { $0 & 5 == 4 }), ("!('a' in topics)", { $0 & 1 == 0 }),
        ("!('a' in topics || 'b' in topics)", { $0 & 3 == 0 }),
        ("'a' in topics || 'b' in topics && 'c' in topics", { $0 & 3 != 0 && $0 & 4 != 0 }),
        ("'none' in topics", { _ in false }), ("!('none' in topics)", { _ in true }),
      ]
      for (text, holds) in conditions {
        for slice in [1, 2, 5, 50] {
          let job = try stage.job(text)
          let matched = try await stage.fanOut(job, max: slice).reduce(0) { $0 + $1.matched }
          let wanted = users.indices.filter(holds)
          try expectEqual(matched, wanted.count, "\(text) by \(slice)")
          for (index, user) in users.enumerated() {
            let rows = try await stage.backlog(of: user.device)
            try expectEqual(rows.map(\.number), holds(index) ? [job.number] : [], "\(text), number \(index)")
            try expect(
              rows.allSatisfy {
                String(decoding: $0.body, as: UTF8.self).contains("\"from\":\"\(Stage.sender)\"")
              }, "a condition comes from the sender")
            try await stage.settle(rows)
          }
        }
      }
    },
    .init("two apps of a device get a message each, with ids of their own") { stage in
      let made = try await stage.crowd("t", 1, ["news"])
      let second = try await stage.store.register(
        stage.request("second", device: "t-0", app: "org.example.other"), now: stage.now)
      try expectEqual(try await stage.change("second", "news"), .changed)
      let job = try stage.job("/topics/news", collapse: "k")
      _ = try await stage.fanOut(job)
      let rows = try await stage.backlog(of: made[0].device)
      try expectEqual(rows.count, 2)
      try expect(rows[0].key != rows[1].key && rows[0].number != rows[1].number, "they differ")
      try expectEqual(Set(rows.map(\.app)), ["org.example.app", second.app])
      try expectEqual(rows.map { $0.shared?.job }, [job.number, job.number])
      try await stage.crash()
      try expectEqual(try await stage.backlog(of: made[0].device).map(\.wholeBody), rows.map(\.wholeBody))
      var batch = WriteBatch()
      batch.settle = rows.map { .init(device: $0.device, number: $0.number, end: .delivered) }
      _ = try await stage.store.write(batch, now: stage.now)
      try expectEqual(try await stage.counts(job)?.delivered, 2)
    },
    .init("a settlement that comes twice takes nothing from another app of the device") { stage in
      let made = try await stage.crowd("t", 1, ["news"])
      _ = try await stage.store.register(
        stage.request("second", device: "t-0", app: "org.example.other"), now: stage.now)
      try expectEqual(try await stage.change("second", "news"), .changed)
      let job = try stage.job("/topics/news")
      try await stage.store.begin(job)
      _ = try await stage.step(job, max: 1)
      let first = try await stage.backlog(of: made[0].device)
      try await stage.settle(first)
      _ = try await stage.step(job, max: 1)
      // The answer to the settlement was lost, so it is sent again.
      try await stage.settle(first)
      try expectEqual(try await stage.backlog(of: made[0].device).count, 1)
    },
    .init("only the named app gets a message restricted to it") { stage in
      _ = try await stage.crowd("t", 1, ["news"])
      let other = try await stage.store.register(
        stage.request("x", device: "x", app: "org.example.other"), now: stage.now)
      _ = try await stage.change("x", "news")
      let job = try stage.job("/topics/news", onlyApp: "org.example.other")
      try expectEqual(try await stage.fanOut(job).map(\.matched), [1])
      try expectEqual(try await stage.bodies(other).count, 1)
    },
    .init("connected devices are named in the slice, and their rows are live until the stream ends") {
      stage in
      let made = try await stage.crowd("t", 3, ["news"])
      let grant = try await stage.store.claim(made[1].device, node: 0, now: stage.now)
      let job = try stage.job("/topics/news")
      let slices = try await stage.fanOut(job)
      try expectEqual(slices.flatMap(\.rows).map(\.device), [made[1].device])
      let row = slices[0].rows[0]
      try expect(row.live, "live")
      try expectEqual(try await stage.backlog(of: made[1].device), [row])
      try await stage.store.release(made[1].device, epoch: grant.epoch, now: stage.now)
      try expectEqual(try await stage.backlog(of: made[1].device).map(\.live), [false])
      try expectEqual(try await stage.bodies(made[0]).count, 1)
    },
    .init(
      "a slow connected device overflows at a cap of its own",
      limits: StoreLimits(storedPerDeviceMax: 5, storedPerConnectedDeviceMax: 10)
    ) { stage in
      let made = try await stage.crowd("t", 1, ["news"])
      _ = try await stage.store.claim(made[0].device, node: 0, now: stage.now)
      for _ in 0..<10 {
        try expectEqual(try await stage.fanOut(try stage.job("/topics/news")).flatMap(\.rows).count, 1)
      }
      let last = try stage.job("/topics/news")
      let slices = try await stage.fanOut(last)
      try expectEqual(slices.flatMap(\.rows), [])
      try expectEqual(slices.flatMap(\.ended).map(\.state), [.droppedOverflow])
      try expectEqual(try await stage.counts(last)?.droppedOverflow, 1)
      try expectEqual(try await stage.backlog(of: made[0].device).count, 10)
      try expectEqual(try await stage.overflowed(made[0].device), 1)
    },
    .init("with nothing stored, the connected ones are named and the others counted") { stage in
      let made = try await stage.crowd("t", 3, ["news"])
      _ = try await stage.store.claim(made[2].device, node: 0, now: stage.now)
      let job = try stage.job("/topics/news", isStored: false)
      let slices = try await stage.fanOut(job)
      try expectEqual(slices.map(\.isStored), [false])
      try expectEqual(slices.flatMap(\.rows).map(\.device), [made[2].device])
      try expectEqual(slices.map(\.droppedOffline), [2])
      try expectEqual(try await stage.store.counts()["messages"], 0)
      var batch = WriteBatch()
      batch.fanoutEnds = [.init(job: job.number, state: .delivered, count: 1)]
      _ = try await stage.store.write(batch, now: stage.now)
      let counts = try await stage.counts(job)
      try expectEqual(counts?.droppedOffline, 2)
      try expectEqual(counts?.delivered, 1)
      try expectEqual(counts?.waiting, 0)
    },
    .init("a job that expires visits nobody else") { stage in
      _ = try await stage.crowd("t", 4, ["news"])
      let job = try stage.job("/topics/news", seconds: 10)
      try await stage.store.begin(job)
      try expectEqual(try await stage.step(job, max: 2).matched, 2)
      stage.now = stage.now + .seconds(10)
      let slice = try await stage.step(job, max: 2)
      try expect(slice.isDone && slice.matched == 0, "it is over")
      try expectEqual(try await stage.store.fanout(of: job.key)?.isDone, true)
    },
    .init("every end is counted with the job, once", limits: five) { stage in
      let made = try await stage.crowd("t", 5, ["news"])
      let job = try stage.job("/topics/news", seconds: 100)
      _ = try await stage.fanOut(job)
      // 0 is delivered, 1 unregistered, 2 overflows, 3 expires, 4 waits.
      var batch = WriteBatch()
      batch.settle = [.init(device: made[0].device, number: job.number, end: .delivered)]
      for _ in 0..<3 { _ = try await stage.store.write(batch, now: stage.now) }
      _ = try await stage.store.unregister("t-1", now: stage.now)
      let outcome = try await stage.enqueue((0..<5).map { _ in stage.message(for: made[2].device) })
      try expectEqual(outcome.ended.map(\.job), [job.number, nil, nil, nil, nil, nil])
      try await stage.crash()
      let counts = try await stage.counts(job)
      try expectEqual(counts?.delivered, 1)
      try expectEqual(counts?.droppedUnregistered, 1)
      try expectEqual(counts?.droppedOverflow, 1)
      try expectEqual(counts?.waiting, 2)
      stage.now = stage.now + .seconds(100)
      let swept = try await stage.store.sweep(now: stage.now, budget: 100)
      try expectEqual(swept.count { $0.job == job.number }, 2)
      try expectEqual(try await stage.counts(job)?.expired, 2)
      try expectEqual(try await stage.counts(job)?.waiting, 0)
    },
    .init("of two topic messages with one collapse key the later sent stays, also when it came first") {
      stage in
      let made = try await stage.crowd("t", 1, ["news"])
      let first = try stage.job("/topics/news", collapse: "k")
      let direct = stage.message(for: made[0].device, collapse: "org.example.app\u{1F}k")
      let second = try stage.job("/topics/news", collapse: "k")
      let slices = try await stage.fanOut(second)
      try expectEqual(slices.flatMap(\.ended), [])
      let late = try await stage.fanOut(first)
      try expectEqual(late.flatMap(\.ended).map(\.state), [.collapsed])
      try expectEqual(try await stage.enqueue([direct]).ended.map(\.state), [.collapsed])
      try expectEqual(try await stage.backlog(of: made[0].device).map(\.number), [second.number])
      try expectEqual(try await stage.counts(first)?.collapsed, 1)
      try expectEqual(try await stage.counts(second)?.waiting, 1)
    },
    .init("a job is forgotten when it is old and all its messages have ended") { stage in
      let made = try await stage.crowd("t", 2, ["news"])
      let job = try stage.job("/topics/news")
      let open = try stage.job("/topics/news")
      _ = try await stage.fanOut(job)
      try await stage.store.begin(open)
      let store = stage.store
      let later = stage.now + .seconds(1)
      func prune(_ before: WallTime) async throws -> Int {
        try await store.pruneFanouts(before: before, max: 10, now: later)
      }
      try expectEqual(try await prune(later), 0, "its messages wait")
      var batch = WriteBatch()
      batch.settle = made.map { .init(device: $0.device, number: job.number, end: .delivered) }
      _ = try await stage.store.write(batch, now: stage.now)
      try expectEqual(try await prune(stage.now), 0, "it is too young")
      try expectEqual(try await prune(later), 1)
      try expectEqual(try await stage.store.fanout(of: job.key), nil)
      try expectEqual(try await stage.store.fanout(of: open.key)?.isDone, false)
      try expectEqual(try await stage.store.counts()["fanouts"], 1)
    },
    .init("a slice that fails moves nothing, and the next try gives each its message") { stage in
      // Enough rows that no free room takes them all.
      let made = try await stage.crowd("t", 400, ["news"])
      let job = try stage.job("/topics/news")
      try await stage.store.begin(job)
      let store = stage.store
      let spares = (0..<400).map { _ in stage.number() }
      let now = stage.now
      try await stage.subject.failWrites(true)
      try await expectFault(
        "a slice",
        { () throws(StoreFault) in
          try await store.advance(fanouts: [job.number], max: 1_000, spares: spares, now: now)
        }, where: \.isUnavailable)
      try await stage.subject.failWrites(false)
      try expectEqual(try await stage.counts(job)?.matched, 0)
      try expectEqual(try await stage.step(job).matched, 400)
      for one in made { try expectEqual(try await stage.backlog(of: one.device).count, 1) }
    },
  ]
}
