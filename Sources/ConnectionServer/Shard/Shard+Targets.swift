import Bytes
import JSONCore
import PushModel
import Seams
import Stores
import Telemetry

// Where messages go that are for more than one registration. Single tokens take the short way in
// `AppServerSession`.

extension Shard {
  /// Takes a valid message for a topic, a condition, a group or a user; the answer comes to `origin`, once.
  func sendToTarget(
    _ draft: DownstreamDraft, _ text: UnsafeRawBufferPointer, sender: SenderState, origin: Origin
  ) {
    let key = draft.reply.messageID.lent(in: text) { keys.downstream(sender.sender, $0) }
    if draft.has(.dryRun) {
      counters.count(.dryRun)
      return send(.answer(origin, .ack), to: Int(origin.stream.loop))
    }
    switch draft.target {
    case .topic(let place):
      guard let name = TopicName(String(place.string(in: text).dropFirst("/topics/".utf8.count))) else {
        return refuse(origin, .badRegistration, "The topic's name is not well formed")
      }
      fanOut(to: .topic(name), draft, text, sender, key, origin)
    case .condition(let condition):
      fanOut(to: .condition(condition), draft, text, sender, key, origin)
    case .user(let place):
      let user = String(place.string(in: text).dropFirst("/users/".utf8.count))
      guard let many = many(.user, draft, text, sender, key, origin) else { return }
      let (post, index) = (post, index)
      store.devices(ofUser: user, sender: sender.sender, max: tuning.userDevicesMax) { result in
        post.post(.perform { $0.found(many, devices: result) }, to: index)
      }
    case .group(let place):
      let group = place.string(in: text)
      guard let many = many(.group, draft, text, sender, key, origin) else { return }
      let (post, index) = (post, index)
      store.group(key: group) { result in
        post.post(.perform { $0.found(many, group: result) }, to: index)
      }
    case .token, .tokens:
      refuse(origin, .internalServerError, "The target was routed wrongly")
    }
  }

  private func refuse(_ origin: Origin, _ code: NackCode, _ description: String) {
    counters.countNack(code)
    send(.answer(origin, .nack(code, description)), to: Int(origin.stream.loop))
  }

  // MARK: Topics and conditions

  private func fanOut(
    to audience: FanoutJob.Audience, _ draft: DownstreamDraft, _ text: UnsafeRawBufferPointer,
    _ sender: SenderState, _ key: MessageKey, _ origin: Origin
  ) {
    if let taker = sender.firstTaker(of: key, shard: fanoutHome, now: wall) {
      counters.repeats.add()
      return send(.repeated(key, origin), to: taker)
    }
    scratch.json.removeAll()
    PlatformTails.append(draft, of: text, sentTime: wall, to: &scratch.json)
    let timeToLive = draft.variants.map(\.draft.timeToLive).reduce(draft.timeToLive, max)
    let isStored = timeToLive > 0
    let job = FanoutJob(
      number: MessageNumber(numbers.next(wall)), key: key, sender: sender.sender, audience: audience,
      onlyApp: draft.restrictedPackageName?.string(in: text),
      collapseKey: draft.collapseKey?.string(in: text), begun: wall,
      // With a time to live of 0 it is for those who are connected when their turn comes.
      expires: wall + (isStored ? .seconds(timeToLive) : tuning.fanoutNowMax), isStored: isStored,
      highPriority: draft.priority == .high, tail: scratch.json.copy())
    nameMessage(key, draft.reply.messageID.string(in: text), to: audience.text)
    send(.fanout(FanoutSend(job, origin: origin)), to: fanoutHome)
  }

  // MARK: Groups and users

  /// Starts a message for several registrations; nil when it is a repeat.
  private func many(
    _ kind: ManySend.Kind, _ draft: DownstreamDraft, _ text: UnsafeRawBufferPointer, _ sender: SenderState,
    _ key: MessageKey, _ origin: Origin, receipt: [UInt8] = []
  ) -> ManySend? {
    if let taker = sender.firstTaker(of: key, shard: index, now: wall) {
      counters.repeats.add()
      send(.repeated(key, origin), to: taker)
      return nil
    }
    return ManySend(
      self, kind, key: key, sender: sender, draft: draft, text: Array(text), origin: origin, receipt: receipt)
  }

  /// What a member of a device group sends to the others, as a message to the group.
  func sendToGroup(
    _ draft: DownstreamDraft, _ text: UnsafeRawBufferPointer, group: String, from token: String,
    sender: SenderState, key: MessageKey, origin: Origin
  ) {
    guard let many = many(.group, draft, text, sender, key, origin) else { return }
    many.sentBy = token
    let (post, index) = (post, index)
    store.group(key: group) { result in
      post.post(.perform { $0.found(many, group: result) }, to: index)
    }
  }

