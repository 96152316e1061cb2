package import PushModel
package import Seams
package import Stores

extension PostgresStore {
  package func begin(_ fanout: FanoutJob, _ done: @escaping Completion<Void>) {
    var parameters = Parameters()
    parameters.int(fanout.number.column)
    parameters.key(fanout.key)
    parameters.int(fanout.sender.value)
    parameters.blob(Optional(fanout.audience.text))
    parameters.text(fanout.onlyApp)
    parameters.blob(fanout.collapseKey)
    parameters.int(fanout.begun.ms)
    parameters.int(fanout.expires.ms)
    parameters.bool(fanout.isStored)
    parameters.bool(fanout.highPriority)
    parameters.blob(fanout.tail)
    query(claims, .insertFanout, parameters, done) { _ throws(PostgresFailure) in }
  }

  package func advance(
    fanouts jobs: [MessageNumber], max: Int, spares: [MessageNumber], now: WallTime,
    _ done: @escaping Completion<[FanoutSlice]>
  ) {
    let step = FanoutStep(
      limits: limits, room: room, writer: membership.incarnation, max: Swift.max(1, max), now: now)
    stepwise(fans, done) { session throws(PostgresFailure) in
      var spares = spares[...]
      var slices: [FanoutSlice] = []
      // A job is locked until the end: two nodes that advance one do so in turn.
      for job in jobs { slices.append(try step.advance(job, &spares, on: session)) }
      return .success(slices)
    }
  }

  package func fanouts(since: WallTime, _ done: @escaping Completion<[FanoutProgress]>) {
    var parameters = Parameters()
    parameters.int(since.ms)
    query(scans, .openFanouts, parameters, done) { rows throws(PostgresFailure) in try rows.progresses() }
  }

  package func fanout(of key: MessageKey, _ done: @escaping Completion<FanoutProgress?>) {
    var parameters = Parameters()
    parameters.key(key)
    query(scans, .fanoutByKey, parameters, done) { rows throws(PostgresFailure) in try rows.progresses().first
    }
  }

  package func pruneFanouts(
    before: WallTime, max: Int, now: WallTime, _ done: @escaping Completion<Int>
  ) {
    stepwise(fans, done) { session throws(PostgresFailure) in
      _ = try session.query(.foldEnds, Parameters())
      var parameters = Parameters()
      parameters.int(before.ms)
      parameters.int(now.ms)
      parameters.int(pageMax(max))
      return .success(try session.query(.pruneFanouts, parameters).changed)
    }
  }
}

/// One step of fan-outs, in a transaction that the lane ends.
struct FanoutStep: Sendable {
  let limits: StoreLimits
  let room: StoredRoom
  let writer: Int64
  let max: Int
  let now: WallTime

  private struct Receiver {
    var number: RegistrationNumber
    var device: DeviceNumber
    var token: String
    var app: String
    var isActive: Bool
    var isHeld: Bool
    /// Non-collapsible rows of a held device.
    var loose: Int
    /// The device's first: its share of a fan-out has the number of the job.
    var isFirst: Bool
  }

  private struct Visit {
    var matching: [Receiver] = []
    /// Registrations visited, matching or not.
    var count = 0
    var last: RegistrationNumber?
  }

  func advance(
    _ number: MessageNumber, _ spares: inout ArraySlice<MessageNumber>, on session: Session
  ) throws(PostgresFailure) -> FanoutSlice {
    var slice = FanoutSlice(job: number)
    guard let (job, place) = try open(number, on: session), job.expires > now else {
      slice.isDone = true
      try move(number, to: RegistrationNumber(0), slice, on: session)
      return slice
    }
    let visited = try visit(job, from: place, on: session)
    let matching = visited.matching.filter { $0.isActive && (job.onlyApp == nil || job.onlyApp == $0.app) }
    slice.matched = matching.count
    slice.isStored = job.isStored
    slice.isDone = visited.count < max
    if job.isStored {
      try store(job, matching, &spares, &slice, on: session)
    } else {
      let shared = SharedTail(job: job.number, bytes: job.tail)
      slice.rows = matching.filter(\.isHeld).map { row(job, shared, $0) }
      slice.droppedOffline = matching.count - slice.rows.count
    }
    try move(number, to: visited.last ?? place, slice, on: session)
    return slice
  }

