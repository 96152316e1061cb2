import CSQLite
import PushModel
import Seams
import Stores

/// A registration as a fan-out meets it.
struct Receiver {
  var number: RegistrationNumber
  var device: DeviceNumber
  var token: String
  var app: String
  var isActive: Bool
  /// The device's first: its share of a fan-out has the number of the job.
  var isFirst: Bool

  /// Reads `number, device, token, app, state`, and the lowest number of the device's registrations.
  init(_ row: Statement) {
    number = RegistrationNumber(row.int(0))
    device = DeviceNumber(row.int(1))
    token = row.text(2)
    app = row.text(3)
    isActive = row.int(4) == 0
    isFirst = row.int(5) == row.int(0)
  }
}

extension Writer {
  func begin(_ job: FanoutJob) throws(SQLiteFailure) {
    let insert = targets.insertFanout
    insert.bind(1, job.number.column)
    insert.bind(3, job.sender.value)
    insert.bind(4, text: job.audience.text)
    insert.bind(5, text: job.onlyApp)
    insert.bind(6, text: job.collapseKey)
    insert.bind(7, job.begun.ms)
    insert.bind(8, job.expires.ms)
    insert.bind(9, job.isStored ? 1 : 0)
    insert.bind(10, job.highPriority ? 1 : 0)
    _ = try insert.check(insert.withKey(2, job.key) { sqlite3_step(insert.pointer) })
    guard connection.changes > 0 else { return }
    targets.insertTail.bind(1, job.number.column)
    targets.insertTail.bind(2, blob: job.tail)
    try targets.insertTail.run()
  }

  /// A job that is not done, and the last registration it visited.
  private func openJob(
    _ number: MessageNumber
  ) throws(SQLiteFailure) -> (job: FanoutJob, place: RegistrationNumber)? {
    let row = targets.fanout
    row.bind(1, number.column)
    defer { row.reset() }
    guard try row.row(), row.int(10) == 0 else { return nil }
    guard let audience = FanoutJob.Audience(text: row.text(2)) else {
      throw .corrupt("table fanout, number \(number.value): audience")
    }
    let job = FanoutJob(
      number: number, key: try row.key(0, table: "fanout"), sender: SenderID(row.int(1)), audience: audience,
      onlyApp: row.optionalText(3), collapseKey: row.optionalText(4), begun: WallTime(ms: row.int(5)),
      expires: WallTime(ms: row.int(6)), isStored: row.int(7) != 0, highPriority: row.int(8) != 0,
      tail: row.blob(11))
    return (job, RegistrationNumber(row.int(9)))
  }

  func advance(
    _ jobs: [MessageNumber], max: Int, spares: [MessageNumber], now: WallTime
  ) throws(SQLiteFailure) -> [FanoutSlice] {
    var spares = spares[...]
    var slices: [FanoutSlice] = []
    for number in jobs {
      var slice = FanoutSlice(job: number)
      if let open = try openJob(number), open.job.expires > now {
        try advance(open.job, from: open.place, max: Swift.max(1, max), now, &spares, &slice)
      } else {
        slice.isDone = true
        try move(number, to: RegistrationNumber(0), slice)
      }
      slices.append(slice)
    }
    return slices
  }

  private func advance(
    _ job: FanoutJob, from place: RegistrationNumber, max: Int, _ now: WallTime,
    _ spares: inout ArraySlice<MessageNumber>, _ slice: inout FanoutSlice
  ) throws(SQLiteFailure) {
    let shared = SharedTail(job: job.number, bytes: job.tail)
    let visited = try visit(job, from: place, max: max)
    for receiver in visited.matching {
      guard receiver.isActive, job.onlyApp == nil || job.onlyApp == receiver.app else { continue }
      try give(job, shared, to: receiver, now, &spares, &slice)
    }
    slice.isStored = job.isStored
    slice.isDone = visited.count < max
    try move(job.number, to: visited.last ?? place, slice)
  }

  private func move(
    _ job: MessageNumber, to place: RegistrationNumber, _ slice: FanoutSlice
  ) throws(SQLiteFailure) {
    targets.moveFanout.bind(1, job.column)
    targets.moveFanout.bind(2, place.value)
    targets.moveFanout.bind(3, slice.isDone ? 1 : 0)
    targets.moveFanout.bind(4, Int64(slice.matched))
    targets.moveFanout.bind(5, Int64(slice.droppedOffline))
    try targets.moveFanout.run()
  }

  // MARK: Whom a slice visits

  private struct Visit {
    var matching: [Receiver] = []
    /// Registrations visited, matching or not.
    var count = 0
    var last: RegistrationNumber?
  }

  private func visit(
    _ job: FanoutJob, from place: RegistrationNumber, max: Int
  ) throws(SQLiteFailure) -> Visit {
    switch job.audience {
    case .topic(let name):
      guard let topic = try topicID(name, job.sender) else { return Visit() }
      let page = targets.subscriberPage
      page.bind(1, topic)
      page.bind(2, place.value)
      page.bind(3, Int64(max))
      let receivers = try receivers(page)
      return Visit(matching: receivers, count: receivers.count, last: receivers.last?.number)
    case .condition(let condition) where condition.matchesWithoutAny:
      let page = targets.senderPage
      page.bind(1, job.sender.value)
      page.bind(2, place.value)
      page.bind(3, Int64(max))
      let all = try receivers(page)
      let memberships = try memberships(condition, job.sender, from: place, max: max)
      return Visit(
        matching: all.filter { condition.matches(memberships[$0.number] ?? 0) }, count: all.count,
        last: all.last?.number)
    case .condition(let condition):
      let memberships = try memberships(condition, job.sender, from: place, max: max)
      // The first `max` of the union are among the first `max` of each topic, so what is known of them is all.
      let candidates = memberships.keys.sorted().prefix(max)
      var visit = Visit(count: candidates.count, last: candidates.last)
      for number in candidates where condition.matches(memberships[number] ?? 0) {
        targets.receiver.bind(1, number.value)
        visit.matching += try receivers(targets.receiver)
      }
      return visit
    }
  }

