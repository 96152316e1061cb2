import COpenSSL
import Synchronization

/// Versions of TLS; older ones are never spoken.
package enum TLSVersion: String, Comparable, Sendable {
  case v12 = "TLSv1.2"
  case v13 = "TLSv1.3"

  var number: CInt { self == .v12 ? TLS1_2_VERSION : TLS1_3_VERSION }
  package static func < (left: TLSVersion, right: TLSVersion) -> Bool { left.number < right.number }
}

package let tls13Suites = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

/// What a server shows and accepts.
package struct TLSServerOptions: Sendable {
  /// PEM file: the server's certificate, then the issuers up to but without the root.
  package var certificateChainFile: String
  /// PEM file, without a pass phrase.
  package var privateKeyFile: String
  /// Application protocols (RFC 7301), best first.
  ///
  /// A client that offers none of them is served without one.
  package var protocols: [String] = []
  package var versionMin = TLSVersion.v12
  package var versionMax = TLSVersion.v13
  /// Tickets a TLS 1.3 client gets for its next connections.
  ///
  /// They cost the server no memory.
  package var tickets = 1
  /// Whether records of TLS 1.3 are made by ``RecordLayer`` once OpenSSL has made the handshake.
  package var makesRecords = true
  /// OpenSSL's names of TLS 1.3's cipher suites, best first, with colons between.
  package var suites = tls13Suites

  package init(certificateChainFile: String, privateKeyFile: String) {
    self.certificateChainFile = certificateChainFile
    self.privateKeyFile = privateKeyFile
  }
}

/// Whom a client trusts and what it offers.
package struct TLSClientOptions: Sendable {
  package enum Trust: Hashable, Sendable {
    /// The system's certificate authorities.
    case system
    /// The authorities in these PEM files alone.
    case files([String])
    /// Anyone: for tests against servers without a usable certificate.
    case anyone
  }
  package var trust = Trust.system
  /// Application protocols (RFC 7301), best first.
  package var protocols: [String] = []
  package var versionMin = TLSVersion.v12
  package var versionMax = TLSVersion.v13
  /// Sessions kept for one server, so that many reconnects at once are resumed.
  package var sessionsPerServerMax = 16
  /// Whether records of TLS 1.3 are made by ``RecordLayer`` once OpenSSL has made the handshake.
  package var makesRecords = true
  /// OpenSSL's names of TLS 1.3's cipher suites, best first, with colons between.
  package var suites = tls13Suites

  package init(trust: Trust = .system) { self.trust = trust }
}

