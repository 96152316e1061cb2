/// 128 bits that stand for a longer text: a message key, a token's look-up key.
package struct Hash128: Hashable, Sendable, Comparable {
  package var high: UInt64
  package var low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  package static func < (left: Hash128, right: Hash128) -> Bool {
    (left.high, left.low) < (right.high, right.low)
  }

  /// The value is a keyed hash already, so one half is enough for a table.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(low)
  }

  /// 32 lower-case hex digits, most significant first.
  package var hex: String {
    var writer = ByteWriter(capacity: 32)
    writer.append(hex: high)
    writer.append(hex: low)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  /// Reads exactly 32 hex digits; upper case is accepted.
  package init?(hex digits: UnsafeRawBufferPointer) {
    guard digits.count == 32 else { return nil }
    var halves: (UInt64, UInt64) = (0, 0)
    for index in 0..<32 {
      let value: UInt64
      switch digits[index] {
      case let digit where digit >= UInt8(ascii: "0") && digit <= UInt8(ascii: "9"):
        value = UInt64(digit - UInt8(ascii: "0"))
      case let digit where digit >= UInt8(ascii: "a") && digit <= UInt8(ascii: "f"):
        value = UInt64(digit - UInt8(ascii: "a") + 10)
      case let digit where digit >= UInt8(ascii: "A") && digit <= UInt8(ascii: "F"):
        value = UInt64(digit - UInt8(ascii: "A") + 10)
      default:
        return nil
      }
      if index < 16 { halves.0 = halves.0 << 4 | value } else { halves.1 = halves.1 << 4 | value }
    }
    self.init(high: halves.0, low: halves.1)
  }
}