  private func found(_ many: ManySend, group result: Result<DeviceGroup?, StoreFault>) {
    switch result {
    case .failure: lookUpFailed(many)
    case .success(nil):
      many.end(.nack(.deviceUnregistered, "There is no group with this notification_key"))
    case .success(let group?) where group.sender != many.sender.sender:
      many.end(.nack(.senderIDMismatch, "The group belongs to another sender"))
    case .success(let group?):
      if let token = many.sentBy, !group.members.contains(where: { $0.registration.token == token }) {
        return many.end(.nack(.badRegistration, "The registration is not a member of the group"))
      }
      address(many, group.members)
    }
  }

  private func found(_ many: ManySend, devices result: Result<UserDevices, StoreFault>) {
    switch result {
    case .failure: lookUpFailed(many)
    case .success(let found) where found.registrations.isEmpty:
      many.end(.nack(.deviceUnregistered, "The user has no registration"))
    case .success(let found): address(many, found.registrations)
    }
  }

  private func lookUpFailed(_ many: ManySend) {
    counters.storeFaults.add(1)
    many.end(.nack(.serviceUnavailable, "The store cannot be read; retry after a second"))
  }

  /// Settles who gets the message, counts badges if it asks for it, and sends the parts off.
  private func address(_ many: ManySend, _ members: [NumberedRegistration]) {
    for member in members where member.registration.token != many.sentBy {
      let registration = member.registration
      let package = many.text.withUnsafeBytes {
        many.draft.rendered(for: registration.platform).restrictedPackageName?.string(in: $0)
      }
      if registration.state != .active {
        many.skip(registration.token, .deviceUnregistered, "The registration token is not registered")
      } else if let package, package != registration.app {
        many.skip(
          registration.token, .invalidJSON, "InvalidPackageName: the registration's package differs")
      } else {
        many.receivers.append(.init(key: many.key.share(of: member.number), registration: registration))
      }
    }
    countBadgesAndSend(many)
  }

  /// One registration, whose user's badge the message counts up.
  /// - Parameter receipt: The JSON of the receipt, if one is asked for.
  func sendCountingBadge(
    _ draft: DownstreamDraft, _ text: UnsafeRawBufferPointer, to registration: Registration,
    sender: SenderState, key: MessageKey, origin: Origin, receipt: [UInt8]
  ) {
    guard let many = many(.single, draft, text, sender, key, origin, receipt: receipt) else { return }
    many.receivers = [.init(key: key, registration: registration)]
    countBadgesAndSend(many)
  }

  private func countBadgesAndSend(_ many: ManySend) {
    // A user with several registrations counts once.
    let users = many.draft.badgeStep > 0 ? Set(many.receivers.compactMap(\.registration.user)).sorted() : []
    guard !users.isEmpty else { return sendParts(many, badges: [:]) }
    let (post, index) = (post, index)
    store.countBadges(users, sender: many.sender.sender, step: many.draft.badgeStep) { result in
      post.post(
        .perform { shard in
          guard case .success(let sums) = result else { return shard.lookUpFailed(many) }
          shard.sendParts(many, badges: Dictionary(uniqueKeysWithValues: zip(users, sums)))
        }, to: index)
    }
  }

  private func sendParts(_ many: ManySend, badges: [String: Int64]) {
    // Parts may be answered while others are sent.
    let receivers = many.receivers
    many.start()
    many.text.withUnsafeBytes { text in
      for (slot, receiver) in receivers.enumerated() {
        let badge = receiver.registration.user.flatMap { badges[$0] }
        nameMessage(
          receiver.key, many.draft.reply.messageID.string(in: text), to: receiver.registration.token)
        let record = record(
          many.draft, text, receiver.registration, receiver.key,
          Origin(stream: many.reference, slot: UInt32(slot)), sender: many.sender.sender, badge: badge,
          receipt: many.receipt)
        send(.downstream(record), to: home(of: record.device))
      }
    }
  }

  /// A message for several was accepted: its id is a repeat from now on, across a restart too.
  func noteMany(_ key: MessageKey, _ sender: SenderID) {
    noteFanout(key, sender, .stored)
    writing.journal(
      JournalEntry(key: key, sender: sender, device: DeviceNumber(0), state: .stored, at: wall), now: now)
  }

  /// The record of a message for one registration, as its platform gets it.
  func record(
    _ whole: DownstreamDraft, _ text: UnsafeRawBufferPointer, _ registration: Registration, _ key: MessageKey,
    _ origin: Origin, sender: SenderID, badge: Int64? = nil, receipt: [UInt8]
  ) -> Downstream {
    let draft = whole.rendered(for: registration.platform)
    scratch.json.removeAll()
    DeviceMessageWriter.append(
      draft, of: text, messageID: key.hash, origin: .sender(sender), category: registration.app,
      token: registration.token, sentTime: wall, badge: badge, to: &scratch.json)
    return Downstream(
      number: MessageNumber(numbers.next(wall)), key: key, device: registration.device, sender: sender,
      app: registration.app,
      collapse: draft.collapseKey.map { "\(registration.app)\u{1F}\($0.string(in: text))" },
      expires: WallTime(ms: wall.ms + Int64(draft.timeToLive) * 1000), highPriority: draft.priority == .high,
      body: scratch.json.copy(), receipt: receipt, origin: origin,
      write: draft.timeToLive == 0 ? .never : .queued)
  }
}
