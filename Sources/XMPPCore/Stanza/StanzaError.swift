package import Bytes
import XMLCore

/// Errors on one stanza: RFC 6120 §8.3.3, with the legacy numbers that the push protocol kept.
package enum StanzaErrorCondition: String, Hashable, Sendable, CaseIterable {
  case badRequest = "bad-request"
  case conflict = "conflict"
  case featureNotImplemented = "feature-not-implemented"
  case forbidden = "forbidden"
  case gone = "gone"
  case internalServerError = "internal-server-error"
  case itemNotFound = "item-not-found"
  case jidMalformed = "jid-malformed"
  case notAcceptable = "not-acceptable"
  case notAllowed = "not-allowed"
  case notAuthorized = "not-authorized"
  case policyViolation = "policy-violation"
  case recipientUnavailable = "recipient-unavailable"
  case redirect = "redirect"
  case registrationRequired = "registration-required"
  case remoteServerNotFound = "remote-server-not-found"
  case remoteServerTimeout = "remote-server-timeout"
  case resourceConstraint = "resource-constraint"
  case serviceUnavailable = "service-unavailable"
  case subscriptionRequired = "subscription-required"
  case undefinedCondition = "undefined-condition"
  case unexpectedRequest = "unexpected-request"
}

/// Which stanza error a message gets instead of an ack or nack.
package enum MessageRefusal: Hashable, Sendable {
  /// Nothing to tie a nack to: code 400. The text goes out with a line feed after it.
  case badRequest(String)
  /// An ack for a message that did not come over this connection: code 406.
  case notAcceptable(String)
}

extension ByteWriter {
  /// Appends a `message` of type `error` that gives a refused message back.
  ///
  /// - Parameters:
  ///   - id: The refused stanza's id; left out when it had none.
  ///   - recipient: Full address bound to the stream.
  ///   - json: Text of the refused `gcm` element, decoded; nil when there was none to echo.
  /// - Source: FCM XMPP protocol, stanza errors.
  package mutating func appendStanzaError(
    _ refusal: MessageRefusal, id: UnsafeRawBufferPointer?, to recipient: JID, json: UnsafeRawBufferPointer?
  ) {
    append("<message")
    if let id {
      append(" id=\"")
      _ = appendEscapedAttribute(id)
      append("\"")
    }
    append(" type=\"error\" to=\"")
    _ = appendEscapedAttribute(recipient.description)
    append("\">")
    if let json {
      append("<gcm xmlns=\"google:mobile:data\">")
      _ = appendEscapedText(json)
      append("</gcm>")
    }
    switch refusal {
    case .badRequest(let text):
      append(
        "<error code=\"400\" type=\"modify\"><bad-request xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\"/>")
      appendErrorText(text)
    case .notAcceptable(let text):
      append(
        "<error code=\"406\" type=\"modify\"><not-acceptable xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\"/>")
      appendErrorText(text)
    }
    append("</error></message>")
  }

  private mutating func appendErrorText(_ text: String) {
    append("<text xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\">")
    _ = appendEscapedText(text)
    append("\n</text>")
  }
}
