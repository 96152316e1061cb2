import Bytes
import PushModel
import Seams

/// Journal entries of one batch as one blob: 41 bytes each, little endian: key (high, low), sender, device,
/// time, state.
package enum JournalPacking {
  package static let entrySize = 41

  package static func pack(_ entries: [JournalEntry]) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: entries.count * entrySize) { buffer, count in
      let raw = UnsafeMutableRawBufferPointer(buffer)
      var offset = 0
      for entry in entries {
        raw.storeBytes(of: entry.key.hash.high.littleEndian, toByteOffset: offset, as: UInt64.self)
        raw.storeBytes(of: entry.key.hash.low.littleEndian, toByteOffset: offset + 8, as: UInt64.self)
        raw.storeBytes(of: entry.sender.value.littleEndian, toByteOffset: offset + 16, as: Int64.self)
        raw.storeBytes(of: entry.device.value.littleEndian, toByteOffset: offset + 24, as: Int64.self)
        raw.storeBytes(of: entry.at.ms.littleEndian, toByteOffset: offset + 32, as: Int64.self)
        raw.storeBytes(of: entry.state.rawValue, toByteOffset: offset + 40, as: UInt8.self)
        offset += entrySize
      }
      count = offset
    }
  }

  /// The entries, last first; nil when the bytes are not a whole number of entries or name no state.
  package static func unpackBackwards(_ bytes: UnsafeRawBufferPointer) -> [JournalEntry]? {
    guard bytes.count % entrySize == 0 else { return nil }
    var entries: [JournalEntry] = []
    entries.reserveCapacity(bytes.count / entrySize)
    var offset = bytes.count - entrySize
    while offset >= 0 {
      let high = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      let low = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self))
      let sender = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 16, as: Int64.self))
      let device = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 24, as: Int64.self))
      let at = Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 32, as: Int64.self))
      guard let state = MessageState(rawValue: bytes[offset + 40]) else { return nil }
      entries.append(
        JournalEntry(
          key: MessageKey(Hash128(high: high, low: low)), sender: SenderID(sender),
          device: DeviceNumber(device), state: state, at: WallTime(ms: at)))
      offset -= entrySize
    }
    return entries
  }
}
