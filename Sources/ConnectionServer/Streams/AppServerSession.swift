import Bytes
import JSONCore
import PushModel
import PushXMPP
import Seams
import Stores
import Telemetry
import XMLCore
import XMPPCore

/// An app server's bound stream: messages in, acks and nacks out; upstream messages out, their acks in.
final class AppServerSession: StreamSession, SenderStream {
  private unowned let connection: XMPPConnection
  private let context: ServerContext
  private let shard: Shard
  let project: Project
  private let sender: SenderState
  private let jid: JID
  /// Domain of receipts: that of the login.
  private let domain: String
  let reference: StreamRef
  private let stanzas: PushStanzas
  private var window = SendWindow()
  private var isDraining = false
  /// It is drained by itself and has had its time of grace: it closes when nothing is owed.
  private var closesWhenDone = false
  private let since: WallTime
  /// Faults of tests that befall the answers of these slots; nearly always empty.
  private var faults: [UInt32: ArmedFault] = [:]

  /// Upstream messages written here and not acked, by what their ack will say.
  private var upstream: [UpstreamName: MessageNumber] = [:]
  /// The last ones acked, so that a second ack is no error.
  private var lastAcked: [UpstreamName] = []

  struct UpstreamName: Hashable {
    var from: String
    var messageID: String
  }

  /// Nil when the sender has its maximum of streams.
  init?(_ connection: XMPPConnection, project: Project, jid: JID, domain: String) {
    guard let sender = connection.context.accounts.sender(project.sender) else { return nil }
    self.connection = connection
    stanzas = PushStanzas(framing: connection.framing)
    context = connection.context
    shard = connection.shard
    self.project = project
    self.sender = sender
    self.jid = jid
    since = connection.shard.wall
    self.domain = domain
    reference = StreamRef(loop: UInt8(shard.index), stream: connection.number)
    guard sender.open(reference, max: context.limits.streamsPerSenderMax) else { return nil }
    shard.senderStreams[reference.stream] = self
    shard.counters.senderStreams.add(1)
    shard.send(.senderOpened(project.sender, reference), to: shard.home(of: project.sender))
    if context.isDraining { announceDraining() }
  }

  // MARK: From the app server

  func received(_ text: UnsafeRawBufferPointer, _ head: MessageHead) {
    switch shard.scratch.downstream.read(text) {
    case .downstream(let draft):
      shard.counters.count(.received)
      take(draft, text)
    case .nack(let refusal, let reply):
      shard.counters.count(.received)
      shard.counters.countNack(refusal.nack)
      noteRefusal(reply, text, refusal.nack)
      connection.write { stanzas.appendNack(refusal, reply, of: text, to: &$0) }
    case .ack(let draft): acked(draft, text, head)
    case .stanzaError(let text): connection.refuse(head, .badRequest(text.trimmed))
    }
  }

  private func take(_ draft: DownstreamDraft, _ text: UnsafeRawBufferPointer) {
    if isDraining {
      return refuse(draft.reply, text, .draining, "This connection is draining; open another one")
    }
    let pendingMax = max(context.limits.pendingPerStreamMax, connection.stream.window ?? 0)
    guard window.count < pendingMax + context.limits.heldPerStreamMax else {
      return refuse(
        draft.reply, text, .unavailable,
        "More than \(pendingMax) messages of this connection are not acked yet")
    }
    if let wait = sender.rates.messages?.take(now: shard.now) {
      return refuse(
        draft.reply, text, .unavailable,
        "The project's messages of this minute are used up".retry(after: wait))
    }
    let slot = window.open(draft.reply, in: text, now: shard.now)
    if shard.faults.isArmed, !goesOn(draft, text, slot) { return }
    guard case .token(let place) = draft.target else {
      return shard.sendToTarget(draft, text, sender: sender, origin: Origin(stream: reference, slot: slot))
    }
    let key = place.lent(in: text) { context.keys.token($0) }
    if let meaning = shard.tokens.find(key) {
      route(draft, text, slot, meaning)
    } else {
      shard.lookUp(
        place.string(in: text), key, WaitingSend(stream: reference, slot: slot, text: Array(text)))
    }
  }

  func resolved(_ slot: UInt32, _ text: [UInt8], _ meaning: TokenMeaning?) {
    guard let meaning else {
      return answered(slot, .nack(.serviceUnavailable, "The store cannot be read; retry after a second"))
    }
    text.withUnsafeBytes { text in
      guard case .downstream(let draft) = shard.scratch.downstream.read(text) else { return }
      route(draft, text, slot, meaning)
    }
  }

