import DeliveryCore
import JSONCore
import PushModel
import Seams
import Stores

/// `/admin/v1/devices/{token}/…`: what a test reads of a device, and sends in its name.
struct DeviceAdministration: Sendable {
  let context: ServerContext
  private static let waitSecondsMax = 60.0

  /// What the token's device was handed of late, and what waits for it.
  ///
  /// `wait=SECONDS`: when there is nothing yet, answers with the first message or when the time is over. `after=N`: only
  /// what was handed out behind sequence number N of an earlier answer.
  func messages(_ token: String, _ request: APIRequest) async throws -> APIResponse {
    guard let registration = try await context.store.lookUp([token]).first ?? nil else {
      return .notFound("No registration ever had this token.")
    }
    guard let seconds = request.query["wait"].map({ Double($0) }) ?? 0, seconds >= 0,
      seconds <= Self.waitSecondsMax
    else { return .invalid("\"wait\" must be 0 to 60 seconds.") }
    guard let after = request.query["after"].map({ UInt64($0) }) ?? 0 else {
      return .invalid("\"after\" must be a sequence number of an earlier answer.")
    }
    let max = Swift.max(1, min(1_000, Int(request.query["max"] ?? "") ?? 100))
    let device = registration.device
    let waiting = try await context.store.backlog(
      of: device, after: nil, max: max, now: context.time.wall)
    // Somebody who asks for the first time is told at once of what is in the store.
    let patience = request.query["after"] == nil && !waiting.messages.isEmpty ? 0 : seconds
    let found = await entries(of: device, after, max, patience)
    let states = await states(of: device, found.map(\.record.key))
    let isConnected = await read(device) { $0.devices[device] != nil }
    let sent = Set(found.map(\.record.number))
    let rest = waiting.messages.filter { !sent.contains($0.number) }
    return .json([
      "token": .string(token), "device": .number(device.value), "connected": .bool(isConnected),
      "messages": .array(
        found.map { entry in
          [
            "sequence": .number(Int64(clamping: entry.sequence)), "at": .number(entry.at.ms),
            "state": .string((states[entry.record.key] ?? .inFlight).name),
            "message": Self.object(entry.record.body, entry.record.shared, registration.platform),
          ]
        }),
      "next": .number(Int64(clamping: found.last?.sequence ?? after)),
      "waiting": .array(
        rest.map { Self.object($0.body, $0.shared, registration.platform) }),
      "overflowed": .number(waiting.overflowed),
    ])
  }

  /// A message as the device gets it.
  private static func object(_ body: [UInt8], _ shared: SharedTail?, _ platform: Platform) -> JSONValue {
    let tail = shared.map { $0.bytes } ?? []
    let whole = body + (tail.withUnsafeBytes { PlatformTails.tail($0, for: platform) } ?? tail)
    return (try? JSONValue(parsing: whole)) ?? .string(String(decoding: whole, as: UTF8.self))
  }

  private func home(_ device: DeviceNumber) -> Int {
    Int(device.value.magnitude % UInt64(context.shardCount))
  }

  private func read<Value: Sendable>(
    _ device: DeviceNumber, _ read: @escaping @Sendable (Shard) -> Value
  ) async -> Value {
    await withCheckedContinuation { continuation in
      context.post.post(.perform { continuation.resume(returning: read($0)) }, to: home(device))
    }
  }

  private func entries(
    of device: DeviceNumber, _ after: UInt64, _ max: Int, _ seconds: Double
  ) async -> [DeliveryLog.Entry] {
    await withCheckedContinuation { continuation in
      context.post.post(
        .perform { shard in
          shard.deliveries(of: device, after: after, max: max, patience: .seconds(seconds)) {
            continuation.resume(returning: $0)
          }
        }, to: home(device))
    }
  }

