package import PushModel
package import Seams
package import Stores

extension PostgresStore {
  package func createGroup(
    key: String, name: String, sender: SenderID, tokens: [String], now: WallTime,
    _ done: @escaping Completion<GroupOutcome>
  ) {
    let limits = limits
    stepwise(edits, done) { session throws(PostgresFailure) in
      let named = Self.groupName(name, sender)
      guard try session.query(.groupByKey, text: key).count == 0,
        try session.query(.groupByName, named).count == 0
      else { return .success(.nameTaken) }
      let numbers = try Self.members(tokens, of: sender, on: session)
      guard !numbers.isEmpty else { return .success(.noValidTokens) }
      guard numbers.count <= limits.groupMembersMax else { return .success(.tooManyMembers) }
      var parameters = Parameters()
      parameters.text(key)
      parameters.int(sender.value)
      parameters.blob(Optional(name))
      parameters.int(now.ms)
      let id = try session.query(.insertGroup, parameters).int(0, 0)
      for number in numbers.sorted() { try Self.change(.insertMember, number, of: id, on: session) }
      return .success(try Self.outcome(key, on: session))
    }
  }

  package func changeGroup(
    key: String, name: String?, sender: SenderID, adding: [String], removing: [String],
    _ done: @escaping Completion<GroupOutcome>
  ) {
    let limits = limits
    stepwise(edits, done) { session throws(PostgresFailure) in
      let found = try session.query(.groupForUpdate, text: key)
      guard found.count > 0, found.int(0, 1) == sender.value else { return .success(.notFound) }
      let id = found.int(0, 0)
      if let name, name != found.text(0, 2) { return .success(.nameMismatch) }
      let added = try Self.members(adding, of: sender, on: session)
      if !adding.isEmpty, added.isEmpty { return .success(.noValidTokens) }
      let removed = try Self.members(removing, of: sender, on: session)
      var parameters = Parameters()
      parameters.int(id)
      let present = Set(try session.query(.groupMembers, parameters).numbered().map(\.number.value))
      guard present.union(added).subtracting(removed).count <= limits.groupMembersMax else {
        return .success(.tooManyMembers)
      }
      for number in added.sorted() { try Self.change(.insertMember, number, of: id, on: session) }
      for number in removed.sorted() { try Self.change(.deleteMember, number, of: id, on: session) }
      _ = try session.query(.deleteGroup, parameters)
      return .success(try Self.outcome(key, on: session))
    }
  }

  private static func groupName(_ name: String, _ sender: SenderID) -> Parameters {
    var parameters = Parameters()
    parameters.int(sender.value)
    parameters.blob(Optional(name))
    return parameters
  }

  private static func members(
    _ tokens: [String], of sender: SenderID, on session: Session
  ) throws(PostgresFailure) -> Set<Int64> {
    var numbers: Set<Int64> = []
    for token in tokens {
      let found = try session.query(.active, text: token)
      if found.count > 0, found.int(0, 1) == sender.value { numbers.insert(found.int(0, 0)) }
    }
    return numbers
  }

  private static func change(
    _ statement: SQL, _ number: Int64, of group: Int64, on session: Session
  ) throws(PostgresFailure) {
    var parameters = Parameters()
    parameters.int(group)
    parameters.int(number)
    _ = try session.query(statement, parameters)
  }

  private static func outcome(_ key: String, on session: Session) throws(PostgresFailure) -> GroupOutcome {
    let group = try group(try session.query(.groupByKey, text: key), on: session).first
    return group.map { .done($0) } ?? .deleted
  }

  /// The groups of a statement, with their members.
  private static func group(_ rows: Rows, on session: Session) throws(PostgresFailure) -> [DeviceGroup] {
    var groups: [DeviceGroup] = []
    for row in 0..<rows.count {
      var (id, group) = rows.group(row)
      var parameters = Parameters()
      parameters.int(id)
      group.members = try session.query(.groupMembers, parameters).numbered()
      groups.append(group)
    }
    return groups
  }

  package func group(key: String, _ done: @escaping Completion<DeviceGroup?>) {
    stepwise(scans, done) { session throws(PostgresFailure) in
      .success(try Self.group(try session.query(.groupByKey, text: key), on: session).first)
    }
  }

  package func group(named name: String, sender: SenderID, _ done: @escaping Completion<DeviceGroup?>) {
    stepwise(scans, done) { session throws(PostgresFailure) in
      let rows = try session.query(.groupByName, Self.groupName(name, sender))
      return .success(try Self.group(rows, on: session).first)
    }
  }

  package func groups(
    sender: SenderID, after name: String?, max: Int, _ done: @escaping Completion<[DeviceGroup]>
  ) {
    stepwise(scans, done) { session throws(PostgresFailure) in
      var parameters = Self.groupName(name ?? "", sender)
      parameters.int(pageMax(max))
      return .success(try Self.group(try session.query(.groupPage, parameters), on: session))
    }
  }

  package func devices(
    ofUser user: String, sender: SenderID, max: Int, _ done: @escaping Completion<UserDevices>
  ) {
    pipelined(
      reads, done,
      send: { session throws(PostgresFailure) in
        let user = Self.groupName(user, sender)
        var page = user
        page.int(pageMax(max))
        try session.send(.userRegistrations, page)
        try session.send(.badge, user)
      },
      take: { session throws(PostgresFailure) in
        let registrations = try session.rows().numbered()
        let badge = try session.rows()
        return UserDevices(registrations: registrations, badge: badge.count > 0 ? badge.int(0, 0) : 0)
      })
  }

  package func users(
    sender: SenderID, after: String?, max: Int, _ done: @escaping Completion<[UserSummary]>
  ) {
    var parameters = Parameters()
    parameters.int(sender.value)
    parameters.blob(after)
    parameters.int(pageMax(max))
    query(scans, .userPage, parameters, done) { rows throws(PostgresFailure) in
      (0..<rows.count).map {
        UserSummary(user: rows.text($0, 0), registrations: Int(rows.int($0, 1)), badge: rows.int($0, 2))
      }
    }
  }

  package func countBadges(
    _ users: [String], sender: SenderID, step: Int, _ done: @escaping Completion<[Int64]>
  ) {
    pipelined(
      claims, done,
      send: { session throws(PostgresFailure) in
        for user in users {
          var parameters = Self.groupName(user, sender)
          parameters.int(Int64(step))
          try session.send(.addBadge, parameters)
        }
      },
      take: { session throws(PostgresFailure) in
        var sums: [Int64] = []
        for _ in users { sums.append(try session.rows().int(0, 0)) }
        return sums
      })
  }

  package func setBadge(
    _ badge: Int64, ofUser user: String, sender: SenderID, _ done: @escaping Completion<Void>
  ) {
    var parameters = Self.groupName(user, sender)
    parameters.int(badge)
    query(claims, .setBadge, parameters, done) { _ throws(PostgresFailure) in }
  }
}
