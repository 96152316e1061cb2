package import PushModel
package import Seams
package import Stores

extension PostgresStore {
  package func change(
    _ subscriptions: [SubscriptionChange], now: WallTime, _ done: @escaping Completion<[SubscriptionOutcome]>
  ) {
    let limits = limits
    stepwise(edits, done) { session throws(PostgresFailure) in
      var outcomes: [SubscriptionOutcome] = []
      for change in subscriptions {
        outcomes.append(try Self.apply(change, limits, now: now, on: session))
      }
      return .success(outcomes)
    }
  }

  private static func apply(
    _ change: SubscriptionChange, _ limits: StoreLimits, now: WallTime, on session: Session
  ) throws(PostgresFailure) -> SubscriptionOutcome {
    let found = try session.query(.activeForUpdate, text: change.token)
    guard found.count > 0 else { return .unknownToken }
    let number = found.int(0, 0)
    guard found.int(0, 1) == change.sender.value else { return .senderMismatch }
    var topic = try topicID(change.topic, change.sender, on: session)
    if !change.isSubscribed {
      guard let topic else { return .unchanged }
      var parameters = Parameters()
      parameters.int(topic)
      parameters.int(number)
      return try session.query(.leave, parameters).changed > 0 ? .changed : .unchanged
    }
    var parameters = Parameters()
    parameters.int(number)
    parameters.int(Int64(limits.topicsPerTokenMax))
    let isFull = try session.query(.topicCount, parameters).int(0, 0) >= Int64(limits.topicsPerTokenMax)
    if topic == nil {
      guard !isFull else { return .tooManyTopics }
      parameters = Parameters()
      parameters.int(change.sender.value)
      parameters.text(change.topic.text)
      topic = try session.query(.insertTopic, parameters).int(0, 0)
    }
    guard let topic else { return .unchanged }
    parameters = Parameters()
    parameters.int(topic)
    parameters.int(number)
    let leaving = parameters
    parameters.int(now.ms)
    guard try session.query(.join, parameters).changed > 0 else { return .unchanged }
    guard !isFull else {
      // Only now is it known not to be a repeat.
      _ = try session.query(.leave, leaving)
      return .tooManyTopics
    }
    return .changed
  }

  /// The number that a topic has in the tables; nil while nobody has been in it.
  static func topicID(
    _ name: TopicName, _ sender: SenderID, on session: Session
  ) throws(PostgresFailure) -> Int64? {
    var parameters = Parameters()
    parameters.int(sender.value)
    parameters.text(name.text)
    let rows = try session.query(.topicID, parameters)
    return rows.count > 0 ? rows.int(0, 0) : nil
  }

  package func topics(of token: String, _ done: @escaping Completion<[Subscription]?>) {
    stepwise(scans, done) { session throws(PostgresFailure) in
      let found = try session.query(.active, text: token)
      guard found.count > 0 else { return .success(nil) }
      var parameters = Parameters()
      parameters.int(found.int(0, 0))
      let rows = try session.query(.topicsOf, parameters)
      var topics: [Subscription] = []
      for row in 0..<rows.count {
        guard let name = TopicName(rows.text(row, 0)) else { throw .corrupt("table topic: name") }
        topics.append(Subscription(topic: name, since: WallTime(ms: rows.int(row, 1))))
      }
      return .success(topics)
    }
  }

  package func topics(
    sender: SenderID, after: TopicName?, max: Int, _ done: @escaping Completion<[TopicSummary]>
  ) {
    var parameters = Parameters()
    parameters.int(sender.value)
    parameters.text(after?.text ?? "")
    parameters.int(pageMax(max))
    query(scans, .topicPage, parameters, done) { rows throws(PostgresFailure) in
      var topics: [TopicSummary] = []
      for row in 0..<rows.count {
        guard let name = TopicName(rows.text(row, 0)) else { throw .corrupt("table topic: name") }
        topics.append(TopicSummary(topic: name, subscribers: Int(rows.int(row, 1))))
      }
      return topics
    }
  }

  package func subscribers(
    of topic: TopicName, sender: SenderID, after: RegistrationNumber?, max: Int,
    _ done: @escaping Completion<[NumberedRegistration]>
  ) {
    var parameters = Parameters()
    parameters.int(sender.value)
    parameters.text(topic.text)
    parameters.int(after?.value ?? 0)
    parameters.int(pageMax(max))
    query(scans, .subscriberPage, parameters, done) { rows throws(PostgresFailure) in try rows.numbered() }
  }
}