  private func receivers(_ page: Statement) throws(SQLiteFailure) -> [Receiver] {
    defer { page.reset() }
    var found: [Receiver] = []
    while try page.row() { found.append(Receiver(page)) }
    return found
  }

  /// Which of a condition's topics the next registrations are in: the next `max` of each topic.
  private func memberships(
    _ condition: TopicCondition, _ sender: SenderID, from place: RegistrationNumber, max: Int
  ) throws(SQLiteFailure) -> [RegistrationNumber: UInt64] {
    var memberships: [RegistrationNumber: UInt64] = [:]
    let page = targets.subscriptionPage
    for (index, topic) in condition.topics.enumerated() {
      guard let id = try topicID(topic, sender) else { continue }
      page.bind(1, id)
      page.bind(2, place.value)
      page.bind(3, Int64(max))
      defer { page.reset() }
      while try page.row() {
        memberships[RegistrationNumber(page.int(0)), default: 0] |= 1 << UInt64(index)
      }
    }
    return memberships
  }

  // MARK: What each gets

  private func give(
    _ job: FanoutJob, _ shared: SharedTail, to receiver: Receiver, _ now: WallTime,
    _ spares: inout ArraySlice<MessageNumber>, _ slice: inout FanoutSlice
  ) throws(SQLiteFailure) {
    guard let shelf = try shelf(of: receiver.device) else { return }
    slice.matched += 1
    guard job.isStored || shelf.held else {
      slice.droppedOffline += 1
      return
    }
    let key = job.key.share(of: receiver.number)
    var row = StoredMessage(
      number: job.number, device: receiver.device, sender: job.sender, app: receiver.app, key: key,
      collapse: job.collapseKey.map { "\(receiver.app)\u{1F}\($0)" }, expires: job.expires,
      highPriority: job.highPriority, body: [])
    row.shared = shared
    if shelf.held {
      // Nobody else looks at the body: it is made again when the row is read.
      row.body = SharedTail.head(
        job.audience, sender: job.sender, key: key, app: receiver.app, token: receiver.token)
    }
    guard job.isStored else {
      slice.rows.append(row)
      return
    }
    // It is about to be handed to the stream, so it is no reason for overflow, up to a bound.
    row.live = shelf.held && shelf.looseCount < limits.storedPerConnectedDeviceMax
    // A number is used once on a device, also when the row that had it is gone: a settlement may come twice.
    if !receiver.isFirst, let spare = spares.popFirst() { row.number = spare }
    let outcome = try enqueue(row, share: receiver.number, now: now, ended: &slice.ended)
    if outcome == .stored, shelf.held, slice.ended.last?.key != key { slice.rows.append(row) }
  }

  func insertShare(
    _ row: StoredMessage, _ share: RegistrationNumber, on shelf: Shelf
  ) throws(SQLiteFailure) -> Bool {
    let statement = targets.insertShare
    let live = row.live && shelf.held
    statement.bind(1, row.device.value)
    statement.bind(2, row.number.column)
    statement.bind(3, row.expires.ms)
    statement.bind(4, row.sender.value)
    statement.bind(8, row.highPriority ? 1 : 0)
    statement.bind(9, live ? incarnation : 0)
    statement.bind(10, share.value)
    let job = row.shared?.job ?? row.number
    statement.bind(11, job == row.number ? 0 : job.column)
    let code = statement.withText(5, row.app) {
      statement.withKey(6, row.key) {
        statement.withText(7, row.collapse) { sqlite3_step(statement.pointer) }
      }
    }
    _ = try statement.check(code)
    guard connection.changes > 0 else { return false }
    if live { shelf.mayHaveLive = true }
    return true
  }

  // MARK: Ends

  /// Adds the ends of the open transaction to their jobs.
  func saveShareEnds() throws(SQLiteFailure) {
    for (job, counts) in shareEnds {
      let count = targets.countEnds
      count.bind(1, job.column)
      count.bind(2, Int64(counts.delivered))
      count.bind(3, Int64(counts.expired))
      count.bind(4, Int64(counts.collapsed))
      count.bind(5, Int64(counts.droppedOverflow))
      count.bind(6, Int64(counts.droppedUnregistered))
      count.bind(7, Int64(counts.droppedOffline))
      try count.run()
    }
    shareEnds.removeAll(keepingCapacity: true)
  }

  func pruneFanouts(before: WallTime, max: Int, now: WallTime) throws(SQLiteFailure) -> Int {
    // Ends of this very transaction count too.
    try saveShareEnds()
    let statement = targets.pruneable
    statement.bind(1, before.ms)
    statement.bind(2, now.ms)
    statement.bind(3, Int64(Swift.max(0, max)))
    var gone: [Int64] = []
    defer { statement.reset() }
    while try statement.row() { gone.append(statement.int(0)) }
    for number in gone {
      targets.deleteFanout.bind(1, number)
      try targets.deleteFanout.run()
      targets.deleteTail.bind(1, number)
      try targets.deleteTail.run()
    }
    return gone.count
  }
}
