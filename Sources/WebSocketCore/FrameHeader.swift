/// The header of a frame as it comes in, byte by byte if need be.
struct FrameHeader: Sendable {
  /// What was read, in the order of the wire: the first 8 bytes lowest byte first, then the others.
  private var first: UInt64 = 0
  private var second: UInt64 = 0
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  /// Bytes that the header has, as far as is known: 2, and 4 to 14 once the second byte was seen.
  private var size: Int {
    guard count >= 2 else { return 2 }
    let length = second7
    return 2 + (length == 127 ? 8 : length == 126 ? 2 : 0) + (isMasked ? 4 : 0)
  }

  /// Takes bytes up to the header's end.
  ///
  /// - Returns: Whether the header is whole.
  mutating func take(_ chunk: UnsafeRawBufferPointer, _ offset: inout Int) -> Bool {
    while count < size {
      guard offset < chunk.count else { return false }
      let byte = UInt64(chunk[offset])
      // proof: a header has at most 14 bytes.
      if count < 8 {
        first |= byte << UInt64(count &* 8)
      } else {
        second |= byte << UInt64((count &- 8) &* 8)
      }
      count &+= 1
      offset += 1
      if count == 2, !isFine { return true }
    }
    return true
  }

  private func byte(_ index: Int) -> UInt8 {
    UInt8(truncatingIfNeeded: index < 8 ? first >> UInt64(index &* 8) : second >> UInt64((index &- 8) &* 8))
  }

  private var second7: UInt8 { byte(1) & 0x7F }

  /// Whether the first two bytes have no fault of their own, whoever sent them.
  private var isFine: Bool { fault == nil }

  var isFinal: Bool { byte(0) & 0x80 != 0 }
  var opcode: Opcode? { Opcode(rawValue: byte(0) & 0x0F) }
  var isMasked: Bool { byte(1) & 0x80 != 0 }

  /// A fault that the first two bytes show.
  var fault: WebSocketFault? {
    if byte(0) & 0x70 != 0 { return .reservedBit }
    guard let opcode else { return .unknownOpcode }
    if opcode.isControl, !isFinal || second7 > 125 { return .badControlFrame }
    return nil
  }

  /// Bytes of payload; nil for one that is written in more bytes than needed, or has its top bit set.
  ///
  /// Of a whole header.
  var length: UInt64? {
    switch second7 {
    case 126:
      let length = UInt64(byte(2)) << 8 | UInt64(byte(3))
      return length >= 126 ? length : nil
    case 127:
      var length: UInt64 = 0
      for index in 2..<10 { length = length << 8 | UInt64(byte(index)) }
      return length > 0xFFFF && length >> 63 == 0 ? length : nil
    default:
      return UInt64(second7)
    }
  }

  /// The mask, first byte on the wire lowest; 0 when there is none.
  ///
  /// Of a whole header.
  var mask: UInt32 {
    guard isMasked else { return 0 }
    var mask: UInt32 = 0
    for index in 0..<4 { mask |= UInt32(byte(count &- 4 &+ index)) << UInt32(index &* 8) }
    return mask
  }
}
