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
    let slot = DeviceSlot(device: device, stream: stream, epoch: epoch, now: now)
    slot.settling = settlingOfAbsent.removeValue(forKey: device) ?? []
    devices[device] = slot
    pump(slot)
    return slot
  }

  /// The device's stream is gone: what it had not acked waits in the store, or ends if it is never stored.
  func deviceClosed(_ slot: DeviceSlot) {
    guard devices[slot.device] === slot else { return }
    devices[slot.device] = nil
    // What it acked may still be in the store when it comes back.
    slot.settling.subtract(slot.settledDuringRead)
    if !slot.settling.isEmpty { settlingOfAbsent[slot.device] = slot.settling }
    for one in slot.takeHeld(where: { _ in true }) { one.record.isAwaited = false }
    for record in slot.inFlight.removeAll() {
      record.handed = false
      if case .never = record.write {
        end(record, .expired)
      } else if case .failed = record.write {
        end(record, .droppedOffline)
      } else {
        note(record, .stored)
        writing.hurry(record, now: now)
      }
    }
  }

  /// Connected devices that the store was not told of for `pause`, at most `max`; they count as told.
  func takeUntouched(for pause: Duration, max: Int) -> [DeviceNumber] {
    var found: [DeviceNumber] = []
    for slot in devices.values where slot.touched + pause <= now && found.count < max {
      slot.touched = now
      found.append(slot.device)
    }
    return found
  }

  /// Reads the next page of the device's backlog when it is behind and its window has room.
  func pump(_ slot: DeviceSlot) {
    guard mayRead(slot) else { return }
    slot.reading = true
    // What comes from here on may be missed by the read, and says so.
    slot.behind = false
    let post = post
    let (index, device, epoch) = (index, slot.device, slot.epoch)
    // More than a window, since rows that are in flight already come again.
    store.backlog(of: device, after: nil, max: tuning.deviceWindow * 2, now: wall) {
      post.post(.backlogRead(device, epoch: epoch, $0), to: index)
    }
  }

  func mayRead(_ slot: DeviceSlot) -> Bool {
    slot.behind && !slot.reading && slot.inFlight.count <= tuning.deviceWindow / 2
  }

  /// Reads the backlogs of several devices that may be read.
  func read(_ slots: [DeviceSlot]) {
    if slots.count == 1 { return pump(slots[0]) }
    var epochs: [DeviceNumber: Int64] = [:]
    for slot in slots {
      slot.reading = true
      slot.behind = false
      epochs[slot.device] = slot.epoch
    }
    let (post, index) = (post, index)
    let asked = epochs
    store.backlogs(of: slots.map(\.device), max: tuning.deviceWindow * 2, now: wall) { device, result in
      guard let epoch = asked[device] else { return }
      post.post(.backlogRead(device, epoch: epoch, result), to: index)
    }
  }

  func backlogRead(_ device: DeviceNumber, _ epoch: Int64, _ result: Result<Backlog, StoreFault>) {
    guard let slot = devices[device], slot.epoch == epoch else { return }
    slot.reading = false
    let isFull: Bool
    switch result {
    case .success(let page):
      isFull = !hand(page, to: slot)
      if isFull || page.hasMore { slot.behind = true }
      if !slot.behind { slot.waitingCount = 0 }
    case .failure:
      readAgainLater(.backlog(device))
      slot.behind = true
      isFull = true
      counters.storeFaults.add(1)
    }
    for number in slot.settledDuringRead { slot.settling.remove(number) }
    slot.settledDuringRead = []
    slot.notice.readEnded()
    // A full window is pumped by the acks to come.
    if !isFull { pump(slot) }
  }

  /// Whether the message of this row was handed out already: as this row, or as another one of the same message, which
  /// came to be when its sender was refused after a write that took place; one row is enough then.
  private func isOnItsWay(_ row: StoredMessage, in slot: DeviceSlot) -> Bool {
    guard let handed = slot.inFlight.find(row.key) else { return slot.isHeld(row.number) }
    if handed.number == row.number { return true }
    if case .failed = handed.write { return false }
    end(Downstream(row), .collapsed)
    return true
  }

  /// - Parameter stored: Discarded messages that the store thinks the device does not know of.
  private func tellDeleted(_ stored: Int, to slot: DeviceSlot) {
    guard stored > 0 else { return }
    let new = slot.notice.untold(of: stored, now: now)
    guard new > 0 else { return }
    slot.stream.tellDeleted(count: new)
    let pause = tuning.noticePause
    after(pause) { [weak slot] shard in
      guard let slot, shard.devices[slot.device] === slot, slot.stream.backlogBytes == 0 else { return }
      shard.deviceKnows(slot.notice.outlived(pause, now: shard.now), slot)
    }
  }

  /// It is certain that the device was told of `count` discarded messages.
  func deviceKnows(_ count: Int, _ slot: DeviceSlot) {
    if count > 0 { writing.overflowTold(slot.device, count, now: now) }
  }

  /// - Returns: False when the stream has no room for all of it.
  private func hand(_ page: Backlog, to slot: DeviceSlot) -> Bool {
    tellDeleted(page.overflowed, to: slot)
    // High priority first; else in the order of coming.
    let isMixed = page.messages.contains { !$0.highPriority } && page.messages.contains { $0.highPriority }
    let rows =
      isMixed
      ? page.messages.filter(\.highPriority) + page.messages.filter { !$0.highPriority } : page.messages
    for row in rows {
      if slot.settling.contains(row.number) || isOnItsWay(row, in: slot) { continue }
      // One message always fits; the acks of what is on its way bring the rest.
      guard slot.inFlight.count < tuning.deviceWindow,
        slot.inFlight.isEmpty || slot.stream.backlogBytes < limits.writeBacklogBytesMax / 2
      else { return false }
      slot.waitingCount = max(0, slot.waitingCount - 1)
      if row.expires <= wall {
        end(Downstream(row), .expired)
      } else {
        hand(Downstream(row), to: slot)
      }
    }
    return true
  }
}
