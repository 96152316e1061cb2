package import PushModel
package import Seams

// MARK: Topics

extension SplitStore {
  package func change(
    _ subscriptions: [SubscriptionChange], now: WallTime, _ done: @escaping Completion<[SubscriptionOutcome]>
  ) {
    // Every store knows its own tokens, and says of the others that they are unknown.
    all(
      done, { $0.change(subscriptions, now: now, $1) },
      join: { found in
        subscriptions.indices.map { index in
          found.lazy.map { $0[index] }.first { $0 != .unknownToken } ?? .unknownToken
        }
      })
  }

  package func topics(of token: String, _ done: @escaping Completion<[Subscription]?>) {
    all(done, { $0.topics(of: token, $1) }, join: { $0.lazy.compactMap { $0 }.first })
  }

  package func topics(
    sender: SenderID, after: TopicName?, max: Int, _ done: @escaping Completion<[TopicSummary]>
  ) {
    all(
      done, { $0.topics(sender: sender, after: after, max: max, $1) },
      join: { pages in
        Self.merged(pages, max: max, name: { $0.topic.path }) { left, right in
          TopicSummary(topic: left.topic, subscribers: left.subscribers + right.subscribers)
        }
      })
  }

  /// Joins pages in the order of names, as far as all of them reach.
  static func merged<Row>(
    _ pages: [[Row]], max: Int, name: (Row) -> String, join: (Row, Row) -> Row
  ) -> [Row] {
    // Behind the end of a full page there may be more of what another one shows.
    let reach = pages.filter { $0.count >= max }.compactMap { $0.last.map(name) }.min()
    var rows: [String: Row] = [:]
    for row in pages.joined() {
      let name = name(row)
      if let reach, name > reach { continue }
      rows[name] = rows[name].map { join($0, row) } ?? row
    }
    return rows.sorted { $0.key < $1.key }.prefix(max).map(\.value)
  }

  package func subscribers(
    of topic: TopicName, sender: SenderID, after: RegistrationNumber?, max: Int,
    _ done: @escaping Completion<[NumberedRegistration]>
  ) {
    all(
      done, { $0.subscribers(of: topic, sender: sender, after: after, max: max, $1) },
      join: { Array($0.joined().sorted { $0.number < $1.number }.prefix(max)) })
  }

  package func begin(_ fanout: FanoutJob, _ done: @escaping Completion<Void>) {
    all(done, { $0.begin(fanout, $1) }, join: { (_: [Void]) in })
  }

  package func advance(
    fanouts jobs: [MessageNumber], max: Int, spares: [MessageNumber], now: WallTime,
    _ done: @escaping Completion<[FanoutSlice]>
  ) {
    // Each store visits its part of `max`, so that the spares are enough.
    let share = Swift.max(1, max / parts.count)
    let spareCount = spares.count / parts.count
    let gathered = Gathered<[FanoutSlice]>(parts.count) { result in
      done(
        result.map { found in
          jobs.indices.map { index in
            var whole = found[0][index]
            for slice in found.dropFirst().map({ $0[index] }) {
              whole.rows += slice.rows
              whole.ended += slice.ended
              whole.matched += slice.matched
              whole.droppedOffline += slice.droppedOffline
              whole.isDone = whole.isDone && slice.isDone
              whole.isStored = whole.isStored && slice.isStored
            }
            return whole
          }
        })
    }
    for (place, part) in parts.enumerated() {
      let own = Array(spares[(place * spareCount)..<((place + 1) * spareCount)])
      part.advance(fanouts: jobs, max: share, spares: own, now: now) { gathered.take($0, at: place) }
    }
  }

  package func fanouts(since: WallTime, _ done: @escaping Completion<[FanoutProgress]>) {
    all(
      done, { $0.fanouts(since: since, $1) },
      join: { found in
        var jobs: [MessageNumber: FanoutProgress] = [:]
        for job in found.joined() { jobs[job.number] = jobs[job.number].map { Self.joined($0, job) } ?? job }
        return jobs.values.sorted { $0.number < $1.number }
      })
  }

