/// Eight bytes of hexadecimal digits and the 32 bits they stand for, all at once in one register.
enum HexWord {
  private static let ones: UInt64 = 0x0101_0101_0101_0101

  /// Eight lower-case digits, the most significant in the highest byte.
  static func digits(of value: UInt32) -> UInt64 {
    var nibbles = UInt64(value)
    nibbles = (nibbles | nibbles << 16) & 0x0000_FFFF_0000_FFFF
    nibbles = (nibbles | nibbles << 8) & 0x00FF_00FF_00FF_00FF
    nibbles = (nibbles | nibbles << 4) & (ones &* 0x0F)
    return lowerCase(nibbles)
  }

  /// - Parameter digits: The most significant in the highest byte, lower or upper case.
  /// - Returns: Nil when a byte is no digit.
  static func value(of digits: UInt64) -> UInt32? {
    // Letters have bit 6 set, and stand 9 above their low four bits.
    let letters = digits >> 6 & ones
    let nibbles = (digits & (ones &* 0x0F)) &+ letters &* 9
    // A letter beyond `f` makes more than 15; what is no digit is not what comes back.
    guard nibbles & (ones &* 0xF0) == 0, lowerCase(nibbles) == digits | letters << 5 else { return nil }
    var value = nibbles
    value = (value | value >> 4) & 0x00FF_00FF_00FF_00FF
    value = (value | value >> 8) & 0x0000_FFFF_0000_FFFF
    value = value | value >> 16
    return UInt32(truncatingIfNeeded: value)
  }

  /// Digits of eight numbers below 16.
  private static func lowerCase(_ nibbles: UInt64) -> UInt64 {
    let letters = (nibbles &+ ones &* 6) >> 4 & ones
    return nibbles &+ ones &* 0x30 &+ letters &* 0x27
  }
}
