/// Why a text is not the JSON asked for, and where.
///
/// It names a position and never repeats the text, so it is safe to log and to answer with.
package struct JSONFault: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Reason: UInt8, Sendable, CaseIterable {
    case unexpectedEnd
    case unexpectedByte
    case invalidNumber
    case invalidEscape
    /// A `\uD800` to `\uDFFF` escape without its other half: no character, so no value could be handed on.
    case loneSurrogate
    /// A raw byte below 0x20 inside a string.
    case controlCharacter
    case invalidUTF8
    case tooDeep
    /// Something follows the value.
    case trailingBytes
    /// More than 2 GiB.
    case tooLong
    /// The value is well formed and of another kind than asked for.
    case wrongKind
  }

  package var reason: Reason
  /// Bytes from the start of the text.
  package var offset: Int

  package init(_ reason: Reason, at offset: Int) {
    self.reason = reason
    self.offset = offset
  }

  package var description: String {
    let what =
      switch reason {
      case .unexpectedEnd: "unexpected end"
      case .unexpectedByte: "unexpected character"
      case .invalidNumber: "malformed number"
      case .invalidEscape: "malformed escape"
      case .loneSurrogate: "half a surrogate pair"
      case .controlCharacter: "control character in a string"
      case .invalidUTF8: "malformed UTF-8"
      case .tooDeep: "nested too deeply"
      case .trailingBytes: "text after the value"
      case .tooLong: "text too long"
      case .wrongKind: "value of another kind"
      }
    return "\(what) at byte \(offset)"
  }
}
