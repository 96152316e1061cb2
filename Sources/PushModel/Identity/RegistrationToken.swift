/// A registration token: 22 characters, a colon, `APA91b` and 43 characters, all of `A-Z a-z 0-9 _ -`.
///
/// A text of another form was never a token (`BAD_REGISTRATION`); one of this form that no store knows was one
/// perhaps (`DEVICE_UNREGISTERED`).
package struct RegistrationToken: Hashable, Sendable, CustomStringConvertible {
  package static let byteCount = 72
  /// Random bytes that one token is made of: 16 before the colon, 32 behind it.
  package static let randomByteCount = 48

  package let text: String

  package init?(_ text: String) {
    var text = text
    guard text.withUTF8({ Self.isWellFormed(UnsafeRawBufferPointer($0)) }) else { return nil }
    self.text = text
  }

  package init?(_ bytes: UnsafeRawBufferPointer) {
    guard Self.isWellFormed(bytes) else { return nil }
    text = String(decoding: bytes, as: UTF8.self)
  }

  /// Makes a token; it does not begin with a dash, so that no command takes it for a flag.
  /// - Parameter random: ``randomByteCount`` bytes of a source fit for secrets.
  package init(random: [UInt8]) {
    precondition(random.count == Self.randomByteCount, "a token takes 48 random bytes")
    var head = Base64URL.text(random[..<16])
    if head.utf8.first == UInt8(ascii: "-") { head = "A" + head.dropFirst() }
    let tail = Base64URL.text(random[16...])
    text = "\(head):APA91b\(tail)"
  }

  /// The form alone; nothing is said about who holds it.
  package static func isWellFormed(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count == byteCount, bytes[22] == UInt8(ascii: ":") else { return false }
    guard NotificationKey.hasMark(bytes, at: 23) else { return false }
    for at in 0..<22 where !Base64URL.isDigit(bytes[at]) { return false }
    for at in 29..<byteCount where !Base64URL.isDigit(bytes[at]) { return false }
    return true
  }

  /// The part that names and does not authorise, safe for logs.
  package var description: String { "\(text.prefix(8))…" }
}

/// A device group's key: `APA91b` and 43 characters of `A-Z a-z 0-9 _ -`; no colon, so never a token.
package struct NotificationKey: Hashable, Sendable, CustomStringConvertible {
  package static let byteCount = 49
  package static let randomByteCount = 32

  package let text: String

  package init?(_ text: String) {
    var text = text
    guard text.withUTF8({ Self.isWellFormed(UnsafeRawBufferPointer($0)) }) else { return nil }
    self.text = text
  }

  /// Makes a key of ``randomByteCount`` bytes of a source fit for secrets.
  package init(random: [UInt8]) {
    precondition(random.count == Self.randomByteCount, "a key takes 32 random bytes")
    text = "APA91b\(Base64URL.text(random[...]))"
  }

  package static func isWellFormed(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard bytes.count == byteCount, hasMark(bytes, at: 0) else { return false }
    for at in 6..<byteCount where !Base64URL.isDigit(bytes[at]) { return false }
    return true
  }

  fileprivate static func hasMark(_ bytes: UnsafeRawBufferPointer, at start: Int) -> Bool {
    let mark: StaticString = "APA91b"
    for at in 0..<6 where bytes[start + at] != mark.utf8Start[at] { return false }
    return true
  }

  package var description: String { "\(text.prefix(10))…" }
}

/// Base64 with the URL alphabet and no padding (RFC 4648 section 5).
package enum Base64URL {
  package static func text(_ bytes: ArraySlice<UInt8>) -> String {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    var digits: [UInt8] = []
    digits.reserveCapacity((bytes.count * 4 + 2) / 3)
    var bits = 0
    var held: UInt32 = 0
    for byte in bytes {
      held = (held << 8 | UInt32(byte)) & 0xFFFF
      bits += 8
      while bits >= 6 {
        bits -= 6
        digits.append(alphabet[Int(held >> UInt32(bits) & 63)])
      }
    }
    if bits > 0 { digits.append(alphabet[Int(held << UInt32(6 - bits) & 63)]) }
    return String(decoding: digits, as: UTF8.self)
  }

  @inline(__always)
  package static func isDigit(_ byte: UInt8) -> Bool {
    byte &- UInt8(ascii: "0") < 10 || (byte | 0x20) &- UInt8(ascii: "a") < 26 || byte == UInt8(ascii: "_")
      || byte == UInt8(ascii: "-")
  }
}
