import PushModel
import Seams

extension MemoryContents {
  struct Fanout: Sendable {
    var job: FanoutJob
    var shared: SharedTail
    var cursor: RegistrationNumber?
    var isDone = false
    var counts = FanoutCounts()

    var progress: FanoutProgress {
      FanoutProgress(
        number: job.number, key: job.key, sender: job.sender, audience: job.audience, begun: job.begun,
        expires: job.expires, cursor: cursor, isDone: isDone, counts: counts)
    }
  }

  mutating func begin(_ job: FanoutJob) {
    guard fanouts[job.number] == nil else { return }
    fanouts[job.number] = Fanout(job: job, shared: SharedTail(job: job.number, bytes: job.tail))
  }

  mutating func countShares(_ ended: [WriteOutcome.Ended]) {
    for row in ended { if let job = row.job { fanouts[job]?.counts.add(row.state) } }
  }

  mutating func advance(
    _ jobs: [MessageNumber], max: Int, spares: [MessageNumber], now: WallTime
  ) -> [FanoutSlice] {
    var spares = spares[...]
    return jobs.map { job in
      var slice = FanoutSlice(job: job)
      guard var fanout = fanouts[job], !fanout.isDone, fanout.job.expires > now else {
        fanouts[job]?.isDone = true
        slice.isDone = true
        return slice
      }
      let visited = visit(fanout, max: Swift.max(1, max))
      for receiver in visited.matching {
        let app = fanout.job.onlyApp
        guard receiver.registration.state == .active, app == nil || app == receiver.registration.app else {
          continue
        }
        give(fanout, to: receiver, now, &spares, &slice)
      }
      fanout.cursor = visited.last ?? fanout.cursor
      fanout.isDone = visited.isLast
      fanout.counts.matched += slice.matched
      fanout.counts.droppedOffline += slice.droppedOffline
      fanouts[job] = fanout
      countShares(slice.ended)
      slice.isStored = fanout.job.isStored
      slice.isDone = fanout.isDone
      return slice
    }
  }

  private func visit(
    _ fanout: Fanout, max: Int
  ) -> (matching: [NumberedRegistration], last: RegistrationNumber?, isLast: Bool) {
    let candidates: [RegistrationNumber]
    let condition: TopicCondition?
    switch fanout.job.audience {
    case .topic(let name):
      condition = nil
      candidates = topics[TopicPlace(sender: fanout.job.sender, name: name)]?.members ?? []
    case .condition(let program):
      condition = program
      if program.matchesWithoutAny {
        candidates = numbersOfSender[fanout.job.sender] ?? []
      } else {
        let all = program.topics.compactMap {
          topics[TopicPlace(sender: fanout.job.sender, name: $0)]?.members
        }
        candidates = Set(all.joined()).sorted()
      }
    }
    let rest = Topic(members: candidates)
    let page = candidates[rest.index(after: fanout.cursor)...].prefix(max)
    let matching = page.filter { number in
      condition?.matches { topicsOf[number]?[$0] != nil } ?? true
    }
    return (matching.compactMap(numbered), page.last, page.count < max)
  }

  private mutating func give(
    _ fanout: Fanout, to receiver: NumberedRegistration, _ now: WallTime,
    _ spares: inout ArraySlice<MessageNumber>,
    _ slice: inout FanoutSlice
  ) {
    let (job, registration) = (fanout.job, receiver.registration)
    guard let device = devices[registration.device] else { return }
    slice.matched += 1
    let isHeld = device.node != nil
    guard job.isStored || isHeld else {
      slice.droppedOffline += 1
      return
    }
    let key = job.key.share(of: receiver.number)
    var row = StoredMessage(
      number: job.number, device: registration.device, sender: job.sender, app: registration.app, key: key,
      collapse: job.collapseKey.map { "\(registration.app)\u{1F}\($0)" }, expires: job.expires,
      highPriority: job.highPriority,
      body: SharedTail.head(
        job.audience, sender: job.sender, key: key, app: registration.app, token: registration.token))
    row.shared = fanout.shared
    guard job.isStored else {
      slice.rows.append(row)
      return
    }
    let loose = shelves[registration.device]?.looseCount ?? 0
    row.live = isHeld && loose < limits.storedPerConnectedDeviceMax
    // A number is used once on a device, also when the row that had it is gone: a settlement may come twice.
    if device.firstRegistration != receiver.number, let spare = spares.popFirst() { row.number = spare }
    let outcome = enqueue(row, now: now, ended: &slice.ended)
    let endedAtOnce = slice.ended.last?.key == row.key
    if outcome == .stored, isHeld, !endedAtOnce { slice.rows.append(row) }
  }

  func fanoutProgress(since: WallTime) -> [FanoutProgress] {
    fanouts.values.filter { !$0.isDone || $0.job.begun >= since }.map(\.progress)
      .sorted { $0.number < $1.number }
  }

  func fanoutProgress(of key: MessageKey) -> FanoutProgress? {
    fanouts.values.filter { $0.job.key == key }.max { $0.job.number < $1.job.number }?.progress
  }

  mutating func pruneFanouts(before: WallTime, max: Int, now: WallTime) -> Int {
    let done = fanouts.values.filter {
      $0.isDone && $0.job.begun < before
        && (!$0.job.isStored || $0.counts.waiting <= 0 || $0.job.expires <= now)
    }
    let gone = done.map(\.job.number).sorted().prefix(Swift.max(0, max))
    for job in gone { fanouts[job] = nil }
    return gone.count
  }
}