  /// A job that is not done, and the last registration it visited.
  private func open(
    _ number: MessageNumber, on session: Session
  ) throws(PostgresFailure) -> (job: FanoutJob, place: RegistrationNumber)? {
    var parameters = Parameters()
    parameters.int(number.column)
    let rows = try session.query(.openFanout, parameters)
    guard rows.count > 0, !rows.bool(0, 10) else { return nil }
    guard let audience = FanoutJob.Audience(text: rows.text(0, 2)) else {
      throw .corrupt("table fanout, number \(number.value): audience")
    }
    let job = FanoutJob(
      number: number, key: try rows.key(0, 0, table: "fanout"), sender: SenderID(rows.int(0, 1)),
      audience: audience, onlyApp: rows.optionalText(0, 3), collapseKey: rows.optionalText(0, 4),
      begun: WallTime(ms: rows.int(0, 5)), expires: WallTime(ms: rows.int(0, 6)),
      isStored: rows.bool(0, 7), highPriority: rows.bool(0, 8), tail: rows.blob(0, 11))
    return (job, RegistrationNumber(rows.int(0, 9)))
  }

  private func move(
    _ job: MessageNumber, to place: RegistrationNumber, _ slice: FanoutSlice, on session: Session
  ) throws(PostgresFailure) {
    var parameters = Parameters()
    parameters.int(job.column)
    parameters.int(place.value)
    parameters.bool(slice.isDone)
    parameters.int(Int64(slice.matched))
    parameters.int(Int64(slice.droppedOffline))
    _ = try session.query(.moveFanout, parameters)
  }

  // MARK: Whom a slice visits

  private func visit(
    _ job: FanoutJob, from place: RegistrationNumber, on session: Session
  ) throws(PostgresFailure) -> Visit {
    switch job.audience {
    case .topic(let name):
      guard let topic = try PostgresStore.topicID(name, job.sender, on: session) else { return Visit() }
      let found = try receivers(.receiversOfTopic, topic, from: place, on: session)
      return Visit(matching: found, count: found.count, last: found.last?.number)
    case .condition(let condition) where condition.matchesWithoutAny:
      let all = try receivers(.receiversOfSender, job.sender.value, from: place, on: session)
      let memberships = try memberships(condition, job.sender, from: place, on: session)
      return Visit(
        matching: all.filter { condition.matches(memberships[$0.number] ?? 0) }, count: all.count,
        last: all.last?.number)
    case .condition(let condition):
      let memberships = try memberships(condition, job.sender, from: place, on: session)
      // The first `max` of the union are among the first `max` of each topic, so what is known of them is all.
      let candidates = memberships.keys.sorted().prefix(max)
      let wanted = candidates.filter { condition.matches(memberships[$0] ?? 0) }
      var parameters = Parameters()
      parameters.ints(wanted) { $0.value }
      let found = try receivers(.receiversByNumber, parameters, from: place, on: session)
      return Visit(matching: found, count: candidates.count, last: candidates.last)
    }
  }

  private func receivers(
    _ statement: SQL, _ owner: Int64, from place: RegistrationNumber, on session: Session
  ) throws(PostgresFailure) -> [Receiver] {
    var parameters = Parameters()
    parameters.int(owner)
    return try receivers(statement, parameters, from: place, on: session)
  }

  private func receivers(
    _ statement: SQL, _ owner: Parameters, from place: RegistrationNumber, on session: Session
  ) throws(PostgresFailure) -> [Receiver] {
    var parameters = owner
    parameters.int(place.value)
    parameters.int(Int64(max))
    parameters.int(Int64(limits.storedPerConnectedDeviceMax))
    let rows = try session.query(statement, parameters)
    return (0..<rows.count).map { row in
      Receiver(
        number: RegistrationNumber(rows.int(row, 0)), device: DeviceNumber(rows.int(row, 1)),
        token: rows.text(row, 2), app: rows.text(row, 3), isActive: rows.int(row, 4) == 0,
        isHeld: rows.bool(row, 5), loose: Int(rows.int(row, 6)),
        isFirst: rows.bool(row, 7))
    }
  }

