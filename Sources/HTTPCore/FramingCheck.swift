/// Holds the bytes around bodies to RFC 9112's letter, since the C parser is built to forgive.
///
/// Two parsers that forgive differently are how a second request is hidden in a first. Refused here: a line feed
/// without carriage return and the reverse (§2.2), a folded line (§5.2), control characters (RFC 9110 §5.5), and
/// anything but CRLF behind a chunk (§7.1).
struct FramingCheck {
  private var previous: UInt8 = 0
  private var isLineStart = false
  private var isLineEmpty = true
  /// Bytes of the CRLF still due after a chunk's data.
  private var chunkEndDue = 0
  /// Whether the head's first line has begun, and whether the blank line behind the head has come.
  private var hasText = false
  private var isHeadOver = false
  /// Bytes of chunk sizes, chunk ends and trailers.
  private(set) var bytesBehindHead = 0

  /// Begins a message.
  mutating func reset() { self = FramingCheck() }

  /// The data of a chunk, or a part of it, was passed over.
  mutating func skippedBody(endsChunk: Bool) {
    previous = 0
    isLineStart = false
    if endsChunk { chunkEndDue = 2 }
  }

  /// Whether the bytes are framed well.
  ///
  /// Once false, the connection is given up.
  mutating func isFine(_ bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
    for byte in bytes {
      if isHeadOver { bytesBehindHead += 1 }
      switch (chunkEndDue, byte) {
      case (0, _): break
      case (2, 0x0D), (1, 0x0A): chunkEndDue -= 1
      default: return false
      }
      if previous == 0x0D && byte != 0x0A { return false }
      switch byte {
      case 0x0A:
        guard previous == 0x0D else { return false }
        if isLineEmpty && hasText { isHeadOver = true }
        isLineEmpty = true
      case 0x20, 0x09: guard !isLineStart else { return false }
      case 0x0D: break
      case 0..<0x20, 0x7F: return false
      default: break
      }
      if byte != 0x0A && byte != 0x0D {
        hasText = true
        isLineEmpty = false
      }
      isLineStart = byte == 0x0A
      previous = byte
    }
    return true
  }
}
