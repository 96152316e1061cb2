import CSQLite
import PushModel
import Seams
import Stores

extension Writer {
  func apply(_ batch: WriteBatch, now: WallTime) throws(SQLiteFailure) -> WriteOutcome {
    var outcome = WriteOutcome()
    outcome.enqueue.reserveCapacity(batch.enqueue.count)
    for row in batch.enqueue {
      outcome.enqueue.append(try enqueue(row, now: now, ended: &outcome.ended))
    }
    for gone in batch.settle { try settle(gone) }
    for end in batch.fanoutEnds { shareEnds[end.job, default: FanoutCounts()].add(end.state, end.count) }
    for row in batch.append { try append(row) }
    for gone in batch.settleUpstream {
      statements.deleteUpstream.bind(1, gone.sender.value)
      statements.deleteUpstream.bind(2, gone.number.column)
      try statements.deleteUpstream.run()
      endedLeases.append(gone)
    }
    for told in batch.overflowTold {
      statements.overflowTold.bind(1, told.device.value)
      statements.overflowTold.bind(2, Int64(told.count))
      try statements.overflowTold.run()
    }
    if let latest = batch.journal.lazy.map(\.at).max() {
      statements.insertJournal.bind(1, latest.ms)
      let packed = JournalPacking.pack(batch.journal)
      let code = statements.insertJournal.withBlob(2, packed) {
        sqlite3_step(statements.insertJournal.pointer)
      }
      _ = try statements.insertJournal.check(code)
    }
    return outcome
  }

  // MARK: Downstream

  /// The shelf of a device, from the cache or the tables; nil when the device does not exist.
  func shelf(of device: DeviceNumber) throws(SQLiteFailure) -> Shelf? {
    if let shelf = shelves[device] { return shelf }
    let shelf = Shelf()
    statements.shelfDevice.bind(1, device.value)
    guard try statements.shelfDevice.row() else { return nil }
    shelf.held = !statements.shelfDevice.isNull(0)
    statements.shelfDevice.reset()

    let rows = statements.shelfRows
    rows.bind(1, device.value)
    while try rows.row() {
      if let collapse = rows.optionalText(1) {
        shelf.keyed.append(Shelf.Keyed(collapse: collapse, number: MessageNumber(column: rows.int(0))))
      } else {
        shelf.looseCount += 1
      }
      if rows.int(2) == incarnation { shelf.mayHaveLive = true }
    }
    shelves.insert(shelf, for: device)
    return shelf
  }

  /// - Parameter share: The registration, when the row is its share of a fan-out.
  func enqueue(
    _ row: StoredMessage, share: RegistrationNumber? = nil, now: WallTime, ended: inout [WriteOutcome.Ended]
  ) throws(SQLiteFailure) -> WriteOutcome.Enqueue {
    guard let shelf = try shelf(of: row.device) else { return .unknownDevice }
    if let collapse = row.collapse {
      return try enqueueKeyed(row, share, collapse: collapse, on: shelf, ended: &ended)
    }
    if !row.live, shelf.looseCount >= limits.storedPerDeviceMax {
      if try exists(row) { return .duplicate }
      try discardLoose(of: row.device, on: shelf, expiredAt: now, ended: &ended)
      if shelf.looseCount >= limits.storedPerDeviceMax {
        let before = ended.count
        try discardLoose(of: row.device, on: shelf, expiredAt: nil, ended: &ended)
        end(row, .droppedOverflow, &ended)
        statements.addOverflow.bind(1, row.device.value)
        statements.addOverflow.bind(2, Int64(ended.count - before))
        try statements.addOverflow.run()
        return .overflowed
      }
    }
    guard try insert(row, share, on: shelf) else { return .duplicate }
    shelf.looseCount += 1
    return .stored
  }

