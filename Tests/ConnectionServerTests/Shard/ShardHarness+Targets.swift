import DeliveryCore
import PushModel
import Seams
import Stores
import Synchronization
import Testing

@testable import ConnectionServer

extension ShardHarness {
  /// Registers a device `name` with the token `dev-name`.
  func add(
    _ name: String, device: String? = nil, app: String = "org.example.app", user: String? = nil,
    topics: [String] = []
  ) throws -> Registration {
    let request = RegistrationRequest(
      token: "dev-\(name)", deviceID: device ?? name, secretHash: [], sender: sender, app: app,
      platform: .linux, user: user, previousToken: nil)
    let made = try ask { store.register(request, now: time.wall, $0) }
    for topic in topics { #expect(try change(made.token, topic) == [.changed]) }
    return made
  }

  func change(
    _ token: String, _ topic: String, isSubscribed: Bool = true
  ) throws -> [SubscriptionOutcome] {
    let name = try #require(TopicName(topic))
    let change = SubscriptionChange(token: token, sender: sender, topic: name, isSubscribed: isSubscribed)
    return try ask { store.change([change], now: time.wall, $0) }
  }

  /// Asks the store and lets all held answers through.
  func ask<Value: Sendable>(_ call: (@escaping Completion<Value>) -> Void) throws -> Value {
    let box = Mutex<Result<Value, StoreFault>?>(nil)
    let found = Box(box)
    call { result in found.value.withLock { $0 = result } }
    for answer in answers.takeAll() { answer() }
    return try #require(found.value.withLock { $0 }).get()
  }

  private final class Box<Value: Sendable>: Sendable {
    let value: Mutex<Result<Value, StoreFault>?>
    init(_ value: consuming Mutex<Result<Value, StoreFault>?>) { self.value = value }
  }

  /// Sends JSON as a sender's stream would after validation.
  func sendToTarget(_ json: String, from stream: StreamRef, slot: UInt32) throws {
    let shard = shards[Int(stream.loop)]
    shard.now = time.moment
    shard.wall = time.wall
    let state = try #require(context.accounts.sender(sender))
    try Array(json.utf8).withUnsafeBytes { text in
      guard case .downstream(let draft) = shard.scratch.downstream.read(text) else {
        throw StoreFault.refused(detail: "\(json) is no message")
      }
      shard.sendToTarget(draft, text, sender: state, origin: Origin(stream: stream, slot: slot))
    }
  }

  func sendToTopic(
    _ topic: String, _ id: String, from stream: StreamRef, slot: UInt32, more: String = ""
  ) throws {
    try sendToTarget(
      "{\"to\":\"/topics/\(topic)\",\"message_id\":\"\(id)\"\(more),\"data\":{\"id\":\"\(id)\"}}",
      from: stream,
      slot: slot)
  }

  /// The device acks everything it was given.
  func ackAll(_ device: FakeDevice, _ slot: DeviceSlot) {
    for record in device.delivered { shards[shards[0].home(of: slot.device)].deviceAcked(record.key, slot) }
    advance(.seconds(1))
  }

  func progress(_ id: String) throws -> FanoutProgress? {
    let key = key(id)
    return try ask { store.fanout(of: key, $0) }
  }
}

extension Downstream {
  var text: String { String(decoding: body + (shared?.bytes ?? []), as: UTF8.self) }
}
