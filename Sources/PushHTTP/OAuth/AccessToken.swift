import Bytes
package import PushModel
package import Seams

/// What an access token says: who may do what until when.
///
/// The text carries it under a message authentication code, so that no server has to keep tokens, and each knows
/// them again after a restart.
package struct AccessToken: Hashable, Sendable {
  package var sender: SenderID
  /// One of the scopes that allow to send.
  package var maySend: Bool
  package var expires: WallTime

  /// Seconds from issue to expiry.
  package static let lifetime = 3_600

  package init(sender: SenderID, maySend: Bool, expires: WallTime) {
    self.sender = sender
    self.maySend = maySend
    self.expires = expires
  }

  static let prefix = "ya29.w."
  private static let payloadBytes = 33
  private static let codeBytes = 24

  /// - Parameters:
  ///   - nonce: 16 random bytes; no two tokens are alike.
  ///   - code: The keyed code of a text, 24 bytes at least.
  package func text(nonce: [UInt8], _ code: ([UInt8]) -> [UInt8]) -> String {
    var payload: [UInt8] = [maySend ? 1 : 0]
    for number in [sender.value, expires.ms] {
      for shift in stride(from: 56, through: 0, by: -8) {
        payload.append(UInt8(truncatingIfNeeded: number >> Int64(shift)))
      }
    }
    payload += (nonce + Array(repeating: 0, count: 16)).prefix(16)
    return Self.prefix + Base64URL.text((payload + code(payload).prefix(Self.codeBytes))[...])
  }

  /// Reads a text; nil when it is none of ours.
  ///
  /// Whether it has expired is another question.
  ///
  /// - Parameters:
  ///   - code: As it was made with.
  ///   - areEqual: Compares codes in constant time.
  package init?(
    _ text: String, _ code: ([UInt8]) -> [UInt8], areEqual: ([UInt8], [UInt8]) -> Bool
  ) {
    guard text.hasPrefix(Self.prefix), text.utf8.count < 128,
      let bytes = Base64URLText.decoded(text.utf8.dropFirst(Self.prefix.utf8.count)),
      bytes.count == Self.payloadBytes + Self.codeBytes
    else { return nil }
    let payload = Array(bytes[..<Self.payloadBytes])
    guard areEqual(Array(code(payload).prefix(Self.codeBytes)), Array(bytes[Self.payloadBytes...])) else {
      return nil
    }
    func number(_ at: Int) -> Int64 {
      payload[at..<at + 8].reduce(0) { $0 << 8 | Int64($1) }
    }
    maySend = payload[0] & 1 == 1
    sender = SenderID(number(1))
    expires = WallTime(ms: number(9))
  }
}
