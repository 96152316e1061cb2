/// A growable run of bytes that text and numbers are appended to without making strings.
///
/// The one output buffer of the hot path: an instance lives with a connection or a loop, is filled in a
/// round and emptied with its capacity kept.
package struct ByteWriter: Sendable {
  /// What was appended, in order.
  package private(set) var bytes: [UInt8]

  package init() { bytes = [] }

  package init(capacity: Int) {
    bytes = []
    bytes.reserveCapacity(capacity)
  }

  package var count: Int { bytes.count }
  package var isEmpty: Bool { bytes.isEmpty }

  /// Appends a literal; costs one copy.
  package mutating func append(_ literal: StaticString) {
    literal.withUTF8Buffer { bytes.append(contentsOf: $0) }
  }

  package mutating func append(_ text: String) {
    bytes.append(contentsOf: text.utf8)
  }

  package mutating func append(_ more: [UInt8]) {
    bytes.append(contentsOf: more)
  }

  package mutating func append(_ more: UnsafeRawBufferPointer) {
    bytes.append(contentsOf: more)
  }

  package mutating func append(byte: UInt8) {
    bytes.append(byte)
  }

  /// Appends a number in decimal digits.
  package mutating func append(decimal value: Int64) {
    if value < 0 {
      bytes.append(UInt8(ascii: "-"))
    }
    var rest = value.magnitude
    let start = bytes.count
    repeat {
      bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10))
      rest /= 10
    } while rest > 0
    bytes[start...].reverse()
  }

  /// Appends 16 lower-case hex digits, most significant first.
  package mutating func append(hex value: UInt64) {
    var shift = 60
    while shift >= 0 {
      let digit = UInt8(truncatingIfNeeded: (value >> UInt64(shift)) & 0xF)
      bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
      shift -= 4
    }
  }

  /// Empties the writer and keeps its memory for the next round.
  package mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
  }

  /// Hands the bytes out and leaves the writer empty, without memory.
  package mutating func take() -> [UInt8] {
    let taken = bytes
    bytes = []
    return taken
  }
}