/// Certificates, keys, trust and options that any number of sessions share.
///
/// Immutable and usable from every thread. A change of certificate is a new context, put in place with a
/// ``TLSContextBox``.
// Sendable by argument: OpenSSL guards SSL_CTX with its own locks and nothing here changes it after `init`.
package final class TLSContext: @unchecked Sendable {
  let pointer: OpaquePointer
  package let isServer: Bool
  let verifies: Bool
  /// See ``TLSServerOptions/makesRecords``.
  let makesRecords: Bool
  let sessions: ClientSessions
  /// A server's.
  let ticketKeys: TicketKeys?
  /// The protocols in the wire form of RFC 7301: a length byte before each name.
  private let protocols: [UInt8]

  /// A server's context.
  ///
  /// - Parameter previous: Its tickets stay good; for a change of certificate.
  /// - Throws: ``TLSFault/configuration(_:)`` with the file and the reason.
  package init(server options: TLSServerOptions, previous: TLSContext? = nil) throws(TLSFault) {
    isServer = true
    verifies = false
    makesRecords = options.makesRecords
    sessions = ClientSessions(perServerMax: 0)
    protocols = try wireForm(options.protocols)
    guard let made = SSL_CTX_new(TLS_server_method()) else { throw unusable("TLS") }
    do throws(TLSFault) {
      ticketKeys = try useCertificate(of: options, in: made, previous: previous?.ticketKeys)
    } catch {
      SSL_CTX_free(made)
      throw error
    }
    pointer = made
    try configure(options.versionMin, options.versionMax, options.suites)
    _ = shim_SSL_CTX_set_session_cache_mode(pointer, CLong(SSL_SESS_CACHE_OFF))
    let name = Array("weir".utf8)
    SSL_CTX_set_session_id_context(pointer, name, UInt32(name.count))
    SSL_CTX_set_num_tickets(pointer, max(0, options.tickets))
    _ = SSL_CTX_set_timeout(pointer, TicketKeys.secondsMax)
    SSL_CTX_set_tlsext_ticket_key_evp_cb(pointer, ticketKey)
    SSL_CTX_set_alpn_select_cb(pointer, selectProtocol, Unmanaged.passUnretained(self).toOpaque())
  }

  /// A client's context.
  ///
  /// - Throws: ``TLSFault/configuration(_:)`` with the file and the reason.
  package init(client options: TLSClientOptions) throws(TLSFault) {
    isServer = false
    ticketKeys = nil
    verifies = options.trust != .anyone
    makesRecords = options.makesRecords
    sessions = ClientSessions(perServerMax: options.sessionsPerServerMax)
    protocols = try wireForm(options.protocols)
    guard let made = SSL_CTX_new(TLS_client_method()) else { throw unusable("TLS") }
    pointer = made
    try configure(options.versionMin, options.versionMax, options.suites)
    switch options.trust {
    case .system:
      guard SSL_CTX_set_default_verify_paths(pointer) == 1 else {
        throw unusable("the system's certificates")
      }
    case .files(let files):
      for file in files where SSL_CTX_load_verify_file(pointer, file) != 1 {
        throw unusable("certificate authority \(file)")
      }
    case .anyone: break
    }
    SSL_CTX_set_verify(pointer, verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nil)
    let mode = SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL
    _ = shim_SSL_CTX_set_session_cache_mode(pointer, CLong(mode))
    SSL_CTX_sess_set_new_cb(pointer, keepSession)
    // Returns 0 for success, unlike the rest.
    if !protocols.isEmpty, SSL_CTX_set_alpn_protos(pointer, protocols, UInt32(protocols.count)) != 0 {
      throw unusable("protocols")
    }
  }

  deinit { SSL_CTX_free(pointer) }

  private func configure(_ low: TLSVersion, _ high: TLSVersion, _ suites: String) throws(TLSFault) {
    guard shim_SSL_CTX_set_min_proto_version(pointer, low.number) == 1,
      shim_SSL_CTX_set_max_proto_version(pointer, high.number) == 1, low <= high
    else { throw unusable("TLS versions \(low.rawValue) to \(high.rawValue)") }
    shim_SSL_CTX_set_safe_options(pointer)
    shim_SSL_CTX_set_stream_modes(pointer)
    if makesRecords {
      SSL_CTX_set_keylog_callback(pointer, hearSecret)
      SSL_CTX_set_msg_callback(pointer, hearMessage)
    }
    let ciphers = """
      ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:\
      ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305
      """
    guard SSL_CTX_set_cipher_list(pointer, ciphers) == 1, SSL_CTX_set_ciphersuites(pointer, suites) == 1
    else { throw unusable("ciphers") }
  }

  /// The server's best protocol among those in `offer`, as a range of the offer; nil for none.
  fileprivate func select(from offer: UnsafeBufferPointer<UInt8>) -> Range<Int>? {
    var own = 0
    while own < protocols.count {
      let name = protocols[(own + 1)...].prefix(Int(protocols[own]))
      var theirs = 0
      while theirs < offer.count {
        let start = theirs + 1
        let end = start + Int(offer[theirs])
        guard end <= offer.count else { break }
        if offer[start..<end].elementsEqual(name) { return start..<end }
        theirs = end
      }
      own += 1 + name.count
    }
    return nil
  }
}

