package import DeliveryCore
package import EventLoops
import Seams
package import XMLCore

/// A message as it is written: its id, and the whole stanza.
package struct EncodedMessage: Sendable {
  package var id: String
  package var stanza: [UInt8]
  /// Messages of the same order are sent one after the other.
  package var order: UInt64?

  package init(id: String, stanza: [UInt8], order: UInt64? = nil) {
    self.id = id
    self.stanza = stanza
    self.order = order
  }
}

/// A message that has ended, with the number its submitter gave it.
package struct FinishedMessage: Sendable, Equatable {
  package var tag: UInt64
  package var id: String
  package var outcome: SendOutcome

  package init(tag: UInt64, id: String, outcome: SendOutcome) {
    self.tag = tag
    self.id = id
    self.outcome = outcome
  }
}

/// Who hears from a ``ClientLine``, on its loop.
package protocol ClientLineDelegate: AnyObject {
  /// Messages that ended in this round; there is room for as many.
  func finished(_ messages: [FinishedMessage])
  /// A message stanza; read it and tell the line what it answers. The bytes are good until the call returns.
  func received(_ text: UnsafeRawBufferPointer, kind: MessageKind, on stream: StreamNumber)
  func changed(_ status: SenderMachine.Status)
}

/// Drives a ``SenderMachine``: keeps the stanzas of its messages, opens its streams, arms its one timer.
///
/// What app servers and devices have in common. It performs and decides nothing. Belongs to its loop.
package final class ClientLine: ClientConnectionOwner {
  private struct Held {
    var message: EncodedMessage
    var tag: UInt64
    var generation: UInt32
  }

  private struct Open {
    var stream: StreamNumber
    var connection: any ClientConnection
  }

  package let loop: any Loop
  /// Set before ``start()``; not kept alive.
  package weak var delegate: (any ClientLineDelegate)?

  private let makeConnection: (StreamNumber, ClientLine) -> any ClientConnection
  private var machine: SenderMachine
  /// No message brings a deadline earlier than this from when it is written or submitted.
  private let shortestTimeout: Duration
  private var held: [Held?] = []
  private var open: [Open] = []
  private var actions: [SenderMachine.Action] = []
  private var isPerforming = false
  private var finished: [FinishedMessage] = []
  private var changes: [SenderMachine.Status] = []
  private var isDeliveryDue = false
  private var timer: LoopTimer?

  /// - Parameters:
  ///   - seed: Of the waits' jitter.
  ///   - makeConnection: Makes the connection of a stream; it reports to the line under that number.
  package init(
    on loop: any Loop, settings: SenderMachine.Settings, seed: UInt64,
    makeConnection: @escaping (StreamNumber, ClientLine) -> any ClientConnection
  ) {
    self.loop = loop
    machine = SenderMachine(settings, seed: seed)
    shortestTimeout = min(settings.ackTimeout, settings.retry.totalTimeout)
    self.makeConnection = makeConnection
  }

  // MARK: State

  /// Messages that may be submitted before ``SenderMachine/Submission/full``.
  package var room: Int { machine.room }
  package var messageCount: Int { machine.messageCount }
  package var pendingCount: Int { machine.pendingCount }
  package var isClosed: Bool { machine.isClosed }
  package var currentStream: StreamNumber? { machine.currentStream }
  package var openStreamCount: Int { machine.openStreamCount }

  // MARK: From above

  package func start() {
    machine.start(now: loop.now, &actions)
    perform()
  }

  /// Takes charge of a message; its end comes by ``ClientLineDelegate/finished(_:)`` under `tag`.
  package func submit(_ message: EncodedMessage, tag: UInt64) -> SenderMachine.Submission {
    let answer = machine.submit(id: message.id, order: message.order, now: loop.now, &actions)
    if case .accepted(let slot) = answer {
      // proof: slots are numbered without gaps.
      while held.count <= Int(slot.index) { held.append(nil) }
      held[Int(slot.index)] = Held(message: message, tag: tag, generation: slot.generation)
      perform(isUsual: true)
    }
    return answer
  }

  /// Takes a message back; it ends as cancelled unless it has ended already.
  package func cancel(tag: UInt64) {
    guard let index = held.firstIndex(where: { $0?.tag == tag }), let message = held[index] else { return }
    let slot = SendSlot(index: Int32(index), generation: message.generation)
    machine.cancel(slot, now: loop.now, &actions)
    perform()
  }

  /// Takes no more messages, and closes when those here have ended or after `patience`.
  package func close(within patience: Duration) {
    machine.close(now: loop.now, deadline: loop.now + patience, &actions)
    perform()
  }

  /// Closes at once: every message ends as closed, the streams are cut.
  package func abort() {
    machine.close(now: loop.now, deadline: loop.now, &actions)
    perform()
    for connection in open { connection.connection.abort() }
    let gone = open.map(\.stream)
    open.removeAll()
    for stream in gone { machine.closed(stream, StreamClosure(.ended), now: loop.now, &actions) }
    perform()
  }

  /// Writes a stanza that is no message, an ack for instance, on a stream; dropped when that is gone.
  package func write(_ stanza: UnsafeRawBufferPointer, on stream: StreamNumber) {
    open.first { $0.stream == stream }?.connection.write(stanza)
  }

  // MARK: Answers, as the delegate read them

  package func acked(_ id: String, registrationID: String?, on stream: StreamNumber) {
    machine.acked(id, registrationID: registrationID, on: stream, now: loop.now, &actions)
    perform(isUsual: true)
  }

  package func nacked(_ id: String, _ nack: Nack, on stream: StreamNumber) {
    machine.nacked(id, nack, on: stream, now: loop.now, &actions)
    perform()
  }

  package func drainingAnnounced(on stream: StreamNumber) {
    machine.drainingAnnounced(stream, now: loop.now, &actions)
    perform()
  }

  // MARK: From the connections

  package func opened(_ stream: StreamNumber, window: Int?) {
    machine.opened(stream, window: window, now: loop.now, &actions)
    perform()
  }

  package func received(
    _ text: UnsafeRawBufferPointer, id: UnsafeRawBufferPointer?, kind: MessageKind, on stream: StreamNumber
  ) {
    delegate?.received(text, kind: kind, on: stream)
  }

  package func refused(_ id: String, _ text: String, on stream: StreamNumber) {
    machine.stanzaRefused(id, text, on: stream, now: loop.now, &actions)
    perform()
  }

  package func closed(_ stream: StreamNumber, _ end: StreamClosure) {
    open.removeAll { $0.stream == stream }
    machine.closed(stream, end, now: loop.now, &actions)
    perform()
  }

  // MARK: Actions

  /// - Parameter isUsual: The event was a submission or an ack: it brings no deadline but that of a message
  ///   written or held just now.
  private func perform(isUsual: Bool = false) {
    // What an action calls never calls back from within; if it did, the loop below takes its actions too.
    assert(!isPerforming)
    guard !isPerforming else { return }
    isPerforming = true
    var index = 0
    while index < actions.count {
      perform(actions[index])
      index += 1
    }
    actions.removeAll(keepingCapacity: true)
    isPerforming = false
    if isUsual, let timer, timer.isActive, timer.deadline <= loop.now + shortestTimeout { return }
    armTimer()
  }

  private func perform(_ action: SenderMachine.Action) {
    switch action {
    case .openStream(let stream):
      let connection = makeConnection(stream, self)
      open.append(Open(stream: stream, connection: connection))
      connection.connect()
    case .write(let slot, let stream):
      guard let connection = open.last(where: { $0.stream == stream })?.connection else { return }
      held[Int(slot.index)]?.message.stanza.withUnsafeBytes { connection.write($0) }
    case .finish(let slot, let outcome):
      guard let ended = held[Int(slot.index)].take() else { return }
      finished.append(FinishedMessage(tag: ended.tag, id: ended.message.id, outcome: outcome))
      deliverLater()
    case .endStream(let stream):
      open.first { $0.stream == stream }?.connection.end()
    case .changed(let status):
      changes.append(status)
      deliverLater()
    }
  }

  private func deliverLater() {
    guard !isDeliveryDue else { return }
    isDeliveryDue = true
    loop.later { [self] in
      isDeliveryDue = false
      deliver()
    }
  }

  /// Never from within ``perform()``: a delegate that submits may get a slot whose end is not performed yet.
  private func deliver() {
    let batch = finished
    let statuses = changes
    finished = []
    changes = []
    if !batch.isEmpty { delegate?.finished(batch) }
    for status in statuses { delegate?.changed(status) }
  }

  /// One timer, never later than the machine's deadline; one that fires too early is armed again.
  private func armTimer() {
    guard let deadline = machine.nextDeadline() else {
      timer?.cancel()
      timer = nil
      return
    }
    if let timer, timer.isActive, timer.deadline <= deadline { return }
    timer?.cancel()
    timer = loop.after(deadline - loop.now) { [weak self] in self?.timerFired() }
  }

  private func timerFired() {
    timer = nil
    machine.tick(now: loop.now, &actions)
    perform()
  }
}
