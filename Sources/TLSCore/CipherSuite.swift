import COpenSSL

/// A cipher suite of TLS 1.3 (RFC 8446 appendix B.4): the AEAD that protects records, and the hash that keys come from.
package enum CipherSuite: UInt16 {
  case aes128 = 0x1301
  case aes256 = 0x1302
  case chaCha20 = 0x1303

  /// Bytes of an AEAD's key.
  var keyBytes: Int { self == .aes128 ? 16 : 32 }

  /// The hash of HKDF; its length is that of a traffic secret.
  var hash: OpaquePointer? { self == .aes256 ? EVP_sha384() : EVP_sha256() }
  var hashBytes: Int { self == .aes256 ? 48 : 32 }

  /// Records after which a sender must use new keys (RFC 8446 §5.5): AES-GCM bears 2^24.5 full ones.
  var recordsMax: UInt64 { self == .chaCha20 ? 1 << 48 : 1 << 24 }

  /// OpenSSL's AEAD; nil when memory was out.
  var aead: OpaquePointer? { Self.aeads[self] }

  // Sendable by argument: fetched once, changed never.
  nonisolated(unsafe) private static let aeads: [CipherSuite: OpaquePointer] = [
    .aes128: EVP_CIPHER_fetch(nil, "AES-128-GCM", nil), .aes256: EVP_CIPHER_fetch(nil, "AES-256-GCM", nil),
    .chaCha20: EVP_CIPHER_fetch(nil, "ChaCha20-Poly1305", nil),
  ].compactMapValues(\.self)
}
