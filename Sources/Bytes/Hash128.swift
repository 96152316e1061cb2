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
    func word(_ index: Int) -> UInt32? {
      HexWord.value(of: UInt64(bigEndian: digits.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self)))
    }
    guard let first = word(0), let second = word(1), let third = word(2), let fourth = word(3) else {
      return nil
    }
    self.init(high: UInt64(first) << 32 | UInt64(second), low: UInt64(third) << 32 | UInt64(fourth))
  }
}
