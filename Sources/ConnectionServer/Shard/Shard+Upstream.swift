import Bytes
import DeliveryCore
import JSONCore
import PushModel
import Seams
import Stores
import Telemetry

extension Shard {
  func desk(_ sender: SenderID) -> UpstreamDesk {
    if let desk = desks[sender] { return desk }
    let desk = UpstreamDesk(sender: sender, limits: limits)
    desks[sender] = desk
    return desk
  }

  /// Takes a new upstream message or receipt: to a stream with room, and to the store's next batch.
  func takeUpstream(_ record: Upstream) {
    let desk = desk(record.row.sender)
    count(record, .accepted)
    if case .never = record.write { return takeNowOrNever(record, desk) }
    guard desk.records.count < tuning.upstreamKept else {
      // Kept by the store alone until the desk has room.
      desk.behind = true
      writing.append(record, handed: false, now: now)
      return
    }
    desk.records[record.row.number] = record
    record.isHeld = desk.board.hasOpenStream
    let actions = desk.board.offer(record.row.number, now: now)
    writing.append(record, handed: !actions.isEmpty, now: now)
    perform(actions, desk)
  }

  private func takeNowOrNever(_ record: Upstream, _ desk: UpstreamDesk) {
    guard desk.board.waitingCount == 0 else { return expire(record) }
    desk.records[record.row.number] = record
    let actions = desk.board.offer(record.row.number, now: now)
    if actions.isEmpty {
      desk.drop(record)
      expire(record)
    }
    perform(actions, desk)
  }

  private func expire(_ record: Upstream) {
    count(record, .expired)
    answerUpstream(record, .nack(.ttlExceeded, "No app server is connected and the time to live is 0"))
  }

  func takeUpstreamRepeat(_ key: MessageKey, _ sender: SenderID, _ origin: DeviceOrigin) {
    if let record = writing.unansweredUpstream(key) {
      // The device asks again on a new stream; the old one is gone.
      record.origin = origin
    } else {
      send(.upstreamAnswer(origin, .ack), to: Int(origin.stream.loop))
    }
  }

  func perform(_ actions: [UpstreamBoard<StreamRef>.Action], _ desk: UpstreamDesk) {
    for case .hand(let number, let stream) in actions {
      guard let record = desk.records[number] else {
        // It was given up while a stream had it that has closed since: its place there is free.
        perform(desk.board.acked(number, on: stream, now: now).1, desk)
        continue
      }
      if record.row.expires <= wall {
        count(record, .expired)
        answerUpstream(record, .nack(.ttlExceeded, "The time to live ran out"))
        finishUpstream(record, desk)
        perform(desk.board.acked(number, on: stream, now: now).1, desk)
        continue
      }
      send(.handUpstream(stream, record), to: Int(stream.loop))
    }
    scheduleRepeats(desk)
    leaseIfBehind(desk)
  }

  /// One entry of ``later`` a desk, however many messages are pending.
  private func scheduleRepeats(_ desk: UpstreamDesk) {
    guard !desk.isScheduled, let due = desk.board.nextDue else { return }
    desk.isScheduled = true
    later.add({ [unowned desk] in $0.handOutAgain(desk) }, due: due)
  }

  /// What living streams have not acked for too long goes to them again, and ends if its time is over.
  private func handOutAgain(_ desk: UpstreamDesk) {
    desk.isScheduled = false
    let actions = desk.board.redeliver(now: now)
    counters.upstreamAgain.add(UInt64(actions.count))
    perform(actions, desk)
  }

  /// The record's stream is on this loop: writes it there.
  func handOut(_ record: Upstream, to stream: StreamRef) {
    // A stream that closed meanwhile said so to the sender's home, which hands the record to another.
    senderStreams[stream.stream]?.write(record)
  }

  func upstreamAcked(_ sender: SenderID, _ number: MessageNumber, on stream: StreamRef) {
    guard let desk = desks[sender] else { return }
    let (verdict, actions) = desk.board.acked(number, on: stream, now: now)
    if verdict == .settled, let record = desk.records[number] {
      answerUpstream(record, .ack)
      count(record, .delivered)
      finishUpstream(record, desk)
    }
    perform(actions, desk)
  }

  private func finishUpstream(_ record: Upstream, _ desk: UpstreamDesk) {
    desk.records[record.row.number] = nil
    if desk.behind { desk.settledWhileBehind.insert(record.row.number) }
    switch record.write {
    case .queued:
      record.write = .withdrawn
      writing.withdrew()
      counters.elided.add()
      if record.mayBeStored { writing.settleUpstream(record.row.sender, record.row.number, now: now) }
    case .submitted:
      record.acked = true
      if bus != nil { desk.settling.insert(record.row.number) }
    case .durable:
      if bus != nil { desk.settling.insert(record.row.number) }
      writing.settleUpstream(record.row.sender, record.row.number, now: now)
    case .withdrawn, .never: break
    }
  }

