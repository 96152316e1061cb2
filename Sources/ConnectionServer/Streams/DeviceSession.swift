import Bytes
import Connections
import DeliveryCore
import JSONCore
import PushModel
import PushXMPP
import Seams
import Stores
import Telemetry
import XMLCore
import XMPPCore

/// A device's bound stream, on the device's home loop: messages out, their acks in; upstream messages in.
final class DeviceSession: StreamSession, DeviceStream {
  private unowned let connection: XMPPConnection
  private let context: ServerContext
  private let shard: Shard
  private let device: DeviceNumber
  var registrations: [Registration]
  let reference: StreamRef
  private let stanzas = PushStanzas()
  /// Nil until the store has granted the stream, and after its end.
  private var slot: DeviceSlot?
  /// Upstream messages taken and not answered.
  private var upstreamPending = 0

  init(_ connection: XMPPConnection, credentials: DeviceCredentials, deviceID: String) {
    self.connection = connection
    context = connection.context
    shard = connection.shard
    device = credentials.number
    registrations = credentials.registrations
    reference = StreamRef(loop: UInt8(shard.index), stream: connection.number)
    shard.deviceStreams[reference.stream] = self
    shard.counters.deviceStreams.add(1)
    claim()
  }

  /// Takes the device's stream in the store's eyes before any message is handed over.
  private func claim() {
    let (post, index, reference) = (context.post, shard.index, reference)
    context.store.claim(device, node: context.node, now: shard.wall) { result in
      post.post(
        .perform { ($0.deviceStreams[reference.stream] as? DeviceSession)?.claimed(result) }, to: index)
    }
  }

  private func claimed(_ result: Result<StreamGrant, StoreFault>) {
    switch result {
    case .success(let grant):
      if let previous = grant.previousNode, previous != context.node {
        context.bus?.send(.kick(device, epoch: grant.epoch), to: previous)
      }
      slot = shard.deviceOpened(device, self, epoch: grant.epoch)
    case .failure(.refused): connection.fail(.notAuthorized, "The device is gone")
    case .failure: connection.fail(.resourceConstraint, "The store cannot be reached; connect again")
    }
  }

  // MARK: To the device

  var backlogBytes: Int { connection.channel.queuedBytes }

  func deliver(_ record: Downstream) {
    connection.write { output in
      record.body.withUnsafeBytes { body in
        if let shared = record.shared {
          shared.bytes.withUnsafeBytes { stanzas.append(body, rest: $0, to: &output) }
        } else {
          stanzas.append(body, to: &output)
        }
      }
    }
  }

  func tellDeleted(count: Int) {
    guard let registration = registrations.first else { return }
    writeJSON {
      DeviceMessageWriter.appendDeletedMessages(
        from: registration.sender, category: registration.app, total: count, to: &$0)
    }
  }

  func upstreamAnswered(_ rawMessageID: [UInt8], _ answer: UpstreamAnswer) {
    upstreamPending -= 1
    writeAnswer(rawMessageID, answer)
  }

  private func writeAnswer(_ rawMessageID: [UInt8], _ answer: UpstreamAnswer) {
    rawMessageID.withUnsafeBytes { id in
      writeJSON { writer in
        switch answer {
        case .ack: DeviceMessageWriter.appendUpstreamAck(messageID: id, to: &writer)
        case .nack(let error, let description):
          shard.counters.countUpstream(.nacked)
          DeviceMessageWriter.appendUpstreamNack(
            messageID: id, error: error, description: description, to: &writer)
        }
      }
    }
  }

  private func writeJSON(_ fill: (inout ByteWriter) -> Void) {
    let scratch = shard.scratch
    scratch.json.removeAll()
    fill(&scratch.json)
    connection.write { output in
      scratch.json.bytes.withUnsafeBytes { stanzas.append($0, to: &output) }
    }
  }

  func replaced() {
    slot = nil
    connection.fail(.conflict, "The device logged in on another stream")
  }

  // MARK: From the device

  func received(_ text: UnsafeRawBufferPointer, _ head: MessageHead) {
    switch shard.scratch.device.read(text) {
    case .ack(let place):
      let hash = place.withDecoded(in: text) { Hash128(hex: $0) }
      if let hash, let slot {
        shard.deviceAcked(MessageKey(hash), slot)
      } else {
        shard.counters.unknownDeviceAcks.add()
      }
    case .upstream(let draft): take(draft, text)
    case .refused(let error, let description, let messageID):
      writeAnswer(Array(messageID.raw(in: text)), .nack(error, description))
    case .stanzaError(let text): connection.refuse(head, .badRequest(text.trimmed))
    }
  }

  private func take(_ draft: UpstreamDraft, _ text: UnsafeRawBufferPointer) {
    let rawID = Array(draft.messageID.raw(in: text))
    func refuse(_ error: UpstreamError, _ description: String) {
      writeAnswer(rawID, .nack(error, description))
    }
    guard upstreamPending < context.limits.upstreamPendingPerDeviceMax else {
      return refuse(
        .tooManyMessages, "\(context.limits.upstreamPendingPerDeviceMax) upstream messages are pending")
    }
    let registration: Registration
    if let token = draft.token?.string(in: text) {
      guard let found = registrations.first(where: { $0.token == token }) else {
        return refuse(.invalidJSON, "\"token\" is no registration of this device")
      }
      registration = found
    } else {
      guard let only = registrations.first, registrations.count == 1 else {
        return refuse(
          .invalidJSON, "\"token\" is needed: the device has \(registrations.count) registrations")
      }
      registration = only
    }
    guard registration.sender == draft.sender else {
      return refuse(.senderIDMismatch, "The registration belongs to another sender")
    }
    upstreamPending += 1
    let origin = DeviceOrigin(stream: reference, rawMessageID: rawID)
    let key = draft.messageID.withDecoded(in: text) { context.keys.upstream(device, $0) }
    let home = shard.home(of: draft.sender)
    if shard.upstreamSeen.insert(key, shard: 0, now: shard.wall) != nil {
      return shard.send(.repeatedUpstream(key, draft.sender, origin), to: home)
    }
    var body = ByteWriter(capacity: draft.payloadBytes + 256)
    AppServerMessageWriter.appendUpstream(
      draft, of: text, token: registration.token, category: registration.app, to: &body)
    let seconds = min(draft.timeToLive, context.limits.upstreamHeldSecondsMax)
    let row = StoredUpstream(
      number: MessageNumber(shard.numbers.next(shard.wall)), sender: draft.sender, key: key, device: device,
      // With a time to live of 0 it is handed out now or refused; the second bounds nothing else.
      expires: shard.wall + .seconds(max(1, seconds)), body: body.take(),
      messageID: draft.messageID.string(in: text), from: registration.token)
    shard.send(.upstream(Upstream(row, origin: origin, write: seconds == 0 ? .never : .queued)), to: home)
  }

  // MARK: The end

  func peerCloses() -> Bool { true }

  func ended() {
    shard.deviceStreams[reference.stream] = nil
    shard.counters.deviceStreams.add(-1)
    guard let slot else { return }
    self.slot = nil
    shard.deviceClosed(slot)
    context.store.release(device, epoch: slot.epoch, now: shard.wall) { _ in }
  }
}
