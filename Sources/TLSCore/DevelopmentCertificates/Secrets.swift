import COpenSSL

/// Random secrets, digests and comparison, from OpenSSL.
package enum Secrets {
  /// Bytes of OpenSSL's generator, fit for keys.
  ///
  /// - Throws: ``CryptoFault/library(call:reason:)`` when the system has no entropy; never weaker bytes.
  package static func random(_ count: Int) throws(CryptoFault) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    if count > 0 { try OwnedPointer.check(RAND_bytes(&bytes, Int32(clamping: count)), "RAND_bytes") }
    return bytes
  }

  /// A random text of base64url characters without padding: 16 bytes make 22 characters, 32 make 43.
  package static func randomText(bytes count: Int) throws(CryptoFault) -> String {
    base64URL(try random(count))
  }

  /// RFC 4648 §5, without padding.
  package static func base64URL(_ bytes: [UInt8]) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count * 4 + 2) / 3)
    var pending: UInt32 = 0
    var bits: UInt32 = 0
    for byte in bytes {
      pending = pending << 8 | UInt32(byte)
      bits += 8
      while bits >= 6 {
        bits -= 6
        text.append(alphabet[Int(pending >> bits & 0x3F)])
      }
      pending &= (1 << bits) - 1
    }
    if bits > 0 { text.append(alphabet[Int(pending << (6 - bits) & 0x3F)]) }
    return String(decoding: text, as: UTF8.self)
  }

  /// 32 bytes.
  package static func sha256(_ bytes: [UInt8]) throws(CryptoFault) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    try OwnedPointer.check(
      EVP_Digest(bytes, bytes.count, &digest, nil, EVP_sha256(), nil), "EVP_Digest")
    return digest
  }

  /// Whether two secrets are the same, in a time that depends on their lengths alone.
  package static func areEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
    left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
  }

  /// An RSA key pair of 2,048 bits, as in a service account: the private key as PKCS#8, the public key as
  /// SubjectPublicKeyInfo, both PEM.
  package static func rsaKeyPair() throws(CryptoFault) -> (privatePEM: String, publicPEM: String) {
    let key = try PrivateKey.rsa(bits: 2_048)
    return (try key.pem(), try key.publicPEM())
  }
}
