import JSONCore

/// The JSON form of protobuf's `Duration`: seconds, up to nine fractional digits, and `s`.
package struct DurationText: Hashable, Sendable {
  /// Whole seconds, rounded towards zero.
  package var seconds: Int64
  /// 0 to 999,999,999, of the same sign.
  package var nanoseconds: Int64
  package var isNegative: Bool

  /// Nil when the text is of another form, or beyond the 10,000 years that the type allows.
  package init?(_ text: UnsafeRawBufferPointer) {
    guard text.last == UInt8(ascii: "s") else { return nil }
    var body = text[..<(text.count - 1)]
    isNegative = body.first == UInt8(ascii: "-")
    if isNegative { body = body.dropFirst() }
    let parts = body.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count <= 2, let whole = parts.first, !whole.isEmpty, whole.count <= 12,
      let seconds = Self.digits(whole), seconds <= 315_576_000_000
    else { return nil }
    self.seconds = seconds
    nanoseconds = 0
    if parts.count == 2 {
      guard (1...9).contains(parts[1].count), var nanos = Self.digits(parts[1]) else { return nil }
      for _ in parts[1].count..<9 { nanos *= 10 }
      nanoseconds = nanos
    }
  }

  /// At most 12 digits, so no overflow.
  private static func digits(_ text: Slice<UnsafeRawBufferPointer>) -> Int64? {
    var value: Int64 = 0
    for byte in text {
      let digit = byte &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      value = value * 10 + Int64(digit)
    }
    return value
  }
}

/// The JSON form of protobuf's `Timestamp` (RFC 3339).
enum TimestampText {
  static func isWellFormed(_ text: UnsafeRawBufferPointer) -> Bool {
    guard text.count >= 20, text.count <= 40 else { return false }
    func number(_ at: Int, _ count: Int) -> Int? {
      var value = 0
      for index in at..<at + count {
        let digit = text[index] &- UInt8(ascii: "0")
        guard digit < 10 else { return nil }
        value = value * 10 + Int(digit)
      }
      return value
    }
    guard number(0, 4) != nil, text[4] == UInt8(ascii: "-"), let month = number(5, 2),
      (1...12).contains(month), text[7] == UInt8(ascii: "-"), let day = number(8, 2), (1...31).contains(day),
      text[10] | 0x20 == UInt8(ascii: "t"), let hour = number(11, 2), hour < 24,
      text[13] == UInt8(ascii: ":"), let minute = number(14, 2), minute < 60,
      text[16] == UInt8(ascii: ":"), let second = number(17, 2), second <= 60
    else { return false }
    var at = 19
    if text[at] == UInt8(ascii: ".") {
      let start = at + 1
      at = start
      while at < text.count, text[at] &- UInt8(ascii: "0") < 10 { at += 1 }
      guard (1...9).contains(at - start) else { return false }
    }
    guard at < text.count else { return false }
    if text[at] | 0x20 == UInt8(ascii: "z") { return at + 1 == text.count }
    guard text[at] == UInt8(ascii: "+") || text[at] == UInt8(ascii: "-"), at + 6 == text.count,
      let hours = number(at + 1, 2), hours < 24, text[at + 3] == UInt8(ascii: ":"),
      let minutes = number(at + 4, 2), minutes < 60
    else { return false }
    return true
  }
}

extension JSONString {
  /// Lends the value's bytes; here, so that the call is specialised.
  @inline(__always)
  func lend<Result>(in text: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    if !isEscaped { return body(raw(in: text)) }
    return decoded(in: text).withUnsafeBytes(body)
  }
}
