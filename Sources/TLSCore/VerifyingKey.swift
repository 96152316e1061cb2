import COpenSSL

/// An RSA public key that checks signatures.
///
/// Sendable by argument: the key is never changed after it was read, and OpenSSL lets any number of threads use
/// one key, each with a context of its own.
package final class VerifyingKey: @unchecked Sendable {
  private let key: OwnedPointer

  /// - Parameter pem: A public key, or a private key, whose public half is then used.
  /// - Throws: ``CryptoFault/library(call:reason:)`` when it is neither, or no RSA key.
  package init(pem: String) throws(CryptoFault) {
    key =
      pem.contains("PRIVATE KEY-----") ? try PEM.privateKey(pem) : try PEM.publicKey(pem)
    guard EVP_PKEY_get_base_id(key.raw) == EVP_PKEY_RSA else {
      throw .library(call: "EVP_PKEY_get_base_id", reason: "not an RSA key")
    }
  }

  /// SubjectPublicKeyInfo.
  package func publicPEM() throws(CryptoFault) -> String {
    let raw = key.raw
    return try PEM.text("PEM_write_bio_PUBKEY") { bio in PEM_write_bio_PUBKEY(bio, raw) }
  }

  /// Whether `signature` is the key's over `message`, RSASSA-PKCS1-v1_5 with SHA-256 (RS256 of RFC 7518).
  ///
  /// False also for a signature of another length or form.
  package func isValid(_ signature: [UInt8], over message: [UInt8]) -> Bool {
    defer { ERR_clear_error() }
    guard
      let context = try? OwnedPointer(EVP_MD_CTX_new(), "EVP_MD_CTX_new", free: EVP_MD_CTX_free),
      EVP_DigestVerifyInit(context.raw, nil, EVP_sha256(), nil, key.raw) == 1
    else { return false }
    return EVP_DigestVerify(context.raw, signature, signature.count, message, message.count) == 1
  }
}

/// A private RSA key that signs, as app servers do; the server only verifies.
package enum RSASigner {
  /// RSASSA-PKCS1-v1_5 with SHA-256.
  package static func sign(_ message: [UInt8], privatePEM: String) throws(CryptoFault) -> [UInt8] {
    let key = try PEM.privateKey(privatePEM)
    let context = try OwnedPointer(EVP_MD_CTX_new(), "EVP_MD_CTX_new", free: EVP_MD_CTX_free)
    try OwnedPointer.check(
      EVP_DigestSignInit(context.raw, nil, EVP_sha256(), nil, key.raw), "EVP_DigestSignInit")
    var count = 0
    try OwnedPointer.check(
      EVP_DigestSign(context.raw, nil, &count, message, message.count), "EVP_DigestSign")
    var signature = [UInt8](repeating: 0, count: count)
    try OwnedPointer.check(
      EVP_DigestSign(context.raw, &signature, &count, message, message.count), "EVP_DigestSign")
    return Array(signature.prefix(count))
  }
}

extension Secrets {
  /// HMAC-SHA256 (RFC 2104), 32 bytes; empty when OpenSSL cannot, which equals no code.
  package static func hmacSHA256(_ message: [UInt8], key: [UInt8]) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: 32)
    var count = 0
    let found = EVP_Q_mac(
      nil, "HMAC", nil, "SHA256", nil, key, key.count, message, message.count, &code, code.count, &count)
    guard found != nil, count == 32 else {
      ERR_clear_error()
      return []
    }
    return code
  }
}
