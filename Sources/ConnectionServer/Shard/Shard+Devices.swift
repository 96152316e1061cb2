import DeliveryCore
import PushModel
import Seams
import Stores
import Telemetry

extension Shard {
  /// A device has bound its stream on this loop, which is its home, and the store granted it the stream.
  func deviceOpened(_ device: DeviceNumber, _ stream: any DeviceStream, epoch: Int64) -> DeviceSlot {
    if let old = devices[device] {
      deviceClosed(old)
      old.stream.replaced()
    }
    let slot = DeviceSlot(device: device, stream: stream, epoch: epoch)
    devices[device] = slot
    pump(slot)
    return slot
  }

  /// The device's stream is gone: what it had not acked waits in the store, or ends if it is never stored.
  func deviceClosed(_ slot: DeviceSlot) {
    guard devices[slot.device] === slot else { return }
    devices[slot.device] = nil
    for record in slot.inFlight.removeAll() {
      record.handed = false
      if case .never = record.write {
        end(record, .expired)
      } else if case .failed = record.write {
        end(record, .droppedOffline)
      } else {
        note(record, .stored)
      }
    }
  }

  /// Reads the next page of the device's backlog when it is behind and its window has room.
  func pump(_ slot: DeviceSlot) {
    guard slot.behind, !slot.reading, slot.inFlight.count <= tuning.deviceWindow / 2 else { return }
    slot.reading = true
    let post = post
    let (index, device, epoch) = (index, slot.device, slot.epoch)
    // More than a window, since rows that are in flight already come again.
    store.backlog(of: device, after: nil, max: tuning.deviceWindow * 2, now: wall) {
      post.post(.backlogRead(device, epoch: epoch, $0), to: index)
    }
  }

  func backlogRead(_ device: DeviceNumber, _ epoch: Int64, _ result: Result<Backlog, StoreFault>) {
    guard let slot = devices[device], slot.epoch == epoch else { return }
    slot.reading = false
    defer {
      for number in slot.settledDuringRead { slot.settling.remove(number) }
      slot.settledDuringRead = []
    }
    guard case .success(let page) = result else {
      // The device stays behind; the next ack or message pumps again.
      counters.storeFaults.add(1)
      return
    }
    if page.overflowed > 0 {
      slot.stream.tellDeleted(count: page.overflowed)
      writing.clearOverflow(device, now: now)
    }
    slot.behind = page.hasMore || slot.missed
    for row in page.messages {
      // One message always fits; the acks of what is on its way bring the rest.
      guard slot.inFlight.count < tuning.deviceWindow,
        slot.inFlight.isEmpty || slot.stream.backlogBytes < limits.writeBacklogBytesMax / 2
      else {
        slot.behind = true
        break
      }
      if slot.settling.contains(row.number) || slot.inFlight.contains(row.key) { continue }
      if row.expires <= wall {
        end(Downstream(row), .expired)
      } else {
        hand(Downstream(row), to: slot)
      }
    }
    if slot.missed {
      slot.missed = false
      pump(slot)
    }
  }
}
