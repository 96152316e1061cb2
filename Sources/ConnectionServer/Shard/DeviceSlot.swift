import DeliveryCore
import PushModel
import Seams

/// A connected device at its home shard.
final class DeviceSlot {
  let device: DeviceNumber
  let stream: any DeviceStream
  let epoch: Int64
  var inFlight = InFlightQueue<Downstream>()
  /// When the store was last told that the device is connected.
  var touched: Moment
  /// The store holds messages that this stream has not been handed, and that no read under way is sure to see.
  var behind = true
  /// About how many of those came while the stream was open.
  var waitingCount = 0
  /// A page is being read.
  var reading = false
  /// Ended here, but perhaps still seen by a read of the store: number of each, with the batch that removes it.
  var settling: Set<MessageNumber> = []
  /// Removed for good while a page was being read, which may have seen them.
  var settledDuringRead: [MessageNumber] = []

  /// What this stream was told of discarded messages.
  var notice = DeletedNotice()

  /// Taken and held back, in order of coming: collapsible ones over their rate, normal ones that wait for company.
  private(set) var held: [Held] = []

  struct Held {
    let record: Downstream
    var due: Moment
    /// Waits for its rate, and so is not released early.
    var isThrottled: Bool
  }

  init(device: DeviceNumber, stream: any DeviceStream, epoch: Int64, now: Moment) {
    self.device = device
    touched = now
    self.stream = stream
    self.epoch = epoch
  }

  func hold(_ held: Held) {
    held.record.isHeld = true
    self.held.append(held)
  }

  func isHeld(_ number: MessageNumber) -> Bool { held.contains { $0.record.number == number } }

  /// A message that ended while it was held.
  func dropHeld(_ number: MessageNumber) -> Downstream? {
    guard let place = held.firstIndex(where: { $0.record.number == number }) else { return nil }
    let record = held.remove(at: place).record
    record.isHeld = false
    return record
  }

  /// Takes out what `wanted` picks.
  func takeHeld(where wanted: (Held) -> Bool) -> [Held] {
    guard !held.isEmpty else { return [] }
    let out = held.filter(wanted)
    held.removeAll(where: wanted)
    for one in out { one.record.isHeld = false }
    return out
  }
}
