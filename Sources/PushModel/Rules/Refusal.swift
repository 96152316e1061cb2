/// Why a message is not taken, in one form for all front doors: the stream's nack code and the legacy HTTP
/// result are derived from it.
package struct Refusal: Error, Hashable, Sendable {
  package enum Reason: Sendable, Hashable, CaseIterable {
    /// Not JSON, or a field of another type than it must have.
    case invalidJSON
    /// A field's value is not one of those allowed.
    case invalidParameter
    case missingTarget
    case malformedToken
    case unregistered
    case senderMismatch
    case packageMismatch
    case messageTooBig
    case invalidDataKey
    case invalidTTL
    case malformedAck
    case unavailable
    case internalFault
    case deviceRateExceeded
    case topicRateExceeded
    case draining
    case apnsCredential

    /// The code of a nack.
    package var nack: NackCode {
      switch self {
      case .invalidJSON, .invalidParameter, .missingTarget, .packageMismatch, .messageTooBig, .invalidDataKey,
        .invalidTTL:
        .invalidJSON
      case .malformedToken: .badRegistration
      case .unregistered: .deviceUnregistered
      case .senderMismatch: .senderIDMismatch
      case .malformedAck: .badAck
      case .unavailable: .serviceUnavailable
      case .internalFault: .internalServerError
      case .deviceRateExceeded: .deviceMessageRateExceeded
      case .topicRateExceeded: .topicsMessageRateExceeded
      case .draining: .connectionDraining
      case .apnsCredential: .invalidAPNSCredential
      }
    }

    /// The `error` of a legacy HTTP result; nil where the whole request is answered 400.
    package var legacyResult: String? {
      switch self {
      case .invalidJSON, .invalidParameter, .malformedAck: nil
      case .missingTarget: "MissingRegistration"
      case .malformedToken: "InvalidRegistration"
      case .unregistered: "NotRegistered"
      case .senderMismatch: "MismatchSenderId"
      case .packageMismatch: "InvalidPackageName"
      case .messageTooBig: "MessageTooBig"
      case .invalidDataKey: "InvalidDataKey"
      case .invalidTTL: "InvalidTtl"
      case .unavailable, .draining: "Unavailable"
      case .internalFault: "InternalServerError"
      case .deviceRateExceeded: "DeviceMessageRateExceeded"
      case .topicRateExceeded: "TopicsMessageRateExceeded"
      case .apnsCredential: "InvalidApnsCredential"
      }
    }
  }

  package var reason: Reason
  /// For people; what it repeats of the sender's text is bounded by ``Limits/echoCharactersMax``.
  package var description: String
  /// The field at fault, as the stream and legacy HTTP name it.
  package var field: String?

  package init(_ reason: Reason, _ description: String, field: String? = nil) {
    self.reason = reason
    self.description = description
    self.field = field
  }

  package var nack: NackCode { reason.nack }
}

/// A sender's own text as error descriptions repeat it.
package enum Echo {
  /// The text itself, or its first characters and an ellipsis: at most `charactersMax` together.
  package static func bounded(_ text: UnsafeRawBufferPointer, _ charactersMax: Int) -> String {
    // A character has at most 4 bytes, so a cut inside one is never shown.
    let head = String(decoding: text.prefix(4 * (charactersMax + 1)), as: UTF8.self)
    guard head.unicodeScalars.count > charactersMax else { return head }
    var shown = String.UnicodeScalarView(head.unicodeScalars.prefix(max(0, charactersMax - 1)))
    shown.append("…")
    return String(shown)
  }
}
