import COpenSSL
import Glibc

/// The first traffic secrets of both directions, as OpenSSL tells them in lines made for a key log.
///
/// That is its only public way to learn them. The lines go nowhere else.
struct HandshakeSecrets {
  private(set) var client: [UInt8] = []
  private(set) var server: [UInt8] = []

  /// - Parameter line: A name, the client's random bytes and the secret, in hexadecimal
  ///   (https://datatracker.ietf.org/doc/draft-ietf-tls-keylogfile/).
  mutating func hear(_ line: UnsafeRawBufferPointer) {
    let words = line.split(separator: UInt8(ascii: " "))
    guard words.count == 3 else { return }
    if words[0].elementsEqual("CLIENT_TRAFFIC_SECRET_0".utf8) { client = bytes(words[2]) }
    if words[0].elementsEqual("SERVER_TRAFFIC_SECRET_0".utf8) { server = bytes(words[2]) }
  }

  /// Overwrites and forgets both.
  mutating func erase() {
    client.erase()
    server.erase()
    self = HandshakeSecrets()
  }

  /// - Returns: Empty unless all are digits.
  private func bytes(_ digits: Slice<UnsafeRawBufferPointer>) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(digits.count / 2)
    var high: UInt8?
    for digit in digits {
      guard let value = Character(Unicode.Scalar(digit)).hexDigitValue.map({ UInt8($0) }) else { return [] }
      if let first = high {
        bytes.append(first << 4 | value)
        high = nil
      } else {
        high = value
      }
    }
    return bytes
  }
}

/// OpenSSL's call when a secret was made.
func hearSecret(_ ssl: OpaquePointer?, _ line: UnsafePointer<CChar>?) {
  guard let ssl, let line, let data = SSL_get_ex_data(ssl, 0) else { return }
  Unmanaged<OpenSSLEngine>.fromOpaque(data)._withUnsafeGuaranteedRef {
    $0.hearSecret(UnsafeRawBufferPointer(start: line, count: strlen(line)))
  }
}

/// OpenSSL's call with each message of the handshake protocol, and each record's header: a KeyUpdate of either side makes
/// the secrets worthless.
func hearMessage(
  _ isSent: CInt, _ version: CInt, _ kind: CInt, _ message: UnsafeRawPointer?, _ count: Int,
  _ ssl: OpaquePointer?,
  _ argument: UnsafeMutableRawPointer?
) {
  guard kind == SSL3_RT_HANDSHAKE, count > 0, message?.load(as: UInt8.self) == UInt8(SSL3_MT_KEY_UPDATE),
    let ssl,
    let data = SSL_get_ex_data(ssl, 0)
  else { return }
  Unmanaged<OpenSSLEngine>.fromOpaque(data)._withUnsafeGuaranteedRef { $0.keysChanged() }
}
