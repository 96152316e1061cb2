import Bytes
import XMLCore

extension ByteWriter {
  /// Appends a stream error, without the end tag: RFC 6120 §4.9.2.
  mutating func appendStreamError(
    _ condition: StreamErrorCondition, text: String?, retryAfter: Duration? = nil
  ) {
    append("<stream:error><")
    append(condition.rawValue)
    append(" xmlns=\"urn:ietf:params:xml:ns:xmpp-streams\"/>")
    if let text {
      append("<text xmlns=\"urn:ietf:params:xml:ns:xmpp-streams\" xml:lang=\"en\">")
      _ = appendEscapedText(text)
      append("</text>")
    }
    if let retryAfter { appendRetryAfter(retryAfter) }
    append("</stream:error>")
  }

  mutating func appendStreamEnd() { append("</stream:stream>") }

  /// Appends the header of the accepting side.
  mutating func appendServerHeader(from: String, id: UInt64) {
    append("<stream:stream")
    appendAttribute("from", from)
    append(" id=\"")
    append(upperHex: id, digits: 16)
    append("\" version=\"1.0\" xmlns:stream=\"http://etherx.jabber.org/streams\" xmlns=\"jabber:client\">")
  }

  /// Appends the header of the opening side.
  mutating func appendClientHeader(to: String) {
    append("<stream:stream")
    appendAttribute("to", to)
    append(" version=\"1.0\" xmlns=\"jabber:client\" xmlns:stream=\"http://etherx.jabber.org/streams\">")
  }

  /// Appends the lowest hex digits, most significant first, in upper case.
  mutating func append(upperHex value: UInt64, digits: Int) {
    append(hexText(value, digits))
  }
}

/// The lowest `digits` hex digits of a value in upper case.
func hexText(_ value: UInt64, _ digits: Int) -> String {
  let text = String(value, radix: 16, uppercase: true)
  let missing = digits - text.utf8.count
  return missing >= 0 ? String(repeating: "0", count: missing) + text : String(text.suffix(digits))
}

extension XMLElement {
  /// Copies the parts of a message stanza into a scratch buffer, as ``NarrowReader`` would.
  func head(_ gcm: XMLElement, into scratch: inout [UInt8]) -> MessageHead {
    scratch.removeAll(keepingCapacity: true)
    func copy(_ text: String) -> Range<Int> {
      let start = scratch.count
      scratch.append(contentsOf: text.utf8)
      return start..<scratch.count
    }
    var kind = MessageKind.none
    if var type = attribute("type") {
      kind = type.withUTF8 { MessageKind(UnsafeRawBufferPointer($0)) }
    }
    return MessageHead(
      kind: kind, id: attribute("id").map(copy), to: attribute("to").map(copy),
      from: attribute("from").map(copy), text: copy(gcm.text))
  }
}
