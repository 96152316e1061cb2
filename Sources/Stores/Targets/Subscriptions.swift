package import PushModel
package import Seams

/// One registration to be put into a topic, or taken out of it.
package struct SubscriptionChange: Sendable, Hashable {
  /// An old token stands for the registration that took its place.
  package var token: String
  /// The registration must belong to it.
  package var sender: SenderID
  package var topic: TopicName
  package var isSubscribed: Bool

  package init(token: String, sender: SenderID, topic: TopicName, isSubscribed: Bool) {
    self.token = token
    self.sender = sender
    self.topic = topic
    self.isSubscribed = isSubscribed
  }
}

/// What became of a ``SubscriptionChange``.
package enum SubscriptionOutcome: Sendable, Hashable {
  case changed
  /// It was so before.
  case unchanged
  /// No active registration has this token.
  case unknownToken
  case senderMismatch
  /// The registration has its maximum of topics.
  case tooManyTopics
}

/// A topic that a registration is in.
package struct Subscription: Sendable, Hashable {
  package var topic: TopicName
  package var since: WallTime

  package init(topic: TopicName, since: WallTime) {
    self.topic = topic
    self.since = since
  }
}

/// A topic with subscribers; one without is not kept.
package struct TopicSummary: Sendable, Hashable {
  package var topic: TopicName
  package var subscribers: Int

  package init(topic: TopicName, subscribers: Int) {
    self.topic = topic
    self.subscribers = subscribers
  }
}

/// A registration with its number in the store.
package struct NumberedRegistration: Sendable, Hashable {
  package var number: RegistrationNumber
  package var registration: Registration

  package init(number: RegistrationNumber, registration: Registration) {
    self.number = number
    self.registration = registration
  }
}