  private func enqueueKeyed(
    _ row: StoredMessage, _ share: RegistrationNumber?, collapse: String, on shelf: Shelf,
    ended: inout [WriteOutcome.Ended]
  ) throws(SQLiteFailure) -> WriteOutcome.Enqueue {
    if let index = shelf.keyed.firstIndex(where: { $0.collapse == collapse }) {
      let number = shelf.keyed[index].number
      if number == row.number { return .duplicate }
      if number > row.number {
        end(row, .collapsed, &ended)
        return .stored
      }
      shelf.keyed.remove(at: index)
      try take(number, of: row.device, ended: &ended)
    }
    guard try insert(row, share, on: shelf) else { return .duplicate }
    shelf.keyed.append(Shelf.Keyed(collapse: collapse, number: row.number))
    while shelf.keyed.count > limits.collapseKeysPerDeviceMax,
      let oldest = shelf.keyed.indices.min(by: { shelf.keyed[$0].number < shelf.keyed[$1].number })
    {
      try take(shelf.keyed.remove(at: oldest).number, of: row.device, ended: &ended)
    }
    return .stored
  }

  /// A row that ends as it comes.
  private func end(
    _ row: StoredMessage, _ state: MessageState, _ ended: inout [WriteOutcome.Ended]
  ) {
    ended.append(row.ended(as: state))
    if let job = row.shared?.job { shareEnds[job, default: FanoutCounts()].add(state) }
  }

  private func exists(_ row: StoredMessage) throws(SQLiteFailure) -> Bool {
    statements.messageExists.bind(1, row.device.value)
    statements.messageExists.bind(2, row.number.column)
    defer { statements.messageExists.reset() }
    return try statements.messageExists.row()
  }

  /// False when the number is there already.
  ///
  /// Bodies and texts are read in place, not copied.
  private func insert(
    _ row: StoredMessage, _ share: RegistrationNumber?, on shelf: Shelf
  ) throws(SQLiteFailure) -> Bool {
    if let share { return try insertShare(row, share, on: shelf) }
    let statement = statements.insertMessage
    let live = row.live && shelf.held
    statement.bind(1, row.device.value)
    statement.bind(2, row.number.column)
    statement.bind(3, row.expires.ms)
    statement.bind(4, row.sender.value)
    statement.bind(8, row.highPriority ? 1 : 0)
    statement.bind(9, live ? incarnation : 0)
    let code = statement.withText(5, row.app) {
      statement.withKey(6, row.key) {
        statement.withText(7, row.collapse) {
          statement.withBlob(10, row.body) {
            statement.withBlob(11, row.receipt) { sqlite3_step(statement.pointer) }
          }
        }
      }
    }
    _ = try statement.check(code)
    guard connection.changes > 0 else { return false }
    if live { shelf.mayHaveLive = true }
    return true
  }

  private func settle(_ gone: WriteBatch.Settlement) throws(SQLiteFailure) {
    if let end = gone.end {
      statements.takeMessage.bind(1, gone.device.value)
      statements.takeMessage.bind(2, gone.number.column)
      for row in try rowsTaken(by: statements.takeMessage, gone.device, as: end) {
        shelves[gone.device]?.removed(row.number)
      }
      return
    }
    statements.deleteMessage.bind(1, gone.device.value)
    statements.deleteMessage.bind(2, gone.number.column)
    try statements.deleteMessage.run()
    if connection.changes > 0 { shelves[gone.device]?.removed(gone.number) }
  }

  private func take(
    _ number: MessageNumber, of device: DeviceNumber, ended: inout [WriteOutcome.Ended]
  ) throws(SQLiteFailure) {
    statements.takeMessage.bind(1, device.value)
    statements.takeMessage.bind(2, number.column)
    ended += try rowsTaken(by: statements.takeMessage, device, as: .collapsed)
  }

  /// Takes the device's non-collapsible rows that are not in flight: all, or the expired ones.
  private func discardLoose(
    of device: DeviceNumber, on shelf: Shelf, expiredAt now: WallTime?,
    ended: inout [WriteOutcome.Ended]
  ) throws(SQLiteFailure) {
    let statement = now == nil ? statements.takeLoose : statements.takeLooseExpired
    statement.bind(1, device.value)
    statement.bind(2, incarnation)
    if let now { statement.bind(3, now.ms) }
    let taken = try rowsTaken(by: statement, device, as: now == nil ? .droppedOverflow : .expired)
    shelf.looseCount -= taken.count
    ended += taken
  }

