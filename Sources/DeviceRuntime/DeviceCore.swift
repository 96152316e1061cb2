import Bytes
import Connections
import DeliveryCore
import EventLoops
import PushModel

/// A message on its way from the loop to the app.
struct ShownMessage: Sendable {
  var message: DeviceMessage
  var key: Hash128
}

/// A ``Device``'s side on the loop.
final class DeviceCore: DeviceEngineDelegate {
  /// What other threads ask of the loop.
  enum Command: Sendable {
    case start
    case send(number: UInt64, EncodedMessage, Reply)
    case cancel(number: UInt64)
    case handled([Hash128], success: Bool)
    case close(within: Duration)
    /// The device object is gone.
    case abandon
  }

  typealias Reply = CheckedContinuation<Result<UpstreamOutcome, UpstreamSendError>, Never>

  private let engine: DeviceEngine
  private let board: StateBoard<Device.State>
  private let messages: BatchChannel<ShownMessage>
  private let deletions: BatchChannel<DeletedMessages>
  private var replies: [UInt64: Reply] = [:]
  private var shown: [ShownMessage] = []

  init(
    engine: DeviceEngine, board: StateBoard<Device.State>, messages: BatchChannel<ShownMessage>,
    deletions: BatchChannel<DeletedMessages>
  ) {
    self.engine = engine
    self.board = board
    self.messages = messages
    self.deletions = deletions
    engine.delegate = self
  }

  func receive(_ commands: [Command]) {
    for command in commands {
      switch command {
      case .start: engine.start()
      case .send(let number, let message, let reply): send(number, message, reply)
      case .cancel(let number): engine.cancel(tag: number)
      case .handled(let keys, let success):
        for key in keys { engine.handled(key, success: success) }
      case .close(let patience): engine.close(within: patience)
      case .abandon:
        engine.abort()
        engine.loop.stop()
      }
    }
  }

  private func send(_ number: UInt64, _ message: EncodedMessage, _ reply: Reply) {
    let code: UpstreamSendError.Code
    switch engine.submit(message, tag: number) {
    case .accepted:
      replies[number] = reply
      return
    case .full: code = .tooManyMessages
    case .duplicateID: code = .duplicateID
    case .closed: code = .closed
    }
    reply.resume(returning: .failure(UpstreamSendError(code: code, messageID: message.id)))
  }

  // MARK: From the engine

  func received(_ message: DeviceDelivery.Message, key: Hash128, by device: DeviceEngine) {
    shown.append(ShownMessage(message: DeviceMessage(message), key: key))
    if shown.count == 1 {
      engine.loop.later { [self] in
        let batch = shown
        shown = []
        messages.send(batch)
      }
    }
  }

  func deleted(from: String, category: String, total: Int64, by device: DeviceEngine) {
    // Bounded: a device that nobody asks keeps the first notices, which say the same.
    guard deletions.count < 1_000 else { return }
    deletions.send(DeletedMessages(from: from, category: category, total: Int(clamping: total)))
  }

  func finished(_ messages: [FinishedMessage], of device: DeviceEngine) {
    for message in messages {
      replies.removeValue(forKey: message.tag)?.resume(
        returning: message.outcome.upstreamResult(message.id))
    }
  }

  func changed(_ status: SenderMachine.Status, of device: DeviceEngine) {
    switch status {
    case .connecting: board.set(.connecting)
    case .connected: board.set(.connected)
    case .draining: break
    case .disconnected(let end, let wait):
      board.set(
        .disconnected(
          Device.Disconnection(
            reason: end.description, wasRefused: end.kind == .loginRefused,
            wasReplaced: end.kind == .replaced, retryAfter: wait)))
    case .closed:
      messages.finish()
      deletions.finish()
      board.set(.closed)
      board.finish()
    }
  }
}

extension SendOutcome {
  /// As callers of the public interface see it.
  func upstreamResult(_ id: String) -> Result<UpstreamOutcome, UpstreamSendError> {
    func failure(
      _ code: UpstreamSendError.Code, _ nack: Nack? = nil, _ detail: String = ""
    ) -> Result<UpstreamOutcome, UpstreamSendError> {
      .failure(
        UpstreamSendError(code: code, messageID: id, nackCode: nack?.code, detail: nack?.text ?? detail))
    }
    return switch end {
    case .acked: .success(UpstreamOutcome(messageID: id, attempts: attempts, latency: latency))
    case .nacked(let nack): failure(.nacked, nack)
    case .stanzaRefused(let text): failure(.invalidMessage, nil, text)
    case .ackOverdue, .streamLost: failure(.overdue)
    case .deadline(let nack): failure(.overdue, nack)
    case .cancelled: failure(.cancelled)
    case .closed: failure(.closed)
    }
  }
}