  private func refuse(
    _ reply: ReplyIDs, _ text: UnsafeRawBufferPointer, _ reason: Refusal.Reason, _ description: String
  ) {
    let refusal = Refusal(reason, description)
    shard.counters.countNack(refusal.nack)
    noteRefusal(reply, text, refusal.nack)
    connection.write { stanzas.appendNack(refusal, reply, of: text, to: &$0) }
  }

  /// For the console.
  private func noteRefusal(_ reply: ReplyIDs, _ text: UnsafeRawBufferPointer, _ code: NackCode) {
    shard.noteRefusal(
      project.sender, reply.messageID.string(in: text), to: reply.from?.string(in: text) ?? "", code)
  }

  private func route(
    _ draft: DownstreamDraft, _ text: UnsafeRawBufferPointer, _ slot: UInt32, _ meaning: TokenMeaning
  ) {
    guard case .active(let addressee) = meaning else {
      return nack(slot, .deviceUnregistered, "The registration token is not registered")
    }
    let registration = addressee.registration
    guard registration.sender == project.sender else {
      return nack(slot, .senderIDMismatch, "The registration token belongs to another sender")
    }
    if let package = draft.restrictedPackageName, package.string(in: text) != registration.app {
      return nack(slot, .invalidJSON, "InvalidPackageName: the registration's package differs")
    }
    if let canonical = addressee.canonical { window.setCanonical(slot, canonical) }
    let key = draft.reply.messageID.lent(in: text) { context.keys.downstream(project.sender, $0) }
    if draft.has(.dryRun) {
      shard.counters.count(.dryRun)
      return answered(slot, .ack)
    }
    let home = shard.home(of: registration.device)
    let origin = Origin(stream: reference, slot: slot)
    if draft.badgeStep > 0, registration.user != nil {
      return shard.sendCountingBadge(
        draft, text, to: registration, sender: sender, key: key, origin: origin,
        receipt: receipt(draft, text, registration))
    }
    if let taker = sender.firstTaker(of: key, shard: home, now: shard.wall) {
      shard.counters.repeats.add()
      return shard.send(.repeated(key, origin), to: taker)
    }
    shard.nameMessage(key, draft.reply.messageID.string(in: text), to: registration.token)
    let record = shard.record(
      draft, text, registration, key, origin, sender: project.sender,
      receipt: receipt(draft, text, registration))
    shard.send(.downstream(record), to: home)
  }

  /// The JSON of the receipt that the message asks for; empty when it asks for none.
  private func receipt(
    _ draft: DownstreamDraft, _ text: UnsafeRawBufferPointer, _ registration: Registration
  ) -> [UInt8] {
    guard draft.has(.receiptRequested) else { return [] }
    var writer = ByteWriter()
    AppServerMessageWriter.appendReceipt(
      messageID: draft.reply.messageID.raw(in: text), token: registration.token,
      category: registration.app, sentTime: shard.wall, domain: domain, to: &writer)
    return writer.take()
  }

  private func nack(_ slot: UInt32, _ code: NackCode, _ description: String) {
    shard.counters.countNack(code)
    answered(slot, .nack(code, description))
  }

  // MARK: Faults that tests asked for

  /// Looks whether a fault befalls the message; false when it is not taken.
  private func goesOn(_ draft: DownstreamDraft, _ text: UnsafeRawBufferPointer, _ slot: UInt32) -> Bool {
    let target = draft.reply.from?.string(in: text)
    guard let fault = shard.faults.next(sender: project.sender, token: target) else { return true }
    faults[slot] = fault
    switch fault.kind {
    case .nack(let code):
      nack(slot, code, "A fault that a test asked for".retry(fault.retryAfter))
      return false
    case .halfOpen:
      connection.mute()
      return false
    case .drain:
      drain(within: context.configuration.drainDeadline)
      return true
    case .dropAck, .unavailable, .cut, .delay: return true
    }
  }

  /// The answer of a message that a fault befell.
  private func answered(_ slot: UInt32, _ answer: Answer, _ fault: ArmedFault) {
    guard fault.delayMs == 0 else {
      var rest = fault
      rest.delayMs = 0
      let number = reference.stream
      return shard.after(.milliseconds(fault.delayMs)) {
        ($0.senderStreams[number] as? AppServerSession)?.answered(slot, answer, rest)
      }
    }
    switch fault.kind {
    case .dropAck:
      _ = window.close(slot)
      closeWhenOwingNothing()
    case .cut: connection.cut()
    case .unavailable:
      tell(slot, .nack(.serviceUnavailable, "A fault that a test asked for".retry(fault.retryAfter)))
    case .nack, .drain, .halfOpen, .delay: tell(slot, answer)
    }
  }

