import DeliveryCore
import PushModel
import Seams
import Stores
import Telemetry

extension Shard {
  /// Takes a valid message for a device at home here: to the device's stream if that has room, and to the
  /// store's next batch.
  ///
  /// With a time to live of 0 it goes to the stream or nowhere.
  func take(_ record: Downstream) {
    if let wait = meters?.message(for: record.device, now: now) {
      return refuse(
        record, .deviceMessageRateExceeded, "Downstream message rate exceeded for this registration id",
        retryAfter: wait.secondsUp)
    }
    guard writing.queuedCount < tuning.unwrittenMax else {
      refuse(record, .serviceUnavailable, "The store is behind; retry after a second")
      return
    }
    let slot = devices[record.device]
    if slot == nil, bus != nil, record.isNowOrNever { record.carryOver(until: wall + tuning.carriedOver) }
    let open = slot.map { hasRoom($0) } ?? false
    if let slot, !open, !record.isNowOrNever {
      guard slot.waitingCount < tuning.connectedBacklogMax else {
        refuse(record, .deviceMessageRateExceeded, "The device reads too slowly; wait before sending it more")
        return
      }
      slot.waitingCount += 1
      record.isAwaited = true
    }
    note(record, .accepted)
    if let slot, open {
      if let due = holdsBack(record) {
        hold(record, until: due, in: slot)
      } else {
        hand(record, to: slot)
        if record.highPriority { releaseBatch(slot) }
      }
    }
    guard case .never = record.write else {
      if !open { slot?.behind = true }
      writing.enqueue(record, now: now)
      return
    }
    // Time to live 0: accepted is all the sender can be told. FCM: "now or never".
    answer(record, .ack)
    if !open { end(record, .droppedOffline) }
  }

  func hasRoom(_ slot: DeviceSlot) -> Bool {
    !slot.behind && !slot.reading && slot.inFlight.count < tuning.deviceWindow
      && slot.stream.backlogBytes < limits.writeBacklogBytesMax / 2
  }

  func hand(_ record: Downstream, to slot: DeviceSlot) {
    if let old = slot.inFlight.remove(record.key) { giveWay(old) }
    record.handed = true
    record.handedAt = now
    slot.inFlight.append(record, key: record.key)
    note(record, .inFlight)
    slot.stream.deliver(record)
    deliveries.note(record, at: wall)
  }

  /// The same message is handed out again, by another row.
  ///
  /// Its sender was refused, or its id was forgotten, and sent it once more. The device acks it once.
  private func giveWay(_ old: Downstream) {
    old.handed = false
    if case .failed = old.write { return }
    answer(old, .ack)
    end(old, .collapsed)
  }

  /// The device acked.
  ///
  /// Unknown and second acks change nothing.
  func deviceAcked(_ key: MessageKey, _ slot: DeviceSlot) {
    guard let record = slot.inFlight.remove(key) else {
      counters.unknownDeviceAcks.add(1)
      return
    }
    record.handed = false
    counters.deliveryNs.record(from: record.handedAt, to: now)
    deviceKnows(slot.notice.proved(byAckOf: record.handedAt), slot)
    answer(record, .ack)
    if !record.receipt.isEmpty { sendReceipt(record) }
    end(record, .delivered)
    pump(slot)
  }

  /// Brings a message to its end: takes it out of the next batch, or has its row removed.
  func end(_ record: Downstream, _ state: MessageState) {
    note(record, state)
    switch record.write {
    case .queued:
      record.write = .withdrawn
      writing.withdrew()
      counters.elided.add()
      journal(record, state)
    case .submitted:
      record.ended = state
      markSettling(record.device, record.number)
    case .durable:
      if record.shared == nil {
        settle(record.device, record.number)
        journal(record, state)
      } else {
        settleShare(record, state)
      }
    case .never, .withdrawn, .failed:
      if let job = record.shared?.job {
        writing.count(WriteBatch.FanoutEnd(job: job, state: state, count: 1), now: now)
      } else {
        journal(record, state)
      }
    }
  }

  /// From now on no read of the store hands this message out, until its row is gone.
  private func markSettling(_ device: DeviceNumber, _ number: MessageNumber) {
    if let slot = devices[device] {
      slot.settling.insert(number)
    } else {
      settlingOfAbsent[device, default: []].insert(number)
    }
  }

  func settle(_ device: DeviceNumber, _ number: MessageNumber) {
    markSettling(device, number)
    writing.settle(device, number, now: now)
  }

  /// Shares are counted with their fan-out instead of being written to the journal one by one.
  private func settleShare(_ record: Downstream, _ state: MessageState) {
    markSettling(record.device, record.number)
    writing.settle(record.device, record.number, end: state, now: now)
  }

  func journal(_ record: Downstream, _ state: MessageState) {
    writing.journal(
      JournalEntry(
        key: record.key, sender: record.sender, device: record.device, state: state, at: wall), now: now)
  }

  /// Answers the sender, once, and every repeat of the message that came meanwhile.
  func answer(_ record: Downstream, _ answer: Answer) {
    guard let origin = record.origin else { return }
    record.origin = nil
    send(.answer(origin, answer), to: Int(origin.stream.loop))
    guard !record.repeats.isEmpty else { return }
    for origin in record.repeats { send(.answer(origin, answer), to: Int(origin.stream.loop)) }
    record.repeats = []
  }

  /// - Parameter retryAfter: Seconds; the description says them too.
  func refuse(_ record: Downstream, _ code: NackCode, _ description: String, retryAfter: Int? = nil) {
    counters.countNack(code)
    accounts.sender(record.sender)?.forget(record.key)
    answer(record, .nack(code, description.retry(after: retryAfter), retryAfter: retryAfter))
  }

  /// The same (sender, message id) came again: it is acked when the first one is, and not delivered again.
  func takeRepeat(_ key: MessageKey, _ origin: Origin, deferred: Bool) {
    if let record = writing.unanswered(key) {
      record.repeats.append(origin)
    } else if let send = fanouts.beginning[key] {
      send.origins.append(origin)
    } else if let many = manySends[key] {
      many.origins.append(origin)
    } else if deferred {
      send(.answer(origin, .ack), to: Int(origin.stream.loop))
    } else {
      // What it repeats may be in another loop's outbox still.
      deferredRepeats.append((now + tuning.repeatPause, key, origin))
    }
  }

  func lookAtDeferredRepeats() {
    while let first = deferredRepeats.first, first.due <= now {
      deferredRepeats.removeFirst()
      takeRepeat(first.key, first.origin, deferred: true)
    }
  }

  /// Its end was noted when its device acked; the row was only waiting to be removed.
  func hasEndedHere(_ row: WriteOutcome.Ended) -> Bool {
    let settling = devices[row.device]?.settling ?? settlingOfAbsent[row.device]
    return settling?.contains(row.number) ?? false
  }

  /// Messages that a rule ended in the store: collapse, overflow, expiry, unregistration.
  func endedByRule(_ rows: [WriteOutcome.Ended]) {
    for row in rows where !hasEndedHere(row) {
      counters.count(row.state)
      events.record(
        .init(key: row.key, sender: row.sender, device: row.device, state: row.state, at: wall))
      if row.job == nil {
        writing.journal(
          JournalEntry(key: row.key, sender: row.sender, device: row.device, state: row.state, at: wall),
          now: now)
      }
      guard let slot = devices[row.device] else { continue }
      if let record = slot.inFlight.remove(row.key) {
        record.handed = false
        record.ended = row.state
        // No ack will come for it that makes room for others.
        pump(slot)
      } else if let record = slot.dropHeld(row.number) {
        record.ended = row.state
      }
    }
  }
}
