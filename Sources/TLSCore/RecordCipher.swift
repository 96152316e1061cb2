import Bytes
import COpenSSL

/// Protects the records of one direction of a TLS 1.3 connection (RFC 8446 §5.2 and 5.3): the AEAD with its key, and
/// the number of the next record.
///
/// Holds 1.2 KB of OpenSSL's for AES-GCM.
struct RecordCipher: ~Copyable {
  static let nonceBytes = 12
  static let tagBytes = 16
  static let headerBytes = 5
  /// Most bytes of content in a record.
  static let contentBytesMax = 16 * 1024
  /// Most bytes after a record's header: content, its type, padding and tag.
  static let bodyBytesMax = contentBytesMax + 256

  /// What a record holds (RFC 8446 §5.1).
  enum Content: UInt8 {
    case alert = 21
    case handshake = 22
    case application = 23
  }

  /// Records protected with the present key.
  private(set) var sequence: UInt64
  private let cipher: OpaquePointer
  private var secret: TrafficSecret
  private var iv: (UInt32, UInt32, UInt32) = (0, 0, 0)

  /// - Parameter sequence: Records that somebody else has protected with this secret.
  /// - Returns: nil when memory is out.
  static func make(_ secret: TrafficSecret, isSealing: Bool, sequence: UInt64 = 0) -> RecordCipher? {
    guard let cipher = EVP_CIPHER_CTX_new() else { return nil }
    var made = RecordCipher(cipher, secret, sequence)
    guard made.start(isSealing: isSealing) else { return nil }
    return made
  }

  private init(_ cipher: OpaquePointer, _ secret: TrafficSecret, _ sequence: UInt64) {
    self.cipher = cipher
    self.secret = secret
    self.sequence = sequence
  }

  deinit { EVP_CIPHER_CTX_free(cipher) }

  /// Overwrites the secret; the present key still works.
  mutating func eraseSecret() { secret.erase() }

  /// Whether the key has protected as many records as it may.
  func isWorn(after records: UInt64?) -> Bool { sequence >= records ?? secret.suite.recordsMax }

  /// Goes on with the next secret, as after a KeyUpdate (RFC 8446 §7.2).
  mutating func update() -> Bool {
    guard let next = secret.next() else { return false }
    secret.erase()
    secret = next
    sequence = 0
    return useSecret()
  }

  private mutating func start(isSealing: Bool) -> Bool {
    EVP_CipherInit_ex(cipher, secret.suite.aead, nil, nil, nil, isSealing ? 1 : 0) == 1 && useSecret()
  }

  private mutating func useSecret() -> Bool {
    guard var key = secret.key(), let bytes = secret.iv() else { return false }
    defer { key.erase() }
    bytes.withUnsafeBytes { iv = $0.loadUnaligned(as: (UInt32, UInt32, UInt32).self) }
    return EVP_CipherInit_ex(cipher, nil, nil, key, nil, -1) == 1
  }

  /// The AEAD's start for the next record: its nonce is the IV with the record's number mixed in.
  private mutating func begin() -> Bool {
    let high = UInt32(truncatingIfNeeded: sequence >> 32).bigEndian
    let low = UInt32(truncatingIfNeeded: sequence).bigEndian
    var nonce = (iv.0, iv.1 ^ high, iv.2 ^ low)
    sequence &+= 1
    return withUnsafeBytes(of: &nonce) {
      EVP_CipherInit_ex(cipher, nil, nil, nil, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), -1) == 1
    }
  }

  /// Writes one record.
  ///
  /// - Parameter content: At most ``contentBytesMax``.
  /// - Returns: Whether OpenSSL could; false leaves nothing of it in the output.
  mutating func seal(_ kind: Content, _ content: UnsafeRawBufferPointer, into output: OutBuffer) -> Bool {
    let bodyBytes = content.count + 1 + Self.tagBytes
    var isSealed = false
    output.append(reserving: Self.headerBytes + bodyBytes) { room in
      room[0] = Content.application.rawValue
      room[1] = 3
      room[2] = 3
      room[3] = UInt8(truncatingIfNeeded: bodyBytes >> 8)
      room[4] = UInt8(truncatingIfNeeded: bodyBytes)
      isSealed = seal(kind, content, room)
      return isSealed ? Self.headerBytes + bodyBytes : 0
    }
    return isSealed
  }

  private mutating func seal(
    _ kind: Content, _ content: UnsafeRawBufferPointer, _ record: UnsafeMutableRawBufferPointer
  ) -> Bool {
    guard let header = record.baseAddress?.assumingMemoryBound(to: UInt8.self), begin() else { return false }
    let body = header + Self.headerBytes
    let plain = content.baseAddress?.assumingMemoryBound(to: UInt8.self)
    var kind = kind.rawValue
    var count: CInt = 0
    // Content and type are one plaintext, of which nobody makes a copy.
    return EVP_EncryptUpdate(cipher, nil, &count, header, CInt(Self.headerBytes)) == 1
      && (content.isEmpty || EVP_EncryptUpdate(cipher, body, &count, plain, CInt(content.count)) == 1)
      && EVP_EncryptUpdate(cipher, body + content.count, &count, &kind, 1) == 1
      && EVP_EncryptFinal_ex(cipher, body + content.count + 1, &count) == 1
      && EVP_CIPHER_CTX_ctrl(
        cipher, EVP_CTRL_AEAD_GET_TAG, CInt(Self.tagBytes), body + content.count + 1) == 1
  }

  /// Reads one record.
  ///
  /// - Parameters:
  ///   - record: With its header; the body has at least a tag and at most ``bodyBytesMax``.
  ///   - room: Space for the body without its tag. Holds nothing to be trusted when the record was altered.
  /// - Returns: Bytes of content, type and padding in `room`; nil for a record that the peer has not made like this.
  mutating func open(_ record: UnsafeRawBufferPointer, into room: UnsafeMutableRawBufferPointer) -> Int? {
    let plainBytes = record.count - Self.headerBytes - Self.tagBytes
    guard plainBytes >= 0, plainBytes <= room.count, begin(),
      let header = record.baseAddress?.assumingMemoryBound(to: UInt8.self),
      let plain = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
    else { return nil }
    let body = header + Self.headerBytes
    // Only read from.
    let tag = UnsafeMutablePointer(mutating: body + plainBytes)
    var count: CInt = 0
    guard EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, CInt(Self.tagBytes), tag) == 1,
      EVP_DecryptUpdate(cipher, nil, &count, header, CInt(Self.headerBytes)) == 1,
      plainBytes == 0 || EVP_DecryptUpdate(cipher, plain, &count, body, CInt(plainBytes)) == 1,
      EVP_DecryptFinal_ex(cipher, plain + plainBytes, &count) == 1
    else { return nil }
    return plainBytes
  }
}