/// The context that new sessions use; the owner swaps it when certificates change.
package final class TLSContextBox: Sendable {
  private let context: Mutex<TLSContext>

  package init(_ context: TLSContext) { self.context = Mutex(context) }

  package var current: TLSContext { context.withLock { $0 } }

  /// Sessions that are open keep the context they were made with.
  package func replace(with next: TLSContext) { context.withLock { $0 = next } }
}

private func unusable(_ what: String) -> TLSFault {
  .configuration("\(what) cannot be used: \(OpenSSLErrors().text)")
}

/// Puts the certificate and its key into a context.
///
/// - Returns: The keys of its tickets, made of that key.
private func useCertificate(
  of options: TLSServerOptions, in context: OpaquePointer, previous: TicketKeys?
) throws(TLSFault) -> TicketKeys {
  SSL_CTX_set_default_passwd_cb(context, noPassPhrase)
  let (chain, key) = (options.certificateChainFile, options.privateKeyFile)
  guard SSL_CTX_use_certificate_chain_file(context, chain) == 1 else {
    throw unusable("certificate \(chain)")
  }
  guard SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1 else { throw unusable("key \(key)") }
  guard SSL_CTX_check_private_key(context) == 1 else {
    throw unusable("key \(key) and certificate \(chain)")
  }
  var encoded: UnsafeMutablePointer<UInt8>?
  let count = i2d_PrivateKey(SSL_CTX_get0_privatekey(context), &encoded)
  guard count > 0, let encoded else { throw unusable("key \(key)") }
  var bytes = Array(UnsafeBufferPointer(start: encoded, count: Int(count)))
  CRYPTO_clear_free(encoded, Int(count), nil, 0)
  defer { OPENSSL_cleanse(&bytes, bytes.count) }
  do throws(CryptoFault) {
    return try TicketKeys(privateKey: bytes, previous: previous)
  } catch {
    throw .configuration("ticket keys: \(error)")
  }
}

private func wireForm(_ protocols: [String]) throws(TLSFault) -> [UInt8] {
  var wire: [UInt8] = []
  for name in protocols {
    guard (1...255).contains(name.utf8.count) else {
      throw TLSFault.configuration("protocol names have 1 to 255 bytes: \(name)")
    }
    wire.append(UInt8(name.utf8.count))
    wire.append(contentsOf: name.utf8)
  }
  return wire
}

/// Without it OpenSSL would ask on the terminal.
private func noPassPhrase(
  _ buffer: UnsafeMutablePointer<CChar>?, _ size: CInt, _ isWriting: CInt, _ context: UnsafeMutableRawPointer?
) -> CInt { -1 }

/// RFC 7301 §3.2 would let a server refuse a client whose protocols it does not know; old clients offer anything,
/// so that is never done.
private func selectProtocol(
  _ ssl: OpaquePointer?, _ out: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
  _ outLength: UnsafeMutablePointer<UInt8>?, _ offer: UnsafePointer<UInt8>?, _ offerLength: UInt32,
  _ context: UnsafeMutableRawPointer?
) -> CInt {
  guard let context, let offer, let out, let outLength else { return SSL_TLSEXT_ERR_NOACK }
  let bytes = UnsafeBufferPointer(start: offer, count: Int(offerLength))
  let chosen = Unmanaged<TLSContext>.fromOpaque(context)._withUnsafeGuaranteedRef { $0.select(from: bytes) }
  guard let chosen else { return SSL_TLSEXT_ERR_NOACK }
  out.pointee = offer + chosen.lowerBound
  outLength.pointee = UInt8(truncatingIfNeeded: chosen.count)
  return SSL_TLSEXT_ERR_OK
}

/// A server gave a ticket; returning 1 takes the reference over.
private func keepSession(_ ssl: OpaquePointer?, _ session: OpaquePointer?) -> CInt {
  guard let ssl, let session, let data = SSL_get_ex_data(ssl, 0) else { return 0 }
  return Unmanaged<OpenSSLEngine>.fromOpaque(data)._withUnsafeGuaranteedRef { $0.keep(session) } ? 1 : 0
}
