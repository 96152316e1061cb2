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
    // Native strings lend their bytes, which is one copy and no walk.
    let lent: Void? = text.utf8.withContiguousStorageIfAvailable { bytes.append(contentsOf: $0) }
    if lent == nil { bytes.append(contentsOf: text.utf8) }
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
    withUnsafeTemporaryAllocation(byteCount: 20, alignment: 1) { digits in
      var rest = value.magnitude
      // proof: 64 bits have at most 19 digits, and a sign before them.
      var at = digits.count
      repeat {
        at &-= 1
        digits[at] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest % 10)
        rest /= 10
      } while rest > 0
      if value < 0 {
        at &-= 1
        digits[at] = UInt8(ascii: "-")
      }
      bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: digits[at...]))
    }
  }

  /// Appends 16 lower-case hex digits, most significant first.
  package mutating func append(hex value: UInt64) {
    let digits = (
      HexWord.digits(of: UInt32(truncatingIfNeeded: value >> 32)).bigEndian,
      HexWord.digits(of: UInt32(truncatingIfNeeded: value)).bigEndian
    )
    withUnsafeBytes(of: digits) { bytes.append(contentsOf: $0) }
  }

  /// Empties the writer and keeps its memory for the next round.
  package mutating func removeAll() {
    bytes.removeAll(keepingCapacity: true)
  }

  /// The bytes in an array of just their size, for what is kept.
  ///
  /// `Array(bytes)` would be no copy but the writer's own memory, with all its room, and the writer would have to take
  /// new memory of that size before its next use.
  package func copy() -> [UInt8] { bytes.withUnsafeBytes { Array($0) } }

  /// Hands the bytes out and leaves the writer empty, without memory.
  package mutating func take() -> [UInt8] {
    let taken = bytes
    bytes = []
    return taken
  }
}
