import DeliveryCore
import PushModel

/// A connected device at its home shard.
final class DeviceSlot {
  let device: DeviceNumber
  let stream: any DeviceStream
  let epoch: Int64
  var inFlight = InFlightQueue<Downstream>()
  /// The store holds messages that this stream has not been handed.
  var behind = true
  /// A page is being read.
  var reading = false
  /// Rows were written while a page was being read, which may not hold them.
  var missed = false
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
