import PushModel
import Seams

extension MemoryContents {
  struct TopicPlace: Hashable, Sendable {
    var sender: SenderID
    var name: TopicName
  }

  /// A topic with at least one member.
  struct Topic: Sendable {
    /// In rising order.
    var members: [RegistrationNumber] = []

    /// The place of the first member above `number`.
    func index(after number: RegistrationNumber?) -> Int {
      guard let number else { return 0 }
      var low = 0
      var high = members.count
      while low < high {
        let middle = (low + high) / 2
        if members[middle] <= number { low = middle + 1 } else { high = middle }
      }
      return low
    }

    func contains(_ number: RegistrationNumber) -> Bool {
      let place = index(after: number)
      return place > 0 && members[place - 1] == number
    }
  }

  /// The registration of a number with that number.
  func numbered(_ number: RegistrationNumber) -> NumberedRegistration? {
    guard tokens.indices.contains(Int(number.value) - 1),
      let registration = registrations[tokens[Int(number.value) - 1]]
    else { return nil }
    return NumberedRegistration(number: number, registration: seen(registration))
  }

  /// The active registration of a token, or of the one it is an alias of.
  func active(_ token: String) -> NumberedRegistration? {
    guard let found = registrations[token] else { return nil }
    var token = token
    if case .alias(let canonical) = found.state { token = canonical }
    guard let number = numbers[token], let active = numbered(number),
      active.registration.state == .active
    else { return nil }
    return active
  }

  mutating func change(_ changes: [SubscriptionChange], now: WallTime) -> [SubscriptionOutcome] {
    changes.map { change in
      guard let found = active(change.token) else { return .unknownToken }
      guard found.registration.sender == change.sender else { return .senderMismatch }
      let isIn = topicsOf[found.number]?[change.topic] != nil
      guard isIn != change.isSubscribed else { return .unchanged }
      if change.isSubscribed {
        guard topicsOf[found.number, default: [:]].count < limits.topicsPerTokenMax else {
          return .tooManyTopics
        }
        join(change.topic, change.sender, found.number, since: now)
      } else {
        leave(change.topic, change.sender, found.number)
      }
      return .changed
    }
  }

  private mutating func join(
    _ topic: TopicName, _ sender: SenderID, _ number: RegistrationNumber, since: WallTime
  ) {
    topicsOf[number, default: [:]][topic] = since
    let place = TopicPlace(sender: sender, name: topic)
    var entry = topics.removeValue(forKey: place) ?? Topic()
    entry.members.insert(number, at: entry.index(after: number))
    topics[place] = entry
  }

  private mutating func leave(_ topic: TopicName, _ sender: SenderID, _ number: RegistrationNumber) {
    topicsOf[number]?[topic] = nil
    if topicsOf[number]?.isEmpty == true { topicsOf[number] = nil }
    let place = TopicPlace(sender: sender, name: topic)
    guard var entry = topics.removeValue(forKey: place) else { return }
    let index = entry.index(after: number)
    if index > 0, entry.members[index - 1] == number { entry.members.remove(at: index - 1) }
    if !entry.members.isEmpty { topics[place] = entry }
  }

  /// A registration took another's place: topics and groups go with it.
  mutating func moveTargets(from old: RegistrationNumber, to new: RegistrationNumber) {
    guard let sender = numbered(old)?.registration.sender else { return }
    for (topic, since) in topicsOf[old] ?? [:] {
      leave(topic, sender, old)
      if topicsOf[new]?[topic] == nil { join(topic, sender, new, since: since) }
    }
    for key in groups.keys where groups[key]?.members.contains(old) == true {
      groups[key]?.members.removeAll { $0 == old || $0 == new }
      groups[key]?.members.append(new)
      groups[key]?.members.sort()
    }
  }

  /// A registration went away.
  mutating func leaveTargets(_ number: RegistrationNumber) {
    guard let sender = numbered(number)?.registration.sender else { return }
    for topic in (topicsOf[number] ?? [:]).keys { leave(topic, sender, number) }
    for key in groups.keys where groups[key]?.members.contains(number) == true {
      groups[key]?.members.removeAll { $0 == number }
      if groups[key]?.members.isEmpty == true { groups[key] = nil }
    }
  }

  func subscriptions(of token: String) -> [Subscription]? {
    guard let found = active(token) else { return nil }
    return (topicsOf[found.number] ?? [:]).map { Subscription(topic: $0, since: $1) }
      .sorted { $0.topic.text < $1.topic.text }
  }

  func topicPage(_ sender: SenderID, after: TopicName?, max: Int) -> [TopicSummary] {
    let matching = topics.filter { place, _ in
      place.sender == sender && after.map { place.name.text > $0.text } ?? true
    }
    return matching.sorted { $0.key.name.text < $1.key.name.text }.prefix(Swift.max(0, max)).map {
      TopicSummary(topic: $0.key.name, subscribers: $0.value.members.count)
    }
  }

  func subscribers(
    _ topic: TopicName, _ sender: SenderID, after: RegistrationNumber?, max: Int
  ) -> [NumberedRegistration] {
    guard let topic = topics[TopicPlace(sender: sender, name: topic)] else { return [] }
    return topic.members[topic.index(after: after)...].prefix(Swift.max(0, max)).compactMap(numbered)
  }
}
