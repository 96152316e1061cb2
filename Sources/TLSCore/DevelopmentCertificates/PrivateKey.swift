import COpenSSL

/// A key pair, and its PEM forms.
struct PrivateKey {
  let pointer: OwnedPointer

  /// ECDSA on P-256.
  static func ecP256() throws(CryptoFault) -> PrivateKey {
    try generate("EC") { context in EVP_PKEY_CTX_set_group_name(context, "P-256") }
  }

  /// RSA of `bits`, public exponent 65537.
  static func rsa(bits: Int32) throws(CryptoFault) -> PrivateKey {
    try generate("RSA") { context in EVP_PKEY_CTX_set_rsa_keygen_bits(context, bits) }
  }

  private static func generate(
    _ kind: String, _ configure: (OpaquePointer) -> Int32
  ) throws(CryptoFault) -> PrivateKey {
    let context = try OwnedPointer(
      EVP_PKEY_CTX_new_from_name(nil, kind, nil), "EVP_PKEY_CTX_new_from_name", free: EVP_PKEY_CTX_free)
    try OwnedPointer.check(EVP_PKEY_keygen_init(context.raw), "EVP_PKEY_keygen_init")
    try OwnedPointer.check(configure(context.raw), "key parameters")
    var made: OpaquePointer?
    try OwnedPointer.check(EVP_PKEY_generate(context.raw, &made), "EVP_PKEY_generate")
    return PrivateKey(pointer: try OwnedPointer(made, "EVP_PKEY_generate", free: EVP_PKEY_free))
  }

  /// PKCS#8, not encrypted.
  func pem() throws(CryptoFault) -> String {
    try PEM.text("PEM_write_bio_PKCS8PrivateKey") { bio in
      PEM_write_bio_PKCS8PrivateKey(bio, pointer.raw, nil, nil, 0, nil, nil)
    }
  }

  /// SubjectPublicKeyInfo.
  func publicPEM() throws(CryptoFault) -> String {
    try PEM.text("PEM_write_bio_PUBKEY") { bio in PEM_write_bio_PUBKEY(bio, pointer.raw) }
  }
}

/// PEM through OpenSSL's memory BIOs.
enum PEM {
  static func text(_ call: String, _ write: (OpaquePointer) -> Int32) throws(CryptoFault) -> String {
    let bio = try OwnedPointer(BIO_new(BIO_s_mem()), "BIO_new", free: { BIO_free($0) })
    try OwnedPointer.check(write(bio.raw), call)
    var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(bio.raw))
    let count = BIO_read(bio.raw, &bytes, Int32(clamping: bytes.count))
    try OwnedPointer.check(count, "BIO_read")
    return String(decoding: bytes.prefix(Int(count)), as: UTF8.self)
  }

  /// The first certificate in `text`.
  static func certificate(_ text: String) throws(CryptoFault) -> OwnedPointer {
    let bio = try reader(text)
    return try OwnedPointer(
      PEM_read_bio_X509(bio.raw, nil, nil, nil), "PEM_read_bio_X509", free: X509_free)
  }

  static func privateKey(_ text: String) throws(CryptoFault) -> OwnedPointer {
    let bio = try reader(text)
    return try OwnedPointer(
      PEM_read_bio_PrivateKey(bio.raw, nil, nil, nil), "PEM_read_bio_PrivateKey", free: EVP_PKEY_free)
  }

  static func publicKey(_ text: String) throws(CryptoFault) -> OwnedPointer {
    let bio = try reader(text)
    return try OwnedPointer(
      PEM_read_bio_PUBKEY(bio.raw, nil, nil, nil), "PEM_read_bio_PUBKEY", free: EVP_PKEY_free)
  }

  private static func reader(_ text: String) throws(CryptoFault) -> OwnedPointer {
    let bio = try OwnedPointer(BIO_new(BIO_s_mem()), "BIO_new", free: { BIO_free($0) })
    let bytes = Array(text.utf8)
    if !bytes.isEmpty {
      try OwnedPointer.check(BIO_write(bio.raw, bytes, Int32(clamping: bytes.count)), "BIO_write")
    }
    return bio
  }
}
