package import PushModel
package import Seams
package import Stores

extension SQLiteStore {
  package func change(
    _ subscriptions: [SubscriptionChange], now: WallTime, _ done: @escaping Completion<[SubscriptionOutcome]>
  ) {
    onWriter(done) { writer throws(SQLiteFailure) in .success(try writer.change(subscriptions, now: now)) }
  }

  package func topics(of token: String, _ done: @escaping Completion<[Subscription]?>) {
    onQuick(done) { reader throws(SQLiteFailure) in try reader.targets.topics(of: token) }
  }

  package func topics(
    sender: SenderID, after: TopicName?, max: Int, _ done: @escaping Completion<[TopicSummary]>
  ) {
    onSlow(done) { reader throws(SQLiteFailure) in
      try reader.targets.topics(sender: sender, after: after, max: max)
    }
  }

  package func subscribers(
    of topic: TopicName, sender: SenderID, after: RegistrationNumber?, max: Int,
    _ done: @escaping Completion<[NumberedRegistration]>
  ) {
    onSlow(done) { reader throws(SQLiteFailure) in
      try reader.targets.subscribers(of: topic, sender: sender, after: after, max: max)
    }
  }

  package func begin(_ fanout: FanoutJob, _ done: @escaping Completion<Void>) {
    onWriter(done) { writer throws(SQLiteFailure) in .success(try writer.begin(fanout)) }
  }

  package func advance(
    fanouts jobs: [MessageNumber], max: Int, spares: [MessageNumber], now: WallTime,
    _ done: @escaping Completion<[FanoutSlice]>
  ) {
    onWriter(done) { writer throws(SQLiteFailure) in
      .success(try writer.advance(jobs, max: max, spares: spares, now: now))
    }
  }

  package func fanouts(since: WallTime, _ done: @escaping Completion<[FanoutProgress]>) {
    onSlow(done) { reader throws(SQLiteFailure) in try reader.targets.fanouts(since: since) }
  }

  package func fanout(of key: MessageKey, _ done: @escaping Completion<FanoutProgress?>) {
    onQuick(done) { reader throws(SQLiteFailure) in try reader.targets.fanout(of: key) }
  }

  package func pruneFanouts(
    before: WallTime, max: Int, now: WallTime, _ done: @escaping Completion<Int>
  ) {
    onWriter(done) { writer throws(SQLiteFailure) in
      .success(try writer.pruneFanouts(before: before, max: max, now: now))
    }
  }
}

extension SQLiteStore {
  package func createGroup(
    key: String, name: String, sender: SenderID, tokens: [String], now: WallTime,
    _ done: @escaping Completion<GroupOutcome>
  ) {
    onWriter(done) { writer throws(SQLiteFailure) in
      .success(try writer.createGroup(key, name, sender, tokens, now: now))
    }
  }

  package func changeGroup(
    key: String, name: String?, sender: SenderID, adding: [String], removing: [String],
    _ done: @escaping Completion<GroupOutcome>
  ) {
    onWriter(done) { writer throws(SQLiteFailure) in
      .success(try writer.changeGroup(key, name, sender, adding: adding, removing: removing))
    }
  }

  package func group(key: String, _ done: @escaping Completion<DeviceGroup?>) {
    onQuick(done) { reader throws(SQLiteFailure) in try reader.targets.group(key: key) }
  }

  package func group(named name: String, sender: SenderID, _ done: @escaping Completion<DeviceGroup?>) {
    onQuick(done) { reader throws(SQLiteFailure) in try reader.targets.group(named: name, sender: sender) }
  }

  package func groups(
    sender: SenderID, after name: String?, max: Int, _ done: @escaping Completion<[DeviceGroup]>
  ) {
    onSlow(done) { reader throws(SQLiteFailure) in
      try reader.targets.groups(sender: sender, after: name, max: max)
    }
  }

  package func devices(
    ofUser user: String, sender: SenderID, max: Int, _ done: @escaping Completion<UserDevices>
  ) {
    onQuick(done) { reader throws(SQLiteFailure) in
      try reader.targets.devices(ofUser: user, sender: sender, max: max)
    }
  }

  package func users(
    sender: SenderID, after: String?, max: Int, _ done: @escaping Completion<[UserSummary]>
  ) {
    onSlow(done) { reader throws(SQLiteFailure) in
      try reader.targets.users(sender: sender, after: after, max: max)
    }
  }

  package func countBadges(
    _ users: [String], sender: SenderID, step: Int, _ done: @escaping Completion<[Int64]>
  ) {
    onWriter(done) { writer throws(SQLiteFailure) in
      .success(try writer.countBadges(users, sender, step: step))
    }
  }

  package func setBadge(
    _ badge: Int64, ofUser user: String, sender: SenderID, _ done: @escaping Completion<Void>
  ) {
    onWriter(done) { writer throws(SQLiteFailure) in .success(try writer.setBadge(badge, user, sender)) }
  }
}
