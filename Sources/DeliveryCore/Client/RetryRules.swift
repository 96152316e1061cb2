import PushModel
package import Seams

/// What a sender does about a nack code.
package enum RetryClass: Sendable, Equatable {
  /// The message itself is wrong: sending it again changes nothing.
  case never
  /// The server is busy or failed: again on the same connection, first wait at least a second, doubling.
  case busy
  /// This target gets too many messages: again, much later.
  case rateLimited
  /// This stream is about to close: at once on another one.
  case elsewhere
}

/// When a message that was nacked, or whose ack is overdue, is written again.
///
/// A wait is drawn evenly between a floor and a ceiling that doubles with every failure ("full jitter" above
/// the floor the protocol asks for), so that many senders do not come back in step.
/// - Source: FCM XMPP protocol, back-off rules.
package struct RetryRules: Sendable, Equatable {
  /// How often one message may be written because of nacks or overdue acks; 1 means it is never repeated.
  ///
  /// A resend because its stream drained or closed is not counted, the total deadline bounds those.
  package var triesMax: Int
  /// Floor of the first wait after ``RetryClass/busy``; less than a second is raised to one.
  package var waitMin: Duration
  /// Ceiling of every wait after ``RetryClass/busy``.
  package var waitMax: Duration
  /// Floor of the first wait after ``RetryClass/rateLimited``.
  package var rateLimitedWaitMin: Duration
  /// Ceiling of every wait after ``RetryClass/rateLimited``.
  package var rateLimitedWaitMax: Duration
  /// From submission to the end: a message that has no answer by then fails with its last reason.
  package var totalTimeout: Duration
  /// Whether a message whose ack is overdue is written again (counted as a try), or fails.
  package var repeatsOverdue: Bool
  /// Whether messages without an answer on a closed stream are written on the next one, or fail.
  package var repeatsAfterClose: Bool

  package init(
    triesMax: Int = 5, waitMin: Duration = .seconds(1), waitMax: Duration = .seconds(60),
    rateLimitedWaitMin: Duration = .seconds(10), rateLimitedWaitMax: Duration = .seconds(300),
    totalTimeout: Duration = .seconds(600), repeatsOverdue: Bool = true, repeatsAfterClose: Bool = true
  ) {
    self.triesMax = triesMax
    self.waitMin = max(waitMin, .seconds(1))
    self.waitMax = max(waitMax, self.waitMin)
    self.rateLimitedWaitMin = max(rateLimitedWaitMin, .seconds(1))
    self.rateLimitedWaitMax = max(rateLimitedWaitMax, self.rateLimitedWaitMin)
    self.totalTimeout = totalTimeout
    self.repeatsOverdue = repeatsOverdue
    self.repeatsAfterClose = repeatsAfterClose
  }

  /// Sorts a nack code as written by the server.
  ///
  /// A code this list does not know is treated like `INTERNAL_SERVER_ERROR`, as the protocol asks.
  package static func retryClass(code: String) -> RetryClass {
    switch UpstreamError(rawValue: code) {
    case .messageTooBig, .tooManyMessages, .ttlExceeded: return .never
    case .invalidJSON, .senderIDMismatch, .serviceUnavailable, nil: break
    }
    return switch NackCode.remedy(for: code) {
    case .fixMessage, .dropToken, .renewCredentials: .never
    case .retryLater: .busy
    case .slowDown: .rateLimited
    case .resendElsewhere: .elsewhere
    }
  }

  /// How long to wait before the next try.
  ///
  /// - Parameter failures: Nacks and overdue acks of this message so far, the present one included; from 1.
  /// - Returns: nil when there is no next try.
  package func wait(
    after retryClass: RetryClass, failures: Int, using chance: inout SeededChance
  ) -> Duration? {
    switch retryClass {
    case .never: return nil
    case .elsewhere: return .zero
    case .busy:
      guard failures < triesMax else { return nil }
      return Self.draw(floor: waitMin, ceiling: waitMax, step: failures, using: &chance)
    case .rateLimited:
      guard failures < triesMax else { return nil }
      return Self.draw(
        floor: rateLimitedWaitMin, ceiling: rateLimitedWaitMax, step: failures, using: &chance)
    }
  }

  /// Evenly between `floor` and `floor` · 2^`step`, never over `ceiling`.
  static func draw(
    floor: Duration, ceiling: Duration, step: Int, using chance: inout SeededChance
  ) -> Duration {
    let low = max(0, floor.ns)
    let (grown, overflow) = low.multipliedReportingOverflow(by: Int64(1) << Int64(min(max(step, 0), 30)))
    let high = max(low, overflow ? ceiling.ns : min(ceiling.ns, grown))
    return .nanoseconds(Int64.random(in: low...high, using: &chance))
  }
}
