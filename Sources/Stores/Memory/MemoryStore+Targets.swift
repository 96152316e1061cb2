package import PushModel
package import Seams

extension MemoryStore {
  package func change(
    _ subscriptions: [SubscriptionChange], now: WallTime, _ done: @escaping Completion<[SubscriptionOutcome]>
  ) {
    run(.changeSubscriptions, done) { .success($0.change(subscriptions, now: now)) }
  }

  package func topics(of token: String, _ done: @escaping Completion<[Subscription]?>) {
    run(.topics, done) { .success($0.subscriptions(of: token)) }
  }

  package func topics(
    sender: SenderID, after: TopicName?, max: Int, _ done: @escaping Completion<[TopicSummary]>
  ) {
    run(.topics, done) { .success($0.topicPage(sender, after: after, max: max)) }
  }

  package func subscribers(
    of topic: TopicName, sender: SenderID, after: RegistrationNumber?, max: Int,
    _ done: @escaping Completion<[NumberedRegistration]>
  ) {
    run(.topics, done) { .success($0.subscribers(topic, sender, after: after, max: max)) }
  }

  package func begin(_ fanout: FanoutJob, _ done: @escaping Completion<Void>) {
    run(.beginFanout, done) { .success($0.begin(fanout)) }
  }

  package func advance(
    fanouts jobs: [MessageNumber], max: Int, spares: [MessageNumber], now: WallTime,
    _ done: @escaping Completion<[FanoutSlice]>
  ) {
    run(.advanceFanouts, done) { .success($0.advance(jobs, max: max, spares: spares, now: now)) }
  }

  package func fanouts(since: WallTime, _ done: @escaping Completion<[FanoutProgress]>) {
    run(.fanouts, done) { .success($0.fanoutProgress(since: since)) }
  }

  package func fanout(of key: MessageKey, _ done: @escaping Completion<FanoutProgress?>) {
    run(.fanouts, done) { .success($0.fanoutProgress(of: key)) }
  }

  package func pruneFanouts(
    before: WallTime, max: Int, now: WallTime, _ done: @escaping Completion<Int>
  ) {
    run(.pruneFanouts, done) { .success($0.pruneFanouts(before: before, max: max, now: now)) }
  }
}

extension MemoryStore {
  package func createGroup(
    key: String, name: String, sender: SenderID, tokens: [String], now: WallTime,
    _ done: @escaping Completion<GroupOutcome>
  ) {
    run(.changeGroup, done) { .success($0.createGroup(key, name, sender, tokens, now: now)) }
  }

  package func changeGroup(
    key: String, name: String?, sender: SenderID, adding: [String], removing: [String],
    _ done: @escaping Completion<GroupOutcome>
  ) {
    run(.changeGroup, done) {
      .success($0.changeGroup(key, name, sender, adding: adding, removing: removing))
    }
  }

  package func group(key: String, _ done: @escaping Completion<DeviceGroup?>) {
    run(.groups, done) { .success($0.group(key)) }
  }

  package func group(named name: String, sender: SenderID, _ done: @escaping Completion<DeviceGroup?>) {
    run(.groups, done) { .success($0.group(named: name, sender)) }
  }

  package func groups(
    sender: SenderID, after name: String?, max: Int, _ done: @escaping Completion<[DeviceGroup]>
  ) {
    run(.groups, done) { .success($0.groupPage(sender, after: name, max: max)) }
  }

  package func devices(
    ofUser user: String, sender: SenderID, max: Int, _ done: @escaping Completion<UserDevices>
  ) {
    run(.users, done) { .success($0.devices(ofUser: user, sender, max: max)) }
  }

  package func users(
    sender: SenderID, after: String?, max: Int, _ done: @escaping Completion<[UserSummary]>
  ) {
    run(.users, done) { .success($0.userPage(sender, after: after, max: max)) }
  }

  package func countBadges(
    _ users: [String], sender: SenderID, step: Int, _ done: @escaping Completion<[Int64]>
  ) {
    run(.changeBadge, done) { .success($0.countBadges(users, sender, step: step)) }
  }

  package func setBadge(
    _ badge: Int64, ofUser user: String, sender: SenderID, _ done: @escaping Completion<Void>
  ) {
    run(.changeBadge, done) { .success($0.setBadge(badge, user, sender)) }
  }
}
