import COpenSSL

/// One X.509 certificate in the making.
struct Certificate {
  let pointer: OwnedPointer

  /// What a certificate says beside names and keys.
  struct Profile {
    var commonName: String
    /// Seconds since 1970-01-01 UTC.
    var notBefore: Int64
    var notAfter: Int64
    /// Extensions in OpenSSL's configuration words, in order.
    var extensions: [(nid: Int32, value: String)]
  }

  /// Makes and signs a certificate with SHA-256.
  ///
  /// - Parameter issuer: The signing certificate; nil makes a self-signed one.
  static func make(
    _ profile: Profile, key: PrivateKey, issuer: Certificate?, signedBy signer: PrivateKey
  ) throws(CryptoFault) -> Certificate {
    let certificate = try OwnedPointer(X509_new(), "X509_new", free: X509_free)
    let raw = certificate.raw
    try OwnedPointer.check(X509_set_version(raw, 2), "X509_set_version")
    try setSerial(raw)
    try setTime(raw, profile.notBefore, X509_set1_notBefore, "X509_set1_notBefore")
    try setTime(raw, profile.notAfter, X509_set1_notAfter, "X509_set1_notAfter")
    try OwnedPointer.check(X509_set_pubkey(raw, key.pointer.raw), "X509_set_pubkey")

    let subject = try OwnedPointer(X509_NAME_new(), "X509_NAME_new", free: X509_NAME_free)
    for (field, value) in [("O", "Weir development"), ("CN", profile.commonName)] {
      try OwnedPointer.check(
        X509_NAME_add_entry_by_txt(subject.raw, field, MBSTRING_FLAG | 1, value, -1, -1, 0),
        "X509_NAME_add_entry_by_txt")
    }
    try OwnedPointer.check(X509_set_subject_name(raw, subject.raw), "X509_set_subject_name")
    let issuerName = issuer.map { X509_get_subject_name($0.pointer.raw) } ?? subject.raw
    try OwnedPointer.check(X509_set_issuer_name(raw, issuerName), "X509_set_issuer_name")

    var context = X509V3_CTX()
    X509V3_set_ctx(&context, (issuer?.pointer ?? certificate).raw, raw, nil, nil, 0)
    for (nid, value) in profile.extensions {
      let call = "extension \(value.prefix(40))"
      let made = try OwnedPointer(
        X509V3_EXT_conf_nid(nil, &context, nid, value), call, free: X509_EXTENSION_free)
      try OwnedPointer.check(X509_add_ext(raw, made.raw, -1), call)
    }
    try OwnedPointer.check(X509_sign(raw, signer.pointer.raw, EVP_sha256()), "X509_sign")
    return Certificate(pointer: certificate)
  }

  func pem() throws(CryptoFault) -> String {
    try PEM.text("PEM_write_bio_X509") { bio in PEM_write_bio_X509(bio, pointer.raw) }
  }

  /// 127 random bits, since two certificates of one issuer must differ.
  ///
  /// RFC 5280 §4.1.2.2.
  private static func setSerial(_ certificate: OpaquePointer) throws(CryptoFault) {
    var bytes = try Secrets.random(16)
    bytes[0] = bytes[0] & 0x7F | 0x40
    let number = try OwnedPointer(
      BN_bin2bn(bytes, Int32(bytes.count), nil), "BN_bin2bn", free: BN_free)
    guard BN_to_ASN1_INTEGER(number.raw, X509_get_serialNumber(certificate)) != nil else {
      throw OwnedPointer.fault("BN_to_ASN1_INTEGER")
    }
  }

  private static func setTime(
    _ certificate: OpaquePointer, _ seconds: Int64,
    _ set: (OpaquePointer, UnsafePointer<ASN1_TIME>) -> Int32, _ call: String
  ) throws(CryptoFault) {
    guard let time = ASN1_TIME_set(nil, time_t(seconds)) else { throw OwnedPointer.fault("ASN1_TIME_set") }
    defer { ASN1_TIME_free(time) }
    try OwnedPointer.check(set(certificate, time), call)
  }
}
