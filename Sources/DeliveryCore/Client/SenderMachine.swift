package import Seams

/// One logical sender connection: some streams that share its messages, and older ones draining.
///
/// Each place for a stream is a lane. A message goes to the open lane with the fewest pending ones; when a stream
/// is lost, what it had not answered goes to the others at once. While no stream is open, one lane alone tries,
/// so that a pool asks a server that is away no more often than a single stream would; the others follow when it
/// is in. With one lane this is a line of streams, as devices have.
///
/// Bytes, sockets and clocks are elsewhere: events come in with the time, actions go out, and
/// ``nextDeadline`` says when ``tick(now:_:)`` is due. The driver keeps the stanza of every slot until its
/// `finish` and writes it as often as it is told to.
///
/// What holds at any time: at most a window of messages is pending on one stream; every submitted message
/// gets exactly one `finish`; a message is pending on at most one stream; it is written under the same id
/// every time, so that a server that took it before recognises it; of messages with the same order one at a time
/// is between its submission and its end, the rest wait in turn.
/// - Source: FCM XMPP protocol, flow control, connection draining and back-off rules.
package struct SenderMachine: Sendable {
  private enum Life: Equatable, Sendable {
    /// Not started. Can go to open when started, closed when closed.
    case idle
    case open
    /// Takes no more messages, ends when all have ended. Can go to closed.
    case closing(deadline: Moment)
    case closed
  }

  /// A place for a stream.
  private struct Lane: Equatable, Sendable {
    enum State: Equatable, Sendable {
      case none
      /// Waits for another lane to get through.
      case parked
      /// Opens the next stream at that time.
      case resting(until: Moment)
      case opening(StreamNumber)
      case open(StreamNumber, since: Moment)
    }

    var state = State.none
    /// Pending on the open stream.
    var pending = 0
    var window = 0
    /// Whether the peer answered anything on the open stream.
    var progressed = false
    var backoff: Backoff
  }

  private struct Draining: Equatable, Sendable {
    var stream: StreamNumber
    var deadline: Moment
    var ended = false
  }

  package let settings: Settings
  private var table: PendingTable
  private var life = Life.idle
  private var lanes: [Lane]
  /// Where the search for the lane with the most room begins, so that equal ones take turns.
  private var turn = 0
  private var draining: [Draining] = []
  /// Streams that were told to end and have not reported it.
  private var ending: [StreamNumber] = []
  private var lastStream: UInt32 = 0
  private var chance: SeededChance
  /// Acks and nacks for messages that were not pending: doubles, or after a deadline.
  ///
  /// Harmless.
  package private(set) var strayAnswers = 0

  package init(_ settings: Settings = Settings(), seed: UInt64) {
    self.settings = settings
    table = PendingTable(messagesMax: settings.messagesMax)
    lanes = Array(repeating: Lane(backoff: Backoff(settings.backoff)), count: settings.streams)
    chance = SeededChance(seed: seed)
  }

  // MARK: What is so

  /// Messages that have not ended.
  package var messageCount: Int { table.count }
  /// Messages that may still be submitted before ``Submission/full``.
  package var room: Int { life == .open ? max(0, settings.messagesMax - table.count) : 0 }
  /// Written and not answered, over all streams.
  package var pendingCount: Int { table.pending.count }
  /// Written on this stream and not answered.
  package func pendingCount(on stream: StreamNumber) -> Int { table.pendingSlots(of: stream).count }
  package var isClosed: Bool { life == .closed }
  /// A stream that new messages go to, while one is open.
  package var currentStream: StreamNumber? {
    for lane in lanes { if case .open(let stream, _) = lane.state { return stream } }
    return nil
  }
  /// Streams that new messages go to.
  package var openStreamCount: Int {
    lanes.count { if case .open = $0.state { true } else { false } }
  }

  package func id(of slot: SendSlot) -> String? {
    table.resolve(slot).map { table.entries[Int($0)].id }
  }

  // MARK: The caller's side

  /// Begins to connect.
  package mutating func start(now: Moment, _ out: inout [Action]) {
    guard life == .idle else { return }
    life = .open
    openNext(0, &out)
    for index in lanes.indices.dropFirst() { lanes[index].state = .parked }
  }

  /// Takes charge of a message: written now if a window has room, else held.
  ///
  /// - Parameter order: A hash of what messages are to stay in order for, of their target for instance.
  package mutating func submit(
    id: String, order: UInt64? = nil, now: Moment, _ out: inout [Action]
  ) -> Submission {
    guard life == .open || life == .idle else { return .closed }
    guard table.count < settings.messagesMax else { return .full }
    guard let slot = table.insert(id: id, order: order, now: now) else { return .duplicateID }
    let handle = table.handle(slot)
    flush(now: now, &out)
    return .accepted(handle)
  }

  /// Takes a message back.
  ///
  /// Its place in the window is free at once; the server may have it already.
  package mutating func cancel(_ handle: SendSlot, now: Moment, _ out: inout [Action]) {
    guard let slot = table.resolve(handle) else { return }
    finish(slot, .cancelled, now: now, &out)
    settle(now: now, &out)
  }

  /// Takes no more messages; ends the streams when those here have ended, or at the deadline.
  package mutating func close(now: Moment, deadline: Moment, _ out: inout [Action]) {
    switch life {
    case .idle, .open: life = .closing(deadline: deadline)
    case .closing(let earlier): life = .closing(deadline: min(earlier, deadline))
    case .closed: return
    }
    tick(now: now, &out)
  }

  // MARK: The peer's side

  /// The stream is bound: messages may be written.
  ///
  /// - Parameter window: What the server granted, when more than the protocol's window was asked for; nil when it
  ///   does not know of that.
  package mutating func opened(
    _ stream: StreamNumber, window: Int? = nil, now: Moment, _ out: inout [Action]
  ) {
    guard let index = lanes.firstIndex(where: { $0.state == .opening(stream) }) else { return }
    lanes[index].state = .open(stream, since: now)
    lanes[index].pending = 0
    lanes[index].progressed = false
    lanes[index].window = min(
      settings.windowMax, max(Settings.windowOfProtocol, window ?? Settings.windowOfProtocol))
    out.append(.changed(.connected(stream)))
    unpark(now: now, &out)
    flush(now: now, &out)
  }

  /// The server took charge of a message.
  ///
  /// Unknown and repeated acks change nothing.
  ///
  /// An ack that comes after its deadline still counts while the message has not ended.
  package mutating func acked(
    _ id: String, registrationID: String? = nil, on stream: StreamNumber, now: Moment,
    _ out: inout [Action]
  ) {
    noteProgress(on: stream)
    guard let slot = table.slot(of: id), table.entries[Int(slot)].attempts > 0 else {
      strayAnswers += 1
      return
    }
    finish(slot, .acked(registrationID: registrationID), now: now, &out)
    settle(now: now, &out)
  }

  /// The server refused a message.
  package mutating func nacked(
    _ id: String, _ nack: Nack, on stream: StreamNumber, now: Moment, _ out: inout [Action]
  ) {
    let retryClass = RetryRules.retryClass(code: nack.code)
    if retryClass != .elsewhere { noteProgress(on: stream) }
    if let slot = pendingSlot(id, on: stream) {
      fail(slot, retryClass, nack, now: now, &out)
    } else {
      strayAnswers += 1
    }
    if retryClass == .elsewhere, lane(of: stream) != nil {
      drainingAnnounced(stream, now: now, &out)
    }
    settle(now: now, &out)
  }

  /// The server answered a message with a stanza error: fatal for that message only.
  package mutating func stanzaRefused(
    _ id: String, _ text: String, on stream: StreamNumber, now: Moment, _ out: inout [Action]
  ) {
    noteProgress(on: stream)
    guard let slot = pendingSlot(id, on: stream) else {
      strayAnswers += 1
      return
    }
    finish(slot, .stanzaRefused(text), now: now, &out)
    settle(now: now, &out)
  }

  /// The server is about to close this stream: another one is opened for new messages, this one is read on.
  package mutating func drainingAnnounced(
    _ stream: StreamNumber, now: Moment, _ out: inout [Action]
  ) {
    guard let index = lane(of: stream), case .open(_, let since) = lanes[index].state else { return }
    draining.append(Draining(stream: stream, deadline: now + settings.drainTimeout))
    lanes[index].pending = 0
    lanes[index].state = .none
    if openStreamCount == 0 { out.append(.changed(.draining(stream))) }
    if draining.count(where: { !$0.ended }) > settings.drainingMax * lanes.count,
      let oldest = draining.firstIndex(where: { !$0.ended })
    {
      draining[oldest].ended = true
      out.append(.endStream(draining[oldest].stream))
    }
    let wait = lanes[index].backoff.dropped(
      lived: now - since, progressed: lanes[index].progressed, using: &chance)
    rest(index, wait, now: now, &out)
  }

  /// A stream is gone, in whatever way; also one that never opened.
  package mutating func closed(
    _ stream: StreamNumber, _ end: StreamClosure, now: Moment, _ out: inout [Action]
  ) {
    ending.removeAll { $0 == stream }
    if let place = draining.firstIndex(where: { $0.stream == stream }) {
      draining.remove(at: place)
      releasePending(of: stream, now: now, &out)
      if end.kind == .replaced { giveUp(end, now: now, &out) }
    } else if let index = lanes.firstIndex(where: { $0.state == .opening(stream) }) {
      let wait = lanes[index].backoff.failed(using: &chance)
      lost(index, end, wait: wait, now: now, &out)
    } else if let index = lane(of: stream), case .open(_, let since) = lanes[index].state {
      lanes[index].pending = 0
      let wait = lanes[index].backoff.dropped(
        lived: now - since, progressed: lanes[index].progressed, using: &chance)
      // Released before the next stream is opened, and written on others once they have room.
      lanes[index].state = .none
      releasePending(of: stream, now: now, &out)
      lost(index, end, wait: wait, now: now, &out)
    }
    settle(now: now, &out)
  }

  // MARK: Time

  /// When ``tick(now:_:)`` is to be called; nil when nothing waits.
  package func nextDeadline() -> Moment? {
    guard life != .closed else { return nil }
    var next: Moment?
    func consider(_ moment: Moment?) {
      guard let moment else { return }
      if let known = next { next = min(known, moment) } else { next = moment }
    }
    consider(table.ackDeadline)
    consider(table.oldestSubmitted.map { $0 + settings.retry.totalTimeout })
    consider(table.nextTry)
    for lane in lanes { if case .resting(let until) = lane.state { consider(until) } }
    if case .closing(let deadline) = life { consider(deadline) }
    for stream in draining where !stream.ended { consider(stream.deadline) }
    return next
  }

  /// Does what is due.
  ///
  /// Early calls do nothing.
  package mutating func tick(now: Moment, _ out: inout [Action]) {
    guard life != .closed else { return }
    while let submitted = table.oldestSubmitted, submitted + settings.retry.totalTimeout <= now {
      let slot = table.byAge.first
      finish(slot, .deadline(table.entries[Int(slot)].lastNack), now: now, &out)
    }
    while let due = table.ackDeadline, due <= now {
      overdue(table.pending.first, now: now, &out)
    }
    while table.wakeWaiting(now: now) {}
    for index in draining.indices where !draining[index].ended && draining[index].deadline <= now {
      draining[index].ended = true
      out.append(.endStream(draining[index].stream))
    }
    if case .closing(let deadline) = life, deadline <= now {
      finishAll(.closed, now: now, &out)
    }
    for index in lanes.indices {
      if case .resting(let until) = lanes[index].state, until <= now { openNext(index, &out) }
    }
    settle(now: now, &out)
  }

  // MARK: Helpers

  /// The lane on which this stream is open.
  private func lane(of stream: StreamNumber) -> Int? {
    lanes.firstIndex { if case .open(stream, _) = $0.state { true } else { false } }
  }

  private mutating func noteProgress(on stream: StreamNumber) {
    if let index = lane(of: stream) { lanes[index].progressed = true }
  }

  private func pendingSlot(_ id: String, on stream: StreamNumber) -> Int32? {
    guard let slot = table.slot(of: id), table.entries[Int(slot)].phase == .pending(stream) else {
      return nil
    }
    return slot
  }

  /// Lowers the count of its stream when a pending message stops being one.
  private mutating func leaveWindow(_ slot: Int32) {
    if case .pending(let stream) = table.entries[Int(slot)].phase, let index = lane(of: stream) {
      lanes[index].pending -= 1
    }
  }

  private mutating func finish(
    _ slot: Int32, _ end: SendOutcome.End, now: Moment, _ out: inout [Action]
  ) {
    leaveWindow(slot)
    let entry = table.entries[Int(slot)]
    let outcome = SendOutcome(
      end: end, attempts: Int(entry.attempts), latency: now - entry.submitted)
    out.append(.finish(table.handle(slot), outcome))
    table.remove(slot)
  }

  private mutating func finishAll(_ end: SendOutcome.End, now: Moment, _ out: inout [Action]) {
    while table.byAge.first >= 0 { finish(table.byAge.first, end, now: now, &out) }
  }

  private mutating func fail(
    _ slot: Int32, _ retryClass: RetryClass, _ nack: Nack, now: Moment, _ out: inout [Action]
  ) {
    if retryClass == .elsewhere {
      leaveWindow(slot)
      table.makeReady(slot)
      return
    }
    let failures = table.noteFailure(slot, nack)
    let deadline = table.entries[Int(slot)].submitted + settings.retry.totalTimeout
    guard let wait = settings.retry.wait(after: retryClass, failures: failures, using: &chance),
      now + wait < deadline
    else {
      finish(slot, .nacked(nack), now: now, &out)
      return
    }
    leaveWindow(slot)
    table.makeWaiting(slot, until: now + wait)
  }

  private mutating func overdue(_ slot: Int32, now: Moment, _ out: inout [Action]) {
    let failures = table.noteFailure(slot, nil)
    guard settings.retry.repeatsOverdue, failures < settings.retry.triesMax else {
      finish(slot, .ackOverdue, now: now, &out)
      return
    }
    leaveWindow(slot)
    table.makeReady(slot)
  }

  private mutating func releasePending(
    of stream: StreamNumber, now: Moment, _ out: inout [Action]
  ) {
    if settings.retry.repeatsAfterClose {
      _ = table.releasePending(of: stream)
    } else {
      for slot in table.pendingSlots(of: stream) { finish(slot, .streamLost, now: now, &out) }
    }
  }

  // MARK: Lanes

  private mutating func openNext(_ index: Int, _ out: inout [Action]) {
    lastStream += 1
    let stream = StreamNumber(lastStream)
    lanes[index].state = .opening(stream)
    if openStreamCount == 0 { out.append(.changed(.connecting(stream))) }
    out.append(.openStream(stream))
  }

  /// Opens the lane's next stream after a wait, unless another lane is trying for all of them.
  private mutating func rest(_ index: Int, _ wait: Duration, now: Moment, _ out: inout [Action]) {
    if openStreamCount == 0, isTried(besides: index) {
      lanes[index].state = .parked
    } else if wait <= .zero {
      openNext(index, &out)
    } else {
      lanes[index].state = .resting(until: now + wait)
    }
  }

  private func isTried(besides index: Int) -> Bool {
    lanes.indices.contains { other in
      guard other != index else { return false }
      switch lanes[other].state {
      case .opening, .resting: return true
      case .none, .parked, .open: return false
      }
    }
  }

  /// One lane is in: the others follow, spread over a moment.
  private mutating func unpark(now: Moment, _ out: inout [Action]) {
    let parked = lanes.indices.filter { lanes[$0].state == .parked }
    let spread = min(settings.backoff.waitFirst.ns, Int64(parked.count) * 10_000_000)
    for index in parked {
      lanes[index].state = .resting(until: now + .nanoseconds(Int64.random(in: 0...spread, using: &chance)))
    }
  }

  private mutating func lost(
    _ index: Int, _ end: StreamClosure, wait: Duration, now: Moment, _ out: inout [Action]
  ) {
    lanes[index].state = .none
    if end.kind == .replaced || (end.kind == .loginRefused && settings.stopsWhenRefused) {
      return giveUp(end, now: now, &out)
    }
    if !settings.reconnects {
      // Lanes that never were in go with the last that was.
      if openStreamCount == 0, !isTried(besides: index) { giveUp(end, now: now, &out) }
      return
    }
    if case .closing = life, table.isEmpty { return }
    let wait = lanes[index].backoff.heeding(end.retryAfter, wait, using: &chance)
    if openStreamCount == 0, !isTried(besides: index) {
      out.append(.changed(.disconnected(end, retryAfter: wait)))
    }
    rest(index, wait, now: now, &out)
  }

  private mutating func giveUp(_ end: StreamClosure, now: Moment, _ out: inout [Action]) {
    guard life != .closed else { return }
    out.append(.changed(.disconnected(end, retryAfter: nil)))
    finishAll(.closed, now: now, &out)
    life = .closing(deadline: now)
  }

  /// Writes what the window allows, and ends the sender when it is closing and nothing is left.
  private mutating func settle(now: Moment, _ out: inout [Action]) {
    flush(now: now, &out)
    guard case .closing = life, table.isEmpty else { return }
    for index in lanes.indices {
      switch lanes[index].state {
      case .open(let stream, _), .opening(let stream):
        ending.append(stream)
        out.append(.endStream(stream))
      case .none, .parked, .resting: break
      }
      lanes[index].state = .none
    }
    for index in draining.indices {
      ending.append(draining[index].stream)
      if !draining[index].ended { out.append(.endStream(draining[index].stream)) }
    }
    draining.removeAll()
    guard ending.isEmpty else { return }
    life = .closed
    out.append(.changed(.closed))
  }

  private mutating func flush(now: Moment, _ out: inout [Action]) {
    while table.ready.first >= 0, let index = roomiestLane(), case .open(let stream, _) = lanes[index].state {
      let slot = table.ready.first
      table.written(slot, on: stream, ackDeadline: now + settings.ackTimeout)
      lanes[index].pending += 1
      out.append(.write(table.handle(slot), stream))
    }
  }

  /// The open lane with the fewest pending messages, if it has room for one more.
  private mutating func roomiestLane() -> Int? {
    var best: Int?
    for step in lanes.indices {
      let index = (turn + step) % lanes.count
      guard case .open = lanes[index].state, lanes[index].pending < lanes[index].window else { continue }
      if let known = best, lanes[known].pending <= lanes[index].pending { continue }
      best = index
    }
    if let best { turn = (best + 1) % lanes.count }
    return best
  }
}
