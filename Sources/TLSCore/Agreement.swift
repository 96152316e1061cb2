import COpenSSL

/// What both sides of an open TLS connection have agreed on.
struct Agreement {
  let version: TLSVersion?
  /// OpenSSL's name of it.
  let cipher: String?
  /// RFC 7301.
  let applicationProtocol: String?
  /// The host name that the client asked for (RFC 6066 §3).
  let serverName: String?
  let isResumed: Bool

  init(_ ssl: OpaquePointer) {
    version = SSL_get_version(ssl).flatMap { TLSVersion(rawValue: String(cString: $0)) }
    cipher = SSL_get_current_cipher(ssl).flatMap { SSL_CIPHER_get_name($0) }.map { String(cString: $0) }
    var name: UnsafePointer<UInt8>?
    var count: UInt32 = 0
    SSL_get0_alpn_selected(ssl, &name, &count)
    applicationProtocol = name.flatMap { name in
      count > 0 ? String(decoding: UnsafeBufferPointer(start: name, count: Int(count)), as: UTF8.self) : nil
    }
    serverName = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
    isResumed = SSL_session_reused(ssl) == 1
  }
}