  // MARK: To the app server

  func answered(_ slot: UInt32, _ answer: Answer) {
    if !faults.isEmpty, let fault = faults.removeValue(forKey: slot) { return answered(slot, answer, fault) }
    tell(slot, answer)
  }

  private func tell(_ slot: UInt32, _ answer: Answer) {
    guard let entry = window.close(slot) else { return }
    shard.counters.acceptNs.record(from: entry.received, to: shard.now)
    entry.reply.withUnsafeBytes { reply in
      let from = UnsafeRawBufferPointer(rebasing: reply[..<entry.targetCount])
      let id = UnsafeRawBufferPointer(rebasing: reply[entry.targetCount...])
      connection.write { output in
        switch answer {
        case .ack:
          stanzas.appendAck(from: from, messageID: id, registrationID: entry.canonical, to: &output)
        case .ackCounted(let success, let failed):
          stanzas.appendGroupAck(from: from, messageID: id, success: success, failed: failed, to: &output)
        case .nack(let code, let description, retryAfter: _):
          shard.noteRefusal(
            project.sender, String(decoding: id, as: UTF8.self), to: String(decoding: from, as: UTF8.self),
            code)
          stanzas.appendNack(
            from: from, messageID: id, code: code, description: description,
            registrationID: entry.canonical, to: &output)
        }
      }
    }
    closeWhenOwingNothing()
  }

  func write(_ record: Upstream) {
    let name = UpstreamName(from: record.row.from, messageID: record.row.messageID)
    upstream[name] = record.row.number
    connection.write { output in
      record.row.body.withUnsafeBytes {
        stanzas.appendToAppServer($0, sender: project.sender, to: &output)
      }
    }
  }

  private func acked(_ draft: AckDraft, _ text: UnsafeRawBufferPointer, _ head: MessageHead) {
    let name = UpstreamName(from: draft.to.string(in: text), messageID: draft.messageID.string(in: text))
    guard let number = upstream.removeValue(forKey: name) else {
      // The protocol lets an ack come twice; one for what never came here is an error.
      if !lastAcked.contains(name) {
        connection.refuse(head, .notAcceptable("No message \(name.messageID.prefix(64)) is pending here"))
      }
      return
    }
    lastAcked.append(name)
    if lastAcked.count > context.limits.pendingPerStreamMax { lastAcked.removeFirst() }
    shard.send(.upstreamAcked(project.sender, number, reference), to: shard.home(of: project.sender))
    closeWhenOwingNothing()
  }

  // MARK: Draining and the end

  func announceDraining() {
    guard !isDraining else { return }
    isDraining = true
    connection.write { stanzas.appendDraining(to: &$0) }
    shard.send(.senderDrains(project.sender, reference), to: shard.home(of: project.sender))
  }

  /// Drains this stream alone: announced now, closed when nothing is owed either way, or at the deadline.
  ///
  /// It stays open for a moment at least, so that what was sent before the announcement was read is answered.
  func drain(within deadline: Duration) {
    announceDraining()
    let number = reference.stream
    shard.after(min(Drain.grace, deadline)) {
      guard let session = $0.senderStreams[number] as? AppServerSession else { return }
      session.closesWhenDone = true
      session.closeWhenOwingNothing()
    }
    shard.after(deadline) { ($0.senderStreams[number] as? AppServerSession)?.connection.closeSoon() }
  }

  /// The peer has closed its side, and ours follows when all its messages are answered; or the stream was drained.
  private func closeWhenOwingNothing() {
    if window.count == 0, connection.isPeerClosing || (closesWhenDone && upstream.isEmpty) {
      connection.closeSoon()
    }
  }

  var inspection: StreamInspection {
    StreamInspection(
      reference: reference, kind: .appServer(project.sender, jid.description), peer: connection.peer,
      since: since, pending: window.count, upstreamPending: upstream.count, isDraining: isDraining)
  }

  /// What is owed either way: answers to messages, and the app server's acks.
  var pendingCount: Int { window.count + upstream.count }

  func peerCloses() -> Bool { window.count == 0 }

  func ended() {
    shard.senderStreams[reference.stream] = nil
    shard.counters.senderStreams.add(-1)
    sender.close(reference)
    shard.send(.senderClosed(project.sender, reference), to: shard.home(of: project.sender))
  }
}