  func becameDurable(_ record: Upstream) {
    record.write = .durable
    answerUpstream(record, .ack)
    if record.acked {
      writing.settleUpstream(record.row.sender, record.row.number, now: now)
    } else if let desk = desks[record.row.sender], desk.records[record.row.number] == nil {
      // Kept by the store alone: a pass over the store that began before may have missed it.
      fellBehind(desk)
    }
  }

  /// The store holds rows that the pass under way, if there is one, is not sure to see.
  func fellBehind(_ desk: UpstreamDesk) {
    desk.behind = true
    if desk.leasing || desk.leasedUpTo != nil { desk.anotherPass = true }
    leaseIfBehind(desk)
  }

  func answerUpstream(_ record: Upstream, _ answer: UpstreamAnswer) {
    guard let origin = record.origin else { return }
    record.origin = nil
    if case .nack = answer { send(.forgetUpstream(record.row.key), to: Int(origin.stream.loop)) }
    send(.upstreamAnswer(origin, answer), to: Int(origin.stream.loop))
  }

  func senderOpened(_ sender: SenderID, _ stream: StreamRef) {
    let desk = desk(sender)
    perform(desk.board.streamOpened(stream, now: now), desk)
  }

  func senderClosed(_ sender: SenderID, _ stream: StreamRef) {
    guard let desk = desks[sender] else { return }
    perform(desk.board.streamClosed(stream, now: now), desk)
    leaveToOthers(desk)
  }

  /// The store holds upstream messages of this sender from an earlier run.
  func upstreamLeft(_ sender: SenderID) {
    let desk = desk(sender)
    if desk.leasing { desk.anotherPass = true }
    desk.behind = true
    leaseIfBehind(desk)
  }

  private func leaseIfBehind(_ desk: UpstreamDesk) {
    guard desk.behind, !desk.leasing, desk.board.hasOpenStream,
      desk.records.count < tuning.upstreamKept / 2
    else { return }
    desk.leasing = true
    let post = post
    let (index, sender) = (index, desk.sender)
    store.lease(
      for: sender, after: desk.leasedUpTo, max: 500, node: bus?.node ?? 0, until: wall + .seconds(3600),
      now: wall
    ) { post.post(.leased(sender, $0), to: index) }
  }

  func leased(_ sender: SenderID, _ result: Result<[StoredUpstream], StoreFault>) {
    let desk = desk(sender)
    desk.leasing = false
    defer { desk.endLease() }
    guard case .success(let rows) = result else {
      readAgainLater(.lease(sender))
      counters.storeFaults.add(1)
      return
    }
    if bus != nil, !desk.board.hasOpenStream {
      // The stream closed meanwhile: what was leased is for any node.
      desk.behind = true
      desk.leasedUpTo = nil
      return leaveToOthers(desk)
    }
    guard let last = rows.last else {
      // The end of the store: whatever was left out before the pass began has been seen.
      desk.leasedUpTo = nil
      if desk.anotherPass {
        desk.anotherPass = false
        return leaseIfBehind(desk)
      }
      desk.behind = false
      desk.settledWhileBehind = []
      return
    }
    desk.leasedUpTo = last.number
    var actions: [UpstreamBoard<StreamRef>.Action] = []
    for row in rows
    where desk.records[row.number] == nil && !desk.settledWhileBehind.contains(row.number)
      && !desk.settling.contains(row.number)
    {
      desk.records[row.number] = Upstream(row, origin: nil, write: .durable)
      actions += desk.board.offer(row.number, now: now)
    }
    perform(actions, desk)
  }

  /// The device acked a message whose sender asked for a receipt: it goes the way of upstream messages.
  func sendReceipt(_ record: Downstream) {
    guard let receipt = try? JSONValue(parsing: record.receipt), let id = receipt["message_id"]?.string,
      let from = receipt["from"]?.string
    else {
      log.error("A receipt kept with a message cannot be read", ["message": .init(record.key.hash.hex)])
      return
    }
    counters.receipts.add()
    let row = StoredUpstream(
      number: MessageNumber(numbers.next(wall)), sender: record.sender,
      key: MessageKey(Hash128(high: ~record.key.hash.high, low: record.key.hash.low)), device: nil,
      expires: wall + .seconds(limits.upstreamHeldSecondsMax), body: record.receipt, messageID: id, from: from
    )
    send(.upstream(Upstream(row, origin: nil, write: .queued)), to: home(of: record.sender))
  }
}
