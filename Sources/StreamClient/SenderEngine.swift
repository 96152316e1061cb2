package import Bytes
package import Connections
package import DeliveryCore
package import EventLoops
import JSONCore
package import PushModel
import PushXMPP
package import XMLCore

/// What a server pushed to an app server: an upstream message or a receipt, to be acked when it was handled.
package struct InboundUpstream: Sendable {
  package enum Content: Sendable {
    case message(ServerPayload.Upstream)
    case receipt(ServerPayload.Receipt)
  }

  /// Names it in ``SenderEngine/handled(_:success:)``.
  package var key: Hash128
  package var content: Content
}

/// Who hears from a ``SenderEngine``, on its loop.
package protocol SenderEngineDelegate: AnyObject {
  /// Messages that ended in this round.
  func finished(_ messages: [FinishedMessage], of engine: SenderEngine)
  /// New upstream messages and receipts of this round; repeats are not shown.
  func received(_ inbound: [InboundUpstream], by engine: SenderEngine)
  func changed(_ status: SenderMachine.Status, of engine: SenderEngine)
}

/// One logical connection of an app server on a loop, with callbacks.
///
/// What ``StreamClient`` and load generation are made of. No task and no continuation a message. Belongs to its
/// loop.
package final class SenderEngine: ClientLineDelegate {
  private let line: ClientLine
  private var reader = ServerPayloadReader()
  private var ledger: InboundLedger
  private let hash: SipHash128
  private let stanzas = PushStanzas()
  private var inbound: [InboundUpstream] = []
  private var waitingAcks: [Hash128: (to: String, id: String)] = [:]
  private var scratch = ByteWriter()

  /// Set before ``start()``; not kept alive.
  package weak var delegate: (any SenderEngineDelegate)?
  /// Texts that were no JSON object, or of a type this side does not know.
  ///
  /// They change nothing.
  package private(set) var ignoredCount = 0

  package init(line: ClientLine, rememberedMax: Int = 1_000) {
    self.line = line
    ledger = InboundLedger(idsMax: rememberedMax)
    hash = SipHash128(key: Hash128(high: line.loop.random(), low: line.loop.random()))
    line.delegate = self
  }

  package var loop: any Loop { line.loop }
  package var room: Int { line.room }
  package var messageCount: Int { line.messageCount }
  package var pendingCount: Int { line.pendingCount }
  package var isClosed: Bool { line.isClosed }
  package var openStreamCount: Int { line.openStreamCount }

  package func start() { line.start() }
  package func submit(_ message: EncodedMessage, tag: UInt64) -> SenderMachine.Submission {
    line.submit(message, tag: tag)
  }
  package func cancel(tag: UInt64) { line.cancel(tag: tag) }
  package func close(within patience: Duration) { line.close(within: patience) }
  package func abort() { line.abort() }

  /// What was received was handled, or could not be: then it is not acked and comes again some time.
  package func handled(_ key: Hash128, success: Bool) {
    let address = waitingAcks.removeValue(forKey: key)
    guard let stream = ledger.ended(key, success: success), let address else { return }
    writeAck(to: address.to, id: address.id, on: stream)
  }

  private func writeAck(to: String, id: String, on stream: StreamNumber) {
    scratch.removeAll()
    stanzas.appendClientAck(to: to, messageID: id, to: &scratch)
    scratch.bytes.withUnsafeBytes { line.write($0, on: stream) }
  }

  // MARK: From the line

  package func finished(_ messages: [FinishedMessage]) { delegate?.finished(messages, of: self) }

  package func changed(_ status: SenderMachine.Status) { delegate?.changed(status, of: self) }

  package func received(_ text: UnsafeRawBufferPointer, kind: MessageKind, on stream: StreamNumber) {
    let payload: ServerPayload
    do throws(JSONFault) {
      payload = try reader.read(text)
    } catch {
      ignoredCount += 1
      return
    }
    switch payload {
    case .ack(let id, _, let registrationID): line.acked(id, registrationID: registrationID, on: stream)
    case .nack(let nack):
      line.nacked(nack.messageID, Nack(code: nack.error, text: nack.description), on: stream)
    case .draining: line.drainingAnnounced(on: stream)
    case .upstream(let message):
      arrived(message.from, message.messageID, .message(message), on: stream)
    case .receipt(let receipt):
      arrived(receipt.from, receipt.messageID, .receipt(receipt), on: stream)
    case .unknown: ignoredCount += 1
    }
  }

  private func arrived(
    _ from: String, _ id: String, _ content: InboundUpstream.Content, on stream: StreamNumber
  ) {
    let key = hash.hash(of: from, id)
    switch ledger.arrived(key, on: stream) {
    case .handle:
      waitingAcks[key] = (from, id)
      inbound.append(InboundUpstream(key: key, content: content))
      if inbound.count == 1 { loop.later { [self] in deliver() } }
    case .ackAgain: writeAck(to: from, id: id, on: stream)
    case .joined, .overload: break
    }
  }

  private func deliver() {
    let batch = inbound
    inbound = []
    delegate?.received(batch, by: self)
  }
}

extension SipHash128 {
  /// Of two texts; no two pairs of texts give the same bytes.
  func hash(of first: String, _ second: String) -> Hash128 {
    var bytes = Array(first.utf8)
    bytes.append(0xFF)
    bytes.append(contentsOf: second.utf8)
    return bytes.withUnsafeBytes { hash($0) }
  }
}
