import Bytes
import XMLCore

/// An `iq` stanza: RFC 6120 §8.2.3.
///
/// Its id may be missing, as some push clients leave it out.
struct InfoQuery {
  enum Kind: String {
    case get, set, result, error
  }

  /// Nil for a missing or unknown type.
  var kind: Kind?
  var id: String?
  var to: String?
  var from: String?
  /// First child element.
  var payload: XMLElement?

  /// - Returns: nil for another element.
  init?(_ element: XMLElement) {
    guard element.isNamed("iq", Namespace.client) else { return nil }
    kind = element.attribute("type").flatMap(Kind.init)
    id = element.attribute("id")
    to = element.attribute("to")
    from = element.attribute("from")
    payload = element.elements.first
  }

  /// Whether it carries that element.
  func asks(_ name: String, _ namespace: String) -> Bool {
    payload?.isNamed(name, namespace) ?? false
  }
}

enum QueryNamespace {
  static let bind = "urn:ietf:params:xml:ns:xmpp-bind"
  static let session = "urn:ietf:params:xml:ns:xmpp-session"
  static let ping = "urn:xmpp:ping"
  static let stanzas = "urn:ietf:params:xml:ns:xmpp-stanzas"
  static let streamErrors = "urn:ietf:params:xml:ns:xmpp-streams"
  static let sasl = "urn:ietf:params:xml:ns:xmpp-sasl"
}

extension ByteWriter {
  /// Appends ` name="value"`.
  ///
  /// Values came out of an XML reader or are ours, so they are legal.
  mutating func appendAttribute(_ name: StaticString, _ value: String) {
    append(" ")
    append(name)
    append("=\"")
    _ = appendEscapedAttribute(value)
    append("\"")
  }

  /// Appends the start of an answer, without `>`: `from` is the address that was asked, when one was named.
  mutating func appendAnswer(_ type: StaticString, to query: InfoQuery, from other: String? = nil) {
    append("<iq type=\"")
    append(type)
    append("\"")
    if let id = query.id { appendAttribute("id", id) }
    if let from = query.to ?? other { appendAttribute("from", from) }
  }

  /// Appends the start of a client's answer, without `>`, addressed to whoever asked.
  mutating func appendReply(_ type: StaticString, to query: InfoQuery, recipient: String?) {
    append("<iq type=\"")
    append(type)
    append("\"")
    if let id = query.id { appendAttribute("id", id) }
    if let recipient { appendAttribute("to", recipient) }
  }

  /// Appends an answer that refuses a query.
  mutating func appendRefusal(of query: InfoQuery, type: StaticString, _ condition: StanzaErrorCondition) {
    appendAnswer("error", to: query)
    append("><error type=\"")
    append(type)
    append("\"><")
    append(condition.rawValue)
    append(" xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\"/></error></iq>")
  }

  /// Appends an XEP-0199 ping.
  mutating func appendPing(number: Int64, from: String?, to: String?) {
    append("<iq type=\"get\" id=\"ping-")
    append(decimal: number)
    append("\"")
    if let from { appendAttribute("from", from) }
    if let to { appendAttribute("to", to) }
    append("><ping xmlns=\"urn:xmpp:ping\"/></iq>")
  }
}
