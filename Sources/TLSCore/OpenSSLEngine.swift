import Bytes
import COpenSSL

/// OpenSSL's part of a session: every handshake, and TLS 1.2 to its end.
///
/// Reads what it was lent and writes to the output that it was lent, see ``SessionBIO``. Belongs to one thread at a time.
final class OpenSSLEngine {
  enum Progress {
    /// More bytes of the peer are needed.
    case waits
    case done
    case failed(TLSFault)
  }

  let ssl: OpaquePointer
  /// The traffic secrets, until they are taken over or worthless.
  private(set) var secrets = HandshakeSecrets()
  private let context: TLSContext
  /// Whom a client asked for.
  private let host: String
  private let sessionKey: String
  private var hasOfferedSession = false
  private var isOpen = false
  private var hasFailed = false
  /// Records under the secrets that OpenSSL has made and read.
  private var (sent, received) = (RecordTracker(), RecordTracker())

  // Good during a call only.
  private var input = UnsafeRawBufferPointer(start: nil, count: 0)
  private var output: OutBuffer?

  /// A server's side of a new connection.
  init(server context: TLSContext) throws(TLSFault) {
    guard context.isServer, let made = SSL_new(context.pointer) else {
      throw TLSFault.configuration("not a server's TLS context")
    }
    self.context = context
    host = ""
    sessionKey = ""
    ssl = made
    try attach()
    SSL_set_accept_state(ssl)
  }

