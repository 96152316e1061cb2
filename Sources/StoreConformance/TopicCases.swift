import PushModel
import Seams
import Stores

extension Stage {
  func topic(_ name: String) throws -> TopicName {
    guard let topic = TopicName(name) else { throw ConformanceFailure(description: "\(name) is no topic") }
    return topic
  }

  func change(
    _ token: String, _ topic: String, isSubscribed: Bool = true, sender: SenderID = Stage.sender
  ) async throws -> SubscriptionOutcome? {
    try await store.change(
      [
        SubscriptionChange(
          token: token, sender: sender, topic: try self.topic(topic), isSubscribed: isSubscribed)
      ], now: now
    ).first
  }

  /// Registers `count` devices `PREFIX-0` and on, with a token of the same name each, and subscribes them.
  func crowd(_ prefix: String, _ count: Int, _ topics: [String] = []) async throws -> [Registration] {
    var made: [Registration] = []
    for index in 0..<count {
      made.append(
        try await store.register(request("\(prefix)-\(index)", device: "\(prefix)-\(index)"), now: now))
    }
    for topic in topics {
      let name = try self.topic(topic)
      let outcomes = try await store.change(
        made.map {
          SubscriptionChange(token: $0.token, sender: $0.sender, topic: name, isSubscribed: true)
        }, now: now)
      try expect(outcomes.allSatisfy { $0 == .changed }, "all are subscribed")
    }
    return made
  }
}

extension ConformanceCase {
  static let topics: [ConformanceCase] = [
    .init("a topic is its subscribers, in the order of registration, and outlives a crash") { stage in
      let made = try await stage.crowd("t", 7, ["news", "sport"])
      try expectEqual(try await stage.change("t-3", "news", isSubscribed: false), .changed)
      try await stage.crash()
      let news = try stage.topic("news")
      let all = try await stage.store.subscribers(of: news, sender: Stage.sender, max: 100)
      try expectEqual(all.map(\.registration.token), made.map(\.token).filter { $0 != "t-3" })
      try expect(zip(all, all.dropFirst()).allSatisfy { $0.number < $1.number }, "numbers rise")
      let page = try await stage.store.subscribers(
        of: news, sender: Stage.sender, after: all[1].number, max: 2)
      try expectEqual(page, Array(all[2...3]))
      try expectEqual(
        try await stage.store.topics(sender: Stage.sender, max: 10).map { "\($0.topic) \($0.subscribers)" },
        ["news 6", "sport 7"])
      try expectEqual(
        try await stage.store.topics(sender: Stage.sender, after: news, max: 10).map(\.topic.text), ["sport"])
      try expectEqual(try await stage.store.topics(of: "t-3")?.map(\.topic.text), ["sport"])
      try expectEqual(try await stage.store.topics(of: "t-0")?.first?.since, stage.now)
      try expectEqual(try await stage.store.topics(of: "unknown"), nil)
      try expectEqual(try await stage.store.counts()["subscriptions"], 13)
    },
    .init("each change of a batch has its own outcome") { stage in
      _ = try await stage.crowd("t", 2)
      _ = try await stage.store.register(
        stage.request("other", device: "other", sender: SenderID(7)), now: stage.now)
      _ = try await stage.crowd("gone", 1)
      _ = try await stage.store.unregister("gone-0", now: stage.now)
      let news = try stage.topic("news")
      let changes = [
        ("t-0", true), ("t-0", true), ("nobody", true), ("other", true), ("gone-0", true), ("t-1", false),
        ("t-0", false), ("t-0", false),
      ].map {
        SubscriptionChange(token: $0, sender: Stage.sender, topic: news, isSubscribed: $1)
      }
      try expectEqual(
        try await stage.store.change(changes, now: stage.now),
        [
          .changed, .unchanged, .unknownToken, .senderMismatch, .unknownToken, .unchanged, .changed,
          .unchanged,
        ])
      try expectEqual(try await stage.store.topics(sender: Stage.sender, max: 10), [])
      try expectEqual(try await stage.store.counts()["topics"], 0)
    },
    .init(
      "a registration has its maximum of topics and no more", limits: StoreLimits(topicsPerTokenMax: 3)
    ) { stage in
      _ = try await stage.crowd("t", 2, ["a", "b"])
      try expectEqual(try await stage.change("t-0", "c"), .changed)
      try expectEqual(try await stage.change("t-0", "new"), .tooManyTopics)
      try expectEqual(try await stage.change("t-1", "d"), .changed)
      try expectEqual(try await stage.change("t-0", "d"), .tooManyTopics)
      try expectEqual(try await stage.change("t-0", "a"), .unchanged)
      try await stage.crash()
      try expectEqual(try await stage.change("t-0", "d"), .tooManyTopics)
      try expectEqual(try await stage.change("t-0", "a", isSubscribed: false), .changed)
      try expectEqual(try await stage.change("t-0", "d"), .changed)
      try expectEqual(try await stage.store.topics(of: "t-0")?.map(\.topic.text), ["b", "c", "d"])
    },
    .init("the same name of another sender is another topic") { stage in
      _ = try await stage.crowd("t", 1, ["news"])
      let other = SenderID(7)
      _ = try await stage.store.register(
        stage.request("other", device: "other", sender: other), now: stage.now)
      try expectEqual(try await stage.change("other", "news", sender: other), .changed)
      let news = try stage.topic("news")
      for (sender, token) in [(Stage.sender, "t-0"), (other, "other")] {
        let found = try await stage.store.subscribers(of: news, sender: sender, max: 10)
        try expectEqual(found.map(\.registration.token), [token])
      }
    },
    .init("a registration that goes away leaves its topics") { stage in
      _ = try await stage.crowd("t", 2, ["news"])
      try expectEqual(try await stage.change("t-0", "alone"), .changed)
      _ = try await stage.store.unregister("t-0", now: stage.now)
      try expectEqual(
        try await stage.store.topics(sender: Stage.sender, max: 10).map { "\($0.topic) \($0.subscribers)" },
        ["news 1"])
      try expectEqual(try await stage.store.topics(of: "t-0"), nil)
    },
    .init("a new token takes over the topics of the one it replaces, and the old one stands for it") {
      stage in
      _ = try await stage.crowd("t", 1, ["a", "b"])
      _ = try await stage.store.register(
        stage.request("new", device: "t-0", previous: "t-0"), now: stage.now + .seconds(5))
      try expectEqual(try await stage.store.topics(of: "new")?.map(\.topic.text), ["a", "b"])
      try expectEqual(try await stage.store.topics(of: "t-0")?.first?.since, stage.now)
      try expectEqual(try await stage.change("t-0", "c"), .changed)
      try expectEqual(try await stage.change("new", "c"), .unchanged)
      try expectEqual(
        try await stage.store.topics(sender: Stage.sender, max: 10).map(\.subscribers), [1, 1, 1])
    },
  ]

