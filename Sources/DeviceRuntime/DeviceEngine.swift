package import Bytes
package import Connections
package import DeliveryCore
package import EventLoops
import JSONCore
package import PushModel
import PushXMPP
package import XMLCore

/// Who hears from ``DeviceEngine``s, on their loop; one object may serve thousands of them.
package protocol DeviceEngineDelegate: AnyObject {
  /// A message that was not shown before. Tell ``DeviceEngine/handled(_:success:)`` when it was dealt with.
  func received(_ message: DeviceDelivery.Message, key: Hash128, by device: DeviceEngine)
  /// Stored messages were discarded, so many.
  func deleted(from: String, category: String, total: Int64, by device: DeviceEngine)
  /// Upstream messages that ended in this round.
  func finished(_ messages: [FinishedMessage], of device: DeviceEngine)
  func changed(_ status: SenderMachine.Status, of device: DeviceEngine)
}

/// When a device acks a message.
package enum DeviceAckRule: Sendable, Equatable {
  /// When it was handled.
  case whenHandled
  /// So long after it was handled.
  case delayed(Duration)
  /// Never: the server keeps it and delivers it again on the next stream.
  case never
}

/// One device on a loop, with callbacks.
///
/// What ``Device`` and load generation are made of. Holds a few hundred bytes beside its stream until messages
/// come. Belongs to its loop.
package final class DeviceEngine: ClientLineDelegate {
  /// Chosen by its maker, to tell many devices apart.
  package let tag: Int
  /// Not kept alive.
  package weak var delegate: (any DeviceEngineDelegate)?
  package var ackRule: DeviceAckRule
  /// Texts that were no JSON object, or of a type this side does not know.
  ///
  /// They change nothing.
  package private(set) var ignoredCount = 0
  /// Messages that came again after they were handled; acked again and not shown.
  package private(set) var repeatCount = 0

  private let line: ClientLine
  private let shared: Shared
  private var ledger: InboundLedger
  private var waitingAcks: [Hash128: String] = [:]

  /// What the devices of one loop share.
  private final class Shared {
    var reader = DeviceDeliveryReader()
    var output = ByteWriter()
    let stanzas = PushStanzas()
    let hash: SipHash128

    init(_ loop: any Loop) { hash = SipHash128(key: Hash128(high: loop.random(), low: loop.random())) }
  }

  /// - Parameter rememberedMax: Ids of handled messages that are remembered.
  package init(
    line: ClientLine, tag: Int = 0, ackRule: DeviceAckRule = .whenHandled, rememberedMax: Int = 1_000
  ) {
    self.line = line
    self.tag = tag
    self.ackRule = ackRule
    ledger = InboundLedger(idsMax: rememberedMax)
    shared = line.loop.local(Shared.self) { Shared(line.loop) }
    line.delegate = self
  }

  package var loop: any Loop { line.loop }
  /// Upstream messages that have not ended.
  package var upstreamCount: Int { line.messageCount }
  package var isClosed: Bool { line.isClosed }
  package var isConnected: Bool { line.currentStream != nil }

  package func start() { line.start() }
  package func close(within patience: Duration) { line.close(within: patience) }
  package func abort() { line.abort() }

  /// Sends an upstream message; its end comes by ``DeviceEngineDelegate/finished(_:of:)`` under `tag`.
  package func submit(_ message: EncodedMessage, tag: UInt64) -> SenderMachine.Submission {
    line.submit(message, tag: tag)
  }

  package func cancel(tag: UInt64) { line.cancel(tag: tag) }

  /// A message was dealt with, or could not be: then it is not acked and comes again on another stream.
  package func handled(_ key: Hash128, success: Bool) {
    switch ackRule {
    case .whenHandled: finish(key, success: success)
    case .never: finish(key, success: false)
    case .delayed(let pause):
      guard success else { return finish(key, success: false) }
      loop.after(pause) { [weak self] in self?.finish(key, success: true) }
    }
  }

  private func finish(_ key: Hash128, success: Bool) {
    let id = waitingAcks.removeValue(forKey: key)
    guard let stream = ledger.ended(key, success: success), let id else { return }
    writeAck(id, on: stream)
  }

  private func writeAck(_ id: String, on stream: StreamNumber) {
    shared.output.removeAll()
    shared.stanzas.appendDeviceAck(messageID: id, to: &shared.output)
    shared.output.bytes.withUnsafeBytes { line.write($0, on: stream) }
  }

  // MARK: From the line

  package func finished(_ messages: [FinishedMessage]) { delegate?.finished(messages, of: self) }

  package func changed(_ status: SenderMachine.Status) { delegate?.changed(status, of: self) }

  package func received(_ text: UnsafeRawBufferPointer, kind: MessageKind, on stream: StreamNumber) {
    let delivery: DeviceDelivery
    do throws(JSONFault) {
      delivery = try shared.reader.read(text)
    } catch {
      ignoredCount += 1
      return
    }
    switch delivery {
    case .message(let message): arrived(message, on: stream)
    case .deleted(let from, let category, let total):
      delegate?.deleted(from: from, category: category, total: total, by: self)
    case .upstreamAck(let id): line.acked(id, registrationID: nil, on: stream)
    case .upstreamNack(let id, let error, let text):
      line.nacked(id, Nack(code: error, text: text), on: stream)
    case .unknown: ignoredCount += 1
    }
  }

  private func arrived(_ message: DeviceDelivery.Message, on stream: StreamNumber) {
    let key = key(of: message.messageID)
    switch ledger.arrived(key, on: stream) {
    case .handle:
      waitingAcks[key] = message.messageID
      if let delegate {
        delegate.received(message, key: key, by: self)
      } else {
        handled(key, success: true)
      }
    case .ackAgain:
      repeatCount += 1
      writeAck(message.messageID, on: stream)
    case .joined: repeatCount += 1
    case .overload: break
    }
  }

  /// The server's ids are hashes already, as 32 hex digits; others are hashed.
  private func key(of messageID: String) -> Hash128 {
    var messageID = messageID
    return messageID.withUTF8 { utf8 in
      let bytes = UnsafeRawBufferPointer(utf8)
      return Hash128(hex: bytes) ?? shared.hash.hash(bytes)
    }
  }
}
