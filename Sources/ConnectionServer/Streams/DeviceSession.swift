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

extension Shard {
  /// - Returns: The epoch below which a grant is over already.
  fileprivate func claimAnswered(_ device: DeviceNumber) -> Int64 {
    guard var claim = claims[device] else { return 0 }
    claim.count -= 1
    claims[device] = claim.count > 0 ? claim : nil
    return claim.kickedBelow
  }
}

/// A device's bound stream, on the device's home loop: messages out, their acks in; upstream messages in.
final class DeviceSession: StreamSession, DeviceStream {
  private unowned let connection: XMPPConnection
  private let context: ServerContext
  private let shard: Shard
  private let device: DeviceNumber
  var registrations: [Registration]
  let reference: StreamRef
  private let stanzas: PushStanzas
  /// Nil until the store has granted the stream, and after its end.
  private var slot: DeviceSlot?
  private let deviceID: String
  private let since: WallTime
  /// Upstream messages taken and not answered.
  private var upstreamPending = 0

  init(_ connection: XMPPConnection, credentials: DeviceCredentials, deviceID: String) {
    self.connection = connection
    stanzas = PushStanzas(framing: connection.framing)
    context = connection.context
    shard = connection.shard
    device = credentials.number
    self.deviceID = deviceID
    since = connection.shard.wall
    registrations = credentials.registrations
    reference = StreamRef(loop: UInt8(shard.index), stream: connection.number)
    shard.deviceStreams[reference.stream] = self
    shard.counters.deviceStreams.add(1)
    claim()
  }

  /// Takes the device's stream in the store's eyes before any message is handed over.
  private func claim() {
    let (post, index, reference) = (context.post, shard.index, reference)
    let awaySince = shard.wall + .seconds(-context.limits.deviceAwaySecondsMax)
    let (context, device) = (context, device)
    if shard.bus != nil { shard.claims[device, default: PendingClaims()].count += 1 }
    context.store.claim(device, node: context.node, awaySince: awaySince, now: shard.wall) { result in
      post.post(
        .perform { shard in
          let kickedBelow = shard.claimAnswered(device)
          if let session = shard.deviceStreams[reference.stream] as? DeviceSession {
            session.claimed(result, kickedBelow: kickedBelow)
          } else {
            Self.giveUp(result, of: device, on: shard, context)
          }
        }, to: index)
    }
  }

  /// The stream ended before the store granted it.
  ///
  /// Nobody else will give it up; and the node that had the device holds a stream that the store no longer sends to.
  static func giveUp(
    _ result: Result<StreamGrant, StoreFault>, of device: DeviceNumber, on shard: Shard,
    _ context: ServerContext
  ) {
    switch result {
    case .success(let grant):
      shard.endedByRule(grant.ended)
      tellPrevious(grant, of: device, context)
      context.store.release(device, epoch: grant.epoch, now: shard.wall) { _ in }
    case .failure(.unavailable(outcomeUnknown: true, _)):
      context.bus?.send(.kick(device, epoch: .max), to: nil)
    case .failure: break
    }
  }

  /// Another node's stream of the device is over.
  private static func tellPrevious(
    _ grant: StreamGrant, of device: DeviceNumber, _ context: ServerContext
  ) {
    guard let previous = grant.previousNode, previous != context.node else { return }
    context.bus?.send(.kick(device, epoch: grant.epoch), to: previous)
  }

  private func claimed(_ result: Result<StreamGrant, StoreFault>, kickedBelow: Int64) {
    switch result {
    case .success(let grant) where grant.epoch < kickedBelow:
      shard.endedByRule(grant.ended)
      connection.fail(.conflict, "The device logged in on another stream")
    case .success(let grant):
      Self.tellPrevious(grant, of: device, context)
      shard.endedByRule(grant.ended)
      slot = shard.deviceOpened(device, self, epoch: grant.epoch)
    case .failure(.refused): connection.fail(.notAuthorized, "The device is gone")
    case .failure(.unavailable(outcomeUnknown: true, _)):
      // Who had the stream may have lost it to nobody.
      context.bus?.send(.kick(device, epoch: .max), to: nil)
      connection.fail(.resourceConstraint, "The store cannot be reached; connect again")
    case .failure: connection.fail(.resourceConstraint, "The store cannot be reached; connect again")
    }
  }

  var inspection: StreamInspection {
    StreamInspection(
      reference: reference, kind: .device(deviceID, device), peer: connection.peer, since: since,
      pending: slot?.inFlight.count ?? 0, upstreamPending: upstreamPending, isDraining: false)
  }

  // MARK: To the device

  var backlogBytes: Int { connection.channel.queuedBytes }

  func deliver(_ record: Downstream) {
    connection.write { output in
      record.body.withUnsafeBytes { body in
        if let shared = record.shared {
          shared.bytes.withUnsafeBytes { tail in
            if let own = PlatformTails.tail(tail, for: platform(of: record)) {
              own.withUnsafeBytes { stanzas.append(body, rest: $0, to: &output) }
            } else {
              stanzas.append(body, rest: tail, to: &output)
            }
          }
        } else {
          stanzas.append(body, to: &output)
        }
      }
    }
  }

  private func platform(of record: Downstream) -> Platform {
    registrations.first { $0.app == record.app && $0.sender == record.sender }?.platform ?? .linux
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
      let hash = place.lent(in: text) { Hash128(hex: $0) }
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

  /// The registration that a message names may be one that another node made.
  private func mayBeElsewhere(_ draft: UpstreamDraft, _ text: UnsafeRawBufferPointer) -> Bool {
    guard context.bus != nil, let token = draft.token?.string(in: text) else { return false }
    return !registrations.contains { $0.token == token }
  }

  /// Reads the device's registrations anew, then takes the message.
  private func takeKnowingAll(_ text: [UInt8]) {
    upstreamPending += 1
    let (post, index, reference) = (context.post, shard.index, reference)
    context.store.credentials(of: deviceID) { result in
      post.post(
        .perform { shard in
          guard let session = shard.deviceStreams[reference.stream] as? DeviceSession else { return }
          session.upstreamPending -= 1
          if case .success(let found?) = result { session.registrations = found.registrations }
          text.withUnsafeBytes { bytes in
            guard case .upstream(let draft) = shard.scratch.device.read(bytes) else { return }
            if case .failure = result {
              let id = Array(draft.messageID.raw(in: bytes))
              return session.writeAnswer(id, .nack(.serviceUnavailable, "The store cannot be read"))
            }
            session.take(draft, bytes, isFresh: true)
          }
        }, to: index)
    }
  }

  private func take(_ draft: UpstreamDraft, _ text: UnsafeRawBufferPointer, isFresh: Bool = false) {
    if !isFresh, upstreamPending < context.limits.upstreamPendingPerDeviceMax, mayBeElsewhere(draft, text) {
      return takeKnowingAll(Array(text))
    }
    do throws(UpstreamRefusal) {
      guard upstreamPending < context.limits.upstreamPendingPerDeviceMax else {
        throw UpstreamRefusal(
          error: .tooManyMessages,
          description: "\(context.limits.upstreamPendingPerDeviceMax) upstream messages are pending")
      }
      // Counted first: the outcome may come before this returns.
      upstreamPending += 1
      do throws(UpstreamRefusal) {
        try shard.takeFromDevice(draft, text, device, registrations, reference)
      } catch {
        upstreamPending -= 1
        throw error
      }
    } catch {
      writeAnswer(Array(draft.messageID.raw(in: text)), .nack(error.error, error.description))
    }
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
