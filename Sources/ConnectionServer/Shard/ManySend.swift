import PushModel
import Seams
import Stores

/// One message for several registrations, answered once: for a device group, a user, or one registration whose
/// user's badge has to be counted first.
///
/// To the receivers' shards it is the stream that sent each part.
///
/// `@unchecked Sendable`: the constants are set before it is passed on; the variables are touched only by the
/// shard that made it.
final class ManySend: SenderStream, @unchecked Sendable {
  enum Kind: Sendable {
    case group, user, single
  }

  struct Receiver: Sendable {
    var key: MessageKey
    var registration: Registration
  }

  let kind: Kind
  /// Of the whole message.
  let key: MessageKey
  let sender: SenderState
  let draft: DownstreamDraft
  /// What the places of `draft` point into.
  let text: [UInt8]
  let reference: StreamRef
  let receipt: [UInt8]
  private unowned let shard: Shard

  /// Whom to answer: the stream it came on, and streams where it came again.
  var origins: [Origin]
  var receivers: [Receiver] = []
  /// For a message of one member of a group to the others: its token, which gets nothing.
  var sentBy: String?
  private var left = 0
  private var success = 0
  /// Tokens that the message did not reach.
  private var failed: [String] = []
  /// Why it did not reach the first of them.
  private var firstNack: Answer?
  private var isTransient = false

  init(
    _ shard: Shard, _ kind: Kind, key: MessageKey, sender: SenderState, draft: DownstreamDraft, text: [UInt8],
    origin: Origin, receipt: [UInt8] = []
  ) {
    self.shard = shard
    self.kind = kind
    self.key = key
    self.sender = sender
    self.draft = draft
    self.text = text
    self.receipt = receipt
    reference = StreamRef(loop: UInt8(shard.index), stream: shard.nextStreamNumber())
    origins = [origin]
    shard.senderStreams[reference.stream] = self
    shard.manySends[key] = self
  }

  /// A receiver that gets nothing.
  func skip(_ token: String, _ code: NackCode, _ description: String, retryAfter: Int? = nil) {
    failed.append(token)
    if firstNack == nil { firstNack = .nack(code, description, retryAfter: retryAfter) }
  }

  /// All receivers are known; ends at once when there are none.
  func start() {
    left = receivers.count
    if left == 0 { finish() }
  }

  func answered(_ slot: UInt32, _ answer: Answer) {
    switch answer {
    case .ack, .ackCounted: success += 1
    case .nack(let code, let description, let retryAfter):
      if code.remedy == .retryLater { isTransient = true }
      if receivers.indices.contains(Int(slot)) {
        skip(receivers[Int(slot)].registration.token, code, description, retryAfter: retryAfter)
      }
    }
    left -= 1
    if left == 0 { finish() }
  }

  private func finish() {
    if sentBy != nil, receivers.isEmpty, failed.isEmpty {
      // It is alone in its group: nobody was missed.
      return end(.ackCounted(success: 0, failed: []))
    }
    let nack = firstNack ?? .nack(.deviceUnregistered, "No registration is left")
    switch kind {
    case .group: end(success > 0 ? .ackCounted(success: success, failed: failed) : nack)
    // Who was missed for want of a store gets it when the sender tries again; the others hide the repeat.
    case .user, .single: end(success > 0 && !isTransient ? .ack : nack)
    }
  }

  /// Answers, once.
  func end(_ answer: Answer) {
    shard.senderStreams[reference.stream] = nil
    shard.manySends[key] = nil
    if case .nack(let code, _, _) = answer {
      shard.counters.countNack(code)
      sender.forget(key)
    } else if kind != .single {
      shard.noteMany(key, sender.sender)
    }
    for origin in origins { shard.send(.answer(origin, answer), to: Int(origin.stream.loop)) }
    origins = []
  }

  // MARK: The rest of a stream's duties

  func write(_ upstream: Upstream) {}
  func resolved(_ slot: UInt32, _ text: [UInt8], _ meaning: TokenMeaning?) {}
  func announceDraining() {}
  var pendingCount: Int { 1 }
}
