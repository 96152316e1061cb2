import PushModel
import Seams

/// The last messages that were handed to devices of a shard, oldest overwritten first: for tests and for people.
///
/// It holds the records themselves, so it costs a reference a message and at most ``capacity`` bodies.
struct DeliveryLog {
  struct Entry {
    /// Rises by one with each message handed out on the shard.
    let sequence: UInt64
    let record: Downstream
    let at: WallTime
  }

  typealias Waiter = @Sendable (Shard) -> Void

  private var entries: [Entry] = []
  private var next = 0
  private var last: UInt64 = 0
  private let capacity: Int
  /// Who waits for the next message of a device.
  private var waiters: [DeviceNumber: [(id: UInt64, call: Waiter)]] = [:]
  private var lastWaiter: UInt64 = 0
  /// Devices whose waiters are due.
  private var woken: [DeviceNumber] = []

  init(capacity: Int) { self.capacity = capacity }

  mutating func note(_ record: Downstream, at: WallTime) {
    guard capacity > 0 else { return }
    last &+= 1
    let entry = Entry(sequence: last, record: record, at: at)
    if entries.count < capacity {
      entries.append(entry)
    } else {
      entries[next] = entry
      next = next + 1 == capacity ? 0 : next + 1
    }
    if !waiters.isEmpty, waiters[record.device] != nil { woken.append(record.device) }
  }

  /// What a device was handed after `sequence`, oldest first, at most the first `max`.
  func entries(of device: DeviceNumber, after sequence: UInt64, max: Int) -> [Entry] {
    let ordered = entries[next...] + entries[..<next]
    return Array(ordered.lazy.filter { $0.record.device == device && $0.sequence > sequence }.prefix(max))
  }

  /// Number of the last message handed out on the shard.
  var lastSequence: UInt64 { last }

  // MARK: Waiting

  mutating func wait(for device: DeviceNumber, _ call: @escaping Waiter) -> UInt64 {
    lastWaiter &+= 1
    waiters[device, default: []].append((lastWaiter, call))
    return lastWaiter
  }

  /// - Returns: The waiter's call; nil when it was taken already.
  mutating func takeWaiter(_ id: UInt64, of device: DeviceNumber) -> Waiter? {
    guard let place = waiters[device]?.firstIndex(where: { $0.id == id }) else { return nil }
    let call = waiters[device]?.remove(at: place).call
    if waiters[device]?.isEmpty == true { waiters[device] = nil }
    return call
  }

  /// The calls that are due since a message came.
  mutating func takeWoken() -> [Waiter] {
    guard !woken.isEmpty else { return [] }
    let calls = woken.flatMap { waiters.removeValue(forKey: $0) ?? [] }.map(\.call)
    woken = []
    return calls
  }
}

extension Shard {
  /// What a device was handed after `sequence`; when that is nothing, the answer comes with the next message or
  /// when `patience` is over.
  func deliveries(
    of device: DeviceNumber, after sequence: UInt64, max: Int, patience: Duration,
    _ answer: @escaping @Sendable ([DeliveryLog.Entry]) -> Void
  ) {
    let found = deliveries.entries(of: device, after: sequence, max: max)
    guard found.isEmpty, patience > .zero else { return answer(found) }
    let look: DeliveryLog.Waiter = { answer($0.deliveries.entries(of: device, after: sequence, max: max)) }
    let id = deliveries.wait(for: device, look)
    after(patience) { $0.deliveries.takeWaiter(id, of: device)?($0) }
  }
}