  /// Runs a DELETE that returns `number, sender, key, share, job`; the rows come in number order.
  ///
  /// Shares are counted with their fan-out.
  func rowsTaken(
    by statement: Statement, _ device: DeviceNumber, as state: MessageState
  ) throws(SQLiteFailure) -> [WriteOutcome.Ended] {
    var taken: [WriteOutcome.Ended] = []
    defer { statement.reset() }
    while try statement.row() {
      let row = try statement.ended(device: device, as: state)
      if let job = row.job { shareEnds[job, default: FanoutCounts()].add(state) }
      taken.append(row)
    }
    return taken.count > 1 ? taken.sorted { $0.number < $1.number } : taken
  }

  /// The second half of a sweep: removes what a reader found expired, unless it has gone meanwhile.
  func removeExpired(_ found: SweepFinding, now: WallTime) throws(SQLiteFailure) -> [WriteOutcome.Ended] {
    var ended: [WriteOutcome.Ended] = []
    for place in found.messages {
      statements.takeExpired.bind(1, place.device.value)
      statements.takeExpired.bind(2, place.number.column)
      statements.takeExpired.bind(3, now.ms)
      for row in try rowsTaken(by: statements.takeExpired, place.device, as: .expired) {
        shelves[place.device]?.removed(row.number)
        ended.append(row)
      }
    }
    for place in found.upstream {
      statements.deleteExpiredUpstream.bind(1, place.sender.value)
      statements.deleteExpiredUpstream.bind(2, place.number.column)
      statements.deleteExpiredUpstream.bind(3, now.ms)
      try statements.deleteExpiredUpstream.run()
      if connection.changes > 0 { endedLeases.append(place) }
    }
    return ended
  }

  // MARK: Upstream

  private func append(_ row: StoredUpstream) throws(SQLiteFailure) {
    let statement = statements.insertUpstream
    statement.bind(1, row.sender.value)
    statement.bind(2, row.number.column)
    statement.bind(3, row.expires.ms)
    statement.bind(5, row.device?.value)
    let code = statement.withKey(4, row.key) {
      statement.withText(6, row.messageID) {
        statement.withText(7, row.from) {
          statement.withBlob(8, row.body) { sqlite3_step(statement.pointer) }
        }
      }
    }
    _ = try statement.check(code)
  }

  func lease(
    for sender: SenderID, after: MessageNumber?, max: Int, node: Int, until: WallTime, now: WallTime
  ) throws(SQLiteFailure) -> [StoredUpstream] {
    guard max > 0 else { return [] }
    let statement = statements.upstreamPage
    statement.bind(1, sender.value)
    statement.bind(2, after?.column ?? -1)
    statement.bind(3, now.ms)
    defer { statement.reset() }
    var page: [StoredUpstream] = []
    while page.count < max, try statement.row() {
      let place = WriteBatch.UpstreamSettlement(
        sender: sender, number: MessageNumber(column: statement.int(1)))
      if let lease = leases[place], lease.node != node, lease.until > now { continue }
      page.append(
        StoredUpstream(
          number: place.number, sender: sender, key: try statement.key(3, table: "upstream"),
          device: statement.isNull(4) ? nil : DeviceNumber(statement.int(4)),
          expires: WallTime(ms: statement.int(2)), body: statement.blob(7),
          messageID: statement.text(5), from: statement.text(6)))
      leases[place] = Lease(node: node, until: until)
    }
    return page
  }

  /// Deletes up to `max` rows of the journal and returns how many there were.
  func pruneJournal(before: WallTime, max: Int) throws(SQLiteFailure) -> Int {
    statements.pruneJournal.bind(1, before.ms)
    statements.pruneJournal.bind(2, Int64(max))
    try statements.pruneJournal.run()
    return connection.changes
  }
}
