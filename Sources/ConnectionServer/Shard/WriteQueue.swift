import PushModel
import Seams
import Stores

/// What a shard wants written: gathered while the store writes the batch before it.
///
/// One batch is out at a time. What ends before its batch is handed over (``Downstream/Write/withdrawn``)
/// never touches the disk: with devices that ack quickly, that is nearly everything. So a message that is with its
/// device goes along when its own time has come, not when another's has.
struct WriteQueue {
  /// Messages that nobody but the disk can answer.
  private var urgent: [Downstream] = []
  /// Messages that their devices may answer first.
  private var live = LiveQueue()
  private var upstream: [Upstream] = []
  private var batch = WriteBatch()
  /// Messages, down and up, that were not withdrawn.
  private(set) var queuedCount = 0
  /// When the oldest record that nobody but the disk can answer came; nil for none.
  private var urgentSince: Moment?
  /// The same of upstream messages that are with an app server.
  private var upstreamSince: Moment?
  private var settleSince: Moment?

  /// With the store now, in the order of the batch.
  private(set) var out: (downstream: [Downstream], upstream: [Upstream], batch: WriteBatch)?
  private(set) var tries = 0
  private var retryAt: Moment?
  /// The batch that is out may have been written all the same.
  var isOutcomeUnknown = false

  mutating func enqueue(_ record: Downstream, now: Moment) {
    queuedCount += 1
    if record.handed { live.append(record, now: now) } else { addUrgent(record, now) }
  }

  /// The stream that a queued message was handed to is gone: no ack will come for it.
  mutating func hurry(_ record: Downstream, now: Moment) {
    guard record.isQueued else { return }
    addUrgent(record, now)
  }

  private mutating func addUrgent(_ record: Downstream, _ now: Moment) {
    urgent.append(record)
    if urgentSince == nil { urgentSince = now }
  }

  mutating func append(_ record: Upstream, handed: Bool, now: Moment) {
    upstream.append(record)
    queuedCount += 1
    if handed {
      if upstreamSince == nil { upstreamSince = now }
    } else if urgentSince == nil {
      urgentSince = now
    }
  }

  /// A record that was queued ended.
  mutating func withdrew() {
    queuedCount -= 1
    live.skipEnded()
  }

  /// - Parameter end: How it ended, for a share of a fan-out.
  mutating func settle(
    _ device: DeviceNumber, _ number: MessageNumber, end: MessageState? = nil, now: Moment
  ) {
    batch.settle.append(.init(device: device, number: number, end: end))
    if settleSince == nil { settleSince = now }
  }

  /// Counts the end of a share that was never stored.
  mutating func count(_ end: WriteBatch.FanoutEnd, now: Moment) {
    if let last = batch.fanoutEnds.indices.last, batch.fanoutEnds[last].job == end.job,
      batch.fanoutEnds[last].state == end.state
    {
      batch.fanoutEnds[last].count += end.count
    } else {
      batch.fanoutEnds.append(end)
    }
    if settleSince == nil { settleSince = now }
  }

  mutating func settleUpstream(_ sender: SenderID, _ number: MessageNumber, now: Moment) {
    batch.settleUpstream.append(.init(sender: sender, number: number))
    if settleSince == nil { settleSince = now }
  }

  /// The device was told for certain that so many messages were discarded.
  mutating func overflowTold(_ device: DeviceNumber, _ count: Int, now: Moment) {
    batch.overflowTold.append(.init(device: device, count: count))
    if settleSince == nil { settleSince = now }
  }

  mutating func journal(_ entry: JournalEntry, now: Moment) {
    batch.journal.append(entry)
    if settleSince == nil { settleSince = now }
  }

  /// When the next batch should go, or the last one be tried again; nil while there is nothing to do.
  ///
  /// - Parameter load: The share of time in which the loop works.
  func nextDue(_ tuning: ShardTuning, load: Double) -> Moment? {
    if out != nil { return retryAt }
    var due = urgentSince
    func consider(_ since: Moment?, _ linger: Duration) {
      guard let since else { return }
      due = min(due ?? since + linger, since + linger)
    }
    let linger = tuning.liveLinger(at: load)
    consider(live.oldest, linger)
    consider(upstreamSince, linger)
    consider(settleSince, tuning.settleLinger(at: load))
    return due
  }

  /// Takes the batch that is due; nil when none is, or one is out.
  mutating func takeDue(_ tuning: ShardTuning, load: Double, now: Moment, wall: WallTime) -> WriteBatch? {
    guard let due = nextDue(tuning, load: load), due <= now else { return nil }
    if let out {
      retryAt = nil
      return out.batch
    }
    var next = batch
    batch = WriteBatch()
    var rows: [Downstream] = []
    func submit(_ record: Downstream) {
      record.write = .submitted
      rows.append(record)
      next.enqueue.append(record.stored)
      next.journal.append(
        JournalEntry(
          key: record.key, sender: record.sender, device: record.device, state: .stored, at: wall))
    }
    for record in urgent where record.isQueued { submit(record) }
    live.take(until: Moment(ns: now.ns &- tuning.liveLinger(at: load).ns), submit)
    var upstreamRows: [Upstream] = []
    for record in upstream {
      guard case .queued = record.write else { continue }
      record.write = .submitted
      upstreamRows.append(record)
      var row = record.row
      row.isHeld = record.isHeld
      next.append.append(row)
    }
    urgent.removeAll(keepingCapacity: urgent.count < 4096)
    upstream.removeAll(keepingCapacity: upstream.count < 4096)
    queuedCount -= rows.count + upstreamRows.count
    urgentSince = nil
    upstreamSince = nil
    settleSince = nil
    guard !next.isEmpty else { return nil }
    out = (rows, upstreamRows, next)
    tries = 1
    isOutcomeUnknown = false
    return next
  }

  /// The batch is durable, or given up: hands its records back.
  mutating func finish() -> (downstream: [Downstream], upstream: [Upstream], batch: WriteBatch)? {
    defer { out = nil }
    return out
  }

  /// The batch that is out will be sent again at `moment`.
  mutating func retry(at moment: Moment) {
    retryAt = moment
    tries += 1
  }

  /// Puts what nobody was told of back, after a batch was given up.
  mutating func putBack(_ given: WriteBatch, now: Moment) {
    batch.settle.insert(contentsOf: given.settle, at: 0)
    batch.settleUpstream.insert(contentsOf: given.settleUpstream, at: 0)
    batch.overflowTold.insert(contentsOf: given.overflowTold, at: 0)
    batch.fanoutEnds.insert(contentsOf: given.fanoutEnds, at: 0)
    if settleSince == nil { settleSince = now }
  }

  /// The record with this key that its sender has not been answered about.
  func unanswered(_ key: MessageKey) -> Downstream? {
    urgent.last { $0.key == key && $0.origin != nil } ?? live.unanswered(key)
      ?? out?.downstream.last { $0.key == key && $0.origin != nil }
  }

  func unansweredUpstream(_ key: MessageKey) -> Upstream? {
    upstream.last { $0.row.key == key && $0.origin != nil }
      ?? out?.upstream.last { $0.row.key == key && $0.origin != nil }
  }

  /// Everything handed over is durable and nothing waits.
  var isIdle: Bool {
    out == nil && urgent.isEmpty && live.oldest == nil && upstream.isEmpty && batch.isEmpty
  }
}