  /// A client's side, which asks for `host` and offers a session of `host` and `port`.
  init(client context: TLSContext, host: String, port: UInt16) throws(TLSFault) {
    guard !context.isServer, let made = SSL_new(context.pointer) else {
      throw TLSFault.configuration("not a client's TLS context")
    }
    self.context = context
    self.host = host
    sessionKey = "\(host):\(port)"
    ssl = made
    try attach()
    SSL_set_connect_state(ssl)
    try expectHost()
    context.sessions.use(for: sessionKey) { hasOfferedSession = SSL_set_session(ssl, $0) == 1 }
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

  private func expectHost() throws(TLSFault) {
    guard let parameters = SSL_get0_param(ssl) else { throw TLSFault.configuration("out of memory") }
    // RFC 6125 §6.4.3: a star stands for a whole label.
    X509_VERIFY_PARAM_set_hostflags(parameters, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
    if X509_VERIFY_PARAM_set1_ip_asc(parameters, host) == 1 { return }
    ERR_clear_error()
    guard !host.isEmpty, !host.utf8.contains(0), SSL_set1_host(ssl, host) == 1,
      shim_SSL_set_tlsext_host_name(ssl, host) == 1
    else { throw TLSFault.configuration("not a host name: \(host)") }
  }

  // MARK: What is lent

  /// Lends bytes of the peer, and a place for what is to be sent, until ``endLoan()``.
  func lend(_ cipher: UnsafeRawBufferPointer, _ output: OutBuffer) {
    input = cipher
    self.output = output
    if isOpen { received.feed(cipher) }
    ERR_clear_error()
  }

  func endLoan() {
    input = UnsafeRawBufferPointer(start: nil, count: 0)
    output = nil
  }

  /// What OpenSSL has not read of the bytes lent.
  var unread: UnsafeRawBufferPointer { input }

  // MARK: Steps

  /// Goes on with the handshake.
  func shakeHands() -> Progress {
    let before = output?.count ?? 0
    let code = SSL_do_handshake(ssl)
    guard code == 1 else {
      return SSL_get_error(ssl, code) == SSL_ERROR_WANT_READ ? .waits : .failed(fail())
    }
    isOpen = true
    // A server's last flight holds nothing but tickets, under its new key; a client's the end of the handshake, under another.
    if !context.isServer {
      received.feed(input)
    } else if let output {
      sent.feed(UnsafeRawBufferPointer(rebasing: output.bytes[before...]))
    }
    return .done
  }

  /// Reads what there is.
  ///
  /// - Parameter room: Space for plaintext, two records' worth at least.
  /// - Returns: Whether there was plaintext, and how the peer's side ended if it did.
  func read(
    into room: UnsafeMutableRawBufferPointer, _ sink: (UnsafeRawBufferPointer) -> Void
  ) -> (hasRead: Bool, ending: RecordLayer.Ending?) {
    guard let base = room.baseAddress else { return (false, nil) }
    var filled = 0
    var hasRead = false
    var ending: RecordLayer.Ending?
    // What `sink` sends may fail.
    while ending == nil, !hasFailed {
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
        if input.isEmpty, SSL_has_pending(ssl) == 0 { break }
        continue
      }
      let error = SSL_get_error(ssl, code)
      if error == SSL_ERROR_WANT_READ { break }
      ending = error == SSL_ERROR_ZERO_RETURN ? .closed : .failed(fail())
    }
    if filled > 0 { sink(UnsafeRawBufferPointer(start: base, count: filled)) }
    return (hasRead, ending)
  }

  /// Makes records of plaintext.
  ///
  /// - Returns: What went wrong; then nothing of it may be sent.
  func send(_ plain: UnsafeRawBufferPointer, into output: OutBuffer) -> TLSFault? {
    lending(output) {
      var taken = 0
      while taken < plain.count, let base = plain.baseAddress {
        var written = 0
        guard SSL_write_ex(ssl, base + taken, plain.count - taken, &written) == 1 else { return fail() }
        taken += written
      }
      return nil
    }
  }

  /// Says that nothing more will be sent.
  func closeNotify(into output: OutBuffer) {
    lending(output) {
      SSL_shutdown(ssl)
      ERR_clear_error()
    }
  }

  /// Also within a call that has lent another output.
  private func lending<Value>(_ output: OutBuffer, _ body: () -> Value) -> Value {
    let outer = self.output
    self.output = output
    defer { self.output = outer }
    ERR_clear_error()
    return body()
  }

  // MARK: Taking over

  /// Whether the last byte that came was the last of a record.
  var isBetweenRecords: Bool { received.isBetweenRecords }

  /// The layer that goes on without OpenSSL.
  ///
  /// - Returns: nil unless this is TLS 1.3, its first keys are in use and OpenSSL has read all that it was given.
  func recordLayer() -> RecordLayer? {
    defer { secrets.erase() }
    guard context.makesRecords, isOpen, !hasFailed, SSL_version(ssl) == TLS1_3_VERSION,
      SSL_has_pending(ssl) == 0,
      let cipher = SSL_get_current_cipher(ssl),
      let suite = CipherSuite(rawValue: SSL_CIPHER_get_protocol_id(cipher)),
      let client = TrafficSecret(secrets.client, of: suite),
      let server = TrafficSecret(secrets.server, of: suite)
    else { return nil }
    let isServer = context.isServer
    return RecordLayer(
      sending: isServer ? server : client, sent: sent.count, receiving: isServer ? client : server,
      received: received.count, contentMax: contentMax, takesTickets: !isServer)
  }

  /// Most bytes of content in a record, as a client may have asked (RFC 6066 §4).
  private var contentMax: Int {
    let asked = SSL_get_session(ssl).map { SSL_SESSION_get_max_fragment_length($0) } ?? 0
    return (1...4).contains(asked) ? 256 << Int(asked) : RecordLayer.contentBytesMax
  }

  // MARK: Called by OpenSSL

  func takeInput(_ room: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(input.count, room.count)
    guard count > 0 else { return 0 }
    room.copyMemory(from: UnsafeRawBufferPointer(rebasing: input[..<count]))
    input = UnsafeRawBufferPointer(rebasing: input[count...])
    return count
  }

  func addOutput(_ bytes: UnsafeRawBufferPointer) {
    if isOpen { sent.feed(bytes) }
    output?.append(bytes)
  }

  func keep(_ session: OpaquePointer) -> Bool {
    SSL_SESSION_is_resumable(session) == 1 && context.sessions.keep(session, for: sessionKey)
  }

  func hearSecret(_ line: UnsafeRawBufferPointer) { secrets.hear(line) }

  /// A key was changed, which OpenSSL alone knows of.
  func keysChanged() { secrets.erase() }

  // MARK: Faults

  /// What OpenSSL's last call failed for; no other may follow it.
  private func fail() -> TLSFault {
    hasFailed = true
    let fault = fault(OpenSSLErrors())
    if !isOpen, hasOfferedSession { context.sessions.forget(sessionKey) }
    return fault
  }

  private func fault(_ errors: OpenSSLErrors) -> TLSFault {
    if !isOpen, context.verifies {
      let verdict = SSL_get_verify_result(ssl)
      switch CInt(clamping: verdict) {
      case X509_V_OK: break
      case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: return .wrongHost(host)
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
    default: return isOpen ? .corrupted(errors.text) : .handshake(errors.text)
    }
  }
}
