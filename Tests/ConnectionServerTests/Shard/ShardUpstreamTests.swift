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
}
