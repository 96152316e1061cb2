import PushModel
import Seams
import Stores
import Telemetry

extension Shard {
  func submitIfDue() {
    guard let batch = writing.takeDue(tuning, now: now, wall: wall) else { return }
    counters.batchRows.record(UInt64(batch.enqueue.count + batch.append.count))
    let post = post
    let index = index
    store.write(batch, now: wall) { post.post(.written($0), to: index) }
  }

  /// The store answered the batch that was out.
  func written(_ result: Result<WriteOutcome, StoreFault>) {
    switch result {
    case .success(let outcome):
      guard let done = writing.finish() else { return }
      for (record, verdict) in zip(done.downstream, outcome.enqueue) { becameDurable(record, verdict) }
      for record in done.upstream { becameDurable(record) }
      leaveToOthers(done.upstream)
      forgetSettled(done.batch)
      endedByRule(outcome.ended)
    case .failure(let fault):
      counters.storeFaults.add(1)
      if writing.tries < tuning.writeTriesMax {
        log.warning("The store did not take a batch; it is sent again", ["fault": "\(fault)"])
        writing.retry(at: now + tuning.writeRetryPause)
        return
      }
      log.error("The store did not take a batch; its messages are refused", ["fault": "\(fault)"])
      guard let done = writing.finish() else { return }
      for record in done.downstream {
        record.write = .failed
        if record.ended != nil { unmarkSettling(record.device, record.number) }
        refuse(record, .serviceUnavailable, "The store cannot be written; retry after a second")
      }
      for record in done.upstream {
        answerUpstream(record, .nack(.serviceUnavailable, "The store cannot be written"))
        desks[record.row.sender]?.drop(record)
      }
      writing.putBack(done.batch, now: now)
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
        if !record.handed, let slot = devices[record.device] { fellBehind(slot) }
      }
    case .overflowed:
      // Accepted and at its end: the row is among the batch's ended ones.
      answer(record, .ack)
    case .unknownDevice:
      refuse(record, .deviceUnregistered, "")
    }
  }

  private func forgetSettled(_ batch: WriteBatch) {
    for row in batch.settle { unmarkSettling(row.device, row.number) }
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