  /// Which of a condition's topics the next registrations are in: the next `max` of each topic.
  private func memberships(
    _ condition: TopicCondition, _ sender: SenderID, from place: RegistrationNumber, on session: Session
  ) throws(PostgresFailure) -> [RegistrationNumber: UInt64] {
    var memberships: [RegistrationNumber: UInt64] = [:]
    for (index, topic) in condition.topics.enumerated() {
      guard let id = try PostgresStore.topicID(topic, sender, on: session) else { continue }
      var parameters = Parameters()
      parameters.int(id)
      parameters.int(place.value)
      parameters.int(Int64(max))
      let rows = try session.query(.subscriptionPage, parameters)
      for row in 0..<rows.count {
        memberships[RegistrationNumber(rows.int(row, 0)), default: 0] |= 1 << UInt64(index)
      }
    }
    return memberships
  }

  // MARK: What each gets

  private func row(_ job: FanoutJob, _ shared: SharedTail, _ receiver: Receiver) -> StoredMessage {
    let key = job.key.share(of: receiver.number)
    var row = StoredMessage(
      number: job.number, device: receiver.device, sender: job.sender, app: receiver.app, key: key,
      collapse: job.collapseKey.map { "\(receiver.app)\u{1F}\($0)" }, expires: job.expires,
      highPriority: job.highPriority, body: [])
    row.shared = shared
    if receiver.isHeld {
      row.body = SharedTail.head(
        job.audience, sender: job.sender, key: key, app: receiver.app, token: receiver.token)
    }
    return row
  }

  private func store(
    _ job: FanoutJob, _ receivers: [Receiver], _ spares: inout ArraySlice<MessageNumber>,
    _ slice: inout FanoutSlice, on session: Session
  ) throws(PostgresFailure) {
    guard !receivers.isEmpty else { return }
    let shared = SharedTail(job: job.number, bytes: job.tail)
    var rows = receivers.map { receiver in
      var row = row(job, shared, receiver)
      // It is about to be handed to the stream, so it is no reason for overflow, up to a bound.
      row.live = receiver.isHeld && receiver.loose < limits.storedPerConnectedDeviceMax
      return row
    }
    // A number is used once on a device, also when the row that had it is gone: a settlement may come twice.
    for index in rows.indices where !receivers[index].isFirst {
      if let spare = spares.popFirst() { rows[index].number = spare }
    }
    let verdicts = try enqueue(rows, receivers, job, &slice, on: session)
    // Those whose stream another node holds are to be told there, and those who log in meanwhile wherever that is.
    for receiver in receivers {
      session.written.insert(receiver.device.value)
      if !receiver.isHeld { session.writtenUnheld.insert(receiver.device.value) }
    }
    let endedAtOnce = Set(slice.ended.map(\.key))
    for (index, receiver) in receivers.enumerated()
    where receiver.isHeld && verdicts[index] == .stored && !endedAtOnce.contains(rows[index].key) {
      slice.rows.append(rows[index])
    }
  }

  private func enqueue(
    _ rows: [StoredMessage], _ receivers: [Receiver], _ job: FanoutJob, _ slice: inout FanoutSlice,
    on session: Session
  ) throws(PostgresFailure) -> [WriteOutcome.Enqueue] {
    let shares = receivers.map { Enqueueing.Share(registration: $0.number, job: job.number) }
    let plan = room.plan(rows)
    let parameters = Enqueueing.parameters(
      rows, shares: shares, counted: plan.isCounted, writer: writer, limits: limits, now: now)
    let outcome = try Enqueueing.outcome(try session.query(.enqueue, parameters), of: rows, plan, room)
    slice.ended += outcome.ended
    return outcome.enqueue
  }
}
