import PushModel
import Seams
import Stores
import Telemetry

extension Shard {
  func submitIfDue() {
    guard let batch = writing.takeDue(tuning, load: load, now: now, wall: wall) else { return }
    counters.batchRows.record(UInt64(batch.enqueue.count + batch.append.count))
    submittedAt = now
    let post = post
    let index = index
    store.write(batch, now: wall) { post.post(.written($0), to: index) }
  }

  /// The store answered the batch that was out.
  func written(_ result: Result<WriteOutcome, StoreFault>) {
    switch result {
    case .success(let outcome):
      counters.writeNs.record(from: submittedAt, to: now)
      guard let done = writing.finish() else { return }
      // What ended here first keeps that end, also when a rule meets its row.
      let ended = outcome.ended.filter { !hasEndedHere($0) }
      for (record, verdict) in zip(done.downstream, outcome.enqueue) { becameDurable(record, verdict) }
      for record in done.upstream { becameDurable(record) }
      leaveToOthers(done.upstream)
      endedByRule(ended)
      forgetSettled(done.batch)
    case .failure(let fault):
      counters.storeFaults.add(1)
      if case .unavailable(outcomeUnknown: true, _) = fault { writing.isOutcomeUnknown = true }
      if writing.tries < tuning.writeTriesMax {
        log.warning("The store did not take a batch; it is sent again", ["fault": "\(fault)"])
        writing.retry(at: now + tuning.writeRetryPause)
        return
      }
      log.error("The store did not take a batch; its messages are refused", ["fault": "\(fault)"])
      let isUnknown = writing.isOutcomeUnknown
      guard let done = writing.finish() else { return }
      writing.putBack(done.batch, now: now)
      for record in done.downstream { giveUp(record, isUnknown) }
      for record in done.upstream { giveUp(record, isUnknown) }
      if isUnknown { tellOthers(ofDevices: done.downstream) }
    }
  }

  /// - Parameter isUnknown: The row may be there; then it is treated as one that is.
  private func giveUp(_ record: Downstream, _ isUnknown: Bool) {
    record.write = isUnknown ? .durable : .failed
    if record.isHeld { _ = devices[record.device]?.dropHeld(record.number) }
    if record.ended != nil {
      if isUnknown {
        settle(record.device, record.number)
      } else {
        unmarkSettling(record.device, record.number)
      }
    }
    refuse(record, .serviceUnavailable, "The store cannot be written; retry after a second")
    // It may have kept the stream waiting for a row.
    if record.ended == nil, !record.handed, let slot = devices[record.device] { fellBehind(slot) }
  }

  private func giveUp(_ record: Upstream, _ isUnknown: Bool) {
    if record.acked {
      if isUnknown { writing.settleUpstream(record.row.sender, record.row.number, now: now) }
      return
    }
    guard record.row.device != nil else {
      // Nobody sends a receipt again.
      record.write = .queued
      if isUnknown { record.mayBeStored = true }
      writing.append(record, handed: true, now: now)
      return
    }
    answerUpstream(record, .nack(.serviceUnavailable, "The store cannot be written"))
    guard let desk = desks[record.row.sender] else { return }
    desk.drop(record)
    if isUnknown {
      fellBehind(desk)
      leaveToOthers(desk)
    }
  }

  private func becameDurable(_ record: Downstream, _ verdict: WriteOutcome.Enqueue) {
    record.write = .durable
    if record.ended != nil, verdict == .overflowed || verdict == .unknownDevice {
      unmarkSettling(record.device, record.number)
    }
    switch verdict {
    case .stored, .duplicate:
      answer(record, .ack)
      if let state = record.ended {
        // Its device acked, or a rule ended it, while the row was being written.
        settle(record.device, record.number)
        journal(record, state)
      } else {
        note(record, .stored)
        if !record.handed, !record.isHeld, let slot = devices[record.device] { fellBehind(slot) }
      }
    case .overflowed:
      // Accepted and at its end: the row is among the batch's ended ones.
      answer(record, .ack)
    case .unknownDevice:
      refuse(record, .deviceUnregistered, "")
    }
    // Its stream may have been kept waiting for a row that is not there.
    if verdict != .stored, let slot = devices[record.device] { pump(slot) }
  }

  private func forgetSettled(_ batch: WriteBatch) {
    for row in batch.settle { unmarkSettling(row.device, row.number) }
    for told in batch.overflowTold {
      if let slot = devices[told.device] { slot.notice.taken(told.count, duringRead: slot.reading) }
    }
    guard bus != nil else { return }
    for (sender, rows) in Dictionary(grouping: batch.settleUpstream, by: \.sender) {
      desks[sender]?.removed(rows.map(\.number))
    }
  }

  /// The row is gone, or never came to be.
  private func unmarkSettling(_ device: DeviceNumber, _ number: MessageNumber) {
    if let slot = devices[device] {
      if slot.reading {
        slot.settledDuringRead.append(number)
      } else {
        slot.settling.remove(number)
      }
    } else if settlingOfAbsent[device]?.remove(number) != nil, settlingOfAbsent[device]?.isEmpty == true {
      settlingOfAbsent[device] = nil
    }
  }
}