  static let audiences: [ConformanceCase] = [
    .init("a group is made of valid tokens, found by key and by name, and outlives a crash") { stage in
      _ = try await stage.crowd("t", 3)
      _ = try await stage.store.register(
        stage.request("other", device: "other", sender: SenderID(7)), now: stage.now)
      let tokens = ["t-2", "nobody", "other", "t-0", "t-2"]
      let outcome = try await stage.store.createGroup(
        key: "key-1", name: "family", sender: Stage.sender, tokens: tokens, now: stage.now)
      guard case .done(let group) = outcome else { throw ConformanceFailure(description: "\(outcome)") }
      try expectEqual(group.members.map(\.registration.token), ["t-0", "t-2"])
      try await stage.crash()
      try expectEqual(try await stage.store.group(key: "key-1"), group)
      try expectEqual(try await stage.store.group(named: "family", sender: Stage.sender), group)
      try expectEqual(try await stage.store.group(named: "family", sender: SenderID(7)), nil)
      try expectEqual(try await stage.store.group(key: "key-2"), nil)
      try expectEqual(try await stage.store.groups(sender: Stage.sender, max: 10), [group])
      try expectEqual(try await stage.store.groups(sender: Stage.sender, after: "family", max: 10), [])
    },
    .init("groups are refused for a reason", limits: StoreLimits(groupMembersMax: 2)) { stage in
      _ = try await stage.crowd("t", 3)
      let (store, now) = (stage.store, stage.now)
      func make(_ key: String, _ name: String, _ tokens: [String]) async throws -> GroupOutcome {
        try await store.createGroup(key: key, name: name, sender: Stage.sender, tokens: tokens, now: now)
      }
      try expectEqual(try await make("k", "g", ["nobody"]), .noValidTokens)
      try expectEqual(try await make("k", "g", ["t-0", "t-1", "t-2"]), .tooManyMembers)
      guard case .done(let group) = try await make("k", "g", ["t-0", "t-1"]) else {
        throw ConformanceFailure(description: "the group is made")
      }
      try expectEqual(try await make("k", "other", ["t-0"]), .nameTaken)
      try expectEqual(try await make("k2", "g", ["t-0"]), .nameTaken)
      try expectEqual(
        try await store.changeGroup(key: "k", sender: Stage.sender, adding: ["t-2"]), .tooManyMembers)
      try expectEqual(
        try await store.changeGroup(key: "k", sender: Stage.sender, adding: ["nobody"]), .noValidTokens)
      try expectEqual(
        try await store.changeGroup(key: "no", sender: Stage.sender, adding: ["t-2"]), .notFound)
      try expectEqual(try await store.changeGroup(key: "k", sender: SenderID(7), adding: ["t-2"]), .notFound)
      try expectEqual(
        try await store.changeGroup(key: "k", name: "x", sender: Stage.sender, removing: ["t-0"]),
        .nameMismatch)
      try expectEqual(try await store.group(key: "k"), group)
      guard
        case .done(let changed) = try await store.changeGroup(
          key: "k", name: "g", sender: Stage.sender, adding: ["t-2"], removing: ["t-0"])
      else { throw ConformanceFailure(description: "the group is changed") }
      try expectEqual(changed.members.map(\.registration.token), ["t-1", "t-2"])
    },
    .init("a group goes with its last member") { stage in
      _ = try await stage.crowd("t", 2)
      for (key, tokens) in [("a", ["t-0"]), ("b", ["t-0", "t-1"])] {
        _ = try await stage.store.createGroup(
          key: key, name: key, sender: Stage.sender, tokens: tokens, now: stage.now)
      }
      _ = try await stage.store.unregister("t-0", now: stage.now)
      try expectEqual(try await stage.store.group(key: "a"), nil)
      try expectEqual(try await stage.store.group(key: "b")?.members.map(\.registration.token), ["t-1"])
      try expectEqual(
        try await stage.store.changeGroup(key: "b", sender: Stage.sender, removing: ["t-1"]), .deleted)
      try expectEqual(try await stage.store.counts()["groups"], 0)
    },
    .init("a new token takes over the groups of the one it replaces") { stage in
      _ = try await stage.crowd("t", 2)
      _ = try await stage.store.createGroup(
        key: "a", name: "a", sender: Stage.sender, tokens: ["t-0", "t-1"], now: stage.now)
      _ = try await stage.store.register(
        stage.request("new", device: "t-0", previous: "t-0"), now: stage.now)
      try expectEqual(
        try await stage.store.group(key: "a")?.members.map(\.registration.token), ["t-1", "new"])
    },
    .init("a user is the active registrations that name it, and a badge") { stage in
      for (index, user) in ["ana", "ben", "ana"].enumerated() {
        _ = try await stage.store.register(
          stage.request("u-\(index)", device: "u-\(index)", user: user), now: stage.now)
      }
      _ = try await stage.store.register(
        stage.request("o", device: "o", sender: SenderID(7), user: "ana"), now: stage.now)
      let store = stage.store
      func tokens(_ user: String) async throws -> [String] {
        try await store.devices(ofUser: user, sender: Stage.sender).registrations.map(\.registration.token)
      }
      try expectEqual(try await tokens("ana"), ["u-0", "u-2"])
      try expectEqual(
        try await store.devices(ofUser: "ana", sender: Stage.sender, max: 1).registrations.count, 1)
      _ = try await store.unregister("u-0", now: stage.now)
      try expectEqual(try await tokens("ana"), ["u-2"])
      try expectEqual(try await tokens("nobody"), [])
      try expectEqual(
        try await store.users(sender: Stage.sender, max: 10),
        [
          UserSummary(user: "ana", registrations: 1, badge: 0),
          UserSummary(user: "ben", registrations: 1, badge: 0),
        ])
      try expectEqual(try await store.users(sender: Stage.sender, after: "ana", max: 10).map(\.user), ["ben"])
    },
    .init("a badge counts up, is set, and outlives a crash") { stage in
      let store = stage.store
      try expectEqual(
        try await store.countBadges(["ana", "ben", "ana"], sender: Stage.sender, step: 2), [2, 2, 4])
      try await stage.store.setBadge(9, ofUser: "ana", sender: Stage.sender)
      try await stage.crash()
      try expectEqual(try await stage.store.countBadges(["ana"], sender: Stage.sender, step: 1), [10])
      try expectEqual(try await stage.store.countBadges(["ana"], sender: SenderID(7), step: 1), [1])
      try await stage.store.setBadge(-5, ofUser: "ana", sender: Stage.sender)
      try expectEqual(try await stage.store.devices(ofUser: "ana", sender: Stage.sender).badge, 0)
    },
    .init("badges counted at once add up") { stage in
      let store = stage.store
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<40 {
          group.addTask { _ = try await store.countBadges(["ana"], sender: Stage.sender, step: 1) }
        }
        try await group.waitForAll()
      }
      try expectEqual(try await store.devices(ofUser: "ana", sender: Stage.sender).badge, 40)
    },
  ]
}
