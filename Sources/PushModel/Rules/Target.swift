/// Whom a message is for.
package enum Target: Hashable, Sendable {
  case token(RegistrationToken)
  case topic(TopicName)
  case condition(TopicCondition)
  case user(String)
  case group(NotificationKey)

  /// What the text of a `to` field addresses.
  package enum Kind: Sendable, Hashable {
    case token, topic, user, group

    /// - Returns: Nil when the text is none of these: a malformed registration.
    package init?(_ to: UnsafeRawBufferPointer, limits: Limits) {
      if to.first == UInt8(ascii: "/") {
        if let name = Self.rest(of: to, behind: "/topics/"), name.count <= limits.topicNameBytesMax,
          TopicName.isWellFormed(name)
        {
          self = .topic
        } else if let user = Self.rest(of: to, behind: "/users/"),
          (1...max(1, limits.userIDBytesMax)).contains(user.count)
        {
          self = .user
        } else {
          return nil
        }
      } else if RegistrationToken.isWellFormed(to) {
        self = .token
      } else if NotificationKey.isWellFormed(to) {
        self = .group
      } else {
        return nil
      }
    }

    static func rest(of text: UnsafeRawBufferPointer, behind prefix: StaticString) -> UnsafeRawBufferPointer?
    {
      let count = prefix.utf8CodeUnitCount
      guard text.count >= count else { return nil }
      for at in 0..<count where text[at] != prefix.utf8Start[at] { return nil }
      return UnsafeRawBufferPointer(rebasing: text[count...])
    }
  }

  /// Reads a `to` field; nil when it addresses nothing.
  package init?(to: UnsafeRawBufferPointer, limits: Limits) {
    switch Kind(to, limits: limits) {
    case .token:
      guard let token = RegistrationToken(to) else { return nil }
      self = .token(token)
    case .group:
      guard let key = NotificationKey(String(decoding: to, as: UTF8.self)) else { return nil }
      self = .group(key)
    case .topic:
      guard let rest = Kind.rest(of: to, behind: "/topics/"), let name = TopicName(rest) else { return nil }
      self = .topic(name)
    case .user:
      guard let rest = Kind.rest(of: to, behind: "/users/") else { return nil }
      self = .user(String(decoding: rest, as: UTF8.self))
    case nil:
      return nil
    }
  }
}

/// How urgent a message is.
package enum Priority: String, Sendable, Hashable, CaseIterable {
  case normal, high
}
