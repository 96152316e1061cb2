import COpenSSL
import Glibc
import Synchronization

/// The keys that a server's session tickets are sealed with, a new one every day.
///
/// They are made of the server's private key and the number of the day, so that a server that was started again, or
/// another one with the same certificate, opens the tickets of before, and nothing is kept in a file. Whoever has the
/// private key could pass for the server anyway; what was said in a resumed session stays secret, since each makes a
/// new key exchange (RFC 8446 §2.2). TLS 1.2 has no such exchange: its tickets have a key of this process alone.
final class TicketKeys: Sendable {
  struct Key: Sendable {
    /// 16 bytes, sent with the ticket.
    var name: [UInt8]
    /// 32 bytes, for AES-256 in CBC mode.
    var seal: [UInt8]
    /// 32 bytes, for HMAC-SHA256.
    var code: [UInt8]
  }

  /// Days of keys that are good, today's included: RFC 8446 §4.6.1 allows a ticket no more than seven.
  static let daysMax = 7
  static let secondsMax = daysMax * 86_400

  /// Of this context, then of the one before it.
  private let secrets: [[UInt8]]
  /// For TLS 1.2.
  private let passing: [[UInt8]]
  private let made = Mutex<[Int: [Key]]>([:])

  /// - Parameters:
  ///   - privateKey: Any encoding of the key, always the same.
  ///   - previous: Its tickets are opened too; those before it are not.
  init(privateKey: [UInt8], previous: TicketKeys?) throws(CryptoFault) {
    let own = Secrets.hmacSHA256(Array("weir session tickets 1".utf8), key: privateKey)
    secrets = [own] + (previous?.secrets.prefix(1).filter { $0 != own } ?? [])
    passing = try [Secrets.random(32)] + (previous?.passing.prefix(1) ?? [])
  }

  /// The key that tickets get on `day`.
  func sealing(day: Int, isForTLS13: Bool) -> Key? { keys(day, isForTLS13).first }

  /// The key of this name, if it is good on `day`.
  func opening(name: UnsafeRawBufferPointer, day: Int, isForTLS13: Bool) -> Key? {
    // The day stands in the last byte of the name, so that one look is enough.
    guard let last = name.last else { return nil }
    for back in 0..<(isForTLS13 ? Self.daysMax : 1)
    where !isForTLS13 || UInt8(truncatingIfNeeded: day - back) == last {
      for key in keys(day - back, isForTLS13) where key.name.elementsEqual(name) { return key }
    }
    return nil
  }

  /// Days since 1970-01-01 as they are mapped to keys; TLS 1.2 has one for all.
  private func keys(_ day: Int, _ isForTLS13: Bool) -> [Key] {
    let slot = isForTLS13 ? day : Int.min
    return made.withLock { made in
      if let found = made[slot] { return found }
      if made.count > 2 * Self.daysMax { made = [:] }
      let keys = (isForTLS13 ? secrets : passing).map { Self.make($0, slot) }
      made[slot] = keys
      return keys
    }
  }

  private static func make(_ secret: [UInt8], _ day: Int) -> Key {
    func part(_ label: String) -> [UInt8] { Secrets.hmacSHA256(Array("\(label) \(day)".utf8), key: secret) }
    return Key(
      name: Array(part("name").prefix(15)) + [UInt8(truncatingIfNeeded: day)], seal: part("seal"),
      code: part("code"))
  }
}

// OpenSSL's algorithms, looked up once and not for every ticket.
// Sendable by argument: made once, changed never, and OpenSSL counts references with atomics.
nonisolated(unsafe) private let aes: OpaquePointer? = EVP_CIPHER_fetch(nil, "AES-256-CBC", nil)

/// OpenSSL's question for a key, to seal a ticket or to open one (SSL_CTX_set_tlsext_ticket_key_evp_cb(3)).
func ticketKey(
  _ ssl: OpaquePointer?, _ name: UnsafeMutablePointer<UInt8>?, _ start: UnsafeMutablePointer<UInt8>?,
  _ cipher: OpaquePointer?, _ code: OpaquePointer?, _ isSealing: CInt
) -> CInt {
  // Answers: -1 ends the handshake, 0 does without a ticket, 1 uses it, 2 uses it and gives a new one.
  guard let ssl, let name, let start, let cipher, let code,
    let data = SSL_get_ex_data(ssl, 0)
  else { return 0 }
  let isForTLS13 = SSL_version(ssl) == TLS1_3_VERSION
  let keys = Unmanaged<TLSSession>.fromOpaque(data)._withUnsafeGuaranteedRef { $0.context.ticketKeys }
  let day = Int(time(nil)) / 86_400
  guard let keys else { return 0 }
  if isSealing != 0 {
    guard let key = keys.sealing(day: day, isForTLS13: isForTLS13), RAND_bytes(start, 16) == 1 else {
      return 0
    }
    name.update(from: key.name, count: 16)
    return EVP_EncryptInit_ex2(cipher, aes, key.seal, start, nil) == 1
      && shim_EVP_MAC_CTX_set_hmac_sha256(code, key.code, key.code.count) == 1 ? 1 : 0
  }
  let asked = UnsafeRawBufferPointer(start: name, count: 16)
  guard let key = keys.opening(name: asked, day: day, isForTLS13: isForTLS13),
    EVP_DecryptInit_ex2(cipher, aes, key.seal, start, nil) == 1,
    shim_EVP_MAC_CTX_set_hmac_sha256(code, key.code, key.code.count) == 1
  else { return 0 }
  // Used once, a ticket does not let a watcher link two connections (RFC 8446 appendix C.4). In TLS 1.2 it would not be
  // hidden on its way.
  return isForTLS13 ? 2 : 1
}
