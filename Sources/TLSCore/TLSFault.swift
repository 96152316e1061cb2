import COpenSSL

/// Why TLS could not be set up or went wrong.
///
/// Certain cases name what a person must change.
package enum TLSFault: Error, Hashable, Sendable, CustomStringConvertible {
  /// What a peer that does not speak TLS seems to speak.
  package enum Plaintext: String, Hashable, Sendable {
    case http = "an HTTP request"
    case xml = "XML"
    case other = "something else"
  }

  /// The peer sent bytes that are no TLS record.
  case plaintext(Plaintext)
  /// The peer's certificate is not trusted here.
  case untrusted(String)
  /// The peer's certificate is for another host.
  case wrongHost(String)
  /// No TLS version that both sides accept.
  case version(String)
  /// The peer refused us, with a TLS alert.
  case alert(String)
  /// The handshake failed for another reason.
  case handshake(String)
  /// A record could not be read: altered on its way, or not made by the peer.
  case corrupted(String)
  /// The connection ended without TLS's own end mark.
  case truncated
  /// A file, a name or an option given to a context is of no use.
  case configuration(String)

  /// For people; holds no secrets and no bytes of the peer.
  package var description: String {
    switch self {
    case .plaintext(let kind): "this port speaks TLS, the peer sent \(kind.rawValue) in plain text"
    case .untrusted(let reason): "certificate not trusted: \(reason)"
    case .wrongHost(let name): "certificate is not for \(name)"
    case .version(let reason): "no common TLS version: \(reason)"
    case .alert(let reason): "the peer refused: \(reason)"
    case .handshake(let reason): "TLS handshake failed: \(reason)"
    case .corrupted(let reason): "TLS record not readable: \(reason)"
    case .truncated: "the connection ended without a TLS close"
    case .configuration(let reason): reason
    }
  }

  /// What a server may answer in plain text before it closes, so that a person sees the mistake; nil if nothing fits.
  package var plaintextReply: StaticString? {
    guard case .plaintext(.http) = self else { return nil }
    return """
      HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 36\r\nConnection: close\r\n\r\n\
      This port speaks TLS: use https://\r\n
      """
  }

  /// Looks at the first bytes of a peer: nil if they may be TLS.
  static func looking(at bytes: UnsafeRawBufferPointer) -> TLSFault? {
    guard let first = bytes.first else { return nil }
    // Record types change_cipher_spec to application_data, RFC 8446 §5.1.
    if (0x14...0x17).contains(first) { return nil }
    if first == UInt8(ascii: "<") { return .plaintext(.xml) }
    let isLetter = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(first)
    return .plaintext(isLetter ? .http : .other)
  }
}

/// The reasons OpenSSL left behind on this thread; the queue is emptied.
struct OpenSSLErrors {
  /// The first reason's code, 0 if there is none.
  private(set) var reason: CInt = 0
  private(set) var text = "no reason given"

  init() {
    let code = ERR_get_error()
    ERR_clear_error()
    guard code != 0 else { return }
    reason = ERR_GET_REASON(code)
    if let words = ERR_reason_error_string(code) {
      text = String(cString: words)
    } else if ERR_GET_LIB(code) == ERR_LIB_SYS, let words = strerror(reason) {
      text = String(cString: words)
    }
  }

  /// The number of the alert that the peer sent, if that is the reason.
  var alert: CInt? { reason >= SSL_AD_REASON_OFFSET ? reason - SSL_AD_REASON_OFFSET : nil }
}
