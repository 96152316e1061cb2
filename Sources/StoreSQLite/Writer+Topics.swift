import PushModel
import Seams
import Stores

extension Writer {
  /// The active registration that a token stands for.
  private func active(
    _ token: String
  ) throws(SQLiteFailure) -> (number: RegistrationNumber, sender: SenderID, topics: Int)? {
    targets.active.bind(1, text: token)
    defer { targets.active.reset() }
    guard try targets.active.row() else { return nil }
    return (
      RegistrationNumber(targets.active.int(0)), SenderID(targets.active.int(1)), Int(targets.active.int(2))
    )
  }

  /// The number that a topic has in the tables; nil while nobody is in it.
  func topicID(_ name: TopicName, _ sender: SenderID) throws(SQLiteFailure) -> Int64? {
    targets.topic.bind(1, sender.value)
    targets.topic.bind(2, text: name.text)
    defer { targets.topic.reset() }
    return try targets.topic.row() ? targets.topic.int(0) : nil
  }

  func change(
    _ changes: [SubscriptionChange], now: WallTime
  ) throws(SQLiteFailure) -> [SubscriptionOutcome] {
    var outcomes: [SubscriptionOutcome] = []
    outcomes.reserveCapacity(changes.count)
    for change in changes { outcomes.append(try apply(change, now: now)) }
    return outcomes
  }

  private func apply(
    _ change: SubscriptionChange, now: WallTime
  ) throws(SQLiteFailure) -> SubscriptionOutcome {
    guard let found = try active(change.token) else { return .unknownToken }
    guard found.sender == change.sender else { return .senderMismatch }
    let known = try topicID(change.topic, change.sender)
    guard change.isSubscribed else {
      guard let known else { return .unchanged }
      return try leave(known, found.number) ? .changed : .unchanged
    }
    var id = known
    if id == nil {
      guard found.topics < limits.topicsPerTokenMax else { return .tooManyTopics }
      targets.insertTopic.bind(1, change.sender.value)
      targets.insertTopic.bind(2, text: change.topic.text)
      try targets.insertTopic.run()
      id = connection.lastInsertedID
    }
    guard let id, try join(id, found.number, since: now) else { return .unchanged }
    guard found.topics < limits.topicsPerTokenMax else {
      // Only now is it known not to be a repeat.
      _ = try leave(id, found.number)
      return .tooManyTopics
    }
    return .changed
  }

  /// False when it was in the topic already.
  private func join(
    _ topic: Int64, _ number: RegistrationNumber, since: WallTime
  ) throws(SQLiteFailure) -> Bool {
    targets.insertSubscription.bind(1, topic)
    targets.insertSubscription.bind(2, number.value)
    targets.insertSubscription.bind(3, since.ms)
    try targets.insertSubscription.run()
    guard connection.changes > 0 else { return false }
    try count(topic, number, by: 1)
    return true
  }

  /// False when it was not in the topic.
  private func leave(_ topic: Int64, _ number: RegistrationNumber) throws(SQLiteFailure) -> Bool {
    targets.deleteSubscription.bind(1, topic)
    targets.deleteSubscription.bind(2, number.value)
    try targets.deleteSubscription.run()
    guard connection.changes > 0 else { return false }
    try count(topic, number, by: -1)
    targets.deleteTopic.bind(1, topic)
    try targets.deleteTopic.run()
    return true
  }

  private func count(
    _ topic: Int64, _ number: RegistrationNumber, by step: Int64
  ) throws(SQLiteFailure) {
    targets.countTopic.bind(1, topic)
    targets.countTopic.bind(2, step)
    try targets.countTopic.run()
    targets.countTopics.bind(1, number.value)
    targets.countTopics.bind(2, step)
    try targets.countTopics.run()
  }

  // MARK: Registrations that move or go

  private func number(of token: String) throws(SQLiteFailure) -> RegistrationNumber? {
    targets.registrationNumber.bind(1, text: token)
    defer { targets.registrationNumber.reset() }
    return try targets.registrationNumber.row() ? RegistrationNumber(targets.registrationNumber.int(0)) : nil
  }

  /// Reads all rows of a statement before anything is changed.
  private func rows(
    _ statement: Statement, _ number: RegistrationNumber
  ) throws(SQLiteFailure) -> [(Int64, Int64)] {
    statement.bind(1, number.value)
    defer { statement.reset() }
    var found: [(Int64, Int64)] = []
    while try statement.row() { found.append((statement.int(0), statement.int(1))) }
    return found
  }

  /// A registration took another's place: topics and groups go with it.
  func moveTargets(from old: String, to new: String) throws(SQLiteFailure) {
    guard let old = try number(of: old), let new = try number(of: new) else { return }
    for (topic, since) in try rows(targets.subscriptionsOf, old) {
      // Join first: a topic without subscribers is deleted.
      _ = try join(topic, new, since: WallTime(ms: since))
      _ = try leave(topic, old)
    }
    for (group, _) in try rows(targets.groupsOf, old) {
      try addMember(new, to: group)
      try removeMember(old, from: group)
    }
  }

