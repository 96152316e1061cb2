import DeliveryCore
import PushModel
import Seams

// Messages that a connected device gets a little later: they are in the store like any other, and their senders
// are answered.

extension Shard {
  /// Until when a message for a connected device is held back; nil for not at all.
  func holdsBack(_ record: Downstream) -> (due: Moment, isThrottled: Bool)? {
    guard !record.isNowOrNever else { return nil }
    if record.collapse != nil,
      let wait = meters?.collapsible(for: record.device, app: record.app, now: now)
    {
      return (now + wait, true)
    }
    guard !record.highPriority, limits.normalPriorityDelay > .zero else { return nil }
    return (now + limits.normalPriorityDelay, false)
  }

  func hold(_ record: Downstream, until hold: (due: Moment, isThrottled: Bool), in slot: DeviceSlot) {
    guard slot.held.count < tuning.deviceWindow else { return hand(record, to: slot) }
    record.isAwaited = true
    slot.hold(.init(record: record, due: hold.due, isThrottled: hold.isThrottled))
    later.add({ [device = slot.device] in $0.releaseDue(device) }, due: hold.due)
  }

  /// A message of high priority went to the device: the normal ones that waited for company go along.
  func releaseBatch(_ slot: DeviceSlot) {
    for one in slot.takeHeld(where: { !$0.isThrottled }) { release(one.record, to: slot) }
  }

  private func releaseDue(_ device: DeviceNumber) {
    guard let slot = devices[device] else { return }
    let now = now
    for one in slot.takeHeld(where: { $0.due <= now }) {
      let record = one.record
      // The token that was waited for may have gone to another message.
      if one.isThrottled,
        let wait = meters?.collapsible(for: record.device, app: record.app, now: now)
      {
        hold(record, until: (now + wait, true), in: slot)
      } else {
        release(record, to: slot)
      }
    }
  }

  private func release(_ record: Downstream, to slot: DeviceSlot) {
    if record.expires <= wall {
      end(record, .expired)
    } else if hasRoom(slot) {
      hand(record, to: slot)
    } else {
      // It is in the store, or will be: the device reads it from there.
      fellBehind(slot)
    }
  }
}
