import Glibc

/// Where a string stands in a JSON text that was read: its content, without the quotes.
///
/// It is a place and not the text; each reading names the text again. Handing another text than the one it
/// was found in is a mistake of the caller and traps when the place lies outside.
package struct JSONString: Hashable, Sendable {
  @usableFromInline let start32: Int32
  @usableFromInline let end32: Int32
  @usableFromInline let decoded32: Int32

  /// - Parameters:
  ///   - start: First byte of the content.
  ///   - end: The closing quote.
  ///   - decodedCount: UTF-8 bytes of the value.
  @inlinable
  package init(start: Int, end: Int, decodedCount: Int) {
    start32 = Int32(truncatingIfNeeded: start)
    end32 = Int32(truncatingIfNeeded: end)
    decoded32 = Int32(truncatingIfNeeded: decodedCount)
  }

  @inlinable
  package var start: Int { Int(start32) }
  @inlinable
  package var end: Int { Int(end32) }
  /// UTF-8 bytes of the value: what size limits count.
  @inlinable
  package var decodedCount: Int { Int(decoded32) }
  /// The raw form is not the value: it holds at least one escape.
  @inlinable
  package var isEscaped: Bool { end32 &- start32 != decoded32 }
  @inlinable
  package var isEmpty: Bool { end32 == start32 }

  /// The content as it came, escapes and all: ready to stand between quotes in another JSON text.
  @inlinable
  package func raw(in text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    JSONRange(start: start, end: end).raw(in: text)
  }

  /// The value.
  package func string(in text: UnsafeRawBufferPointer) -> String {
    if isEscaped { return String(decoding: decoded(in: text), as: UTF8.self) }
    return String(decoding: raw(in: text), as: UTF8.self)
  }

  /// The value's UTF-8 bytes, as a copy.
  package func decoded(in text: UnsafeRawBufferPointer) -> [UInt8] {
    let raw = raw(in: text)
    if !isEscaped { return Array(raw) }
    var value: [UInt8] = []
    value.reserveCapacity(decodedCount)
    Self.unescape(raw, into: &value)
    return value
  }

  /// Lends the value's UTF-8 bytes; they are copied only when there is an escape.
  @inlinable
  package func withDecoded<Result>(
    in text: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Result
  ) -> Result {
    if !isEscaped { return body(raw(in: text)) }
    return decoded(in: text).withUnsafeBytes(body)
  }

  /// The value equals `literal`, byte for byte.
  package func equals(_ literal: StaticString, in text: UnsafeRawBufferPointer) -> Bool {
    guard decodedCount == literal.utf8CodeUnitCount else { return false }
    return withDecoded(in: text) { value in
      guard let base = value.baseAddress else { return true }
      return memcmp(base, literal.utf8Start, value.count) == 0
    }
  }

  /// The value begins with `literal`, byte for byte.
  package func hasPrefix(_ literal: StaticString, in text: UnsafeRawBufferPointer) -> Bool {
    let count = literal.utf8CodeUnitCount
    guard decodedCount >= count else { return false }
    return withDecoded(in: text) { value in
      guard let base = value.baseAddress else { return true }
      return memcmp(base, literal.utf8Start, count) == 0
    }
  }

  /// Decodes content that was validated; what is not valid ends the decoding.
  private static func unescape(_ raw: UnsafeRawBufferPointer, into value: inout [UInt8]) {
    let bytes = raw.bytes
    var at = 0
    while at < bytes.byteCount {
      let byte = JSONScanner.byte(bytes, at)
      guard byte == UInt8(ascii: "\\"), at &+ 1 < bytes.byteCount else {
        value.append(byte)
        at &+= 1
        continue
      }
      switch JSONScanner.byte(bytes, at &+ 1) {
      case UInt8(ascii: "b"): value.append(0x08)
      case UInt8(ascii: "f"): value.append(0x0C)
      case UInt8(ascii: "n"): value.append(0x0A)
      case UInt8(ascii: "r"): value.append(0x0D)
      case UInt8(ascii: "t"): value.append(0x09)
      case UInt8(ascii: "u"):
        guard var code = try? JSONScanner.hex4(bytes, at &+ 2) else { return }
        if (0xD800..<0xDC00).contains(code) {
          guard let low = try? JSONScanner.hex4(bytes, at &+ 8), low >= 0xDC00 else { return }
          code = 0x10000 &+ (code &- 0xD800) << 10 &+ (low &- 0xDC00)
          at &+= 6
        }
        guard let scalar = Unicode.Scalar(code) else { return }
        UTF8.transcode(scalar, into: &value)
        at &+= 4
      case let other:
        value.append(other)
      }
      at &+= 2
    }
  }
}

extension UTF8 {
  fileprivate static func transcode(_ scalar: Unicode.Scalar, into bytes: inout [UInt8]) {
    let code = scalar.value
    func tail(_ shift: UInt32) -> UInt8 { 0x80 | UInt8(truncatingIfNeeded: code >> shift & 0x3F) }
    switch code {
    case 0..<0x80:
      bytes.append(UInt8(truncatingIfNeeded: code))
    case 0x80..<0x800:
      bytes.append(0xC0 | UInt8(truncatingIfNeeded: code >> 6))
      bytes.append(tail(0))
    case 0x800..<0x10000:
      bytes.append(0xE0 | UInt8(truncatingIfNeeded: code >> 12))
      bytes.append(tail(6))
      bytes.append(tail(0))
    default:
      bytes.append(0xF0 | UInt8(truncatingIfNeeded: code >> 18))
      bytes.append(tail(12))
      bytes.append(tail(6))
      bytes.append(tail(0))
    }
  }
}

/// Where a value stands in a JSON text that was read; of a string with its quotes.
package struct JSONRange: Hashable, Sendable {
  @usableFromInline let start32: Int32
  @usableFromInline let end32: Int32

  @inlinable
  package init(start: Int, end: Int) {
    start32 = Int32(truncatingIfNeeded: start)
    end32 = Int32(truncatingIfNeeded: end)
  }

  @inlinable
  package var start: Int { Int(start32) }
  @inlinable
  package var end: Int { Int(end32) }
  @inlinable
  package var count: Int { Int(end32 &- start32) }

  /// The bytes as they came.
  @inlinable
  package func raw(in text: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    precondition(start >= 0 && start <= end && end <= text.count, "a place of another text")
    return UnsafeRawBufferPointer(rebasing: text[start..<end])
  }
}
