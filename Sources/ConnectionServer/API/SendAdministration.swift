import EventLoops
import HTTPCore
import JSONCore
import PushHTTP
import PushModel
import Seams
import Stores
import Telemetry

/// `POST /admin/v1/send`: one message in the name of a project, in the words of any of its front doors.
///
/// `{"form":"stream|legacy|v1","project":"…","message":{…}}`. The message goes the way of the form, faults that tests
/// armed befall it where they would, and the answer tells what its sender would have been told:
/// `{"form":…,"status":…,"answer":…}`.
struct SendAdministration: Sendable {
  let context: ServerContext
  /// How long an answer is awaited; a fault may keep it for ever.
  static let answerWithin: Duration = .seconds(30)

  func answer(_ request: APIRequest) async -> APIResponse {
    let body: JSONValue
    do { body = try JSONValue(parsing: request.body) } catch {
      return .invalid("The body is not a JSON object: \(error)")
    }
    let id = body["project"]?.string
    guard let project = id.map({ context.accounts.project($0) }) ?? context.accounts.projects.first else {
      return .invalid("\"project\" must name a project.")
    }
    guard let message = body["message"], message.members != nil else {
      return .invalid("\"message\" must be a JSON object: what the front door of \"form\" takes.")
    }
    let text = message.bytes
    switch body["form"]?.string {
    case "stream":
      let told = await onALoop { shard, done in
        BorrowedSender(shard, project) { done(.init(status: nil, $0)) }.send(text)
      }
      return Self.response("stream", told)
    case "legacy":
      var fields: HTTPFields = ["content-type": "application/json"]
      if let given = body["idempotency_id"]?.string { fields.append("x-weir-message-id", given) }
      let known = fields
      let told = await onALoop { shard, done in
        shard.worker?.sendDoor.takeLegacy(project, known, text, Self.sink(done))
      }
      return Self.response("legacy", told)
    case "v1":
      let told = await onALoop { shard, done in
        shard.worker?.sendDoor.takeV1(project, HTTPFields(), isPretty: false, text, Self.sink(done))
      }
      return Self.response("v1", told)
    default: return .invalid("\"form\" must be stream, legacy or v1.")
    }
  }

  /// What the sender was told.
  private struct Told: Sendable {
    /// Of HTTP; nil for a stream.
    var status: Int?
    var retryAfter: String?
    /// Nil when it was told nothing.
    var answer: JSONValue?

    init(status: Int?, _ answer: JSONValue?, retryAfter: String? = nil) {
      self.status = status
      self.answer = answer
      self.retryAfter = retryAfter
    }
  }

  private static func response(_ form: String, _ told: Told) -> APIResponse {
    .json([
      "form": .string(form), "status": told.status.map { .number($0) } ?? .null,
      "retry_after": told.retryAfter.map { .string($0) } ?? .null, "answer": told.answer ?? .null,
    ])
  }

  private static func sink(_ done: @escaping (Told) -> Void) -> HTTPSink {
    HTTPSink(
      send: { response in
        let text = response.body
        let answer = (try? JSONValue(parsing: text)) ?? .string(String(decoding: text, as: UTF8.self))
        done(Told(status: response.status, answer, retryAfter: response.fields["retry-after"]))
      }, cut: { done(Told(status: nil, nil)) }, drain: {})
  }

  /// Runs on the first loop, which awaits the answer for ``answerWithin``.
  private func onALoop(
    _ work: @escaping @Sendable (Shard, _ done: @escaping (Told) -> Void) -> Void
  ) async -> Told {
    await withCheckedContinuation { continuation in
      context.post.post(
        .perform { shard in
          var waiting: CheckedContinuation<Told, Never>? = continuation
          let done: (Told) -> Void = { told in
            waiting?.resume(returning: told)
            waiting = nil
          }
          shard.after(Self.answerWithin) { _ in done(Told(status: nil, nil)) }
          work(shard, done)
        }, to: 0)
    }
  }
}

/// Stands where an app server's stream would for one message that administration sends.
final class BorrowedSender: SenderStream {
  private unowned let shard: Shard
  private let project: Project
  private let reference: StreamRef
  private var done: ((JSONValue?) -> Void)?
  private var messageID = ""
  private var target = ""
  private var canonical: String?
  private var received = Moment(ns: 0)
  /// What a test asked for.
  private var fault: ArmedFault?

  /// - Parameter done: Gets the payload that the stream would be written; nil when a fault keeps it back.
  init(_ shard: Shard, _ project: Project, _ done: @escaping (JSONValue?) -> Void) {
    self.shard = shard
    self.project = project
    self.done = done
    reference = StreamRef(loop: UInt8(shard.index), stream: shard.nextStreamNumber())
    shard.senderStreams[reference.stream] = self
  }

  func send(_ text: [UInt8]) {
    received = shard.now
    shard.counters.count(.received)
    text.withUnsafeBytes { bytes in
      switch shard.scratch.downstream.read(bytes) {
      case .downstream(let draft): take(draft, bytes)
      case .nack(let refusal, let reply):
        messageID = reply.messageID.string(in: bytes)
        target = reply.from?.string(in: bytes) ?? ""
        nack(refusal.nack, refusal.description)
      case .ack: nack(.badAck, "\"message_type\" is not for messages that are sent from here")
      case .stanzaError(let text): nack(.invalidJSON, text)
      }
    }
  }

