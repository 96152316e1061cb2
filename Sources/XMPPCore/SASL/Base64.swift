/// Base 64 as SASL wants it: RFC 4648 §4, no line feeds, full padding (RFC 6120 §6.4.2, §13.9.1).
package enum Base64 {
  /// - Returns: nil for any byte outside the alphabet (white space too), wrong padding, or left-over bits.
  package static func decode(_ text: String) -> [UInt8]? {
    let bytes = Array(text.utf8)
    guard bytes.count % 4 == 0 else { return nil }
    var padding = 0
    if bytes.last == UInt8(ascii: "=") {
      padding = bytes[bytes.count - 2] == UInt8(ascii: "=") ? 2 : 1
    }
    var decoded: [UInt8] = []
    decoded.reserveCapacity(bytes.count / 4 * 3)
    var bits: UInt32 = 0
    var held: UInt32 = 0
    for byte in bytes.dropLast(padding) {
      guard let value = value(byte) else { return nil }
      bits = bits << 6 | value
      held += 6
      if held >= 8 {
        held -= 8
        decoded.append(UInt8(truncatingIfNeeded: bits >> held))
        bits &= (1 << held) - 1
      }
    }
    guard bits == 0 else { return nil }
    return decoded
  }

  package static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    var index = 0
    while index < bytes.count {
      let left = bytes.count - index
      let group =
        UInt32(bytes[index]) << 16 | (left > 1 ? UInt32(bytes[index + 1]) << 8 : 0)
        | (left > 2 ? UInt32(bytes[index + 2]) : 0)
      text.append(digit(group >> 18))
      text.append(digit(group >> 12))
      text.append(left > 1 ? digit(group >> 6) : UInt8(ascii: "="))
      text.append(left > 2 ? digit(group) : UInt8(ascii: "="))
      index += 3
    }
    return String(decoding: text, as: UTF8.self)
  }

  private static func value(_ byte: UInt8) -> UInt32? {
    switch byte {
    case 0x41...0x5A: UInt32(byte - 0x41)
    case 0x61...0x7A: UInt32(byte - 0x61 + 26)
    case 0x30...0x39: UInt32(byte - 0x30 + 52)
    case 0x2B: 62
    case 0x2F: 63
    default: nil
    }
  }

  private static func digit(_ value: UInt32) -> UInt8 {
    let value = UInt8(truncatingIfNeeded: value & 0x3F)
    switch value {
    case 0..<26: return value + 0x41
    case 26..<52: return value - 26 + 0x61
    case 52..<62: return value - 52 + 0x30
    case 62: return 0x2B
    default: return 0x2F
    }
  }
}
