/// The mask of a client's frames: RFC 6455 §5.3.
enum Masking {
  /// Copies bytes with each one XORed with the key's byte at its place.
  ///
  /// - Parameters:
  ///   - key: In the order of its bytes on the wire, first byte lowest. 0 just copies.
  ///   - offset: Place in the payload of the first byte.
  ///   - target: Has room for all of `source`, and either is `source` itself or does not overlap it.
  /// - Returns: Whether all bytes written are ASCII.
  @discardableResult
  static func copy(
    _ source: UnsafeRawBufferPointer, key: UInt32, offset: Int, to target: UnsafeMutableRawPointer
  ) -> Bool {
    guard let base = source.baseAddress else { return true }
    let count = source.count
    let turned = UInt32(littleEndian: turn(key, by: offset))
    let wide = UInt64(turned) << 32 | UInt64(turned)
    let wider = SIMD4<UInt64>(repeating: wide)
    var index = 0
    var seen = SIMD4<UInt64>()
    // proof: loads and stores of 32 and of 8 bytes at `index` end at or before `count`.
    while index &+ 32 <= count {
      let value = base.loadUnaligned(fromByteOffset: index, as: SIMD4<UInt64>.self) ^ wider
      seen |= value
      target.storeBytes(of: value, toByteOffset: index, as: SIMD4<UInt64>.self)
      index &+= 32
    }
    var high = seen[0] | seen[1] | seen[2] | seen[3]
    while index &+ 8 <= count {
      let value = base.loadUnaligned(fromByteOffset: index, as: UInt64.self) ^ wide
      high |= value
      target.storeBytes(of: value, toByteOffset: index, as: UInt64.self)
      index &+= 8
    }
    while index < count {
      let value =
        base.load(fromByteOffset: index, as: UInt8.self)
        ^ UInt8(truncatingIfNeeded: turned >> UInt32(truncatingIfNeeded: (index & 3) &* 8))
      high |= UInt64(value)
      target.storeBytes(of: value, toByteOffset: index, as: UInt8.self)
      index &+= 1
    }
    return high & 0x8080_8080_8080_8080 == 0
  }

  private static func turn(_ key: UInt32, by offset: Int) -> UInt32 {
    let bits = UInt32(truncatingIfNeeded: offset & 3) &* 8
    return bits == 0 ? key : key >> bits | key << (32 &- bits)
  }
}
