/// Checks text that comes in pieces cut anywhere against RFC 3629, and fails at the first byte that cannot be right.
struct UTF8Check: Sendable {
  /// Continuation bytes that the character begun still needs, and which values the next one may have.
  private var needed: UInt8 = 0
  private var low: UInt8 = 0x80
  private var high: UInt8 = 0xBF

  /// Whether no character is cut off at the end of what was taken.
  var isComplete: Bool { needed == 0 }

  /// - Returns: false once a byte was wrong; of no use afterwards.
  mutating func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let base = bytes.baseAddress else { return true }
    let count = bytes.count
    var index = 0
    while index < count {
      // proof: a load of 8 bytes at `index` ends at or before `count`.
      if needed == 0 {
        while index &+ 8 <= count,
          base.loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
        {
          index &+= 8
        }
        guard index < count else { return true }
      }
      guard take(base.load(fromByteOffset: index, as: UInt8.self)) else { return false }
      index &+= 1
    }
    return true
  }

  private mutating func take(_ byte: UInt8) -> Bool {
    if needed > 0 {
      guard byte >= low, byte <= high else { return false }
      needed &-= 1
      (low, high) = (0x80, 0xBF)
      return true
    }
    switch byte {
    case 0x00...0x7F: return true
    case 0xC2...0xDF: needed = 1
    case 0xE0: (needed, low) = (2, 0xA0)
    case 0xED: (needed, high) = (2, 0x9F)
    case 0xE1...0xEF: needed = 2
    case 0xF0: (needed, low) = (3, 0x90)
    case 0xF1...0xF3: needed = 3
    case 0xF4: (needed, high) = (3, 0x8F)
    default: return false
    }
    return true
  }
}
