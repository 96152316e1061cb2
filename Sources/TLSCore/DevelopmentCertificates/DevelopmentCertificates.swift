import COpenSSL

/// A certificate authority made for one server on one machine, and that server's certificate.
///
/// The authority's private key signs once and is then forgotten: it is never written, so nobody who reads the
/// directory can sign for the names of Google's hosts to clients that trust `ca.pem`. Renewing therefore makes a
/// new authority; clients read `ca.pem` again.
package struct DevelopmentCertificates: Sendable, Equatable {
  /// The authority's certificate, for clients to trust.
  package var caPEM: String
  /// The server's certificate alone: who trusts the authority has its certificate, and would read it for nothing.
  package var serverPEM: String
  /// The server's private key, PKCS#8.
  package var serverKeyPEM: String

  /// How long both certificates hold.
  ///
  /// Some clients refuse server certificates of more than 398 days.
  package static let daysValid: Int64 = 397

  /// The names each server certificate holds: the machine itself, and the hosts that clients written for Google's
  /// service dial or check.
  package static let defaultNames = [
    "localhost", "127.0.0.1", "::1",
    "fcm-xmpp.googleapis.com", "gcm-xmpp.googleapis.com", "gcm.googleapis.com", "fcm.googleapis.com",
    "gcm-http.googleapis.com", "gcm-preprod.googleapis.com", "android.googleapis.com",
    "iid.googleapis.com", "oauth2.googleapis.com", "accounts.google.com", "www.googleapis.com",
    "fcmregistrations.googleapis.com",
  ]

  /// Makes a new authority and a server certificate signed by it (ECDSA P-256, SHA-256).
  ///
  /// - Parameters:
  ///   - names: Host names and IP addresses beside ``defaultNames``.
  ///   - nowSeconds: Seconds since 1970-01-01 UTC. Validity begins an hour earlier, for clocks that lag.
  package static func make(
    names: [String] = [], nowSeconds: Int64
  ) throws(CryptoFault) -> DevelopmentCertificates {
    let notBefore = nowSeconds - 3_600
    let notAfter = nowSeconds + daysValid * 86_400
    let mark = try Secrets.random(4).map { String(Int($0) + 256, radix: 16).suffix(2) }.joined()

    let caKey = try PrivateKey.ecP256()
    let ca = try Certificate.make(
      .init(
        commonName: "Weir development CA \(mark)", notBefore: notBefore, notAfter: notAfter,
        extensions: [
          (NID_basic_constraints, "critical,CA:TRUE,pathlen:0"),
          (NID_key_usage, "critical,keyCertSign,cRLSign"),
          (NID_subject_key_identifier, "hash"),
        ]),
      key: caKey, issuer: nil, signedBy: caKey)

    let key = try PrivateKey.ecP256()
    let server = try Certificate.make(
      .init(
        commonName: "localhost", notBefore: notBefore, notAfter: notAfter,
        extensions: [
          (NID_basic_constraints, "critical,CA:FALSE"),
          (NID_key_usage, "critical,digitalSignature"),
          (NID_ext_key_usage, "serverAuth"),
          (NID_subject_key_identifier, "hash"),
          (NID_authority_key_identifier, "keyid"),
          (NID_subject_alt_name, try alternativeNames(defaultNames + names)),
        ]),
      key: key, issuer: ca, signedBy: caKey)

    return DevelopmentCertificates(
      caPEM: try ca.pem(), serverPEM: try server.pem(), serverKeyPEM: try key.pem())
  }

  /// Why a set of certificates cannot be used, or nil if it can.
  ///
  /// Checked: all three parts can be read, the key belongs to the certificate, the authority signed it, and it
  /// holds for 7 more days.
  package func fault(nowSeconds: Int64) -> String? {
    do throws(CryptoFault) {
      let ca = try PEM.certificate(caPEM)
      let server = try PEM.certificate(serverPEM)
      let key = try PEM.privateKey(serverKeyPEM)
      defer { ERR_clear_error() }
      if X509_check_private_key(server.raw, key.raw) != 1 { return "server.key is not the certificate's key" }
      if X509_verify(server.raw, X509_get0_pubkey(ca.raw)) != 1 { return "ca.pem did not sign server.pem" }
      var limit = time_t(nowSeconds + 7 * 86_400)
      // Answers -1 for a time not after the limit.
      if X509_cmp_time(X509_get0_notAfter(server.raw), &limit) <= 0 { return "server.pem is about to expire" }
      return nil
    } catch {
      return error.description
    }
  }

  /// The subjectAltName value.
  ///
  /// Names are checked strictly, because commas and colons have a meaning in it.
  private static func alternativeNames(_ names: [String]) throws(CryptoFault) -> String {
    var seen: Set<String> = []
    var entries: [String] = []
    for name in names where seen.insert(name.lowercased()).inserted {
      entries.append(try alternativeName(name))
    }
    return entries.joined(separator: ",")
  }

  private static func alternativeName(_ name: String) throws(CryptoFault) -> String {
    if let octets = a2i_IPADDRESS(name) {
      ASN1_OCTET_STRING_free(octets)
      return "IP:" + name
    }
    ERR_clear_error()
    let labels = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    let isHost =
      name.utf8.count <= 253
      && labels.allSatisfy { label in
        (1...63).contains(label.count) && label.first != UInt8(ascii: "-") && label.last != UInt8(ascii: "-")
          && label.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
              UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
              true
            default: false
            }
          }
      }
    guard isHost else { throw .badName(name) }
    return "DNS:" + name
  }
}
