import Bytes
import COpenSSL

/// One TLS connection as bytes in, bytes out.
///
/// Has no socket; belongs to one thread at a time.
///
/// Every call works in a ``TLSScratch``: what is to be sent to the peer stands in its `output` afterwards, also when
/// the session has failed (an alert). Between calls a session holds OpenSSL's own state and nothing else, 13.6 KB
/// for TLS 1.3.
package final class TLSSession {
  package enum State: Hashable, Sendable {
    /// Awaiting the peer's part of the handshake; plaintext cannot be sent yet.
    case handshaking
    case open
    /// The peer sent close_notify: it sends nothing more, and may still read.
    case peerClosed
    /// Over. `output` may hold an alert.
    case failed(TLSFault)
  }

  package private(set) var state = State.handshaking
  package let context: TLSContext
  /// The server that a client asked for; nil on a server.
  package let server: String?

  private let ssl: OpaquePointer
  private let sessionKey: String
  private var hasOfferedSession = false
  private var hasSeenBytes = false
  private var hasSentClose = false

  // Good during a call only.
  private var input: UnsafeRawPointer?
  private var inputLeft = 0
  private var scratch: TLSScratch?

  /// A server's side of a new connection.
  package init(server context: TLSContext) throws(TLSFault) {
    guard context.isServer, let made = SSL_new(context.pointer) else {
      throw TLSFault.configuration("not a server's TLS context")
    }
    self.context = context
    server = nil
    sessionKey = ""
    ssl = made
    try attach()
    SSL_set_accept_state(ssl)
  }

  /// A client's side; `start` makes the first bytes.
  ///
  /// - Parameters:
  ///   - host: Name or IP address that the certificate must be for. A name is sent along (SNI, RFC 6066 §3).
  ///   - port: Keeps the sessions of two servers of one host apart.
  package init(client context: TLSContext, host: String, port: UInt16 = 0) throws(TLSFault) {
    guard !context.isServer, let made = SSL_new(context.pointer) else {
      throw TLSFault.configuration("not a client's TLS context")
    }
    self.context = context
    server = host
    sessionKey = "\(host):\(port)"
    ssl = made
    try attach()
    SSL_set_connect_state(ssl)
    try expect(host)
    context.sessions.use(for: sessionKey) { session in
      hasOfferedSession = SSL_set_session(ssl, session) == 1
    }
  }

  deinit {
    // A connection that was cut must not spoil its session for the next one.
    SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
    SSL_free(ssl)
  }

  private func attach() throws(TLSFault) {
    guard let bio = SessionBIO.make(for: self) else { throw TLSFault.configuration("out of memory") }
    // One reference serves both directions, and SSL_free drops it.
    SSL_set_bio(ssl, bio, bio)
    SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
  }

  private func expect(_ host: String) throws(TLSFault) {
    guard let parameters = SSL_get0_param(ssl) else { throw TLSFault.configuration("out of memory") }
    // RFC 6125 §6.4.3: a star stands for a whole label.
    X509_VERIFY_PARAM_set_hostflags(parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
    if X509_VERIFY_PARAM_set1_ip_asc(parameters, host) == 1 { return }
    ERR_clear_error()
    guard !host.isEmpty, !host.utf8.contains(0), SSL_set1_host(ssl, host) == 1,
      shim_SSL_set_tlsext_host_name(ssl, host) == 1
    else { throw TLSFault.configuration("not a host name: \(host)") }
  }

  // MARK: Calls

  /// Makes a client's first flight.
  ///
  /// Does nothing when repeated.
  package func start(_ scratch: TLSScratch) {
    guard state == .handshaking, !context.isServer else { return }
    self.scratch = scratch
    ERR_clear_error()
    shakeHands()
    self.scratch = nil
  }

  /// Takes bytes of the peer, all of them.
  ///
  /// - Parameters:
  ///   - scratch: Of this thread; nobody else may use it during the call.
  ///   - opened: Called once, when the handshake is done and before any plaintext. May call `send`.
  ///   - sink: Called with plaintext in order, good until it returns. May call `send`, never `receive`.
  package func receive(
    _ cipher: UnsafeRawBufferPointer, _ scratch: TLSScratch, opened: () -> Void = {},
    sink: (UnsafeRawBufferPointer) -> Void
  ) {
    guard !cipher.isEmpty, state == .handshaking || state == .open else { return }
    if !hasSeenBytes {
      hasSeenBytes = true
      if let fault = TLSFault.looking(at: cipher) {
        state = .failed(fault)
        return
      }
    }
    input = cipher.baseAddress
    inputLeft = cipher.count
    self.scratch = scratch
    defer {
      input = nil
      inputLeft = 0
      self.scratch = nil
    }
    ERR_clear_error()
    if state == .handshaking {
      shakeHands()
      guard state == .open else { return }
      opened()
    }
    readAll(scratch, sink)
  }

  /// Turns plaintext into records of up to 16 KB in the scratch output.
  ///
  /// Only when the state is `open` or the peer has closed its side.
  ///
  /// - Returns: Whether all of it was taken; false leaves nothing of it to be sent.
  @discardableResult
  package func send(_ plain: UnsafeRawBufferPointer, _ scratch: TLSScratch) -> Bool {
    guard state == .open || state == .peerClosed, !hasSentClose else { return false }
    let outer = self.scratch
    self.scratch = scratch
    defer { self.scratch = outer }
    ERR_clear_error()
    var sent = 0
    while sent < plain.count, let base = plain.baseAddress {
      var written = 0
      let code = SSL_write_ex(ssl, base + sent, plain.count - sent, &written)
      guard code == 1 else {
        fail(code)
        return false
      }
      sent += written
    }
    return true
  }

  /// Says that nothing more will be sent (close_notify).
  ///
  /// Harmless when repeated.
  package func closeNotify(_ scratch: TLSScratch) {
    guard state == .open || state == .peerClosed, !hasSentClose else { return }
    hasSentClose = true
    self.scratch = scratch
    ERR_clear_error()
    SSL_shutdown(ssl)
    ERR_clear_error()
    self.scratch = nil
  }

  /// The connection under the session has ended: without close_notify that is a fault.
  package func inputEnded() {
    if state == .handshaking || state == .open { state = .failed(.truncated) }
  }

  // MARK: What was agreed on, once open

  package var version: TLSVersion? {
    SSL_get_version(ssl).flatMap { TLSVersion(rawValue: String(cString: $0)) }
  }

  /// OpenSSL's name of the cipher.
  package var cipher: String? {
    guard let cipher = SSL_get_current_cipher(ssl), let name = SSL_CIPHER_get_name(cipher) else { return nil }
    return String(cString: name)
  }

  /// The application protocol both sides agreed on (RFC 7301).
  package var applicationProtocol: String? {
    var name: UnsafePointer<UInt8>?
    var count: UInt32 = 0
    SSL_get0_alpn_selected(ssl, &name, &count)
    guard let name, count > 0 else { return nil }
    return String(decoding: UnsafeBufferPointer(start: name, count: Int(count)), as: UTF8.self)
  }

  /// The host name that the client asked for (RFC 6066 §3).
  package var serverName: String? {
    SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) }
  }

  /// Whether the handshake went without certificates since an earlier session was continued.
  package var isResumed: Bool { SSL_session_reused(ssl) == 1 }

  // MARK: For the BIO

  func takeInput(_ room: UnsafeMutableRawBufferPointer) -> Int {
    guard let input, inputLeft > 0, let target = room.baseAddress else { return 0 }
    let count = min(inputLeft, room.count)
    target.copyMemory(from: input, byteCount: count)
    self.input = input + count
    inputLeft -= count
    return count
  }

  func addOutput(_ bytes: UnsafeRawBufferPointer) { scratch?.output.append(bytes) }

  func keep(_ session: OpaquePointer) -> Bool {
    SSL_SESSION_is_resumable(session) == 1 && context.sessions.keep(session, for: sessionKey)
  }

  // MARK: Steps

  private func shakeHands() {
    let code = SSL_do_handshake(ssl)
    if code == 1 {
      state = .open
    } else if SSL_get_error(ssl, code) != SSL_ERROR_WANT_READ {
      fail(code)
    }
  }

  private func readAll(_ scratch: TLSScratch, _ sink: (UnsafeRawBufferPointer) -> Void) {
    let room = scratch.plaintext
    guard let base = room.baseAddress else { return }
    var filled = 0
    while state == .open {
      if room.count - filled < TLSScratch.recordBytesMax {
        sink(UnsafeRawBufferPointer(start: base, count: filled))
        filled = 0
      }
      var count = 0
      let code = SSL_read_ex(ssl, base + filled, room.count - filled, &count)
      if code == 1 {
        filled += count
        // To ask once more only to hear that nothing is there would cost OpenSSL a buffer for a whole record.
        if inputLeft == 0, SSL_has_pending(ssl) == 0 { break }
        continue
      }
      let error = SSL_get_error(ssl, code)
      if error == SSL_ERROR_WANT_READ { break }
      if error == SSL_ERROR_ZERO_RETURN { state = .peerClosed } else { fail(code) }
    }
    if filled > 0 { sink(UnsafeRawBufferPointer(start: base, count: filled)) }
  }

  private func fail(_ code: CInt) {
    let isHandshake = state == .handshaking
    let errors = OpenSSLErrors()
    state = .failed(fault(errors, isHandshake))
    if isHandshake, hasOfferedSession { context.sessions.forget(sessionKey) }
  }

  private func fault(_ errors: OpenSSLErrors, _ isHandshake: Bool) -> TLSFault {
    if isHandshake, context.verifies {
      let verdict = SSL_get_verify_result(ssl)
      switch CInt(clamping: verdict) {
      case X509_V_OK: break
      case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: return .wrongHost(server ?? "")
      default: return .untrusted(String(cString: X509_verify_cert_error_string(verdict)))
      }
    }
    if let alert = errors.alert {
      if alert == SSL_AD_PROTOCOL_VERSION { return .version("the peer accepts none of ours") }
      return .alert(SSL_alert_desc_string_long(alert).map { String(cString: $0) } ?? errors.text)
    }
    switch errors.reason {
    case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_VERSION_TOO_LOW, SSL_R_VERSION_TOO_HIGH,
      SSL_R_NO_PROTOCOLS_AVAILABLE:
      return .version(errors.text)
    default: return isHandshake ? .handshake(errors.text) : .corrupted(errors.text)
    }
  }
}
