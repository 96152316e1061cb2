package import PushModel
package import Seams
package import Stores
import Synchronization

extension PostgresStore {
  package func write(_ batch: WriteBatch, now: WallTime, _ done: @escaping Completion<WriteOutcome>) {
    let (membership, limits, room) = (membership, limits, room)
    let plan = room.plan(batch.enqueue)
    pipelined(
      writes, done,
      send: { session throws(PostgresFailure) in
        try Self.send(batch, counted: plan.isCounted, on: session, as: membership, limits: limits, now: now)
      },
      take: { session throws(PostgresFailure) in
        var outcome = WriteOutcome()
        if !batch.enqueue.isEmpty {
          outcome = try Enqueueing.outcome(try session.rows(), of: batch.enqueue, plan, room)
        }
        for _ in 0..<Self.plainStatements(batch) { _ = try session.rows() }
        return outcome
      })
  }

  /// How many statements of a batch come after its enqueued rows.
  private static func plainStatements(_ batch: WriteBatch) -> Int {
    [
      batch.settle.isEmpty, batch.fanoutEnds.isEmpty, batch.append.isEmpty, batch.settleUpstream.isEmpty,
      batch.overflowTold.isEmpty, batch.journal.isEmpty,
    ].count { !$0 }
  }

  private static func send(
    _ batch: WriteBatch, counted: [Bool], on session: Session, as node: Membership, limits: StoreLimits,
    now: WallTime
  ) throws(PostgresFailure) {
    if !batch.enqueue.isEmpty {
      // Also for what was handed to a stream here: another node may have claimed the device, and its word of it be on
      // the way.
      for row in batch.enqueue { session.written.insert(row.device.value) }
      try session.send(
        .enqueue,
        Enqueueing.parameters(
          batch.enqueue, counted: counted, writer: node.incarnation, limits: limits, now: now))
    }
    if !batch.settle.isEmpty {
      var parameters = Parameters()
      parameters.ints(batch.settle) { $0.device.value }
      parameters.ints(batch.settle) { $0.number.column }
      parameters.ints(batch.settle) { $0.end.map { Int64($0.rawValue) } }
      try session.send(.settle, parameters)
    }
    if !batch.fanoutEnds.isEmpty {
      var parameters = Parameters()
      parameters.ints(batch.fanoutEnds) { $0.job.column }
      parameters.ints(batch.fanoutEnds) { Int64($0.state.rawValue) }
      parameters.ints(batch.fanoutEnds) { Int64($0.count) }
      try session.send(.countEnds, parameters)
    }
    if !batch.append.isEmpty { try session.send(.append, parameters(batch.append, node)) }
    if !batch.settleUpstream.isEmpty {
      var parameters = Parameters()
      parameters.ints(batch.settleUpstream) { $0.sender.value }
      parameters.ints(batch.settleUpstream) { $0.number.column }
      try session.send(.settleUpstream, parameters)
    }
    if !batch.overflowTold.isEmpty {
      var parameters = Parameters()
      parameters.ints(batch.overflowTold) { $0.device.value }
      parameters.ints(batch.overflowTold) { Int64($0.count) }
      try session.send(.overflowTold, parameters)
    }
    if let latest = batch.journal.lazy.map(\.at).max() {
      var parameters = Parameters()
      parameters.int(latest.ms)
      parameters.blob(JournalPacking.pack(batch.journal))
      try session.send(.insertJournal, parameters)
    }
  }

  private static func parameters(_ rows: [StoredUpstream], _ node: Membership) -> Parameters {
    var parameters = Parameters(capacity: rows.reduce(0) { $0 + $1.body.count + 200 })
    parameters.ints(rows) { $0.sender.value }
    parameters.ints(rows) { $0.number.column }
    parameters.ints(rows) { $0.expires.ms }
    parameters.ints(rows) { $0.device?.value }
    parameters.keys(rows) { $0.key }
    parameters.blobs(rows, text: { $0.messageID })
    parameters.blobs(rows, text: { $0.from })
    parameters.blobs(rows) { $0.body }
    parameters.bools(rows) { $0.isHeld }
    parameters.int4(node.number)
    parameters.int(node.incarnation)
    return parameters
  }

  package func backlog(
    of device: DeviceNumber, after: MessageNumber?, max: Int, now: WallTime,
    _ done: @escaping Completion<Backlog>
  ) {
    let limit = Int(pageMax(max))
    pipelined(
      reads, done,
      send: { session throws(PostgresFailure) in
        var parameters = Parameters()
        parameters.int(device.value)
        parameters.int(after?.column ?? -1)
        parameters.int(now.ms)
        parameters.int(Int64(limit) + 1)
        try session.send(.backlog, parameters)
        parameters = Parameters()
        parameters.int(device.value)
        try session.send(.overflowed, parameters)
      },
      take: { session throws(PostgresFailure) in
        let rows = try session.rows().messages()
        let overflowed = try session.rows()
        return Backlog(
          messages: Array(rows.prefix(limit)), hasMore: rows.count > limit,
          overflowed: overflowed.count > 0 ? Int(overflowed.int(0, 0)) : 0)
      })
  }