  private func take(_ draft: DownstreamDraft, _ text: UnsafeRawBufferPointer) {
    messageID = draft.reply.messageID.string(in: text)
    target = draft.reply.from?.string(in: text) ?? ""
    guard let sender = shard.accounts.sender(project.sender) else {
      return nack(.internalServerError, "The project has no sender")
    }
    if let wait = sender.rates.messages?.take(now: shard.now) {
      return nack(
        .serviceUnavailable, "The project's messages of this minute are used up".retry(after: wait))
    }
    if shard.faults.isArmed {
      fault = shard.faults.next(sender: project.sender, token: target)
      if case .nack(let code) = fault?.kind {
        return nack(code, "A fault that a test asked for".retry(fault?.retryAfter))
      }
    }
    guard case .token(let place) = draft.target else {
      return shard.sendToTarget(draft, text, sender: sender, origin: Origin(stream: reference, slot: 0))
    }
    let key = place.lent(in: text) { shard.keys.token($0) }
    if let meaning = shard.tokens.find(key) {
      route(draft, text, sender, meaning)
    } else {
      shard.lookUp(
        place.string(in: text), key, WaitingSend(stream: reference, slot: 0, text: Array(text)))
    }
  }

  func resolved(_ slot: UInt32, _ text: [UInt8], _ meaning: TokenMeaning?) {
    guard let meaning, let sender = shard.accounts.sender(project.sender) else {
      return nack(.serviceUnavailable, "The store cannot be read; retry after a second")
    }
    text.withUnsafeBytes { text in
      guard case .downstream(let draft) = shard.scratch.downstream.read(text) else { return }
      route(draft, text, sender, meaning)
    }
  }

  private func route(
    _ draft: DownstreamDraft, _ text: UnsafeRawBufferPointer, _ sender: SenderState, _ meaning: TokenMeaning
  ) {
    guard case .active(let addressee) = meaning else {
      return nack(.deviceUnregistered, "The registration token is not registered")
    }
    let registration = addressee.registration
    guard registration.sender == project.sender else {
      return nack(.senderIDMismatch, "The registration token belongs to another sender")
    }
    if let package = draft.restrictedPackageName, package.string(in: text) != registration.app {
      return nack(.invalidJSON, "InvalidPackageName: the registration's package differs")
    }
    canonical = addressee.canonical
    let key = draft.reply.messageID.lent(in: text) { shard.keys.downstream(project.sender, $0) }
    let origin = Origin(stream: reference, slot: 0)
    if draft.has(.dryRun) {
      shard.counters.count(.dryRun)
      return answered(0, .ack)
    }
    if draft.badgeStep > 0, registration.user != nil {
      return shard.sendCountingBadge(
        draft, text, to: registration, sender: sender, key: key, origin: origin, receipt: [])
    }
    let home = shard.home(of: registration.device)
    if let taker = sender.firstTaker(of: key, shard: home, now: shard.wall) {
      shard.counters.repeats.add()
      return shard.send(.repeated(key, origin), to: taker)
    }
    shard.nameMessage(key, messageID, to: registration.token)
    let record = shard.record(
      draft, text, registration, key, origin, sender: project.sender, receipt: [])
    shard.send(.downstream(record), to: home)
  }

  private func nack(_ code: NackCode, _ description: String) {
    shard.counters.countNack(code)
    answered(0, .nack(code, description))
  }

  func answered(_ slot: UInt32, _ answer: Answer) {
    guard let fault else { return tell(answer) }
    self.fault = nil
    let told: Answer?
    switch fault.kind {
    case .dropAck, .cut, .halfOpen: told = nil
    case .unavailable:
      told = .nack(.serviceUnavailable, "A fault that a test asked for".retry(fault.retryAfter))
    case .nack, .drain, .delay: told = answer
    }
    guard fault.delayMs > 0 else { return tell(told) }
    shard.after(.milliseconds(fault.delayMs)) { _ in self.tell(told) }
  }

  private func tell(_ answer: Answer?) {
    guard let done else { return }
    self.done = nil
    shard.senderStreams[reference.stream] = nil
    shard.counters.acceptNs.record(from: received, to: shard.now)
    guard let answer else { return done(nil) }
    var payload: [JSONValue.Member] = [
      .init("from", .string(target)), .init("message_id", .string(messageID)),
    ]
    switch answer {
    case .ack: payload.append(.init("message_type", "ack"))
    case .ackCounted(let success, let failed):
      payload += [
        .init("message_type", "ack"), .init("success", .number(success)),
        .init("failure", .number(failed.count)),
        .init("failed_registration_ids", .array(failed.map { .string($0) })),
      ]
    case .nack(let code, let description, _):
      shard.noteRefusal(project.sender, messageID, to: target, code)
      payload += [
        .init("message_type", "nack"), .init("error", .string(code.rawValue)),
        .init("error_description", .string(description)),
      ]
    }
    if let canonical { payload.append(.init("registration_id", .string(canonical))) }
    done(.object(payload))
  }

  // MARK: The rest of a stream's duties

  func write(_ upstream: Upstream) {}
  func announceDraining() {}
  var pendingCount: Int { 1 }
}
