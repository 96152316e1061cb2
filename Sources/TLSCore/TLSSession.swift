import Bytes
import COpenSSL

/// One TLS connection as bytes in, bytes out.
///
/// Has no socket; belongs to one thread at a time.
///
/// Every call works in a ``TLSScratch``: what is to be sent to the peer stands in its `output` afterwards, also when
/// the session has failed (an alert).
///
/// OpenSSL makes the handshake. With TLS 1.3 the session then takes the keys over into a ``RecordLayer`` and gives OpenSSL's
/// 13.6 KB back, a client after the first data of the server's, before which its tickets come; between calls it holds two
/// keys. TLS 1.2 stays with OpenSSL.
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

  /// OpenSSL's side of it; nil once `records` has taken over.
  private(set) var ssl: OpaquePointer?
  private var records: RecordLayer?
  var secrets = HandshakeSecrets()
  /// Records under the secrets that OpenSSL has made and read.
  private var (sent, received) = (RecordTracker(), RecordTracker())
  private var agreed: Agreement?
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
    try attach(to: made)
    SSL_set_accept_state(made)
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
    try attach(to: made)
    SSL_set_connect_state(made)
    try expect(host, of: made)
    context.sessions.use(for: sessionKey) { session in
      hasOfferedSession = SSL_set_session(made, session) == 1
    }
  }

  deinit { release() }

  private func release() {
    guard let ssl else { return }
    // A connection that was cut must not spoil its session for the next one.
    SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
    SSL_free(ssl)
    self.ssl = nil
  }

  private func attach(to ssl: OpaquePointer) throws(TLSFault) {
    guard let bio = SessionBIO.make(for: self) else { throw TLSFault.configuration("out of memory") }
    // One reference serves both directions, and SSL_free drops it.
    SSL_set_bio(ssl, bio, bio)
    SSL_set_ex_data(ssl, 0, Unmanaged.passUnretained(self).toOpaque())
  }

  private func expect(_ host: String, of ssl: OpaquePointer) throws(TLSFault) {
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
    if let records { return readRecords(records, scratch, sink) }
    ERR_clear_error()
    if state == .handshaking {
      let before = scratch.output.count
      shakeHands()
      guard state == .open else { return }
      // A server's last flight holds nothing but tickets, under its new key; a client's the end of the handshake, under another.
      if context.isServer {
        sent.feed(UnsafeRawBufferPointer(rebasing: scratch.output.bytes[before...]))
        takeOver()
      } else {
        received.feed(UnsafeRawBufferPointer(start: input, count: inputLeft))
      }
      opened()
    } else if !context.isServer {
      received.feed(cipher)
    }
    if let records { return readRecords(records, scratch, sink) }
    if readAll(scratch, sink), !context.isServer, received.isBetweenRecords { takeOver() }
  }

  /// Turns plaintext into records of up to 16 KB in the scratch output.
  ///
  /// Only when the state is `open` or the peer has closed its side.
  ///
  /// - Returns: Whether all of it was taken; false leaves nothing of it to be sent.
  @discardableResult
  package func send(_ plain: UnsafeRawBufferPointer, _ scratch: TLSScratch) -> Bool {
    guard state == .open || state == .peerClosed, !hasSentClose else { return false }
    if let records {
      if records.send(plain, into: scratch.output) { return true }
      state = .failed(.corrupted("could not be made"))
      return false
    }
    guard let ssl else { return false }
    let outer = self.scratch
    self.scratch = scratch
    defer { self.scratch = outer }
    ERR_clear_error()
    var sent = 0
    while sent < plain.count, let base = plain.baseAddress {
      var written = 0
      let code = SSL_write_ex(ssl, base + sent, plain.count - sent, &written)
      guard code == 1 else {
        fail(code, ssl)
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
    if let records { return records.closeNotify(into: scratch.output) }
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

  package var version: TLSVersion? { (agreed ?? ssl.map(Agreement.init))?.version }

  /// OpenSSL's name of the cipher.
  package var cipher: String? { (agreed ?? ssl.map(Agreement.init))?.cipher }

  /// The application protocol both sides agreed on (RFC 7301).
  package var applicationProtocol: String? { (agreed ?? ssl.map(Agreement.init))?.applicationProtocol }

  /// The host name that the client asked for (RFC 6066 §3).
  package var serverName: String? { (agreed ?? ssl.map(Agreement.init))?.serverName }

  /// Whether the handshake went without certificates since an earlier session was continued.
  package var isResumed: Bool { (agreed ?? ssl.map(Agreement.init))?.isResumed ?? false }

  // MARK: For the BIO

  func takeInput(_ room: UnsafeMutableRawBufferPointer) -> Int {
    guard let input, inputLeft > 0, let target = room.baseAddress else { return 0 }
    let count = min(inputLeft, room.count)
    target.copyMemory(from: input, byteCount: count)
    self.input = input + count
    inputLeft -= count
    return count
  }

  func addOutput(_ bytes: UnsafeRawBufferPointer) {
    if state == .open { sent.feed(bytes) }
    scratch?.output.append(bytes)
  }

  func keep(_ session: OpaquePointer) -> Bool {
    SSL_SESSION_is_resumable(session) == 1 && context.sessions.keep(session, for: sessionKey)
  }

  // MARK: Records of one's own

  /// A key was changed, which OpenSSL alone knows of.
  func keysChanged() { secrets.erase() }

  /// Goes on without OpenSSL, if this is TLS 1.3 and OpenSSL has read all that it was given.
  private func takeOver() {
    defer { secrets.erase() }
    guard context.makesRecords, state == .open, let ssl, SSL_version(ssl) == TLS1_3_VERSION,
      SSL_has_pending(ssl) == 0,
      let cipher = SSL_get_current_cipher(ssl),
      let suite = CipherSuite(rawValue: SSL_CIPHER_get_protocol_id(cipher)),
      let client = TrafficSecret(secrets.client, of: suite),
      let server = TrafficSecret(secrets.server, of: suite)
    else { return }
    let isServer = context.isServer
    guard
      let layer = RecordLayer(
        sending: isServer ? server : client, sent: sent.count, receiving: isServer ? client : server,
        received: received.count, contentMax: Self.contentMax(of: ssl), takesTickets: !isServer
      )
    else { return }
    records = layer
    agreed = Agreement(ssl)
    release()
  }

  /// Most bytes of content in a record, as a client may have asked (RFC 6066 §4).
  private static func contentMax(of ssl: OpaquePointer) -> Int {
    let asked = SSL_get_session(ssl).map { SSL_SESSION_get_max_fragment_length($0) } ?? 0
    return (1...4).contains(asked) ? 256 << Int(asked) : RecordLayer.contentBytesMax
  }

  private func readRecords(
    _ records: RecordLayer, _ scratch: TLSScratch, _ sink: (UnsafeRawBufferPointer) -> Void
  ) {
    let rest = UnsafeRawBufferPointer(start: input, count: inputLeft)
    switch records.receive(rest, scratch, sink: sink) {
    case nil: break
    case .closed: state = .peerClosed
    case .failed(let fault): state = .failed(fault)
    }
  }

  // MARK: Steps of OpenSSL's

  private func shakeHands() {
    guard let ssl else { return }
    let code = SSL_do_handshake(ssl)
    if code == 1 {
      state = .open
    } else if SSL_get_error(ssl, code) != SSL_ERROR_WANT_READ {
      fail(code, ssl)
    }
  }

  /// - Returns: Whether there was plaintext.
  private func readAll(_ scratch: TLSScratch, _ sink: (UnsafeRawBufferPointer) -> Void) -> Bool {
    let room = scratch.plaintext
    guard let ssl, let base = room.baseAddress else { return false }
    var filled = 0
    var hasRead = false
    while state == .open {
      if room.count - filled < TLSScratch.recordBytesMax {
        sink(UnsafeRawBufferPointer(start: base, count: filled))
        filled = 0
      }
      var count = 0
      let code = SSL_read_ex(ssl, base + filled, room.count - filled, &count)
      if code == 1 {
        filled += count
        hasRead = true
        // To ask once more only to hear that nothing is there would cost OpenSSL a buffer for a whole record.
        if inputLeft == 0, SSL_has_pending(ssl) == 0 { break }
        continue
      }
      let error = SSL_get_error(ssl, code)
      if error == SSL_ERROR_WANT_READ { break }
      if error == SSL_ERROR_ZERO_RETURN { state = .peerClosed } else { fail(code, ssl) }
    }
    if filled > 0 { sink(UnsafeRawBufferPointer(start: base, count: filled)) }
    return hasRead
  }

  private func fail(_ code: CInt, _ ssl: OpaquePointer) {
    let isHandshake = state == .handshaking
    let errors = OpenSSLErrors()
    state = .failed(fault(errors, isHandshake, ssl))
    if isHandshake, hasOfferedSession { context.sessions.forget(sessionKey) }
  }

  private func fault(_ errors: OpenSSLErrors, _ isHandshake: Bool, _ ssl: OpaquePointer) -> TLSFault {
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
