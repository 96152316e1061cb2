import Bytes
import HTTPCore
import JSONCore
import PushHTTP
import PushModel
import Seams
import Stores
import Telemetry

/// The doors through which messages come over HTTP, on one loop.
///
/// A message goes the way that one from a stream goes, and this is the stream that it came on: the shard answers
/// to a slot here. No task and no hop between threads is spent on it.
final class SendDoor: SenderStream {
  private struct Slot {
    let send: HTTPSend
    let part: Int
  }

  let context: ServerContext
  unowned let shard: Shard
  let reference: StreamRef
  private var slots: [Slot?] = []
  private var free: [UInt32] = []
  private(set) var pendingCount = 0
  private var v1Reader: V1Reader
  private var legacyReader: LegacyReader
  private var grants = BearerCache()
  private var findings: [UInt64: Finding] = [:]
  private var lastFinding: UInt64 = 0
  private var muted: [HTTPSend] = []
  private let bearers: BearerCheck

  init(context: ServerContext, shard: Shard) {
    self.context = context
    self.shard = shard
    v1Reader = V1Reader(limits: context.limits)
    legacyReader = LegacyReader(limits: context.limits)
    bearers = BearerCheck(context: context)
    reference = StreamRef(loop: UInt8(shard.index), stream: shard.nextStreamNumber())
    shard.senderStreams[reference.stream] = self
  }

  // MARK: Who may

  func grant(_ token: String) -> Result<BearerGrant, V1Fault> {
    var copy = token
    let key = copy.withUTF8 { context.keys.token(UnsafeRawBufferPointer($0)) }
    if let found = grants.find(key, now: shard.wall) { return .success(found) }
    let result = bearers.check(token, now: shard.wall)
    if case .success(let grant) = result { grants.insert(key, grant) }
    return result
  }

  // MARK: HTTP v1

  /// - Parameters:
  ///   - name: Of the project in the path, its id or its number.
  ///   - sink: Called once, on this loop.
  func sendV1(
    project name: String, _ fields: HTTPFields, query: [String: String], isPretty: Bool, _ body: [UInt8],
    _ sink: HTTPSink
  ) {
    switch authorized(name, HTTPCredential(fields, query: query)) {
    case .success(let project): takeV1(project, fields, isPretty: isPretty, body, sink)
    case .failure(let fault): sink(V1Answer.fault(fault, isPretty: isPretty))
    }
  }

  /// The same for a caller who is known to speak for the project.
  func takeV1(_ project: Project, _ fields: HTTPFields, isPretty: Bool, _ body: [UInt8], _ sink: HTTPSink) {
    func fail(_ fault: V1Fault) { sink(V1Answer.fault(fault, isPretty: isPretty)) }
    guard let sender = context.accounts.sender(project.sender) else { return fail(.internalFault) }
    if context.isDraining { return fail(.unavailable()) }
    if let wait = sender.rates.messages?.take(now: shard.now) {
      shard.counters.countNack(.quotaExceeded)
      return fail(
        .quota(
          "Quota exceeded: the project's messages of this minute are used up.", subject: "project",
          retryAfter: wait))
    }
    let given = fields["x-weir-message-id"]
    if let given, !MessageNames.isUsable(given) {
      return fail(.invalid("X-Weir-Message-Id must be 1 to 255 visible ASCII characters.", field: nil))
    }
    let reading = body.withUnsafeBytes { v1Reader.read($0, wall: shard.wall) }
    switch reading {
    case .fault(let fault):
      shard.counters.countNack(.invalidJSON)
      fail(fault)
    case .send(var send):
      let number = shard.numbers.next(shard.wall)
      let id =
        given
        ?? (send.draft.isForTopic ? MessageNames.many(number) : MessageNames.single(number, wall: shard.wall))
      send.setMessageID(id)
      begin(send, id, project, sender, isPretty, sink)
    }
  }

  private func authorized(_ name: String, _ credential: HTTPCredential) -> Result<Project, V1Fault> {
    let grant: BearerGrant
    switch credential {
    case .missing: return .failure(.noCredentials)
    case .key, .other: return .failure(.badCredentials)
    case .bearer(let token):
      switch self.grant(token) {
      case .success(let found): grant = found
      case .failure(let fault): return .failure(fault)
      }
    }
    guard grant.maySend else { return .failure(.insufficientScope) }
    guard let project = context.accounts.project(named: name), grant.allows(project) else {
      return .failure(.noPermission(project: String(name.prefix(64))))
    }
    return .success(project)
  }

  private func begin(
    _ reading: V1Send, _ id: String, _ project: Project, _ sender: SenderState, _ isPretty: Bool,
    _ sink: HTTPSink
  ) {
    if let installation = reading.installation {
      return find(Finding(reading, installation, id, project, sender, isPretty, sink))
    }
    submit(
      HTTPSend(
        form: .v1(project: project.id, isPretty: isPretty), draft: reading.draft, text: reading.text,
        project: project, sender: sender, received: shard.now, multicastID: 0, messageIDs: [id], sink: sink))
  }

