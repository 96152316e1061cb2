import DeliveryCore
import PushModel
import Seams
import Synchronization

/// One rate of a project, counted over all its streams and requests.
final class RateGate: Sendable {
  let max: Int
  private let length: Duration
  private let window = Mutex(RateWindow())

  init(max: Int, per length: Duration) {
    self.max = max
    self.length = length
  }

  /// - Returns: Nil when taken, all of `count` or none; else the seconds after which it is worth trying again.
  func take(_ count: Int = 1, now: Moment) -> Int? {
    window.withLock { $0.take(count, max: max, per: length, now: now) }?.secondsUp
  }
}

/// The rates of one project; each nil while there is no limit.
///
/// HTTP doors answer 429 with the seconds as `Retry-After` when a gate names them.
final class SenderRates: Sendable {
  /// Messages in a minute, over every front door; what a request counts is its messages.
  let messages: RateGate?
  /// Subscriptions and removals in a second.
  let topicChanges: RateGate?
  /// Upstream messages in a minute.
  let upstream: RateGate?

  init(_ limits: Limits) {
    messages = limits.projectMessagesPerMinuteMax.map { RateGate(max: $0, per: .seconds(60)) }
    topicChanges = limits.topicChangesPerSecondMax.map { RateGate(max: $0, per: .seconds(1)) }
    upstream = limits.upstreamPerProjectPerMinuteMax.map { RateGate(max: $0, per: .seconds(60)) }
  }
}