  package func backlogs(
    of devices: [DeviceNumber], max: Int, now: WallTime,
    _ each: @escaping @Sendable (DeviceNumber, Result<Backlog, StoreFault>) -> Void
  ) {
    guard !devices.isEmpty else { return }
    let limit = Int(pageMax(max))
    let done: Completion<[DeviceNumber: Backlog]> = { result in
      for device in devices {
        each(device, result.map { $0[device] ?? Backlog(messages: [], hasMore: false, overflowed: 0) })
      }
    }
    pipelined(
      reads, done,
      send: { session throws(PostgresFailure) in
        var parameters = Parameters()
        parameters.ints(devices) { $0.value }
        parameters.int(now.ms)
        parameters.int(Int64(limit) + 1)
        try session.send(.backlogs, parameters)
        parameters = Parameters()
        parameters.ints(devices) { $0.value }
        try session.send(.overflows, parameters)
      },
      take: { session throws(PostgresFailure) in
        var pages: [DeviceNumber: Backlog] = [:]
        for message in try session.rows().messages() {
          pages[message.device, default: Backlog(messages: [], hasMore: false, overflowed: 0)].add(
            message, limit: limit)
        }
        let overflowed = try session.rows()
        for row in 0..<overflowed.count {
          pages[
            DeviceNumber(overflowed.int(row, 0)),
            default: Backlog(messages: [], hasMore: false, overflowed: 0)
          ].overflowed = Int(overflowed.int(row, 1))
        }
        return pages
      })
  }

  package func lease(
    for sender: SenderID, after: MessageNumber?, max: Int, node: Int, until: WallTime, now: WallTime,
    _ done: @escaping Completion<[StoredUpstream]>
  ) {
    let incarnation = membership.incarnation
    pipelined(
      claims, done,
      send: { session throws(PostgresFailure) in
        var parameters = Parameters()
        parameters.int(sender.value)
        parameters.int(after?.column ?? -1)
        parameters.int(now.ms)
        parameters.int(pageMax(max))
        parameters.int4(node)
        parameters.int(until.ms)
        parameters.int(incarnation)
        try session.send(.lease, parameters)
      },
      take: { session throws(PostgresFailure) in
        let rows = try session.rows()
        var page: [StoredUpstream] = []
        for row in 0..<rows.count {
          page.append(
            StoredUpstream(
              number: MessageNumber(column: rows.int(row, 0)), sender: sender,
              key: try rows.key(row, 2, table: "upstream"),
              device: rows.optionalInt(row, 3).map { DeviceNumber($0) },
              expires: WallTime(ms: rows.int(row, 1)), body: rows.blob(row, 6),
              messageID: rows.text(row, 4), from: rows.text(row, 5)))
        }
        return page.sorted { $0.number < $1.number }
      })
  }

  package func sendersWithUpstream(_ done: @escaping Completion<[SenderID]>) {
    query(scans, .sendersWithUpstream, Parameters(), done) { rows throws(PostgresFailure) in
      (0..<rows.count).map { SenderID(rows.int($0, 0)) }
    }
  }

  package func sweep(now: WallTime, budget: Int, _ done: @escaping Completion<[WriteOutcome.Ended]>) {
    guard budget > 0 else { return done(.success([])) }
    let place = sweepPlace
    pipelined(
      scans, done,
      send: { session throws(PostgresFailure) in
        let (message, upstream) = place.withLock { $0 }
        var parameters = Parameters()
        parameters.int(message)
        parameters.int(upstream)
        parameters.int(Self.sweepBlocks)
        parameters.int(now.ms)
        parameters.int4(budget)
        try session.send(.sweep, parameters)
      },
      take: { session throws(PostgresFailure) in
        let rows = try session.rows()
        var ended: [WriteOutcome.Ended] = []
        for row in 0..<rows.count {
          if rows.isNull(row, 3) {
            let next = (rows.int(row, 0), rows.int(row, 1))
            place.withLock { $0 = next }
          } else {
            ended.append(try rows.ended(row, from: 0, as: .expired))
          }
        }
        return ended
      })
  }

  package func journal(since: WallTime, max: Int, _ done: @escaping Completion<[JournalEntry]>) {
    var parameters = Parameters()
    parameters.int(since.ms)
    // A row has at least one entry.
    parameters.int(pageMax(max))
    query(scans, .journal, parameters, done) { rows throws(PostgresFailure) in
      var found: [JournalEntry] = []
      for row in 0..<rows.count where found.count < max {
        guard let entries = rows.withBlob(row, 1, JournalPacking.unpackBackwards) else {
          throw .corrupt("table journal, row \(rows.int(row, 0)): entries")
        }
        for entry in entries where entry.at >= since && found.count < max { found.append(entry) }
      }
      return found
    }
  }

  package func pruneJournal(before: WallTime, _ done: @escaping Completion<Void>) {
    var parameters = Parameters()
    parameters.int(before.ms)
    // Behind the batches of the same caller.
    query(writes, .pruneJournal, parameters, done) { _ throws(PostgresFailure) in }
  }

  package func find(_ key: MessageKey, _ done: @escaping Completion<[StoredMessage]>) {
    var parameters = Parameters()
    parameters.key(key)
    query(scans, .find, parameters, done) { rows throws(PostgresFailure) in try rows.messages() }
  }
}

extension Backlog {
  fileprivate mutating func add(_ message: StoredMessage, limit: Int) {
    if messages.count < limit { messages.append(message) } else { hasMore = true }
  }
}
