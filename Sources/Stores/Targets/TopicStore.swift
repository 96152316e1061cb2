package import PushModel
package import Seams

/// Topics, their subscribers, and messages on their way to all of them.
///
/// A registration that goes away leaves its topics; one that takes another's place (``Registration/State/alias(of:)``)
/// takes over its topics.
package protocol TopicStore: AnyObject, Sendable {
  /// Makes the changes in order, all in one transaction; one outcome each.
  ///
  /// A registration has at most ``StoreLimits/topicsPerTokenMax`` topics.
  func change(
    _ subscriptions: [SubscriptionChange], now: WallTime, _ done: @escaping Completion<[SubscriptionOutcome]>)

  /// The topics of a registration in the order of their names; nil when no active registration has the token.
  func topics(of token: String, _ done: @escaping Completion<[Subscription]?>)

  /// A sender's topics in the order of their names, a page at a time.
  func topics(
    sender: SenderID, after: TopicName?, max: Int, _ done: @escaping Completion<[TopicSummary]>)

  /// The subscribers of a topic in the order of their numbers, a page at a time.
  func subscribers(
    of topic: TopicName, sender: SenderID, after: RegistrationNumber?, max: Int,
    _ done: @escaping Completion<[NumberedRegistration]>)

  /// Writes a job down, once for each number: from then on every subscriber gets its message, crash or not.
  func begin(_ fanout: FanoutJob, _ done: @escaping Completion<Void>)

  /// Takes each job a step further: visits its next `max` registrations, stores their messages and moves the
  /// job's place, all in one transaction.
  ///
  /// Whoever is subscribed from before the job began until it has been visited gets exactly one message;
  /// who joins or leaves meanwhile may or may not get one. Jobs are visited by `max` registrations each, whether
  /// these match or not. A row is stored by the rules of ``MessageStore/write(_:now:_:)``, as live when the
  /// device's stream is held and it has less than ``StoreLimits/storedPerConnectedDeviceMax`` messages.
  /// - Parameters:
  ///   - jobs: Each once.
  ///   - spares: Numbers for all but the first registration of a device, never used for anything else; `max` of them
  ///     for each job are always enough.
  func advance(
    fanouts jobs: [MessageNumber], max: Int, spares: [MessageNumber], now: WallTime,
    _ done: @escaping Completion<[FanoutSlice]>)

  /// Fan-outs that are not done, and those begun at `since` or later, in number order.
  func fanouts(since: WallTime, _ done: @escaping Completion<[FanoutProgress]>)

  /// The fan-out of a message.
  func fanout(of key: MessageKey, _ done: @escaping Completion<FanoutProgress?>)

  /// Forgets up to `max` fan-outs that are done, were begun before `before`, and whose messages have all ended.
  /// - Returns: How many were forgotten.
  func pruneFanouts(before: WallTime, max: Int, now: WallTime, _ done: @escaping Completion<Int>)
}
