import COpenSSL

/// What the keys of one direction of a TLS 1.3 connection are made of (RFC 8446 §7.1 to 7.3).
package struct TrafficSecret {
  let suite: CipherSuite
  private var bytes: [UInt8]

  /// - Returns: nil unless the secret has the length of the suite's hash.
  package init?(_ bytes: [UInt8], of suite: CipherSuite) {
    guard bytes.count == suite.hashBytes else { return nil }
    self.bytes = bytes
    self.suite = suite
  }

  /// The key of the AEAD.
  func key() -> [UInt8]? { expand("key", suite.keyBytes) }

  /// What each record's nonce is made of, 12 bytes.
  func iv() -> [UInt8]? { expand("iv", RecordCipher.nonceBytes) }

  /// The secret after a KeyUpdate.
  func next() -> TrafficSecret? {
    expand("traffic upd", suite.hashBytes).flatMap { TrafficSecret($0, of: suite) }
  }

  /// Overwrites the secret, which is of no use afterwards.
  mutating func erase() { bytes.erase() }

  /// HKDF-Expand-Label with no context (RFC 8446 §7.1) for at most one block of the hash, so that one HMAC gives it.
  private func expand(_ label: StaticString, _ count: Int) -> [UInt8]? {
    var block: [UInt8] = [0, UInt8(truncatingIfNeeded: count)]
    let prefix: StaticString = "tls13 "
    block.append(UInt8(truncatingIfNeeded: prefix.utf8CodeUnitCount + label.utf8CodeUnitCount))
    prefix.withUTF8Buffer { block.append(contentsOf: $0) }
    label.withUTF8Buffer { block.append(contentsOf: $0) }
    // No context; RFC 5869 §2.3 numbers the blocks from 1.
    block.append(contentsOf: [0, 1])
    var digest = [UInt8](repeating: 0, count: suite.hashBytes)
    guard
      HMAC(suite.hash, bytes, CInt(truncatingIfNeeded: bytes.count), block, block.count, &digest, nil) != nil
    else { return nil }
    defer { digest.erase() }
    return Array(digest.prefix(count))
  }
}

extension [UInt8] {
  /// Overwrites bytes that nobody else may see.
  mutating func erase() { withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) } }
}