  /// A message whose installation id is looked up.
  private final class Finding {
    var reading: V1Send
    let installation: String
    let id: String
    let project: Project
    let sender: SenderState
    let isPretty: Bool
    let sink: HTTPSink

    init(
      _ reading: V1Send, _ installation: String, _ id: String, _ project: Project, _ sender: SenderState,
      _ isPretty: Bool, _ sink: HTTPSink
    ) {
      self.reading = reading
      self.installation = installation
      self.id = id
      self.project = project
      self.sender = sender
      self.isPretty = isPretty
      self.sink = sink
    }
  }

  /// An installation id is the part of a token before its colon.
  private func find(_ finding: Finding) {
    let (post, index, stream) = (context.post, shard.index, reference.stream)
    lastFinding &+= 1
    let number = lastFinding
    findings[number] = finding
    pendingCount += 1
    context.store.registrations(
      sender: finding.project.sender, after: finding.installation + ":", max: 1
    ) { result in
      let token = result.map { $0.first?.token }
      post.post(.perform { ($0.senderStreams[stream] as? SendDoor)?.found(number, token) }, to: index)
    }
  }

  private func found(_ number: UInt64, _ result: Result<String?, StoreFault>) {
    guard let finding = findings.removeValue(forKey: number) else { return }
    pendingCount -= 1
    guard case .success(let token) = result else {
      return finding.sink(V1Answer.fault(.unavailable(), isPretty: finding.isPretty))
    }
    guard let token, token.hasPrefix(finding.installation + ":") else {
      return finding.sink(V1Answer.fault(.unregistered, isPretty: finding.isPretty))
    }
    finding.reading.setToken(token)
    begin(
      finding.reading, finding.id, finding.project, finding.sender, finding.isPretty, finding.sink)
  }

  // MARK: Legacy HTTP

  func sendLegacy(_ fields: HTTPFields, _ body: [UInt8], _ sink: HTTPSink) {
    guard let project = CallerCheck.project(fields, context, grant: grant) else {
      return sink(LegacyAnswer.unauthorized(isMissing: HTTPCredential(fields) == .missing))
    }
    takeLegacy(project, fields, body, sink)
  }

  /// The same for a caller who is known to speak for the project.
  func takeLegacy(_ project: Project, _ fields: HTTPFields, _ body: [UInt8], _ sink: HTTPSink) {
    guard let sender = context.accounts.sender(project.sender) else {
      return sink(LegacyAnswer.unauthorized(isMissing: false))
    }
    if context.isDraining { return sink(LegacyAnswer.unavailable()) }
    let number = shard.numbers.next(shard.wall)
    let multicastID = Int64(truncatingIfNeeded: number)
    switch legacyReader.read(body, fields, multicastID: multicastID) {
    case .answer(let response):
      shard.counters.countNack(.invalidJSON)
      sink(response)
    case .send(var send):
      if let wait = sender.rates.messages?.take(send.tokens?.count ?? 1, now: shard.now) {
        shard.counters.countNack(.quotaExceeded)
        return sink(LegacyAnswer.unavailable(retryAfter: wait))
      }
      let isTopic = send.draft.isForTopic
      let id =
        send.messageID
        ?? (isTopic ? MessageNames.many(number) : MessageNames.single(number, wall: shard.wall))
      var form: HTTPSend.Form
      var ids = [id]
      if let tokens = send.tokens {
        form = .legacyTokens
        ids = partIDs(tokens, given: send.messageID)
      } else {
        send.setMessageID(id)
        form = isTopic ? .legacyTopic(number: topicNumber(id, project)) : .legacyTokens
        if case .group = send.draft.target { form = .legacyGroup }
      }
      if send.form == .plainText { form = .legacyPlain }
      let whole = HTTPSend(
        form: form, draft: send.draft, text: send.text, project: project, sender: sender,
        received: shard.now, multicastID: multicastID, messageIDs: ids, sink: sink)
      if let tokens = send.tokens { submit(whole, to: tokens) } else { submit(whole) }
    }
  }

  private func partIDs(_ tokens: [String], given: String?) -> [String] {
    tokens.map { token in
      guard let given else {
        return MessageNames.single(shard.numbers.next(shard.wall), wall: shard.wall)
      }
      var copy = token
      return MessageNames.part(
        of: given, tokenHash: copy.withUTF8 { context.keys.token(UnsafeRawBufferPointer($0)) })
    }
  }

  private func topicNumber(_ id: String, _ project: Project) -> String {
    var copy = id
    let key = copy.withUTF8 { context.keys.downstream(project.sender, UnsafeRawBufferPointer($0)) }
    return MessageNames.topicNumber(id, key)
  }

  // MARK: To the shards

  private func submit(_ send: HTTPSend) {
    send.text.withUnsafeBytes { text in
      if case .token(let place) = send.draft.target {
        submit(send, 0, place.string(in: text))
      } else {
        let slot = open(send, 0)
        if context.faults.isArmed, !goesOn(send, slot, target: send.draft.reply.from?.string(in: text)) {
          return
        }
        shard.sendToTarget(
          send.draft, text, sender: send.sender, origin: Origin(stream: reference, slot: slot))
      }
    }
  }

