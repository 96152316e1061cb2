import Bytes
import JSONCore
import PushModel

/// Makes the keyed hashes of one data directory.
///
/// The key is made at the first start and kept in the store, so that a message has the same key, and a device
/// sees the same id, after every restart.
struct MessageKeys: Sendable {
  private let hash: SipHash128

  /// - Parameter key: 16 random bytes; fewer count as zeros.
  init(key: [UInt8]) {
    var words: (UInt64, UInt64) = (0, 0)
    for (index, byte) in key.prefix(16).enumerated() {
      if index < 8 {
        words.0 |= UInt64(byte) << UInt64(8 * index)
      } else {
        words.1 |= UInt64(byte) << UInt64(8 * (index - 8))
      }
    }
    hash = SipHash128(key: Hash128(high: words.0, low: words.1))
  }

  /// - Parameter messageID: Decoded, UTF-8.
  func downstream(_ sender: SenderID, _ messageID: UnsafeRawBufferPointer) -> MessageKey {
    MessageKey(hash.hash(prefix: UInt64(bitPattern: sender.value), messageID))
  }

  /// - Parameter messageID: Decoded, UTF-8.
  func upstream(_ device: DeviceNumber, _ messageID: UnsafeRawBufferPointer) -> MessageKey {
    MessageKey(hash.hash(prefix: UInt64(bitPattern: device.value) | 1 << 63, messageID))
  }

  func token(_ token: UnsafeRawBufferPointer) -> Hash128 { hash.hash(token) }
}

extension JSONString {
  /// Lends the value's bytes like ``JSONString/withDecoded(in:_:)``.
  ///
  /// It stands in this module because a generic function of another one is called unspecialised.
  @inline(__always)
  func lent<Result>(in text: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    if !isEscaped { return body(raw(in: text)) }
    return withDecoded(in: text, body)
  }
}
