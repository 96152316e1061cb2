import PushModel
import Seams
import Stores

extension ConformanceCase {
  static let devices: [ConformanceCase] = [
    .init("a registration makes a device that can be found by token and by id") { stage in
      let made = try await stage.store.register(
        stage.request("t-1", device: "d-1", user: "ana"), now: stage.now)
      try expectEqual(made.state, .active)
      try expectEqual(made.user, "ana")
      try expectEqual(made.registeredAt, stage.now)
      try await stage.crash()
      try expectEqual(try await stage.store.lookUp(["no", "t-1", "no"]), [nil, made, nil])
      let credentials = try await stage.store.credentials(of: "d-1")
      try expectEqual(
        credentials,
        DeviceCredentials(
          number: made.device, secretHash: [UInt8](repeating: 7, count: 32), registrations: [made]))
      try expectEqual(try await stage.store.credentials(of: "d-2"), nil)
    },
    .init("a second app joins the device and leaves its secret alone") { stage in
      let first = try await stage.store.register(stage.request("t-1", device: "d"), now: stage.now)
      var second = stage.request("t-2", device: "d", app: "org.example.other")
      second.secretHash = [1]
      let made = try await stage.store.register(second, now: stage.now)
      try expectEqual(made.device, first.device)
      let credentials = try await stage.store.credentials(of: "d")
      try expectEqual(credentials?.registrations, [first, made])
      try expectEqual(credentials?.secretHash, [UInt8](repeating: 7, count: 32))
    },
    .init("the same registration again is the same answer; another with its token is refused") { stage in
      let request = stage.request("t-1", device: "d")
      let first = try await stage.store.register(request, now: stage.now)
      try expectEqual(try await stage.store.register(request, now: stage.now), first)
      let store = stage.store
      let now = stage.now
      for clash in [
        stage.request("t-1", device: "other"), stage.request("t-1", device: "d", app: "x"),
        stage.request("t-1", device: "d", sender: SenderID(9)),
      ] {
        try await expectFault(
          "a taken token", { () throws(StoreFault) in try await store.register(clash, now: now) },
          where: \.isRefused)
      }
      try expectEqual(try await stage.store.counts()["devices"], 1)
    },
    .init("a previous token becomes an alias, and chains end at the newest token") { stage in
      for (token, previous) in [("t-1", nil), ("t-2", "t-1"), ("t-3", "t-2")] {
        _ = try await stage.store.register(
          stage.request(token, device: "d", previous: previous), now: stage.now)
      }
      try await stage.crash()
      let found = try await stage.store.lookUp(["t-1", "t-2", "t-3"])
      try expectEqual(found.map { $0?.state }, [.alias(of: "t-3"), .alias(of: "t-3"), .active])
      try expectEqual(
        try await stage.store.credentials(of: "d")?.registrations.map(\.token), ["t-3"])
    },
    .init("an alias may lead to another device of the same app") { stage in
      _ = try await stage.store.register(stage.request("t-1", device: "old"), now: stage.now)
      let new = try await stage.store.register(
        stage.request("t-2", device: "new", previous: "t-1"), now: stage.now)
      try expectEqual(try await stage.store.lookUp(["t-1"]).first??.state, .alias(of: new.token))
    },
    .init("a previous token of another app, another sender, unknown or gone is passed over") { stage in
      _ = try await stage.store.register(stage.request("app", device: "d", app: "x"), now: stage.now)
      _ = try await stage.store.register(
        stage.request("sender", device: "d", sender: SenderID(9)), now: stage.now)
      _ = try await stage.store.register(stage.request("gone", device: "d"), now: stage.now)
      _ = try await stage.store.unregister("gone", now: stage.now)
      for (index, previous) in ["app", "sender", "gone", "never", "t-4"].enumerated() {
        let made = try await stage.store.register(
          stage.request("t-\(index)", device: "d", previous: previous), now: stage.now)
        try expectEqual(made.state, .active)
      }
      let states = try await stage.store.lookUp(["app", "sender", "gone", "t-4"]).map { $0?.state }
      try expectEqual(states, [.active, .active, .unregistered, .active])
    },
    .init("unregistering drops the messages of that app alone") { stage in
      let first = try await stage.store.register(stage.request("t-1", device: "d"), now: stage.now)
      _ = try await stage.store.register(stage.request("t-2", device: "d", app: "b"), now: stage.now)
      _ = try await stage.store.register(
        stage.request("t-3", device: "d", sender: SenderID(9)), now: stage.now)
      let device = first.device
      let mine = [stage.message(for: device), stage.message(for: device, collapse: "k")]
      let theirs = [
        stage.message(for: device, app: "b"), stage.message(for: device, sender: SenderID(9)),
      ]
      _ = try await stage.enqueue(mine + theirs)
      let (was, ended) = try await stage.store.unregister("t-1", now: stage.now)
      try expect(was, "it was active")
      try expectEqual(ended, mine.map { $0.ended(as: .droppedUnregistered) })
      try expectEqual(try await stage.backlog(of: device), theirs)
      let again = try await stage.store.unregister("t-1", now: stage.now)
      try expect(!again.0 && again.1.isEmpty, "it is gone already")
      let never = try await stage.store.unregister("never", now: stage.now)
      try expect(!never.0, "it never was")
      try await stage.crash()
      try expectEqual(try await stage.store.lookUp(["t-1"]).first??.state, .unregistered)
    },
    .init("messages stay while another token of the app is active") { stage in
      let first = try await stage.store.register(stage.request("t-1", device: "d"), now: stage.now)
      _ = try await stage.store.register(stage.request("t-2", device: "d"), now: stage.now)
      let row = stage.message(for: first.device)
      _ = try await stage.enqueue([row])
      try expectEqual(try await stage.store.unregister("t-1", now: stage.now).1, [])
      try expectEqual(try await stage.backlog(of: first.device), [row])
      try expectEqual(
        try await stage.store.unregister("t-2", now: stage.now).1, [row.ended(as: .droppedUnregistered)])
    },
    .init("unregistering makes room under the cap", limits: StoreLimits(storedPerDeviceMax: 2)) { stage in
      let first = try await stage.store.register(stage.request("t-1", device: "d"), now: stage.now)
      _ = try await stage.enqueue([stage.message(for: first.device), stage.message(for: first.device)])
      _ = try await stage.store.unregister("t-1", now: stage.now)
      let outcome = try await stage.enqueue([stage.message(for: first.device, app: "b")])
      try expectEqual(outcome.enqueue, [.stored])
    },
    .init("registrations come in token order, in pages, by sender") { stage in
      for index in [3, 1, 2, 5, 4] {
        _ = try await stage.store.register(
          stage.request("t-\(index)", device: "d", sender: SenderID(Int64(index % 2 + 1))), now: stage.now)
      }
      let all = try await stage.store.registrations(max: 3)
      try expectEqual(all.map(\.token), ["t-1", "t-2", "t-3"])
      let rest = try await stage.store.registrations(after: "t-3", max: 3)
      try expectEqual(rest.map(\.token), ["t-4", "t-5"])
      let odd = try await stage.store.registrations(sender: SenderID(2), after: "t-1", max: 10)
      try expectEqual(odd.map(\.token), ["t-3", "t-5"])
    },
  ]

