import CLinux

/// Finds what a generator needs in the server's own JSON, without reading all of it.
package enum Lean {
  /// The text behind `"message_id":"`, up to the next quote.
  package static func messageID(_ json: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    text(of: json, behind: "\"message_id\":\"")
  }

  package static func isAck(_ json: UnsafeRawBufferPointer) -> Bool {
    has("\"message_type\":\"ack\"", in: json)
  }

  /// The text behind `mark`, up to the next quote; nil when the mark is not there.
  package static func text(
    of json: UnsafeRawBufferPointer, behind mark: StaticString
  ) -> UnsafeRawBufferPointer? {
    mark.withUTF8Buffer { mark in
      let raw = UnsafeRawBufferPointer(mark)
      guard let at = first(raw, in: json) else { return nil }
      let tail = UnsafeRawBufferPointer(rebasing: json[(at + raw.count)...])
      return UnsafeRawBufferPointer(
        rebasing: tail[..<(tail.firstIndex(of: UInt8(ascii: "\"")) ?? tail.count)])
    }
  }

  package static func has(_ mark: StaticString, in json: UnsafeRawBufferPointer) -> Bool {
    mark.withUTF8Buffer { first(UnsafeRawBufferPointer($0), in: json) != nil }
  }

  /// A decimal number of at most 18 digits; nil for anything else.
  package static func number(_ digits: Slice<UnsafeRawBufferPointer>) -> Int? {
    guard !digits.isEmpty, digits.count <= 18 else { return nil }
    var value = 0
    for byte in digits {
      guard byte >= 0x30, byte <= 0x39 else { return nil }
      value = value * 10 + Int(byte) - 0x30
    }
    return value
  }

  /// Two numbers as `.1.2` holds them, each behind the separator; nil for anything else.
  package static func pair(_ text: Slice<UnsafeRawBufferPointer>, _ separator: UInt8) -> (Int, Int)? {
    guard text.first == separator else { return nil }
    let rest = text.dropFirst()
    guard let middle = rest.firstIndex(of: separator), let first = number(rest[..<middle]),
      let second = number(rest[(middle + 1)...])
    else { return nil }
    return (first, second)
  }

  /// Where `needle` first stands in `text`.
  static func first(_ needle: UnsafeRawBufferPointer, in text: UnsafeRawBufferPointer) -> Int? {
    guard let base = text.baseAddress,
      let found = memmem(base, text.count, needle.baseAddress, needle.count)
    else { return nil }
    return UnsafeRawPointer(found) - base
  }
}
