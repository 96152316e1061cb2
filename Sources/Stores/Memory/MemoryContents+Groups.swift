import PushModel
import Seams

extension MemoryContents {
  struct Group: Sendable {
    var sender: SenderID
    var name: String
    var createdAt: WallTime
    /// In rising order.
    var members: [RegistrationNumber]
  }

  struct UserPlace: Hashable, Sendable {
    var sender: SenderID
    var user: String
  }

  private func members(_ tokens: [String], of sender: SenderID) -> [RegistrationNumber] {
    let found = tokens.compactMap(active).filter { $0.registration.sender == sender }
    return Set(found.map(\.number)).sorted()
  }

  mutating func createGroup(
    _ key: String, _ name: String, _ sender: SenderID, _ tokens: [String], now: WallTime
  ) -> GroupOutcome {
    guard groups[key] == nil, group(named: name, sender) == nil else { return .nameTaken }
    let members = members(tokens, of: sender)
    guard !members.isEmpty else { return .noValidTokens }
    guard members.count <= limits.groupMembersMax else { return .tooManyMembers }
    groups[key] = Group(sender: sender, name: name, createdAt: now, members: members)
    return outcome(key)
  }

  mutating func changeGroup(
    _ key: String, _ name: String?, _ sender: SenderID, adding: [String], removing: [String]
  ) -> GroupOutcome {
    guard let group = groups[key], group.sender == sender else { return .notFound }
    if let name, name != group.name { return .nameMismatch }
    let added = members(adding, of: sender)
    if !adding.isEmpty, added.isEmpty { return .noValidTokens }
    let removed = members(removing, of: sender)
    let left = Set(group.members).union(added).subtracting(removed).sorted()
    guard left.count <= limits.groupMembersMax else { return .tooManyMembers }
    groups[key]?.members = left
    if left.isEmpty { groups[key] = nil }
    return outcome(key)
  }

  private func outcome(_ key: String) -> GroupOutcome { group(key).map { .done($0) } ?? .deleted }

  func group(_ key: String) -> DeviceGroup? {
    groups[key].map {
      DeviceGroup(
        key: key, sender: $0.sender, name: $0.name, createdAt: $0.createdAt,
        members: $0.members.compactMap(numbered))
    }
  }

  func group(named name: String, _ sender: SenderID) -> DeviceGroup? {
    groups.first { $0.value.name == name && $0.value.sender == sender }.flatMap { group($0.key) }
  }

  func groupPage(_ sender: SenderID, after: String?, max: Int) -> [DeviceGroup] {
    groups.filter { $0.value.sender == sender && (after == nil || $0.value.name > after ?? "") }
      .sorted { $0.value.name < $1.value.name }.prefix(Swift.max(0, max)).compactMap { group($0.key) }
  }

  func devices(ofUser user: String, _ sender: SenderID, max: Int) -> UserDevices {
    let all = (numbersOfSender[sender] ?? []).compactMap(numbered).filter {
      $0.registration.user == user && $0.registration.state == .active
    }
    return UserDevices(
      registrations: Array(all.prefix(Swift.max(0, max))),
      badge: badges[UserPlace(sender: sender, user: user)] ?? 0)
  }

  func userPage(_ sender: SenderID, after: String?, max: Int) -> [UserSummary] {
    var counts: [String: Int] = [:]
    for number in numbersOfSender[sender] ?? [] {
      guard let row = numbered(number)?.registration, row.state == .active, let user = row.user else {
        continue
      }
      if after == nil || user > after ?? "" { counts[user, default: 0] += 1 }
    }
    return counts.sorted { $0.key < $1.key }.prefix(Swift.max(0, max)).map {
      UserSummary(
        user: $0.key, registrations: $0.value, badge: badges[UserPlace(sender: sender, user: $0.key)] ?? 0)
    }
  }

  mutating func countBadges(_ users: [String], _ sender: SenderID, step: Int) -> [Int64] {
    users.map { user in
      let place = UserPlace(sender: sender, user: user)
      let sum = Swift.max(0, (badges[place] ?? 0) + Int64(step))
      badges[place] = sum
      return sum
    }
  }

  mutating func setBadge(_ badge: Int64, _ user: String, _ sender: SenderID) {
    badges[UserPlace(sender: sender, user: user)] = Swift.max(0, badge)
  }
}
