package import JSONCore

/// What an ack or a nack repeats of the message it answers, as places in the message's JSON text.
package struct ReplyIDs: Hashable, Sendable {
  package var messageID: JSONString
  /// The target as the sender wrote it: `to`, else `condition`; nil when neither is a string.
  package var from: JSONString?

  package init(messageID: JSONString, from: JSONString?) {
    self.messageID = messageID
    self.from = from
  }
}

/// Where a message is to go, as places in its JSON text.
package enum DraftTarget: Sendable {
  case token(JSONString)
  /// The place holds the whole `/topics/name`.
  case topic(JSONString)
  /// The place holds the whole `/users/id`.
  case user(JSONString)
  case group(JSONString)
  case condition(TopicCondition)
  /// `registration_ids` of legacy HTTP: the array's place. Its elements are not checked.
  case tokens(JSONRange)
}

/// A valid downstream message of an app server: typed scalars, and places in the JSON text it was read from.
///
/// It is worth something only together with that text, unchanged.
package struct DownstreamDraft: Sendable {
  package struct Options: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }
    package static let contentAvailable = Options(rawValue: 1)
    package static let mutableContent = Options(rawValue: 2)
    package static let receiptRequested = Options(rawValue: 4)
    package static let dryRun = Options(rawValue: 8)
    /// Accepted and without effect, as in the later years of the service.
    package static let delayWhileIdle = Options(rawValue: 16)
    /// A value in `data` is no string and is turned into one for the device.
    package static let convertsData = Options(rawValue: 32)
  }

  package var reply: ReplyIDs
  package var target: DraftTarget
  /// Nil also when the sender gave an empty one.
  package var collapseKey: JSONString?
  /// The whole object, braces included.
  package var data: JSONRange?
  /// The whole object, braces included.
  package var notification: JSONRange?
  /// Seconds; 0 means now or never.
  package var timeToLive: Int
  /// As asked for; else high with a notification and normal without.
  package var priority: Priority
  package var options: Options
  package var restrictedPackageName: JSONString?
  /// What counts towards ``Limits/payloadBytesMax``.
  package var payloadBytes: Int
  /// What `notification.badge` adds to the user's stored badge, as in `"+1"`; 0 when it does not count.
  package var badgeStep: Int
  /// Further members for the device, each with a comma before it, ready to stand in its JSON object.
  package var extras: JSONRange?
  /// What some platforms get in place of this; a platform is in one of them at most.
  package var variants: [Variant] = []

  /// A message as some platforms get it; target and ids are those of the whole.
  package struct Variant: Sendable {
    package var platforms: [Platform]
    package var draft: DownstreamDraft

    package init(_ platforms: [Platform], _ draft: DownstreamDraft) {
      self.platforms = platforms
      self.draft = draft
    }
  }

  package init(
    reply: ReplyIDs, target: DraftTarget, collapseKey: JSONString? = nil, data: JSONRange? = nil,
    notification: JSONRange? = nil, timeToLive: Int, priority: Priority, options: Options,
    restrictedPackageName: JSONString? = nil, payloadBytes: Int, badgeStep: Int = 0
  ) {
    self.reply = reply
    self.target = target
    self.collapseKey = collapseKey
    self.data = data
    self.notification = notification
    self.timeToLive = timeToLive
    self.priority = priority
    self.options = options
    self.restrictedPackageName = restrictedPackageName
    self.payloadBytes = payloadBytes
    self.badgeStep = badgeStep
  }

  package func has(_ option: Options) -> Bool { options.contains(option) }

  /// The message as registrations of this platform get it.
  package func rendered(for platform: Platform) -> DownstreamDraft {
    if variants.isEmpty { return self }
    return variants.first { $0.platforms.contains(platform) }?.draft ?? self
  }

  /// Sets the target of the message and all its variants.
  package mutating func setTarget(_ target: DraftTarget, from: JSONString?) {
    self.target = target
    reply.from = from
    for index in variants.indices { variants[index].draft.setTarget(target, from: from) }
  }

  /// Sets the message id of the message and all its variants.
  package mutating func setMessageID(_ place: JSONString) {
    reply.messageID = place
    for index in variants.indices { variants[index].draft.setMessageID(place) }
  }

  /// The target as a value of its own; nil for `registration_ids`.
  package func ownedTarget(in text: UnsafeRawBufferPointer, limits: Limits) -> Target? {
    switch target {
    case .token(let to), .topic(let to), .user(let to), .group(let to):
      to.lent(in: text) { Target(to: $0, limits: limits) }
    case .condition(let condition): .condition(condition)
    case .tokens: nil
    }
  }
}

/// An app server's word that it took charge of an upstream message or a receipt.
package struct AckDraft: Hashable, Sendable {
  package var messageID: JSONString
  /// The `from` of what is acked: a token, or `gcm.googleapis.com` for a receipt.
  package var to: JSONString

  package init(messageID: JSONString, to: JSONString) {
    self.messageID = messageID
    self.to = to
  }
}

/// What the JSON text of one stanza from an app server comes to.
package enum ClientPayload: Sendable {
  case downstream(DownstreamDraft)
  case ack(AckDraft)
  /// There is no message id to tie a nack to: answer with a stanza error of this text (it ends with a line feed).
  case stanzaError(text: String)
  case nack(Refusal, ReplyIDs)
}
