/// Why the server refuses a message or an ack over a stream: the whole list, none else is ever sent.
/// - Source: FCM XMPP protocol, downstream message error response codes.
package enum NackCode: String, Sendable, CaseIterable {
  case invalidJSON = "INVALID_JSON"
  case badRegistration = "BAD_REGISTRATION"
  case deviceUnregistered = "DEVICE_UNREGISTERED"
  case senderIDMismatch = "SENDER_ID_MISMATCH"
  case badAck = "BAD_ACK"
  case serviceUnavailable = "SERVICE_UNAVAILABLE"
  case internalServerError = "INTERNAL_SERVER_ERROR"
  case deviceMessageRateExceeded = "DEVICE_MESSAGE_RATE_EXCEEDED"
  case topicsMessageRateExceeded = "TOPICS_MESSAGE_RATE_EXCEEDED"
  case connectionDraining = "CONNECTION_DRAINING"
  case invalidAPNSCredential = "INVALID_APNS_CREDENTIAL"
  /// Of older servers; understood, never sent.
  case authenticationFailed = "AUTHENTICATION_FAILED"
  /// Of older servers; understood, never sent.
  case quotaExceeded = "QUOTA_EXCEEDED"

  /// What a sender does about it.
  package enum Remedy: Sendable, Hashable {
    /// The message is at fault; sent again it is refused again.
    case fixMessage
    /// The token is of no use to this sender.
    case dropToken
    /// Again on the same stream: first after a second or more, then doubling.
    case retryLater
    /// Less towards this device or topic; again after a growing pause.
    case slowDown
    /// Again at once, on another stream.
    case resendElsewhere
    /// An operator renews the key first.
    case renewCredentials
  }

  /// The server may send it.
  package var isSent: Bool { self != .authenticationFailed && self != .quotaExceeded }

  package var remedy: Remedy {
    switch self {
    case .invalidJSON, .badAck: .fixMessage
    case .badRegistration, .deviceUnregistered, .senderIDMismatch: .dropToken
    case .serviceUnavailable, .internalServerError: .retryLater
    case .deviceMessageRateExceeded, .topicsMessageRateExceeded, .quotaExceeded: .slowDown
    case .connectionDraining: .resendElsewhere
    case .invalidAPNSCredential, .authenticationFailed: .renewCredentials
    }
  }

  /// The remedy for a code as it was received; an unknown one counts as `INTERNAL_SERVER_ERROR`.
  package static func remedy(for text: String) -> Remedy {
    (NackCode(rawValue: text) ?? .internalServerError).remedy
  }
}
