/// The key of an opening handshake and its answer: RFC 6455 §4.2.2.
///
/// SHA-1 proves here that the server speaks WebSocket, and protects nothing.
package enum HandshakeKey {
  /// The answer to a key.
  package static func accept(_ key: String) -> String {
    base64(sha1(Array(key.utf8) + Array("258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8)))
  }

  /// A key of 16 bytes.
  package static func make(_ random: () -> UInt64) -> String {
    var bytes: [UInt8] = []
    for word in [random(), random()] { withUnsafeBytes(of: word) { bytes += $0 } }
    return base64(bytes)
  }

  /// Whether it is the base 64 text of 16 bytes.
  package static func isKey(_ text: String) -> Bool {
    let digits = Array(text.utf8)
    guard digits.count == 24, digits[22] == UInt8(ascii: "="), digits[23] == UInt8(ascii: "=") else {
      return false
    }
    return digits[..<22].allSatisfy { alphabet.contains($0) }
  }

  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  private static func base64(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      var bits: UInt32 = 0
      for byte in group { bits = bits << 8 | UInt32(byte) }
      bits <<= UInt32((3 - group.count) * 8)
      for digit in 0..<4 {
        let value = bits >> UInt32(18 - 6 * digit) & 63
        text.append(digit <= group.count ? alphabet[Int(value)] : UInt8(ascii: "="))
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// FIPS 180-4 §6.1.
  static func sha1(_ message: [UInt8]) -> [UInt8] {
    var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
    var padded = message + [0x80]
    while padded.count % 64 != 56 { padded.append(0) }
    withUnsafeBytes(of: UInt64(message.count * 8).bigEndian) { padded += $0 }
    var words = [UInt32](repeating: 0, count: 80)
    for block in stride(from: 0, to: padded.count, by: 64) {
      for index in 0..<16 {
        let at = block + index * 4
        words[index] =
          UInt32(padded[at]) << 24 | UInt32(padded[at + 1]) << 16 | UInt32(padded[at + 2]) << 8
          | UInt32(padded[at + 3])
      }
      for index in 16..<80 {
        words[index] = rotate(
          words[index - 3] ^ words[index - 8] ^ words[index - 14] ^ words[index - 16], 1)
      }
      var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
      for index in 0..<80 {
        let (mix, constant): (UInt32, UInt32) =
          switch index {
          case 0..<20: (b & c | ~b & d, 0x5A82_7999)
          case 20..<40: (b ^ c ^ d, 0x6ED9_EBA1)
          case 40..<60: (b & c | b & d | c & d, 0x8F1B_BCDC)
          default: (b ^ c ^ d, 0xCA62_C1D6)
          }
        let next = rotate(a, 5) &+ mix &+ e &+ constant &+ words[index]
        (e, d, c, b, a) = (d, c, rotate(b, 30), a, next)
      }
      state[0] &+= a
      state[1] &+= b
      state[2] &+= c
      state[3] &+= d
      state[4] &+= e
    }
    return state.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> UInt32(24 - 8 * $0)) } }
  }

  private static func rotate(_ word: UInt32, _ bits: UInt32) -> UInt32 { word << bits | word >> (32 - bits) }
}
