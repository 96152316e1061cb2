import Bytes
import DeliveryCore
import JSONCore
import PushModel
import Seams
import Stores

/// Tells the state and history of messages: from the shards' rings, the store's rows and its journal.
struct MessageInspection: Sendable {
  let context: ServerContext

  /// Answers `GET /admin/v1/messages/{sender id}/{message id}`.
  func ofMessage(sender text: String, id: String) async throws -> APIResponse {
    guard let sender = SenderID(text: text) else { return .invalid("The sender id must be a number.") }
    let bytes = Array(id.utf8)
    let key = bytes.withUnsafeBytes { context.keys.downstream(sender, $0) }
    return try await ofKey(key, sender: sender, id: id)
  }

  /// Answers `GET /admin/v1/messages?device_message_id=…`: the same by the id that the device sees, which says neither
  /// its sender's id nor, unless a step of it is known, its sender.
  private func ofKey(hex: String) async throws -> APIResponse {
    let digits = Array(hex.utf8)
    guard let hash = digits.withUnsafeBytes({ Hash128(hex: $0) }) else {
      return .invalid("\"device_message_id\" must be 32 hex digits.")
    }
    return try await ofKey(MessageKey(hash), sender: nil, id: nil)
  }

  private func ofKey(_ key: MessageKey, sender: SenderID?, id: String?) async throws -> APIResponse {
    var steps = await context.gather { $0.events.history(max: 100) { $0.key == key } }.flatMap(\.self)
    let stored = try await context.store.find(key)
    let fanout = try await context.store.fanout(of: key)
    if steps.isEmpty {
      let since = WallTime(ms: context.time.wall.ms - context.tuning.dedupeHorizon.ns / 1_000_000)
      let entries = try await context.store.journal(since: since, max: 2_000_000)
      steps = entries.reversed().filter { $0.key == key }.map {
        EventRing.Event(key: $0.key, sender: $0.sender, device: $0.device, state: $0.state, at: $0.at)
      }
    }
    let name = await context.gather { $0.tail.names[key] }.compactMap(\.self).first { !$0.messageID.isEmpty }
    let id = id ?? name?.messageID
    if let fanout { return .json(Self.show(fanout, id, steps)) }
    guard !steps.isEmpty || !stored.isEmpty else {
      return .notFound(
        "No message of this sender with this id is known; history reaches back a limited time.")
    }
    steps.sort { ($0.at, $0.state.rawValue) < ($1.at, $1.state.rawValue) }
    let sender = sender ?? steps.first?.sender ?? stored.first?.sender
    let end = steps.last { $0.state.isEnd }?.state
    let state = end ?? (stored.isEmpty ? steps.last?.state : steps.last?.state ?? .stored) ?? .stored
    return .json([
      "sender_id": sender.map { .string($0.description) } ?? .null,
      "message_id": id.map { .string($0) } ?? .null, "target": name.map { .string($0.target) } ?? .null,
      "device_message_id": .string(key.hash.hex), "state": .string(state.name),
      "ended": .bool(end != nil), "history": .array(steps.map(Self.show)),
      "stored": .array(stored.map(Self.show)),
    ])
  }

  /// A message to a topic or a condition: each receiver's has a state of its own, so they are counted.
  private static func show(
    _ fanout: FanoutProgress, _ id: String?, _ steps: [EventRing.Event]
  ) -> JSONValue {
    let isOver = fanout.isDone && fanout.counts.waiting == 0
    return [
      "sender_id": .string(fanout.sender.description), "message_id": id.map { .string($0) } ?? .null,
      "state": fanout.isDone ? "fanned_out" : "fanning_out", "ended": .bool(isOver),
      "fanout": TargetAdministration.show(fanout),
      "history": .array(steps.sorted { ($0.at, $0.state.rawValue) < ($1.at, $1.state.rawValue) }.map(show)),
    ]
  }

  /// `GET /admin/v1/messages?token=…`: what is stored for a token's device, and its latest steps.
  func ofToken(_ request: APIRequest) async throws -> APIResponse {
    if let id = request.query["device_message_id"] { return try await ofKey(hex: id) }
    guard let token = request.query["token"] else {
      return .invalid("Name a token: ?token=…, or a message: /admin/v1/messages/{sender id}/{message id}.")
    }
    guard let registration = try await context.store.lookUp([token]).first ?? nil else {
      return .notFound("No registration ever had this token.")
    }
    let device = registration.device
    let max = min(1000, Int(request.query["max"] ?? "") ?? 100)
    let backlog = try await context.store.backlog(
      of: device, after: nil, max: max, now: context.time.wall)
    let steps = await context.gather { $0.events.history(max: max) { $0.device == device } }.flatMap(\.self)
    return .json([
      "token": .string(token), "device": .number(device.value),
      "stored": .array(backlog.messages.map(Self.show)), "more_stored": .bool(backlog.hasMore),
      "overflowed": .number(backlog.overflowed),
      "history": .array(steps.sorted { $0.at < $1.at }.map(Self.show)),
    ])
  }

  private static func show(_ step: EventRing.Event) -> JSONValue {
    [
      "device_message_id": .string(step.key.hash.hex), "state": .string(step.state.name),
      "at": .number(step.at.ms), "device": .number(step.device.value),
    ]
  }

  private static func show(_ row: StoredMessage) -> JSONValue {
    [
      "device_message_id": .string(row.key.hash.hex), "sender_id": .string(row.sender.description),
      "device": .number(row.device.value), "app": .string(row.app),
      "collapse_key": row.collapse.map { .string($0) } ?? .null, "expires": .number(row.expires.ms),
      "priority": row.highPriority ? "high" : "normal",
      "bytes": .number(row.body.count + (row.shared?.bytes.count ?? 0)),
      "from_topic_message": .bool(row.shared != nil),
    ]
  }
}
