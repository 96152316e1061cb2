package import Bytes
import XMLCore

/// What stands around the JSON of a message stanza.
///
/// Acks, nacks and what a client sends carry no `type`; upstream messages and receipts have `normal`. Control
/// messages go out with a prefix, because some clients look for `<data:gcm` there.
package enum MessageEnvelope {
  package static let open: StaticString = "<message><gcm xmlns=\"google:mobile:data\">"
  package static let close: StaticString = "</gcm></message>"
  package static let controlOpen: StaticString = "<message><data:gcm xmlns:data=\"google:mobile:data\">"
  package static let controlClose: StaticString = "</data:gcm></message>"
}

extension ByteWriter {
  /// Appends ``MessageEnvelope/open`` with an id.
  package mutating func appendMessageOpen(id: String) {
    append("<message id=\"")
    _ = appendEscapedAttribute(id)
    append("\"><gcm xmlns=\"google:mobile:data\">")
  }

  /// Appends the start of an upstream message or receipt for the app server bound to `recipient`.
  ///
  /// - Parameter recipient: Sent as its bare address.
  package mutating func appendUpstreamOpen(to recipient: JID) {
    append("<message to=\"")
    _ = appendEscapedAttribute(recipient.local)
    append("@")
    _ = appendEscapedAttribute(recipient.domain)
    append("\" from=\"devices@")
    _ = appendEscapedAttribute(recipient.domain)
    append("\" type=\"normal\"><gcm xmlns=\"google:mobile:data\">")
  }
}
