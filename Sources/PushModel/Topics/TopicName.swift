/// A topic's name: 1 to 900 characters of `a-z A-Z 0-9 - _ . ~ %`, case-sensitive, without `/topics/`.
package struct TopicName: Hashable, Sendable, CustomStringConvertible {
  package static let byteCountMax = 900

  package let text: String

  package init?(_ text: String) {
    var text = text
    guard text.withUTF8({ Self.isWellFormed(UnsafeRawBufferPointer($0)) }) else { return nil }
    self.text = text
  }

  package init?(_ bytes: UnsafeRawBufferPointer) {
    guard Self.isWellFormed(bytes) else { return nil }
    text = String(decoding: bytes, as: UTF8.self)
  }

  package static func isWellFormed(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard (1...byteCountMax).contains(bytes.count) else { return false }
    return bytes.allSatisfy(isLetter)
  }

  /// The byte may stand in a topic's name.
  package static func isLetter(_ byte: UInt8) -> Bool {
    Base64URL.isDigit(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "~")
      || byte == UInt8(ascii: "%")
  }

  /// As senders and devices write it: `/topics/name`.
  package var path: String { "/topics/\(text)" }
  package var description: String { text }
}
