/// Percent-encoding and forms, as browsers and RFC 3986 write them.
package enum FormText {
  /// `%XX` decoded.
  ///
  /// - Parameter plusIsSpace: In forms and queries, not in paths.
  /// - Returns: A broken escape stays as it is; bytes that are no UTF-8 become U+FFFD.
  package static func decoded(_ text: some Sequence<UInt8>, plusIsSpace: Bool) -> String {
    let text = Array(text)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count)
    var at = 0
    while at < text.count {
      let byte = text[at]
      if byte == UInt8(ascii: "%"), at + 2 < text.count, let high = hex(text[at + 1]),
        let low = hex(text[at + 2])
      {
        bytes.append(high << 4 | low)
        at += 3
      } else {
        bytes.append(plusIsSpace && byte == UInt8(ascii: "+") ? 0x20 : byte)
        at += 1
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func hex(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 48...57: byte - 48
    case 65...70: byte - 55
    case 97...102: byte - 87
    default: nil
    }
  }

  /// The pairs of `a=b&c=d`, decoded, in their order.
  package static func pairs(_ text: some Collection<UInt8>) -> [(name: String, value: String)] {
    text.split(separator: UInt8(ascii: "&")).map { pair in
      let sides = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      return (
        decoded(sides.first ?? pair, plusIsSpace: true),
        sides.count == 2 ? decoded(sides[1], plusIsSpace: true) : ""
      )
    }
  }
}
