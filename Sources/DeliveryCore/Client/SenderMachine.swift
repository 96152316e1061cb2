package import Seams

/// One logical sender connection: a line of streams, one current, older ones draining.
///
/// Bytes, sockets and clocks are elsewhere: events come in with the time, actions go out, and
/// ``nextDeadline`` says when ``tick(now:_:)`` is due. The driver keeps the stanza of every slot until its
/// `finish` and writes it as often as it is told to.
///
/// What holds at any time: at most `windowMax` messages are pending on one stream; every submitted message
/// gets exactly one `finish`; a message is pending on at most one stream; it is written under the same id
/// every time, so that a server that took it before recognises it.
/// - Source: FCM XMPP protocol, flow control, connection draining and back-off rules.
package struct SenderMachine: Sendable {
  package struct Settings: Sendable, Equatable {
    /// Messages written on one stream and not answered; 100 is what the protocol allows.
    package var windowMax: Int
    /// Messages that have not ended, those held included; ``submit(id:now:_:)`` refuses more.
    package var messagesMax: Int
    /// From writing a message to its ack or nack.
    package var ackTimeout: Duration
    /// How long a draining stream is kept for its outstanding acks; the server is expected to close first.
    package var drainTimeout: Duration
    /// Draining streams kept at a time; the oldest is ended when there are more.
    package var drainingMax: Int
    package var retry: RetryRules
    package var backoff: Backoff.Settings
    /// Whether a lost or failed stream is opened again; if not, the first loss closes the sender.
    package var reconnects: Bool
    /// Whether refused credentials close the sender instead of being tried again later.
    package var stopsWhenRefused: Bool

    package init(
      windowMax: Int = 100, messagesMax: Int = 1_000, ackTimeout: Duration = .seconds(60),
      drainTimeout: Duration = .seconds(120), drainingMax: Int = 4, retry: RetryRules = RetryRules(),
      backoff: Backoff.Settings = Backoff.Settings(), reconnects: Bool = true,
      stopsWhenRefused: Bool = false
    ) {
      self.windowMax = max(1, windowMax)
      self.messagesMax = max(1, messagesMax)
      self.ackTimeout = ackTimeout
      self.drainTimeout = drainTimeout
      self.drainingMax = max(1, drainingMax)
      self.retry = retry
      self.backoff = backoff
      self.reconnects = reconnects
      self.stopsWhenRefused = stopsWhenRefused
    }
  }

  /// What the driver is to do, in order.
  package enum Action: Equatable, Sendable {
    /// Connect, log in and bind; report ``opened(_:now:_:)`` or ``closed(_:_:now:_:)``.
    case openStream(StreamNumber)
    /// Write the slot's stanza.
    case write(SendSlot, StreamNumber)
    /// Tell the caller; the slot may be used again by the next submission.
    case finish(SendSlot, SendOutcome)
    /// End the stream in order, then report ``closed(_:_:now:_:)``.
    case endStream(StreamNumber)
    /// Tell whoever watches.
    case changed(Status)
  }

  /// What an observer of the sender sees.
  package enum Status: Equatable, Sendable {
    case connecting(StreamNumber)
    case connected(StreamNumber)
    /// The server announced the end of this stream; another one is being opened.
    case draining(StreamNumber)
    /// The current stream is gone; nil when no other will be opened.
    case disconnected(StreamClosure, retryAfter: Duration?)
    /// Final.
    case closed
  }

  package enum Submission: Equatable, Sendable {
    case accepted(SendSlot)
    /// ``Settings/messagesMax`` have not ended; try again after a `finish`.
    case full
    /// A message of this id has not ended.
    case duplicateID
    /// ``close(now:deadline:_:)`` was called, or the sender gave up.
    case closed
  }

  private enum Life: Equatable, Sendable {
    /// Not started. Can go to open when started, closed when closed.
    case idle
    case open
    /// Takes no more messages, ends when all have ended. Can go to closed.
    case closing(deadline: Moment)
    case closed
  }

  private enum Current: Equatable, Sendable {
    case none
    /// Opens the next stream at that time.
    case resting(until: Moment)
    case opening(StreamNumber)
    case open(StreamNumber, since: Moment)
  }

  private struct Draining: Equatable, Sendable {
    var stream: StreamNumber
    var deadline: Moment
    var ended = false
  }

  package let settings: Settings
  private var table: PendingTable
  private var life = Life.idle
  private var current = Current.none
  private var draining: [Draining] = []
  /// Streams that were told to end and have not reported it.
  private var ending: [StreamNumber] = []
  /// Pending on the current stream.
  private var pendingCurrent = 0
  /// Whether the peer answered anything on the current stream.
  private var progressed = false
  private var lastStream: UInt32 = 0
  private var backoff: Backoff
  private var chance: SeededChance
  /// Acks and nacks for messages that were not pending: doubles, or after a deadline.
  ///
  /// Harmless.
  package private(set) var strayAnswers = 0

  package init(_ settings: Settings = Settings(), seed: UInt64) {
    self.settings = settings
    table = PendingTable(messagesMax: settings.messagesMax)
    backoff = Backoff(settings.backoff)
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
  /// The stream new messages go to, while it is open.
  package var currentStream: StreamNumber? {
    if case .open(let stream, _) = current { return stream }
    return nil
  }

  package func id(of slot: SendSlot) -> String? {
    table.resolve(slot).map { table.entries[Int($0)].id }
  }

  // MARK: The caller's side

  /// Begins to connect.
  package mutating func start(now: Moment, _ out: inout [Action]) {
    guard life == .idle else { return }
    life = .open
    openNext(&out)
  }

  /// Takes charge of a message: written now if the window has room, else held.
  package mutating func submit(id: String, now: Moment, _ out: inout [Action]) -> Submission {
    guard life == .open || life == .idle else { return .closed }
    guard table.count < settings.messagesMax else { return .full }
    guard let slot = table.insert(id: id, now: now) else { return .duplicateID }
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
  package mutating func opened(_ stream: StreamNumber, now: Moment, _ out: inout [Action]) {
    guard current == .opening(stream) else { return }
    current = .open(stream, since: now)
    pendingCurrent = 0
    progressed = false
    out.append(.changed(.connected(stream)))
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
    if retryClass == .elsewhere, currentStream == stream {
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
    guard case .open(stream, let since) = current else { return }
    draining.append(Draining(stream: stream, deadline: now + settings.drainTimeout))
    pendingCurrent = 0
    out.append(.changed(.draining(stream)))
    if draining.count(where: { !$0.ended }) > settings.drainingMax,
      let oldest = draining.firstIndex(where: { !$0.ended })
    {
      draining[oldest].ended = true
      out.append(.endStream(draining[oldest].stream))
    }
    let wait = backoff.dropped(lived: now - since, progressed: progressed, using: &chance)
    rest(wait, now: now, &out)
  }

  /// A stream is gone, in whatever way; also one that never opened.
  package mutating func closed(
    _ stream: StreamNumber, _ end: StreamClosure, now: Moment, _ out: inout [Action]
  ) {
    ending.removeAll { $0 == stream }
    if let index = draining.firstIndex(where: { $0.stream == stream }) {
      draining.remove(at: index)
      releasePending(of: stream, now: now, &out)
      if end.kind == .replaced { giveUp(end, now: now, &out) }
    } else if current == .opening(stream) {
      let wait = backoff.failed(using: &chance)
      lostCurrent(end, wait: wait, now: now, &out)
    } else if case .open(stream, let since) = current {
      pendingCurrent = 0
      let wait = backoff.dropped(lived: now - since, progressed: progressed, using: &chance)
      // Released before the next stream is opened, and written on it only once it is.
      current = .none
      releasePending(of: stream, now: now, &out)
      lostCurrent(end, wait: wait, now: now, &out)
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
    if case .resting(let until) = current { consider(until) }
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
    if case .resting(let until) = current, until <= now {
      openNext(&out)
    }
    settle(now: now, &out)
  }

  // MARK: Helpers

  private mutating func noteProgress(on stream: StreamNumber) {
    if currentStream == stream { progressed = true }
  }

  private func pendingSlot(_ id: String, on stream: StreamNumber) -> Int32? {
    guard let slot = table.slot(of: id), table.entries[Int(slot)].phase == .pending(stream) else {
      return nil
    }
    return slot
  }

  /// Lowers the count of the current stream when a pending message stops being one.
  private mutating func leaveWindow(_ slot: Int32) {
    if case .pending(let stream) = table.entries[Int(slot)].phase, currentStream == stream {
      pendingCurrent -= 1
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

  private mutating func openNext(_ out: inout [Action]) {
    lastStream += 1
    let stream = StreamNumber(lastStream)
    current = .opening(stream)
    out.append(.changed(.connecting(stream)))
    out.append(.openStream(stream))
  }

  /// Opens the next stream after a wait.
  private mutating func rest(_ wait: Duration, now: Moment, _ out: inout [Action]) {
    if wait <= .zero { openNext(&out) } else { current = .resting(until: now + wait) }
  }

  private mutating func lostCurrent(
    _ end: StreamClosure, wait: Duration, now: Moment, _ out: inout [Action]
  ) {
    current = .none
    let final =
      end.kind == .replaced || !settings.reconnects
      || (end.kind == .loginRefused && settings.stopsWhenRefused)
    if final {
      giveUp(end, now: now, &out)
    } else if case .closing = life, table.isEmpty {
      return
    } else {
      out.append(.changed(.disconnected(end, retryAfter: wait)))
      rest(wait, now: now, &out)
    }
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
    switch current {
    case .open(let stream, _), .opening(let stream):
      ending.append(stream)
      out.append(.endStream(stream))
    case .none, .resting: break
    }
    current = .none
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
    guard case .open(let stream, _) = current else { return }
    while pendingCurrent < settings.windowMax, table.ready.first >= 0 {
      let slot = table.ready.first
      table.written(slot, on: stream, ackDeadline: now + settings.ackTimeout)
      pendingCurrent += 1
      out.append(.write(table.handle(slot), stream))
    }
  }
}
