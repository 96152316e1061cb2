/// SipHash-2-4 with a 128-bit result: a keyed hash that a hostile peer cannot collide.
///
/// Own code because it runs once or twice a message, where a call through a library's general MAC interface
/// costs several times the hash itself. `Tests/BytesTests` holds it equal to OpenSSL's SIPHASH.
/// - Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012; the 128-bit variant of the
///   reference code.
package struct SipHash128: Sendable {
  private let key0: UInt64
  private let key1: UInt64

  package init(key: Hash128) {
    key0 = key.high
    key1 = key.low
  }

  /// Hashes `bytes`, or `prefix` (8 bytes, little endian) and then `bytes`.
  package func hash(prefix: UInt64? = nil, _ bytes: UnsafeRawBufferPointer) -> Hash128 {
    var state = State(key0: key0, key1: key1)
    var total = UInt64(truncatingIfNeeded: bytes.count)
    if let prefix {
      state.compress(prefix)
      total &+= 8
    }
    let wholeEnd = bytes.count & ~7
    var offset = 0
    while offset < wholeEnd {
      state.compress(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
      offset += 8
    }
    var last = (total & 0xFF) << 56
    var shift: UInt64 = 0
    while offset < bytes.count {
      last |= UInt64(bytes[offset]) << shift
      shift += 8
      offset += 1
    }
    state.compress(last)
    return state.finish()
  }

  private struct State {
    var v0: UInt64
    var v1: UInt64
    var v2: UInt64
    var v3: UInt64

    init(key0: UInt64, key1: UInt64) {
      v0 = 0x736f_6d65_7073_6575 ^ key0
      v1 = 0x646f_7261_6e64_6f6d ^ key1 ^ 0xee
      v2 = 0x6c79_6765_6e65_7261 ^ key0
      v3 = 0x7465_6462_7974_6573 ^ key1
    }

    @inline(__always)
    mutating func round() {
      v0 = v0 &+ v1
      v1 = (v1 << 13 | v1 >> 51) ^ v0
      v0 = v0 << 32 | v0 >> 32
      v2 = v2 &+ v3
      v3 = (v3 << 16 | v3 >> 48) ^ v2
      v0 = v0 &+ v3
      v3 = (v3 << 21 | v3 >> 43) ^ v0
      v2 = v2 &+ v1
      v1 = (v1 << 17 | v1 >> 47) ^ v2
      v2 = v2 << 32 | v2 >> 32
    }

    @inline(__always)
    mutating func compress(_ word: UInt64) {
      v3 ^= word
      round()
      round()
      v0 ^= word
    }

    mutating func finish() -> Hash128 {
      v2 ^= 0xee
      for _ in 0..<4 { round() }
      let first = v0 ^ v1 ^ v2 ^ v3
      v1 ^= 0xdd
      for _ in 0..<4 { round() }
      let second = v0 ^ v1 ^ v2 ^ v3
      return Hash128(high: first, low: second)
    }
  }
}
