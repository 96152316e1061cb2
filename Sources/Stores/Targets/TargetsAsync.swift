package import PushModel
package import Seams

extension TopicStore {
  package func change(
    _ subscriptions: [SubscriptionChange], now: WallTime
  ) async throws(StoreFault) -> [SubscriptionOutcome] {
    try await answer { change(subscriptions, now: now, $0) }
  }

  package func topics(of token: String) async throws(StoreFault) -> [Subscription]? {
    try await answer { topics(of: token, $0) }
  }

  package func topics(
    sender: SenderID, after: TopicName? = nil, max: Int
  ) async throws(StoreFault) -> [TopicSummary] {
    try await answer { topics(sender: sender, after: after, max: max, $0) }
  }

  package func subscribers(
    of topic: TopicName, sender: SenderID, after: RegistrationNumber? = nil, max: Int
  ) async throws(StoreFault) -> [NumberedRegistration] {
    try await answer { subscribers(of: topic, sender: sender, after: after, max: max, $0) }
  }

  package func begin(_ fanout: FanoutJob) async throws(StoreFault) {
    try await answer { begin(fanout, $0) }
  }

  package func advance(
    fanouts jobs: [MessageNumber], max: Int, spares: [MessageNumber], now: WallTime
  ) async throws(StoreFault) -> [FanoutSlice] {
    try await answer { advance(fanouts: jobs, max: max, spares: spares, now: now, $0) }
  }

  package func fanouts(since: WallTime) async throws(StoreFault) -> [FanoutProgress] {
    try await answer { fanouts(since: since, $0) }
  }

  package func fanout(of key: MessageKey) async throws(StoreFault) -> FanoutProgress? {
    try await answer { fanout(of: key, $0) }
  }

  package func pruneFanouts(before: WallTime, max: Int, now: WallTime) async throws(StoreFault) -> Int {
    try await answer { pruneFanouts(before: before, max: max, now: now, $0) }
  }
}

extension AudienceStore {
  package func createGroup(
    key: String, name: String, sender: SenderID, tokens: [String], now: WallTime
  ) async throws(StoreFault) -> GroupOutcome {
    try await answer { createGroup(key: key, name: name, sender: sender, tokens: tokens, now: now, $0) }
  }

  package func changeGroup(
    key: String, name: String? = nil, sender: SenderID, adding: [String] = [], removing: [String] = []
  ) async throws(StoreFault) -> GroupOutcome {
    try await answer {
      changeGroup(key: key, name: name, sender: sender, adding: adding, removing: removing, $0)
    }
  }

  package func group(key: String) async throws(StoreFault) -> DeviceGroup? {
    try await answer { group(key: key, $0) }
  }

  package func group(named name: String, sender: SenderID) async throws(StoreFault) -> DeviceGroup? {
    try await answer { group(named: name, sender: sender, $0) }
  }

  package func groups(
    sender: SenderID, after name: String? = nil, max: Int
  ) async throws(StoreFault) -> [DeviceGroup] {
    try await answer { groups(sender: sender, after: name, max: max, $0) }
  }

  package func devices(
    ofUser user: String, sender: SenderID, max: Int = 1_000
  ) async throws(StoreFault) -> UserDevices {
    try await answer { devices(ofUser: user, sender: sender, max: max, $0) }
  }

  package func users(
    sender: SenderID, after: String? = nil, max: Int
  ) async throws(StoreFault) -> [UserSummary] {
    try await answer { users(sender: sender, after: after, max: max, $0) }
  }

  package func countBadges(
    _ users: [String], sender: SenderID, step: Int
  ) async throws(StoreFault) -> [Int64] {
    try await answer { countBadges(users, sender: sender, step: step, $0) }
  }

  package func setBadge(_ badge: Int64, ofUser user: String, sender: SenderID) async throws(StoreFault) {
    try await answer { setBadge(badge, ofUser: user, sender: sender, $0) }
  }
}
