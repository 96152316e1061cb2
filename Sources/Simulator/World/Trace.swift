import Bytes

/// What happened, as one hash, and as text for those who ask for it.
///
/// Two runs of one seed are the same run exactly when their hashes are the same: every byte that moved, every
/// answer of the store, every fault and every verdict goes in, with the virtual time.
struct Trace {
  private(set) var hash: UInt64 = 0x9e37_79b9_7f4a_7c15
  private(set) var count = 0
  /// Where lines go; nil for nowhere.
  var output: ((String) -> Void)?

  mutating func note(_ at: Int64, _ kind: StaticString, _ first: UInt64 = 0, _ second: UInt64 = 0) {
    count += 1
    mix(UInt64(bitPattern: at))
    kind.withUTF8Buffer { mix(bytes: UnsafeRawBufferPointer($0)) }
    mix(first)
    mix(second)
  }

  mutating func mix(bytes: UnsafeRawBufferPointer) {
    var offset = 0
    while offset + 8 <= bytes.count {
      mix(bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      offset += 8
    }
    var last: UInt64 = UInt64(bytes.count)
    while offset < bytes.count {
      last = last << 8 | UInt64(bytes[offset])
      offset += 1
    }
    mix(last)
  }

  mutating func mix(_ text: String) {
    var text = text
    text.withUTF8 { mix(bytes: UnsafeRawBufferPointer($0)) }
  }

  private mutating func mix(_ value: UInt64) {
    var mixed = (hash ^ value) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 29)) &* 0x94d0_49bb_1331_11eb
    hash = mixed ^ (mixed >> 32)
  }
}
