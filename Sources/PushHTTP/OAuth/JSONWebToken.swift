package import JSONCore
import PushModel

/// A signed JSON Web Token in its compact form, taken apart and not yet believed.
/// - Source: RFC 7515 section 7.1, RFC 7519.
package struct JSONWebToken: Sendable {
  package var algorithm: String
  package var keyID: String?
  package var claims: JSONValue
  /// What the signature is over.
  package var signedBytes: [UInt8]
  package var signature: [UInt8]

  /// Nil when it is not of the form, or longer than 8 KiB.
  package init?(_ text: String) {
    let bytes = Array(text.utf8)
    guard bytes.count <= 8_192 else { return nil }
    let parts = bytes.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3, let head = Base64URLText.decoded(parts[0]),
      let body = Base64URLText.decoded(parts[1]), let signature = Base64URLText.decoded(parts[2]),
      let header = try? JSONValue(parsing: head, depthMax: 8), let algorithm = header["alg"]?.string,
      let claims = try? JSONValue(parsing: body, depthMax: 8), claims.members != nil
    else { return nil }
    self.algorithm = algorithm
    keyID = header["kid"]?.string
    self.claims = claims
    signedBytes = Array(bytes[..<(parts[0].count + 1 + parts[1].count)])
    self.signature = signature
  }
}

/// Decoding of base64 with the URL alphabet.
package enum Base64URLText {
  /// Padding may be there or not; nil for any other byte.
  package static func decoded(_ text: some Collection<UInt8>) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.count * 3 / 4)
    var held: UInt32 = 0
    var bits = 0
    var padding = 0
    for byte in text {
      if byte == UInt8(ascii: "=") {
        padding += 1
        continue
      }
      guard padding == 0, let value = digit(byte) else { return nil }
      held = (held << 6 | UInt32(value)) & 0xFF_FFFF
      bits += 6
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(truncatingIfNeeded: held >> UInt32(bits)))
      }
    }
    return padding <= 2 && bits < 6 ? bytes : nil
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 65...90: byte - 65
    case 97...122: byte - 71
    case 48...57: byte + 4
    case 45: 62
    case 95: 63
    default: nil
    }
  }
}