  package func fanout(of key: MessageKey, _ done: @escaping Completion<FanoutProgress?>) {
    all(
      done, { $0.fanout(of: key, $1) },
      join: { found in
        let jobs = found.compactMap { $0 }
        return jobs.dropFirst().reduce(jobs.first) { whole, job in whole.map { Self.joined($0, job) } }
      })
  }

  private static func joined(_ left: FanoutProgress, _ right: FanoutProgress) -> FanoutProgress {
    var whole = left
    whole.isDone = left.isDone && right.isDone
    // The job has a place in each store.
    whole.cursor = [left.cursor, right.cursor].compactMap { $0 }.max()
    whole.counts.matched += right.counts.matched
    for end in right.counts.ends { whole.counts.add(end.state, end.count) }
    return whole
  }

  package func pruneFanouts(
    before: WallTime, max: Int, now: WallTime, _ done: @escaping Completion<Int>
  ) {
    all(done, { $0.pruneFanouts(before: before, max: max, now: now, $1) }, join: { $0.max() ?? 0 })
  }
}

// MARK: Users

extension SplitStore {
  package func devices(
    ofUser user: String, sender: SenderID, max: Int, _ done: @escaping Completion<UserDevices>
  ) {
    all(
      done, { $0.devices(ofUser: user, sender: sender, max: max, $1) },
      join: { found in
        UserDevices(
          registrations: Array(found.flatMap(\.registrations).sorted { $0.number < $1.number }.prefix(max)),
          badge: found.map(\.badge).max() ?? 0)
      })
  }

  package func users(
    sender: SenderID, after: String?, max: Int, _ done: @escaping Completion<[UserSummary]>
  ) {
    let withBadges: Completion<[UserSummary]> = { [self] result in
      guard case .success(let users) = result else { return done(result) }
      // The badge is in the store of the user, the registrations may be elsewhere.
      let gathered = Gathered<UserDevices>(users.count) { badges in
        done(
          badges.map { badges in
            zip(users, badges).map { user, devices in
              UserSummary(user: user.user, registrations: user.registrations, badge: devices.badge)
            }
          })
      }
      for (index, user) in users.enumerated() {
        parts[place(of: StoreSlots.slot(of: user.user))].devices(ofUser: user.user, sender: sender, max: 1) {
          gathered.take($0, at: index)
        }
      }
    }
    all(
      withBadges, { $0.users(sender: sender, after: after, max: max, $1) },
      join: { pages in
        Self.merged(pages, max: max, name: \.user) { left, right in
          UserSummary(user: left.user, registrations: left.registrations + right.registrations, badge: 0)
        }
      })
  }

  package func countBadges(
    _ users: [String], sender: SenderID, step: Int, _ done: @escaping Completion<[Int64]>
  ) {
    let places = users.map { place(of: StoreSlots.slot(of: $0)) }
    let groups = Dictionary(grouping: users.indices) { places[$0] }.sorted { $0.key < $1.key }
    let gathered = Gathered<[Int64]>(groups.count) { result in
      done(
        result.map { found in
          var sums = Array(repeating: Int64(0), count: users.count)
          for (group, values) in zip(groups, found) {
            for (index, value) in zip(group.value, values) { sums[index] = value }
          }
          return sums
        })
    }
    for (index, group) in groups.enumerated() {
      parts[group.key].countBadges(group.value.map { users[$0] }, sender: sender, step: step) {
        gathered.take($0, at: index)
      }
    }
  }

  package func setBadge(
    _ badge: Int64, ofUser user: String, sender: SenderID, _ done: @escaping Completion<Void>
  ) {
    parts[place(of: StoreSlots.slot(of: user))].setBadge(badge, ofUser: user, sender: sender, done)
  }
}