  /// A registration went away.
  func leaveTargets(_ token: String) throws(SQLiteFailure) {
    guard let number = try number(of: token) else { return }
    for (topic, _) in try rows(targets.subscriptionsOf, number) { _ = try leave(topic, number) }
    for (group, _) in try rows(targets.groupsOf, number) { try removeMember(number, from: group) }
  }

  // MARK: Groups

  private func addMember(_ number: RegistrationNumber, to group: Int64) throws(SQLiteFailure) {
    targets.insertMember.bind(1, group)
    targets.insertMember.bind(2, number.value)
    try targets.insertMember.run()
  }

  private func removeMember(_ number: RegistrationNumber, from group: Int64) throws(SQLiteFailure) {
    targets.deleteMember.bind(1, group)
    targets.deleteMember.bind(2, number.value)
    try targets.deleteMember.run()
    targets.deleteGroup.bind(1, group)
    try targets.deleteGroup.run()
  }

  private func members(
    _ tokens: [String], of sender: SenderID
  ) throws(SQLiteFailure) -> Set<RegistrationNumber> {
    var numbers: Set<RegistrationNumber> = []
    for token in tokens {
      if let found = try active(token), found.sender == sender { numbers.insert(found.number) }
    }
    return numbers
  }

  func createGroup(
    _ key: String, _ name: String, _ sender: SenderID, _ tokens: [String], now: WallTime
  ) throws(SQLiteFailure) -> GroupOutcome {
    targets.groupByKey.bind(1, text: key)
    let keyIsTaken = try targets.groupByKey.row()
    targets.groupByKey.reset()
    targets.groupByName.bind(1, sender.value)
    targets.groupByName.bind(2, text: name)
    let nameIsTaken = try targets.groupByName.row()
    targets.groupByName.reset()
    guard !keyIsTaken, !nameIsTaken else { return .nameTaken }
    let numbers = try members(tokens, of: sender)
    guard !numbers.isEmpty else { return .noValidTokens }
    guard numbers.count <= limits.groupMembersMax else { return .tooManyMembers }
    targets.insertGroup.bind(1, text: key)
    targets.insertGroup.bind(2, sender.value)
    targets.insertGroup.bind(3, text: name)
    targets.insertGroup.bind(4, now.ms)
    try targets.insertGroup.run()
    let id = connection.lastInsertedID
    for number in numbers { try addMember(number, to: id) }
    return try groupOutcome(key)
  }

  func changeGroup(
    _ key: String, _ name: String?, _ sender: SenderID, adding: [String], removing: [String]
  ) throws(SQLiteFailure) -> GroupOutcome {
    targets.groupByKey.bind(1, text: key)
    guard try targets.groupByKey.row() else { return .notFound }
    let (id, owner, known) = (
      targets.groupByKey.int(0), targets.groupByKey.int(1), targets.groupByKey.text(2)
    )
    targets.groupByKey.reset()
    guard owner == sender.value else { return .notFound }
    if let name, name != known { return .nameMismatch }
    let added = try members(adding, of: sender)
    if !adding.isEmpty, added.isEmpty { return .noValidTokens }
    let removed = try members(removing, of: sender)
    // The count of what would be there, before anything is changed.
    let present = try Set(targetReads.memberNumbers(id))
    guard present.union(added).subtracting(removed).count <= limits.groupMembersMax else {
      return .tooManyMembers
    }
    for number in added { try addMember(number, to: id) }
    for number in removed { try removeMember(number, from: id) }
    return try groupOutcome(key)
  }

  private func groupOutcome(_ key: String) throws(SQLiteFailure) -> GroupOutcome {
    if let group = try targetReads.group(key: key) { return .done(group) }
    return .deleted
  }

  // MARK: Badges

  func countBadges(
    _ users: [String], _ sender: SenderID, step: Int
  ) throws(SQLiteFailure) -> [Int64] {
    var sums: [Int64] = []
    for user in users {
      targets.addBadge.bind(1, sender.value)
      targets.addBadge.bind(2, text: user)
      targets.addBadge.bind(3, Int64(step))
      defer { targets.addBadge.reset() }
      sums.append(try targets.addBadge.row() ? targets.addBadge.int(0) : 0)
    }
    return sums
  }

  func setBadge(_ badge: Int64, _ user: String, _ sender: SenderID) throws(SQLiteFailure) {
    targets.setBadge.bind(1, sender.value)
    targets.setBadge.bind(2, text: user)
    targets.setBadge.bind(3, badge)
    try targets.setBadge.run()
  }
}
