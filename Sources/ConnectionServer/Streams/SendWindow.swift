import JSONCore
import PushModel
import Seams

/// A stream's messages that have not been answered: what the answer repeats of each, by slot.
struct SendWindow {
  struct Entry {
    /// Target and message id as they stood in the JSON, without their quotes: what an answer repeats.
    let reply: [UInt8]
    let targetCount: Int
    /// The token that the target stands for now, when it is an old one.
    var canonical: String?
    let received: Moment

  }

  private var entries: [Entry?] = []
  private var free: [UInt32] = []
  /// Slots in use.
  private(set) var count = 0

  mutating func open(
    _ reply: ReplyIDs, in text: UnsafeRawBufferPointer, now: Moment
  ) -> UInt32 {
    let from = reply.from?.raw(in: text)
    let id = reply.messageID.raw(in: text)
    var bytes: [UInt8] = []
    bytes.reserveCapacity((from?.count ?? 0) + id.count)
    if let from { bytes.append(contentsOf: from) }
    bytes.append(contentsOf: id)
    let entry = Entry(reply: bytes, targetCount: from?.count ?? 0, canonical: nil, received: now)
    count += 1
    if let slot = free.popLast() {
      entries[Int(slot)] = entry
      return slot
    }
    entries.append(entry)
    return UInt32(entries.count - 1)
  }

  mutating func setCanonical(_ slot: UInt32, _ token: String) { entries[Int(slot)]?.canonical = token }

  /// Frees the slot; nil when it is free.
  mutating func close(_ slot: UInt32) -> Entry? {
    guard entries.indices.contains(Int(slot)), let entry = entries[Int(slot)] else { return nil }
    entries[Int(slot)] = nil
    count -= 1
    if count == 0 {
      // An idle stream holds no window.
      entries = []
      free = []
    } else {
      free.append(slot)
    }
    return entry
  }
}
