import PushModel
import Seams
import Stores
import Testing

@testable import ConnectionServer

@Suite struct ShardUpstreamTests {
  private func upstream(
    _ id: String, _ phone: Registration, _ harness: ShardHarness, from device: ShardHarness.FakeDevice,
    ttl: Int64 = 3600
  ) {
    let shard = harness.shards[Int(device.reference.loop)]
    let row = StoredUpstream(
      number: MessageNumber(shard.numbers.next(harness.time.wall)), sender: harness.sender,
      key: Array(id.utf8).withUnsafeBytes { harness.context.keys.upstream(phone.device, $0) },
      device: phone.device, expires: WallTime(ms: harness.time.wall.ms + max(1, ttl) * 1000),
      body: Array(id.utf8), messageID: id, from: phone.token)
    let origin = DeviceOrigin(stream: device.reference, rawMessageID: Array(id.utf8))
    shard.send(
      .upstream(Upstream(row, origin: origin, write: ttl == 0 ? .never : .queued)),
      to: shard.home(of: harness.sender))
    harness.settle()
  }

  private func ack(_ record: Upstream, _ stream: StreamRef, _ harness: ShardHarness) {
    let shard = harness.shards[Int(stream.loop)]
    shard.send(
      .upstreamAcked(harness.sender, record.row.number, stream), to: shard.home(of: harness.sender))
    harness.settle()
  }

