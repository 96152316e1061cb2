package import Bytes
package import PushModel
package import Seams

/// Ids for messages whose sender brought none.
package enum MessageNames {
  /// `0:` and microseconds, `%` and 16 hex digits: the form that senders know.
  ///
  /// - Parameter number: Never used for another message.
  package static func single(_ number: UInt64, wall: WallTime) -> String {
    var writer = ByteWriter(capacity: 40)
    writer.append("0:")
    writer.append(decimal: wall.ms &* 1_000 &+ Int64(number & 0x3FF))
    writer.append("%")
    writer.append(hex: number)
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  /// Digits alone, for topics: legacy HTTP gives them as a JSON number.
  package static func many(_ number: UInt64) -> String { String(number) }

  /// The number that legacy HTTP answers to a topic message: the id when it is one, else one made of its key.
  package static func topicNumber(_ messageID: String, _ key: MessageKey) -> String {
    if (1...18).contains(messageID.utf8.count), messageID.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }),
      messageID.utf8.first != 48
    {
      return messageID
    }
    if let number = Int64(messageID), number > 0, String(number) == messageID { return messageID }
    return String(key.hash.low >> 1)
  }

  /// The id of one receiver's message when the sender named the whole multicast.
  ///
  /// It depends on the token and not on its place, so that a retry with fewer tokens is known again.
  package static func part(of messageID: String, tokenHash: Hash128) -> String {
    "\(messageID):\(tokenHash.hex.prefix(16))"
  }

  /// Whether an id of the header `X-Weir-Message-Id` can be used: 1 to 255 visible ASCII characters.
  package static func isUsable(_ text: String) -> Bool {
    (1...255).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
  }
}