  /// Where these messages are by now.
  private func states(of device: DeviceNumber, _ keys: [MessageKey]) async -> [MessageKey: MessageState] {
    let wanted = Set(keys)
    guard !wanted.isEmpty else { return [:] }
    return await read(device) { shard in
      var states: [MessageKey: MessageState] = [:]
      for event in shard.events.history(
        max: 10_000, where: { $0.device == device && wanted.contains($0.key) })
      { states[event.key] = event.state }
      // It may have been stored while its device had it.
      for key in wanted
      where states[key]?.isEnd != true && shard.devices[device]?.inFlight.contains(key) == true {
        states[key] = .inFlight
      }
      return states
    }
  }

  // MARK: Upstream

  /// Sends upstream in the name of a device; answers with the outcome that the device would be told.
  func upstream(_ token: String, _ request: APIRequest) async throws -> APIResponse {
    guard let registration = try await context.store.lookUp([token]).first ?? nil,
      registration.state == .active
    else { return .notFound("There is no active registration with this token.") }
    let body: JSONValue
    do { body = try JSONValue(parsing: request.body) } catch {
      return .invalid("The body is not a JSON object: \(error)")
    }
    guard var members = body.members else { return .invalid("The body must be a JSON object.") }
    members.removeAll { $0.name == "token" }
    if body["to"] == nil {
      members.append(.init("to", .string("\(registration.sender)@fcm.googleapis.com")))
    }
    members.append(.init("token", .string(token)))
    let text = JSONValue.object(members).bytes
    let (draft, answer) = await send(text, registration)
    switch answer {
    case .ack: return .json(["message_id": .string(draft ?? ""), "outcome": "ack"])
    case .nack(let error, let description):
      return .json(
        [
          "message_id": .string(draft ?? ""), "outcome": "nack", "error": .string(error.rawValue),
          "error_description": .string(description),
        ], status: 422)
    }
  }

  private func send(_ text: [UInt8], _ registration: Registration) async -> (String?, UpstreamAnswer) {
    await withCheckedContinuation { continuation in
      context.post.post(
        .perform { shard in
          let stream = BorrowedDevice(shard) { continuation.resume(returning: ($0, $1)) }
          stream.send(text, registration)
        }, to: home(registration.device))
    }
  }
}

/// Stands where a device's stream would for one upstream message that administration sends.
final class BorrowedDevice: DeviceStream {
  let reference: StreamRef
  var registrations: [Registration] = []
  private unowned let shard: Shard
  private var done: ((String?, UpstreamAnswer) -> Void)?
  private var messageID: String?

  init(_ shard: Shard, _ done: @escaping (String?, UpstreamAnswer) -> Void) {
    self.shard = shard
    self.done = done
    reference = StreamRef(loop: UInt8(shard.index), stream: shard.nextStreamNumber())
    shard.deviceStreams[reference.stream] = self
  }

  func send(_ text: [UInt8], _ registration: Registration) {
    text.withUnsafeBytes { text in
      switch shard.scratch.device.read(text) {
      case .upstream(let draft):
        messageID = draft.messageID.string(in: text)
        do throws(UpstreamRefusal) {
          try shard.takeFromDevice(draft, text, registration.device, [registration], reference)
        } catch {
          end(.nack(error.error, error.description))
        }
      case .refused(let error, let description, let id):
        messageID = id.string(in: text)
        end(.nack(error, description))
      case .stanzaError(let text): end(.nack(.invalidJSON, text.trimmed))
      case .ack: end(.nack(.invalidJSON, "\"message_type\" is not for upstream messages"))
      }
    }
  }

  private func end(_ answer: UpstreamAnswer) {
    shard.deviceStreams[reference.stream] = nil
    done?(messageID, answer)
    done = nil
  }

  func upstreamAnswered(_ rawMessageID: [UInt8], _ answer: UpstreamAnswer) { end(answer) }

  var backlogBytes: Int { 0 }
  func deliver(_ record: Downstream) {}
  func tellDeleted(count: Int) {}
  func replaced() {}
}
