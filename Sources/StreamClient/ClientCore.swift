import Bytes
import Connections
import DeliveryCore
import EventLoops

/// A ``StreamClient``'s side on the loop: matches ends of messages with those who wait for them.
final class ClientCore: SenderEngineDelegate {
  /// What other threads ask of the loop.
  enum Command: Sendable {
    case start
    /// The queue has something for a loop that waited.
    case pull
    case cancel(call: UInt64)
    case takeBack(BulkChannel)
    case handled(Hash128, success: Bool)
    case close(within: Duration)
    /// The client object is gone.
    case abandon
  }

  private let engine: SenderEngine
  private let queue: SendQueue
  private let board: StateBoard<StreamClient.State>
  private let deliver: ([InboundUpstream]) -> Void
  /// By the tag a message was submitted with.
  private var replies: [Reply?] = []
  private var freeTags: [Int] = []
  private var items: [SendQueue.Item] = []

  init(
    engine: SenderEngine, queue: SendQueue, board: StateBoard<StreamClient.State>,
    deliver: @escaping ([InboundUpstream]) -> Void
  ) {
    self.engine = engine
    self.queue = queue
    self.board = board
    self.deliver = deliver
    engine.delegate = self
  }

  func receive(_ commands: [Command]) {
    for command in commands {
      switch command {
      case .start:
        engine.start()
        pull()
      case .pull: pull()
      case .cancel(let number): cancel { if case .call(number, _) = $0 { true } else { false } }
      case .takeBack(let channel):
        cancel { if case .bulk(let other) = $0 { other === channel } else { false } }
      case .handled(let key, let success): engine.handled(key, success: success)
      case .close(let patience):
        pull()
        engine.close(within: patience)
      case .abandon:
        refuseQueue()
        engine.abort()
        engine.loop.stop()
      }
    }
  }

  // MARK: Messages

  private func pull() {
    var room = engine.room
    while true {
      items.removeAll(keepingCapacity: true)
      queue.take(room, into: &items)
      guard !items.isEmpty else { return }
      for item in items { submit(item) }
      room = engine.room
    }
  }

  private func submit(_ item: SendQueue.Item) {
    if case .bulk(let channel) = item.reply, channel.isAbandoned { return }
    let tag = freeTags.popLast() ?? replies.count
    if tag == replies.count { replies.append(nil) }
    replies[tag] = item.reply
    let code: SendError.Code
    switch engine.submit(item.message, tag: UInt64(tag)) {
    case .accepted: return
    case .duplicateID: code = .duplicateID
    // Not more than its room is taken from the queue.
    case .full, .closed: code = .closed
    }
    replies[tag] = nil
    freeTags.append(tag)
    item.reply.answer(
      item.message.id, .failure(SendError(code: code, messageID: item.message.id)))
  }

  private func cancel(where isMeant: (Reply) -> Bool) {
    for tag in replies.indices {
      if let reply = replies[tag], isMeant(reply) { engine.cancel(tag: UInt64(tag)) }
    }
  }

  private func refuseQueue() {
    for item in queue.close() {
      item.reply.answer(
        item.message.id, .failure(SendError(code: .closed, messageID: item.message.id)))
    }
  }

  func finished(_ messages: [FinishedMessage], of engine: SenderEngine) {
    var bulk: BulkChannel?
    var batch: [BulkOutcome] = []
    for message in messages {
      let tag = Int(message.tag)
      guard let reply = replies[tag].take() else { continue }
      freeTags.append(tag)
      let result = message.outcome.result(message.id)
      switch reply {
      case .call(_, let continuation): continuation.resume(returning: result)
      case .bulk(let channel):
        if channel !== bulk {
          bulk?.send(batch)
          batch.removeAll(keepingCapacity: true)
          bulk = channel
        }
        batch.append(BulkOutcome(messageID: message.id, result: result))
      }
    }
    bulk?.send(batch)
    pull()
  }

  // MARK: The rest

  func received(_ inbound: [InboundUpstream], by engine: SenderEngine) { deliver(inbound) }

  func changed(_ status: SenderMachine.Status, of engine: SenderEngine) {
    switch status {
    case .connecting: board.set(.connecting)
    case .connected: board.set(.connected)
    case .draining: board.set(.draining)
    case .disconnected(let end, let wait):
      board.set(
        .disconnected(
          StreamClient.Disconnection(
            reason: end.description, wasRefused: end.kind == .loginRefused, retryAfter: wait)))
    case .closed:
      refuseQueue()
      board.set(.closed)
      board.finish()
    }
  }
}

extension SendOutcome {
  /// As callers of the public interface see it.
  func result(_ id: String) -> Result<Ack, SendError> {
    func failure(_ code: SendError.Code, _ nack: Nack? = nil, _ detail: String = "") -> Result<Ack, SendError>
    {
      .failure(
        SendError(
          code: code, messageID: id, nackCode: nack?.code, detail: nack?.text ?? detail,
          attempts: attempts))
    }
    return switch end {
    case .acked(let registrationID):
      .success(
        Ack(
          messageID: id, canonicalRegistrationID: registrationID, attempts: attempts, latency: latency))
    case .nacked(let nack): failure(.nacked, nack)
    case .stanzaRefused(let text): failure(.invalidMessage, nil, text)
    case .ackOverdue: failure(.ackOverdue)
    case .deadline(let nack): failure(.deadline, nack)
    case .streamLost: failure(.streamLost)
    case .cancelled: failure(.cancelled)
    case .closed: failure(.closed)
    }
  }
}
