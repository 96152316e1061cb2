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
    context.store.claim(device, node: 0, awaySince: awaySince, now: shard.wall) { result in
      post.post(
        .perform { ($0.deviceStreams[reference.stream] as? DeviceSession)?.claimed(result) }, to: index)
    }
  }

  private func claimed(_ result: Result<StreamGrant, StoreFault>) {
    switch result {
    case .success(let grant):
      shard.endedByRule(grant.ended)
      slot = shard.deviceOpened(device, self, epoch: grant.epoch)
    case .failure(.refused): connection.fail(.notAuthorized, "The device is gone")
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

  private func take(_ draft: UpstreamDraft, _ text: UnsafeRawBufferPointer) {
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
