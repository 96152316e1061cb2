import PushModel
import Seams
import Stores

extension ConformanceCase {
  static let accounts: [ConformanceCase] = [
    .init("project ids and sender ids are unique, and projects survive a crash") { stage in
      let demo = Project(id: "demo", sender: SenderID(1), createdAt: stage.now)
      let other = Project(id: "another", sender: SenderID(2), createdAt: stage.now)
      try expectEqual(try await stage.store.createProject(demo), demo)
      try expectEqual(try await stage.store.createProject(other), other)
      let store = stage.store
      let now = stage.now
      for clash in [
        Project(id: "demo", sender: SenderID(3), createdAt: now),
        Project(id: "third", sender: SenderID(1), createdAt: now),
      ] {
        try await expectFault(
          "a taken project", { () throws(StoreFault) in try await store.createProject(clash) },
          where: \.isRefused)
      }
      try await stage.crash()
      try expectEqual(try await stage.store.projects(), [other, demo])
    },
    .init("keys are known by hash and revoked once") { stage in
      let server = AccountKey(
        hash: [1, 2, 3], purpose: .server, sender: SenderID(1), createdAt: stage.now, hint: "AAAA")
      let admin = AccountKey(
        hash: [9], purpose: .admin, sender: nil, createdAt: stage.now, hint: "adm")
      try await stage.store.addKey(server)
      try await stage.store.addKey(admin)
      let store = stage.store
      try await expectFault(
        "a taken key", { () throws(StoreFault) in try await store.addKey(server) }, where: \.isRefused)
      try expect(try await stage.store.revokeKey(hash: [1, 2, 3]), "it was active")
      try expect(try await !stage.store.revokeKey(hash: [1, 2, 3]), "it is revoked already")
      try expect(try await !stage.store.revokeKey(hash: [4]), "it never was")
      try await stage.crash()
      var revoked = server
      revoked.revoked = true
      try expectEqual(try await stage.store.keys(), [revoked, admin])
    },
    .init("settings keep their last value") { stage in
      try expectEqual(try await stage.store.setting("key"), nil)
      try await stage.store.saveSetting("key", [1])
      try await stage.store.saveSetting("key", [2, 3])
      try await stage.store.saveSetting("empty", [])
      try await stage.crash()
      try expectEqual(try await stage.store.setting("key"), [2, 3])
      try expectEqual(try await stage.store.setting("empty"), [])
    },
    .init("counts name every table") { stage in
      let device = try await stage.device()
      _ = try await stage.enqueue([stage.message(for: device), stage.message(for: device)])
      try await stage.append([stage.upstream()])
      let counts = try await stage.store.counts()
      try expectEqual(Set(counts.keys), Set(StoreTable.allCases.map(\.rawValue)))
      try expectEqual(counts["messages"], 2)
      try expectEqual(counts["upstream"], 1)
      try expectEqual(counts["devices"], 1)
      try expectEqual(counts["registrations"], 1)
    },
    .init("a closed store answers, and is closed") { stage in
      await stage.store.close()
      await stage.store.close()
      let store = stage.store
      let now = stage.now
      try await expectFault(
        "a write", { () throws(StoreFault) in try await store.write(WriteBatch(), now: now) },
        where: \.isUnavailable)
      try await expectFault(
        "a read", { () throws(StoreFault) in try await store.lookUp(["t"]) }, where: \.isUnavailable)
      try await expectFault(
        "a scan", { () throws(StoreFault) in try await store.counts() }, where: \.isUnavailable)
    },
  ]
}
