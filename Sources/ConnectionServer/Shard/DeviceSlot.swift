import DeliveryCore
import PushModel

/// A connected device at its home shard.
final class DeviceSlot {
  let device: DeviceNumber
  let stream: any DeviceStream
  let epoch: Int64
  var inFlight = InFlightQueue<Downstream>()
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

  init(device: DeviceNumber, stream: any DeviceStream, epoch: Int64) {
    self.device = device
    self.stream = stream
    self.epoch = epoch
  }
}