  @Test func theAppServersAckIsTheDevicesAck() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (device, _) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    upstream("u1", phone, harness, from: device)
    #expect(sender.upstream.count == 1)
    ack(sender.upstream[0], stream, harness)
    #expect(device.upstreamAnswers.map(\.0) == ["u1"])
    #expect(device.upstreamAnswers.map(\.1) == [.ack])
  }

  @Test func withoutAnAppServerItIsAckedWhenDurableAndHandedOutLater() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (device, _) = harness.connect(phone)
    upstream("u1", phone, harness, from: device)
    harness.advance(.milliseconds(20))
    #expect(device.upstreamAnswers.map(\.1) == [.ack])
    let (sender, stream) = harness.openSender()
    #expect(sender.upstream.map(\.row.messageID) == ["u1"])
    ack(sender.upstream[0], stream, harness)
    harness.advance(.seconds(1))
    let (again, _) = harness.openSender()
    #expect(again.upstream.isEmpty)
  }

  @Test func whatAClosedStreamDidNotAckComesOnAnother() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (device, _) = harness.connect(phone)
    let (first, stream) = harness.openSender()
    upstream("u1", phone, harness, from: device)
    #expect(first.upstream.count == 1)
    harness.shards[Int(stream.loop)].send(
      .senderClosed(harness.sender, stream), to: harness.shards[0].home(of: harness.sender))
    harness.settle()
    let (second, _) = harness.openSender(on: 1)
    #expect(second.upstream.map(\.row.messageID) == ["u1"])
  }

  @Test func afterARestartTheStoreHandsOutWhatWasNotAcked() async throws {
    let first = ShardHarness()
    let phone = try await first.register("a")
    let (device, _) = first.connect(phone)
    for index in 0..<700 { upstream("u\(index)", phone, first, from: device) }
    first.advance(.seconds(1))
    let second = ShardHarness(store: first.store.restarted())
    second.shards[second.shards[0].home(of: second.sender)].upstreamLeft(second.sender)
    var seen: [String] = []
    let (sender, stream) = second.openSender()
    var next = 0
    while next < sender.upstream.count {
      seen.append(sender.upstream[next].row.messageID)
      ack(sender.upstream[next], stream, second)
      next += 1
    }
    #expect(seen == (0..<700).map { "u\($0)" })
  }

  @Test func timeToLiveZeroWithoutAnAppServerIsRefused() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (device, _) = harness.connect(phone)
    upstream("u1", phone, harness, from: device, ttl: 0)
    guard case .nack(.ttlExceeded, _) = device.upstreamAnswers.first?.1 else {
      Issue.record("expected TTL_EXCEEDED, got \(device.upstreamAnswers)")
      return
    }
    let (sender, _) = harness.openSender()
    #expect(sender.upstream.isEmpty)
  }

  /// Ids written to a stream so far.
  private func ids(_ stream: ShardHarness.FakeSender) -> [String] { stream.upstream.map(\.row.messageID) }

  @Test func anAppServerThatNeverAcksGetsItAgainAfterGrowingPausesUntilItsTimeIsOver() async throws {
    let harness = ShardHarness { $0.upstreamRetryFirst = .seconds(30) }
    let phone = try await harness.register("a")
    let (device, _) = harness.connect(phone)
    let (sender, _) = harness.openSender()
    upstream("u1", phone, harness, from: device, ttl: 600)
    harness.advance(.seconds(29), inStepsOf: .seconds(1))
    #expect(sender.upstream.count == 1)
    harness.advance(.seconds(1))
    #expect(sender.upstream.count == 2)
    harness.advance(.seconds(59), inStepsOf: .seconds(1))
    #expect(sender.upstream.count == 2)
    harness.advance(.seconds(1))
    #expect(sender.upstream.count == 3)
    // The next ones are due after 210 and 450 s; at 930 s it is over.
    harness.advance(.seconds(4_000), inStepsOf: .seconds(10))
    #expect(sender.upstream.count == 5)
    #expect(Set(sender.upstream.map(\.row.number)).count == 1)
    #expect(device.upstreamAnswers.map(\.1) == [.ack])
    let left = try harness.ask {
      harness.store.lease(
        for: harness.sender, after: nil, max: 9, node: 0, until: harness.time.wall, now: WallTime(ms: 0), $0)
    }
    #expect(left.isEmpty)
  }

  @Test func anAckOfARepeatEndsTheRepeating() async throws {
    let harness = ShardHarness { $0.upstreamRetryFirst = .seconds(30) }
    let phone = try await harness.register("a")
    let (device, _) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    upstream("u1", phone, harness, from: device)
    harness.advance(.seconds(30), inStepsOf: .seconds(1))
    #expect(sender.upstream.count == 2)
    ack(sender.upstream[1], stream, harness)
    // A second ack is harmless.
    ack(sender.upstream[0], stream, harness)
    harness.advance(.seconds(3_000), inStepsOf: .seconds(10))
    #expect(sender.upstream.count == 2)
    #expect(device.upstreamAnswers.count == 1)
  }

  @Test func whatWasAckedOnAStreamThatWasCutFirstComesOnceMore() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (device, _) = harness.connect(phone)
    let (first, stream) = harness.openSender()
    upstream("u1", phone, harness, from: device)
    harness.shards[Int(stream.loop)].send(
      .senderClosed(harness.sender, stream), to: harness.shards[0].home(of: harness.sender))
    harness.settle()
    let (second, other) = harness.openSender()
    #expect(ids(second) == ["u1"])
    // The ack that was on its way names a stream that is gone, and frees nothing.
    ack(first.upstream[0], stream, harness)
    ack(second.upstream[0], other, harness)
    harness.advance(.seconds(100), inStepsOf: .seconds(1))
    let (third, _) = harness.openSender()
    #expect(ids(second) == ["u1"])
    #expect(third.upstream.isEmpty)
  }

  @Test func twoDevicesMayUseTheSameID() async throws {
    let harness = ShardHarness()
    let (one, other) = (try await harness.register("a"), try await harness.register("b"))
    let (deviceA, _) = harness.connect(one)
    let (deviceB, _) = harness.connect(other)
    let (sender, stream) = harness.openSender()
    try send("u1", one, harness, from: deviceA)
    try send("u1", other, harness, from: deviceB)
    #expect(ids(sender) == ["u1", "u1"])
    #expect(Set(sender.upstream.map(\.row.from)) == [one.token, other.token])
    for record in sender.upstream { ack(record, stream, harness) }
    #expect(deviceA.upstreamAnswers.map(\.1) == [.ack])
    #expect(deviceB.upstreamAnswers.map(\.1) == [.ack])
  }

  /// Sends JSON as a device's stream does.
  private func send(
    _ id: String, _ phone: Registration, _ harness: ShardHarness, from device: ShardHarness.FakeDevice,
    to target: String? = nil, ttl: Int = 3600
  ) throws {
    let shard = harness.shards[Int(device.reference.loop)]
    shard.now = harness.time.moment
    shard.wall = harness.time.wall
    let to = target ?? "\(harness.sender)@fcm.googleapis.com"
    let json = #"{"to":"\#(to)","message_id":"\#(id)","time_to_live":\#(ttl),"data":{"k":"<&>"}}"#
    try Array(json.utf8).withUnsafeBytes { text in
      guard case .upstream(let draft) = shard.scratch.device.read(text) else {
        throw StoreFault.refused(detail: json)
      }
      do throws(UpstreamRefusal) {
        try shard.takeFromDevice(draft, text, phone.device, [phone], device.reference)
      } catch {
        device.upstreamAnswered(Array(id.utf8), .nack(error.error, error.description))
      }
    }
    harness.settle()
  }

  @Test func theSameIDOfADeviceIsTakenOnceAndAckedEachTime() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (device, _) = harness.connect(phone)
    let (sender, _) = harness.openSender()
    try send("u1", phone, harness, from: device)
    harness.advance(.seconds(1))
    try send("u1", phone, harness, from: device)
    harness.advance(.seconds(1))
    #expect(ids(sender) == ["u1"])
    #expect(device.upstreamAnswers.map(\.1) == [.ack, .ack])
  }

  @Test func aRefusedMessageIsTakenWhenItComesAgainUnderItsID() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (device, _) = harness.connect(phone)
    try send("u1", phone, harness, from: device, ttl: 0)
    guard case .nack(.ttlExceeded, _) = device.upstreamAnswers.first?.1 else {
      Issue.record("\(device.upstreamAnswers)")
      return
    }
    let (sender, stream) = harness.openSender()
    try send("u1", phone, harness, from: device, ttl: 0)
    #expect(ids(sender) == ["u1"])
    ack(sender.upstream[0], stream, harness)
    #expect(device.upstreamAnswers.last?.1 == .ack)
  }

  @Test func aReceiptIsRepeatedUntilItIsAckedAndNotForEver() async throws {
    let harness = ShardHarness {
      $0.upstreamRetryFirst = .seconds(30)
      $0.upstreamHeldSecondsMax = 300
    }
    let phone = try await harness.register("a")
    let (_, slot) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    let shard = harness.shards[harness.shards[0].home(of: phone.device)]
    for id in ["m1", "m2"] {
      let receipt = #"{"message_type":"receipt","from":"gcm.googleapis.com","message_id":"dr2:\#(id)"}"#
      let record = Downstream(
        number: MessageNumber(shard.numbers.next(harness.time.wall)), key: harness.key(id),
        device: phone.device, sender: harness.sender, app: phone.app, collapse: nil,
        expires: harness.time.wall + .seconds(3600), highPriority: true, body: [],
        receipt: Array(receipt.utf8), origin: nil, write: .queued)
      shard.take(record)
      harness.deviceAcks(id, slot)
      harness.settle()
    }
    #expect(ids(sender) == ["dr2:m1", "dr2:m2"])
    ack(sender.upstream[0], stream, harness)
    harness.advance(.seconds(5_000), inStepsOf: .seconds(10))
    // After 0, 30, 90 and 210 s; at 450 s its time is over.
    #expect(ids(sender) == ["dr2:m1", "dr2:m2", "dr2:m2", "dr2:m2", "dr2:m2"])
  }

  @Test func aDeviceMaySendSoManyInAMinuteAndItsProjectToo() async throws {
    let harness = ShardHarness {
      $0.upstreamRetryFirst = .zero
      $0.upstreamPerDevicePerMinuteMax = 3
      $0.upstreamPerProjectPerMinuteMax = 5
    }
    let (one, other) = (try await harness.register("a"), try await harness.register("b"))
    let (deviceA, _) = harness.connect(one)
    let (deviceB, _) = harness.connect(other)
    let (sender, _) = harness.openSender()
    for index in 0..<4 { try send("u\(index)", one, harness, from: deviceA) }
    #expect(deviceA.upstreamAnswers.map(\.0) == ["u3"])
    #expect(
      deviceA.upstreamAnswers.map(\.1)
        == [.nack(.tooManyMessages, "Upstream message rate exceeded; retry after 60 s")])
    for index in 0..<3 { try send("v\(index)", other, harness, from: deviceB) }
    #expect(deviceB.upstreamAnswers.map(\.0) == ["v2"])
    #expect(sender.upstream.count == 5)
    harness.time.advance(by: .seconds(60))
    try send("u3", one, harness, from: deviceA)
    #expect(ids(sender).last == "u3")
  }

  // MARK: Device groups

  private func group(_ harness: ShardHarness, _ tokens: [String]) throws -> String {
    let key = NotificationKey(random: Array(repeating: 7, count: NotificationKey.randomByteCount)).text
    let outcome = try harness.ask {
      harness.store.createGroup(
        key: key, name: "family", sender: harness.sender, tokens: tokens, now: harness.time.wall, $0)
    }
    guard case .done = outcome else { throw StoreFault.refused(detail: "\(outcome)") }
    return key
  }

  @Test func aMemberOfAGroupReachesTheOthersAndNoAppServer() async throws {
    let harness = ShardHarness()
    let phones = [
      try await harness.register("a"), try await harness.register("b"), try await harness.register("c"),
    ]
    let key = try group(harness, phones.map(\.token))
    let (device, _) = harness.connect(phones[0])
    let (second, slot) = harness.connect(phones[1])
    let (sender, _) = harness.openSender()
    try send("u1", phones[0], harness, from: device, to: key)
    #expect(second.delivered.count == 1)
    #expect(second.delivered.first?.text.contains(#""k":"<&>""#) == true)
    for record in second.delivered {
      harness.shards[harness.shards[0].home(of: slot.device)].deviceAcked(record.key, slot)
    }
    harness.advance(.seconds(1))
    #expect(device.upstreamAnswers.map(\.1) == [.ack])
    #expect(device.delivered.isEmpty)
    #expect(sender.upstream.isEmpty)
    // The third one is away and gets it when it comes.
    let (third, _) = harness.connect(phones[2])
    #expect(third.delivered.count == 1)
    // The same id again changes nothing.
    try send("u1", phones[0], harness, from: device, to: key)
    harness.advance(.seconds(1))
    #expect(device.upstreamAnswers.map(\.1) == [.ack, .ack])
    #expect(second.delivered.count == 1 && third.delivered.count == 1)
  }

  @Test func whoIsNotInTheGroupCannotSendToItAndAnUnknownGroupIsRefused() async throws {
    let harness = ShardHarness()
    let phones = [try await harness.register("a"), try await harness.register("b")]
    let key = try group(harness, [phones[0].token])
    let (stranger, _) = harness.connect(phones[1])
    try send("u1", phones[1], harness, from: stranger, to: key)
    harness.advance(.seconds(1))
    #expect(
      stranger.upstreamAnswers.map(\.1)
        == [.nack(.invalidJSON, "The registration is not a member of the group")])
    let unknown = NotificationKey(random: Array(repeating: 9, count: NotificationKey.randomByteCount)).text
    try send("u2", phones[1], harness, from: stranger, to: unknown)
    harness.advance(.seconds(1))
    #expect(
      stranger.upstreamAnswers.map(\.1).last
        == .nack(.invalidJSON, "There is no group with this notification_key"))
    // Alone in its group, a member reaches nobody, and that is no fault.
    let (alone, _) = harness.connect(phones[0])
    try send("u3", phones[0], harness, from: alone, to: key)
    harness.advance(.seconds(1))
    #expect(alone.upstreamAnswers.map(\.1) == [.ack])
  }
}
