package import PushModel
package import Seams

// A group is in every store that has a member of it, under one key and name.

extension SplitStore {
  package func group(key: String, _ done: @escaping Completion<DeviceGroup?>) {
    all(done, { $0.group(key: key, $1) }, join: { Self.whole($0.compactMap { $0 }) })
  }

  package func group(named name: String, sender: SenderID, _ done: @escaping Completion<DeviceGroup?>) {
    all(done, { $0.group(named: name, sender: sender, $1) }, join: { Self.whole($0.compactMap { $0 }) })
  }

  package func groups(
    sender: SenderID, after name: String?, max: Int, _ done: @escaping Completion<[DeviceGroup]>
  ) {
    all(
      done, { $0.groups(sender: sender, after: name, max: max, $1) },
      join: { pages in Self.merged(pages, max: max, name: \.name) { Self.joined($0, $1) } })
  }

  private static func whole(_ shares: [DeviceGroup]) -> DeviceGroup? {
    shares.dropFirst().reduce(shares.first) { whole, share in whole.map { joined($0, share) } }
  }

  private static func joined(_ left: DeviceGroup, _ right: DeviceGroup) -> DeviceGroup {
    var whole = left
    whole.createdAt = min(left.createdAt, right.createdAt)
    whole.members = (left.members + right.members).sorted { $0.number < $1.number }
    return whole
  }

  package func createGroup(
    key: String, name: String, sender: SenderID, tokens: [String], now: WallTime,
    _ done: @escaping Completion<GroupOutcome>
  ) {
    group(named: name, sender: sender) { [self] result in
      switch result {
      case .failure(let fault): done(.failure(fault))
      case .success(.some): done(.success(.nameTaken))
      case .success(nil):
        countMembers(tokens, sender: sender) { [self] result in
          switch result {
          case .failure(let fault): done(.failure(fault))
          case .success(let count) where count > limits.groupMembersMax: done(.success(.tooManyMembers))
          case .success:
            finish(key, done) { part, done in
              part.createGroup(key: key, name: name, sender: sender, tokens: tokens, now: now, done)
            }
          }
        }
      }
    }
  }

  package func changeGroup(
    key: String, name: String?, sender: SenderID, adding: [String], removing: [String],
    _ done: @escaping Completion<GroupOutcome>
  ) {
    let now = WallTime(ms: 0)
    all(
      { [self] (result: Result<[DeviceGroup?], StoreFault>) in
        guard case .success(let shares) = result else {
          if case .failure(let fault) = result { done(.failure(fault)) }
          return
        }
        guard let group = Self.whole(shares.compactMap { $0 }), group.sender == sender else {
          return done(.success(.notFound))
        }
        if let name, name != group.name { return done(.success(.nameMismatch)) }
        let known = Set(group.members.map(\.registration.token))
        let new = adding.filter { !known.contains($0) }
        countMembers(new, sender: sender) { [self] result in
          guard case .success(let count) = result else {
            if case .failure(let fault) = result { done(.failure(fault)) }
            return
          }
          guard count == 0 || group.members.count + count <= limits.groupMembersMax else {
            return done(.success(.tooManyMembers))
          }
          let places = Dictionary(
            uniqueKeysWithValues: zip(parts.map { ObjectIdentifier($0) }, shares.map { $0 != nil }))
          finish(key, done) { part, done in
            if places[ObjectIdentifier(part)] == true {
              part.changeGroup(
                key: key, name: group.name, sender: sender, adding: adding, removing: removing, done)
            } else if !adding.isEmpty {
              part.createGroup(
                key: key, name: group.name, sender: sender, tokens: adding,
                now: Swift.max(now, group.createdAt),
                done)
            } else {
              done(.success(.noValidTokens))
            }
          }
        }
      }, { $0.group(key: key, $1) }, join: { $0 })
  }

  /// How many different active registrations of the sender the tokens name.
  private func countMembers(
    _ tokens: [String], sender: SenderID, _ done: @escaping Completion<Int>
  ) {
    lookUp(tokens) { result in
      done(
        result.map { found in
          let names = found.compactMap { registration -> String? in
            guard let registration, registration.sender == sender else { return nil }
            switch registration.state {
            case .active: return registration.token
            case .alias(let token): return token
            case .unregistered: return nil
            }
          }
          return Set(names).count
        })
    }
  }

  /// Does the same in every store and says what became of the group as a whole.
  private func finish(
    _ key: String, _ done: @escaping Completion<GroupOutcome>,
    _ call: (any Store, @escaping Completion<GroupOutcome>) -> Void
  ) {
    let joined: Completion<[GroupOutcome]> = { [self] result in
      guard case .success(let outcomes) = result else {
        if case .failure(let fault) = result { done(.failure(fault)) }
        return
      }
      let isChanged = outcomes.contains { outcome in
        switch outcome {
        case .done, .deleted: true
        default: false
        }
      }
      guard isChanged else {
        return done(.success(outcomes.first { $0 != .noValidTokens } ?? .noValidTokens))
      }
      group(key: key) { done($0.map { $0.map { .done($0) } ?? .deleted }) }
    }
    all(joined, call, join: { $0 })
  }
}