  static let streams: [ConformanceCase] = [
    .init("the epoch rises with each claim, also over a crash") { stage in
      let device = try await stage.device()
      let first = try await stage.store.claim(device, node: 1, now: stage.now)
      try expectEqual(first.previousNode, nil)
      let second = try await stage.store.claim(device, node: 2, now: stage.now)
      try expectEqual(second.previousNode, 1)
      try expect(second.epoch > first.epoch, "the epoch rises")
      try await stage.crash()
      let third = try await stage.store.claim(device, node: 3, now: stage.now)
      try expectEqual(third.previousNode, 2)
      try expect(third.epoch > second.epoch, "the epoch rises over a crash")
    },
    .init("a release of an epoch that has passed has no effect") { stage in
      let device = try await stage.device()
      let first = try await stage.store.claim(device, node: 1, now: stage.now)
      let second = try await stage.store.claim(device, node: 2, now: stage.now)
      try await stage.store.release(device, epoch: first.epoch, now: stage.now)
      try expectEqual(try await stage.store.claim(device, node: 3, now: stage.now).previousNode, 2)
      try await stage.store.release(device, epoch: second.epoch + 1, now: stage.now)
      try expectEqual(try await stage.store.claim(device, node: 4, now: stage.now).previousNode, nil)
    },
    .init("a device that does not exist cannot be claimed, and releasing it is nothing") { stage in
      let store = stage.store
      let now = stage.now
      try await expectFault(
        "an unknown device",
        { () throws(StoreFault) in try await store.claim(DeviceNumber(5), node: 1, now: now) },
        where: \.isRefused)
      try await stage.store.release(DeviceNumber(5), epoch: 1, now: stage.now)
    },
    .init("a claim and a release are when the device was last seen") { stage in
      let made = try await stage.store.register(stage.request("t", device: "d"), now: stage.now)
      stage.now = stage.now + .seconds(10)
      let grant = try await stage.store.claim(made.device, node: 1, now: stage.now)
      try expectEqual(try await stage.store.lookUp(["t"]).first??.lastSeen, stage.now)
      stage.now = stage.now + .seconds(10)
      try await stage.store.release(made.device, epoch: grant.epoch, now: stage.now)
      let found = try await stage.store.lookUp(["t"]).first ?? nil
      try expectEqual(found?.lastSeen, stage.now)
      try expectEqual(found?.registeredAt, made.registeredAt)
    },
    .init("a device that was away too long gets a count in place of its messages") { stage in
      let made = try await stage.store.register(stage.request("t", device: "d"), now: stage.now)
      let begun = stage.now
      let rows = [
        stage.message(for: made.device, expires: stage.now + .seconds(50)),
        stage.message(for: made.device, expires: stage.now + .seconds(5_000)),
        stage.message(for: made.device, collapse: "k", expires: stage.now + .seconds(5_000)),
      ]
      _ = try await stage.enqueue(rows)
      stage.now = stage.now + .seconds(100)
      // Seen at the limit, not before it: nothing happens.
      let kept = try await stage.store.claim(made.device, node: 1, awaySince: begun, now: stage.now)
      try expectEqual(kept.ended, [])
      try await stage.store.release(made.device, epoch: kept.epoch, now: stage.now)
      try expectEqual(try await stage.backlog(of: made.device), [rows[1], rows[2]])

      let seen = stage.now
      stage.now = stage.now + .seconds(1_000)
      let grant = try await stage.store.claim(
        made.device, node: 1, awaySince: seen + .milliseconds(1), now: stage.now)
      try expectEqual(
        grant.ended,
        [
          rows[0].ended(as: .expired), rows[1].ended(as: .droppedOverflow),
          rows[2].ended(as: .droppedOverflow),
        ])
      try await stage.crash()
      let backlog = try await stage.store.backlog(of: made.device, max: 10, now: stage.now)
      try expectEqual(backlog.messages, [])
      try expectEqual(backlog.overflowed, 2)
      // It counts as seen now, and there is room again.
      let again = try await stage.store.claim(
        made.device, node: 1, awaySince: stage.now, now: stage.now)
      try expectEqual(again.ended, [])
      try expectEqual(try await stage.enqueue([stage.message(for: made.device)]).enqueue, [.stored])
    },
    .init("registrations of devices that nobody used for long end, others stay") { stage in
      let old = try await stage.store.register(stage.request("old-a", device: "old"), now: stage.now)
      _ = try await stage.store.register(
        stage.request("old-b", device: "old", app: "b"), now: stage.now)
      let touched = try await stage.store.register(
        stage.request("touched", device: "touched"), now: stage.now)
      let claimed = try await stage.store.register(
        stage.request("claimed", device: "claimed"), now: stage.now)
      let limit = stage.now + .seconds(100)
      stage.now = limit
      try await stage.store.touch([touched.device, DeviceNumber(999)], now: stage.now)
      _ = try await stage.store.claim(claimed.device, node: 1, now: stage.now)
      _ = try await stage.store.register(stage.request("new", device: "new"), now: stage.now)
      let row = stage.message(for: old.device)
      _ = try await stage.enqueue([row])
      var sweep = IdleSweep()
      for _ in 0..<3 {
        let found = try await stage.store.sweepIdle(seenBefore: limit, budget: 10, now: stage.now)
        sweep.tokens += found.tokens
        sweep.ended += found.ended
      }
      try expectEqual(sweep.tokens, ["old-a", "old-b"])
      try expectEqual(sweep.ended, [row.ended(as: .droppedUnregistered)])
      try await stage.crash()
      let states = try await stage.store.lookUp(["old-a", "old-b", "touched", "claimed", "new"]).map {
        $0?.state
      }
      try expectEqual(states, [.unregistered, .unregistered, .active, .active, .active])
      try expectEqual(try await stage.store.lookUp(["touched"]).first??.lastSeen, limit)
      try expectEqual(
        try await stage.store.sweepIdle(seenBefore: limit, budget: 10, now: stage.now), IdleSweep())
    },
    .init("sweeping idle devices keeps to its budget and gets round to all") { stage in
      for index in 0..<7 {
        _ = try await stage.store.register(stage.request("t-\(index)", device: "d-\(index)"), now: stage.now)
      }
      let limit = stage.now + .seconds(1)
      var tokens: [String] = []
      for _ in 0..<8 {
        let found = try await stage.store.sweepIdle(seenBefore: limit, budget: 2, now: limit)
        try expect(found.tokens.count <= 2, "over its budget")
        tokens += found.tokens
      }
      try expectEqual(tokens.sorted(), (0..<7).map { "t-\($0)" })
    },
  ]
}
