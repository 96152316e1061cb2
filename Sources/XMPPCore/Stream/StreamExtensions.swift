import Bytes

/// What this product's two ends agree on beside RFC 6120.
///
/// A client that knows of windows says so in its `auth` (`weir:window="true"`), as Google's clients ask for a full bind
/// result there; to others the server says what is documented, byte for byte.
enum ExtensionNamespace {
  /// A window larger than the protocol's.
  static let window = "urn:weir:window:0"
  /// How long a peer should stay away after a stream error.
  static let retry = "urn:weir:retry:0"
  /// No window is larger, whoever asks.
  static let windowMax = 100_000

  /// A decimal number of a peer; nil for anything else or out of range.
  static func number(_ text: String, in range: ClosedRange<Int>) -> Int? {
    guard text.utf8.count <= 9, let number = Int(text), range.contains(number) else { return nil }
    return number
  }
}

extension ByteWriter {
  mutating func appendWindow(_ name: StaticString, _ value: Int) {
    append("<window xmlns=\"urn:weir:window:0\" ")
    append(name)
    append("=\"")
    append(decimal: Int64(value))
    append("\"/>")
  }

  /// Inside a stream error.
  mutating func appendRetryAfter(_ pause: Duration) {
    append("<retry-after xmlns=\"urn:weir:retry:0\" seconds=\"")
    append(decimal: pause.components.seconds)
    append("\"/>")
  }
}
