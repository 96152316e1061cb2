import Bytes
import DeliveryCore
import JSONCore
import PushModel
import Seams
import Stores
import Telemetry

/// Why a device's message is not taken, to be told at once.
struct UpstreamRefusal: Error, Sendable {
  var error: UpstreamError
  var description: String
}

extension Shard {
  /// Takes an upstream message of a device at home here; its outcome comes to `origin`.
  /// - Throws: What is wrong with it; then no outcome comes.
  func takeFromDevice(
    _ draft: UpstreamDraft, _ text: UnsafeRawBufferPointer, _ device: DeviceNumber,
    _ registrations: [Registration], _ origin: StreamRef
  ) throws(UpstreamRefusal) {
    let registration = try registration(draft, text, registrations)
    guard draft.group != nil || registration.sender == draft.sender else {
      throw UpstreamRefusal(
        error: .senderIDMismatch, description: "The registration belongs to another sender")
    }
    if let wait = upstreamWait(device, registration.sender) {
      throw UpstreamRefusal(
        error: .tooManyMessages, description: "Upstream message rate exceeded".retry(after: wait))
    }
    let key = draft.messageID.lent(in: text) { keys.upstream(device, $0) }
    let origin = DeviceOrigin(stream: origin, rawMessageID: Array(draft.messageID.raw(in: text)), key: key)
    if let group = draft.group {
      return sendToGroup(draft, text, group.string(in: text), registration, key, origin)
    }
    let home = home(of: draft.sender)
    if upstreamSeen.insert(key, shard: 0, now: wall) != nil {
      return send(.repeatedUpstream(key, draft.sender, origin), to: home)
    }
    var body = ByteWriter(capacity: draft.payloadBytes + 256)
    AppServerMessageWriter.appendUpstream(
      draft, of: text, token: registration.token, category: registration.app, to: &body)
    let seconds = min(draft.timeToLive, limits.upstreamHeldSecondsMax)
    let row = StoredUpstream(
      number: MessageNumber(numbers.next(wall)), sender: draft.sender, key: key, device: device,
      // With a time to live of 0 it is handed out now or refused; the second bounds nothing else.
      expires: wall + .seconds(max(1, seconds)), body: body.take(),
      messageID: draft.messageID.string(in: text), from: registration.token)
    send(.upstream(Upstream(row, origin: origin, write: seconds == 0 ? .never : .queued)), to: home)
  }

  private func registration(
    _ draft: UpstreamDraft, _ text: UnsafeRawBufferPointer, _ registrations: [Registration]
  ) throws(UpstreamRefusal) -> Registration {
    if let token = draft.token?.string(in: text) {
      guard let found = registrations.first(where: { $0.token == token }) else {
        throw UpstreamRefusal(
          error: .invalidJSON, description: "\"token\" is no registration of this device")
      }
      return found
    }
    guard let only = registrations.first, registrations.count == 1 else {
      throw UpstreamRefusal(
        error: .invalidJSON,
        description: "\"token\" is needed: the device has \(registrations.count) registrations")
    }
    return only
  }

  /// Seconds to wait when the device, or its project, sends more than it may.
  private func upstreamWait(_ device: DeviceNumber, _ sender: SenderID) -> Int? {
    if let wait = meters?.upstream(of: device, now: now) { return wait.secondsUp }
    guard limits.upstreamPerProjectPerMinuteMax != nil else { return nil }
    return accounts.sender(sender)?.rates.upstream?.take(now: now)
  }

  // MARK: To a device group

  /// As a message to the group that leaves its sender out.
  private func sendToGroup(
    _ draft: UpstreamDraft, _ text: UnsafeRawBufferPointer, _ group: String, _ registration: Registration,
    _ key: MessageKey, _ origin: DeviceOrigin
  ) {
    guard let sender = accounts.sender(registration.sender) else {
      return send(
        .upstreamAnswer(origin, .nack(.serviceUnavailable, "The project is gone")), to: index)
    }
    var json = ByteWriter(capacity: draft.payloadBytes + 256)
    json.append("{\"to\":\"")
    json.append(group)
    json.append("\",\"message_id\":\"")
    json.append(draft.messageID.raw(in: text))
    json.append("\",\"time_to_live\":")
    json.append(decimal: Int64(draft.timeToLive))
    if let data = draft.data {
      json.append(",\"data\":")
      json.append(data.raw(in: text))
    }
    json.append("}")
    let outcome = GroupUpstream(self, origin)
    json.bytes.withUnsafeBytes { text in
      switch scratch.downstream.read(text) {
      case .downstream(let down):
        sendToGroup(
          down, text, group: group, from: registration.token, sender: sender, key: key,
          origin: Origin(stream: outcome.reference, slot: 0))
      case .nack(let refusal, _): outcome.answered(0, .nack(refusal.nack, refusal.description))
      case .stanzaError(let text): outcome.answered(0, .nack(.invalidJSON, text))
      case .ack: outcome.answered(0, .nack(.invalidJSON, "not a message"))
      }
    }
  }
}

/// Stands where a sender's stream would for one message of a device to its group, and tells the device the outcome.
final class GroupUpstream: SenderStream {
  let reference: StreamRef
  private unowned let shard: Shard
  private let origin: DeviceOrigin

  init(_ shard: Shard, _ origin: DeviceOrigin) {
    self.shard = shard
    self.origin = origin
    reference = StreamRef(loop: UInt8(shard.index), stream: shard.nextStreamNumber())
    shard.senderStreams[reference.stream] = self
  }

  func answered(_ slot: UInt32, _ answer: Answer) {
    shard.senderStreams[reference.stream] = nil
    let outcome: UpstreamAnswer
    switch answer {
    case .ack, .ackCounted: outcome = .ack
    case .nack(let code, let description, _):
      let error: UpstreamError =
        switch code {
        case .senderIDMismatch: .senderIDMismatch
        case .deviceMessageRateExceeded: .tooManyMessages
        case .serviceUnavailable, .internalServerError: .serviceUnavailable
        default: .invalidJSON
        }
      outcome = .nack(error, description)
    }
    shard.send(.upstreamAnswer(origin, outcome), to: shard.index)
  }

  func write(_ upstream: Upstream) {}
  func resolved(_ slot: UInt32, _ text: [UInt8], _ meaning: TokenMeaning?) {}
  func announceDraining() {}
  var pendingCount: Int { 1 }
}