  private func submit(_ send: HTTPSend, to tokens: [String]) {
    for (index, token) in tokens.enumerated() {
      if RegistrationToken(token) == nil {
        let slot = open(send, index)
        refuse(slot, .badRegistration, "Invalid token")
      } else {
        submit(send, index, token)
      }
    }
  }

  private func submit(_ send: HTTPSend, _ part: Int, _ token: String) {
    let slot = open(send, part)
    if context.faults.isArmed, !goesOn(send, slot, target: token) { return }
    var copy = token
    let key = copy.withUTF8 { context.keys.token(UnsafeRawBufferPointer($0)) }
    if let meaning = shard.tokens.find(key) {
      route(send, part, slot, meaning)
    } else {
      shard.lookUp(token, key, WaitingSend(stream: reference, slot: slot, text: []))
    }
  }

  func resolved(_ slot: UInt32, _ text: [UInt8], _ meaning: TokenMeaning?) {
    guard let waiting = slots.indices.contains(Int(slot)) ? slots[Int(slot)] : nil else { return }
    guard let meaning else {
      return refuse(slot, .serviceUnavailable, "The store cannot be read; retry after a second")
    }
    route(waiting.send, waiting.part, slot, meaning)
  }

  private func route(_ send: HTTPSend, _ part: Int, _ slot: UInt32, _ meaning: TokenMeaning) {
    guard case .active(let addressee) = meaning else {
      return refuse(slot, .deviceUnregistered, "The registration token is not registered")
    }
    let registration = addressee.registration
    guard registration.sender == send.project.sender else {
      return refuse(slot, .senderIDMismatch, "SenderId mismatch")
    }
    send.parts[part].canonical = addressee.canonical
    send.text.withUnsafeBytes { text in
      let draft = send.draft.rendered(for: registration.platform)
      if let package = draft.restrictedPackageName, package.string(in: text) != registration.app {
        return refuse(slot, .invalidJSON, "InvalidPackageName: the registration's package differs")
      }
      if draft.has(.dryRun) {
        shard.counters.count(.dryRun)
        return answered(slot, .ack)
      }
      var id = send.parts[part].messageID
      let key = id.withUTF8 { context.keys.downstream(send.project.sender, UnsafeRawBufferPointer($0)) }
      let origin = Origin(stream: reference, slot: slot)
      if draft.badgeStep > 0, registration.user != nil {
        return shard.sendCountingBadge(
          draft, text, to: registration, sender: send.sender, key: key, origin: origin, receipt: [])
      }
      let home = shard.home(of: registration.device)
      if let taker = send.sender.firstTaker(of: key, shard: home, now: shard.wall) {
        shard.counters.repeats.add()
        return shard.send(.repeated(key, origin), to: taker)
      }
      shard.nameMessage(key, id, to: registration.token)
      let record = shard.record(
        draft, text, registration, key, origin, sender: send.project.sender, receipt: [])
      shard.send(.downstream(record), to: home)
    }
  }

  // MARK: Answers

  private func open(_ send: HTTPSend, _ part: Int) -> UInt32 {
    pendingCount += 1
    let entry = Slot(send: send, part: part)
    if let slot = free.popLast() {
      slots[Int(slot)] = entry
      return slot
    }
    slots.append(entry)
    return UInt32(slots.count - 1)
  }

  func refuse(_ slot: UInt32, _ code: NackCode, _ description: String) {
    shard.counters.countNack(code)
    answered(slot, .nack(code, description))
  }

  func answered(_ slot: UInt32, _ answer: Answer) {
    guard slots.indices.contains(Int(slot)), let entry = slots[Int(slot)] else { return }
    slots[Int(slot)] = nil
    free.append(slot)
    pendingCount -= 1
    shard.counters.acceptNs.record(from: entry.send.received, to: shard.now)
    if case .nack(let code, _, _) = answer {
      let send = entry.send
      shard.noteRefusal(
        send.project.sender, send.parts[entry.part].messageID,
        to: send.text.withUnsafeBytes { send.draft.reply.from?.string(in: $0) } ?? "", code)
    }
    if entry.send.answered(entry.part, answer) { conclude(entry.send) }
  }

  /// Sends whose answer never comes, for a fault that a test asked for; a few at a time.
  func mute(_ send: HTTPSend) {
    muted.append(send)
    if muted.count > 1_000 { muted.removeFirst() }
  }

  // MARK: The rest of a stream's duties

  func write(_ upstream: Upstream) {}
  /// New requests are answered 503 while the server drains.
  func announceDraining() {}
}

extension DownstreamDraft {
  /// The target is a topic or a condition.
  var isForTopic: Bool {
    switch target {
    case .topic, .condition: true
    case .token, .tokens, .user, .group: false
    }
  }
}

extension AccountDirectory {
  /// A project by its id or by its number, as paths name it.
  func project(named name: String) -> Project? {
    if let found = project(name) { return found }
    return SenderID(text: name).flatMap { project($0) }
  }
}
