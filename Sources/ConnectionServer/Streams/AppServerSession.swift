import Telemetry
import Bytes
import JSONCore
import PushModel
import PushXMPP
import Seams
import Stores
import XMLCore
import XMPPCore

/// An app server's bound stream: messages in, acks and nacks out; upstream messages out, their acks in.
final class AppServerSession: StreamSession, SenderStream {
  private unowned let connection: XMPPConnection
  private let context: ServerContext
  private let shard: Shard
  private let project: Project
  private let sender: SenderState
  private let jid: JID
  /// Domain of receipts: that of the login.
  private let domain: String
  let reference: StreamRef
  private let stanzas = PushStanzas()
  private var window = SendWindow()
  private var isDraining = false

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
    context = connection.context
    shard = connection.shard
    self.project = project
    self.sender = sender
    self.jid = jid
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
    case .downstream(let draft): take(draft, text)
    case .nack(let refusal, let reply):
      shard.counters.countNack(refusal.nack)
      connection.write { stanzas.appendNack(refusal, reply, of: text, to: &$0) }
    case .ack(let draft): acked(draft, text, head)
    case .stanzaError(let text): connection.refuse(head, .badRequest(text.trimmed))
    }
  }

  private func take(_ draft: DownstreamDraft, _ text: UnsafeRawBufferPointer) {
    if isDraining {
      return refuse(draft.reply, text, .draining, "This connection is draining; open another one")
    }
    guard window.count < context.limits.pendingPerStreamMax + context.limits.heldPerStreamMax else {
      return refuse(
        draft.reply, text, .unavailable,
        "More than \(context.limits.pendingPerStreamMax) messages of this connection are not acked yet")
    }
    guard case .token(let place) = draft.target else {
      return refuse(draft.reply, text, .invalidParameter, "Only registration tokens are served as targets")
    }
    let slot = window.open(draft.reply, in: text, now: shard.now)
    let key = place.withDecoded(in: text) { context.keys.token($0) }
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
    connection.write { stanzas.appendNack(refusal, reply, of: text, to: &$0) }
  }

  private func route(
    _ draft: DownstreamDraft, _ text: UnsafeRawBufferPointer, _ slot: UInt32, _ meaning: TokenMeaning
  ) {
    guard case .active(let registration, let canonical) = meaning else {
      return nack(slot, .deviceUnregistered, "The registration token is not registered")
    }
    guard registration.sender == project.sender else {
      return nack(slot, .senderIDMismatch, "The registration token belongs to another sender")
    }
    if let package = draft.restrictedPackageName, package.string(in: text) != registration.app {
      return nack(slot, .invalidJSON, "InvalidPackageName: the registration's package differs")
    }
    if let canonical { window.setCanonical(slot, canonical) }
    let key = draft.reply.messageID.withDecoded(in: text) { context.keys.downstream(project.sender, $0) }
    if draft.has(.dryRun) {
      shard.counters.count(.dryRun)
      return answered(slot, .ack)
    }
    let home = shard.home(of: registration.device)
    let origin = Origin(stream: reference, slot: slot)
    if let taker = sender.firstTaker(of: key, shard: home, now: shard.wall) {
      shard.counters.repeats.add()
      return shard.send(.repeated(key, origin), to: taker)
    }
    shard.send(.downstream(record(draft, text, registration, key, origin)), to: home)
  }

  private func record(
    _ draft: DownstreamDraft, _ text: UnsafeRawBufferPointer, _ registration: Registration,
    _ key: MessageKey, _ origin: Origin
  ) -> Downstream {
    let wall = shard.wall
    let scratch = shard.scratch
    scratch.json.removeAll()
    DeviceMessageWriter.append(
      draft, of: text, messageID: key.hash, origin: .sender(project.sender), category: registration.app,
      token: registration.token, sentTime: wall, to: &scratch.json)
    let body = scratch.json.bytes[...]
    var receipt: [UInt8] = []
    if draft.has(.receiptRequested) {
      var writer = ByteWriter()
      AppServerMessageWriter.appendReceipt(
        messageID: draft.reply.messageID.raw(in: text), token: registration.token,
        category: registration.app, sentTime: wall, domain: domain, to: &writer)
      receipt = writer.take()
    }
    return Downstream(
      number: MessageNumber(shard.numbers.next(wall)), key: key, device: registration.device,
      sender: project.sender, app: registration.app,
      collapse: draft.collapseKey.map { "\(registration.app)\u{1F}\($0.string(in: text))" },
      expires: WallTime(ms: wall.ms + Int64(draft.timeToLive) * 1000), highPriority: draft.priority == .high,
      body: Array(body), receipt: receipt, origin: origin, write: draft.timeToLive == 0 ? .never : .queued)
  }

  private func nack(_ slot: UInt32, _ code: NackCode, _ description: String) {
    shard.counters.countNack(code)
    answered(slot, .nack(code, description))
  }

  // MARK: To the app server

  func answered(_ slot: UInt32, _ answer: Answer) {
    guard let entry = window.close(slot) else { return }
    shard.counters.acceptNs.record(shard.now - entry.received)
    entry.reply.withUnsafeBytes { reply in
      let from = UnsafeRawBufferPointer(rebasing: reply[..<entry.targetCount])
      let id = UnsafeRawBufferPointer(rebasing: reply[entry.targetCount...])
      connection.write { output in
        switch answer {
        case .ack:
          stanzas.appendAck(from: from, messageID: id, registrationID: entry.canonical, to: &output)
        case .nack(let code, let description):
          stanzas.appendNack(
            from: from, messageID: id, code: code, description: description,
            registrationID: entry.canonical, to: &output)
        }
      }
    }
    closeWhenDone()
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
  }

  // MARK: Draining and the end

  func announceDraining() {
    guard !isDraining else { return }
    isDraining = true
    connection.write { stanzas.appendDraining(to: &$0) }
    shard.send(.senderDrains(project.sender, reference), to: shard.home(of: project.sender))
  }

  /// The peer has closed its side: ours follows when all its messages are answered.
  private func closeWhenDone() {
    if window.count == 0, connection.isPeerClosing { connection.closeSoon() }
  }

  var pendingCount: Int { window.count }

  func peerCloses() -> Bool { window.count == 0 }

  func ended() {
    shard.senderStreams[reference.stream] = nil
    shard.counters.senderStreams.add(-1)
    sender.close(reference)
    shard.send(.senderClosed(project.sender, reference), to: shard.home(of: project.sender))
  }
}
