import Bytes
import DeliveryCore
import JSONCore
import PushModel
import Seams
import Stores
import Telemetry

extension Shard {
  /// The shard where all fan-outs of this node are at home.
  var fanoutHome: Int { 0 }

  /// Takes a message for many: its sender is acked when the job is written down, and the job goes on from there.
  func takeFanout(_ send: FanoutSend) {
    let job = send.job
    if let max = limits.fanoutsPerProjectMax, fanouts.count(of: job.sender) >= max {
      accounts.sender(job.sender)?.forget(job.key)
      counters.countNack(.topicsMessageRateExceeded)
      return answer(
        send,
        .nack(
          .topicsMessageRateExceeded,
          "\(max) topic messages of this sender are under way; send slower".retry(after: 1), retryAfter: 1))
    }
    fanouts.begin(send)
    noteFanout(job.key, job.sender, .accepted)
    let (post, index) = (post, index)
    store.begin(job) { result in post.post(.perform { $0.begun(send, result) }, to: index) }
  }

  private func begun(_ send: FanoutSend, _ result: Result<Void, StoreFault>) {
    switch result {
    case .success:
      fanouts.begun(send)
      counters.fanoutsBegun.add()
      noteFanout(send.job.key, send.job.sender, .stored)
      answer(send, .ack)
    case .failure(let fault):
      counters.storeFaults.add(1)
      log.error("The store did not take a topic message; it is refused", ["fault": "\(fault)"])
      fanouts.refused(send)
      accounts.sender(send.job.sender)?.forget(send.job.key)
      counters.countNack(.serviceUnavailable)
      answer(send, .nack(.serviceUnavailable, "The store cannot be written; retry after a second"))
    }
  }

  private func answer(_ fanout: FanoutSend, _ answer: Answer) {
    for origin in fanout.origins { send(.answer(origin, answer), to: Int(origin.stream.loop)) }
    fanout.origins = []
  }

  /// Notes a step of a message for many; no one device is meant.
  func noteFanout(_ key: MessageKey, _ sender: SenderID, _ state: MessageState) {
    events.record(.init(key: key, sender: sender, device: DeviceNumber(0), state: state, at: wall))
  }

  /// Jobs that an earlier run did not finish.
  func resumeFanouts(_ runs: [FanoutDesk.Run]) {
    for run in runs { fanouts.resume(run) }
  }

  // MARK: Slices

  /// Hands the store the next slice when it is due: one is out at a time.
  func advanceFanoutsIfDue() {
    guard let due = fanouts.nextDue(now), due <= now else { return }
    let runs = fanouts.takeNext(max: tuning.fanoutJobsAtOnce)
    let share = max(1, tuning.fanoutSlice / max(1, runs.count))
    let spares = (0..<share * runs.count).map { _ in MessageNumber(numbers.next(wall)) }
    let (post, index) = (post, index)
    store.advance(fanouts: runs.map(\.number), max: share, spares: spares, now: wall) { result in
      post.post(.perform { $0.advanced(result) }, to: index)
    }
  }

  private func advanced(_ result: Result<[FanoutSlice], StoreFault>) {
    let slices: [FanoutSlice]
    switch result {
    case .success(let found): slices = found
    case .failure(let fault):
      counters.storeFaults.add(1)
      log.warning("The store did not take a slice of a fan-out; it is tried again", ["fault": "\(fault)"])
      fanouts.failed(retryAt: now + tuning.writeRetryPause)
      if case .unavailable(outcomeUnknown: true, _) = fault {
        // Rows may have been written whose devices were not told.
        for shard in 0..<shardCount { send(.perform { $0.rescanDevices() }, to: shard) }
      }
      return
    }
    fanouts.advanced(done: Set(slices.lazy.filter(\.isDone).map(\.job)))
    for slice in slices {
      counters.count(.accepted, slice.matched)
      if slice.isStored { counters.count(.stored, slice.matched) }
      counters.count(.droppedOffline, slice.droppedOffline)
      if slice.isDone { counters.fanoutsDone.add() }
      spread(slice)
    }
  }

  /// Sends what a slice found to the homes of its devices.
  private func spread(_ slice: FanoutSlice) {
    if !slice.rows.isEmpty {
      let homes = Dictionary(grouping: slice.rows) { home(of: $0.device) }
      for (home, rows) in homes { send(.shares(rows, stored: slice.isStored), to: home) }
    }
    if !slice.ended.isEmpty {
      let homes = Dictionary(grouping: slice.ended) { home(of: $0.device) }
      for (home, rows) in homes { send(.ended(rows), to: home) }
    }
  }

  /// Takes shares of fan-outs whose devices were connected when the store wrote them.
  func takeShares(_ rows: [StoredMessage], stored: Bool) {
    for row in rows {
      let slot = devices[row.device]
      nameMessage(row.key, "", to: Self.topic(of: row) ?? "")
      if row.expires <= wall {
        // The store took its time over the slice.
        end(Downstream(row, isStored: stored), .expired)
      } else if let slot, hasRoom(slot) {
        if !slot.inFlight.contains(row.key) { hand(Downstream(row, isStored: stored), to: slot) }
      } else if stored {
        // Without a stream it waits; a stream that opens reads it from the store.
        if let slot { fellBehind(slot) }
      } else {
        end(Downstream(row, isStored: false), .droppedOffline)
      }
    }
  }

  /// The path of the topic that a share came from, as its head says it; nil for a condition.
  private static func topic(of row: StoredMessage) -> String? {
    let from = (try? JSONValue(parsing: row.body + [UInt8(ascii: "}")]))?["from"]?.string
    return from?.hasPrefix("/topics/") == true ? from : nil
  }

  /// The store holds rows for this device that its stream has not been handed.
  func fellBehind(_ slot: DeviceSlot) {
    slot.behind = true
    pump(slot)
  }

  func rescanDevices() {
    fellBehind(Array(devices.values))
  }

  /// The same for many: their backlogs are read together.
  func fellBehind(_ slots: [DeviceSlot]) {
    var due: [DeviceSlot] = []
    for slot in slots {
      slot.behind = true
      if mayRead(slot) { due.append(slot) }
    }
    while !due.isEmpty {
      read(Array(due.prefix(tuning.backlogsAtOnce)))
      due.removeFirst(min(due.count, tuning.backlogsAtOnce))
    }
  }
}
