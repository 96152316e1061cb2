import PushModel
import Seams
import Stores
import Testing

@testable import ConnectionServer

/// When a message that is with its device is written all the same.
@Suite struct ShardLingerTests {
  @Test func aLoopWithTimeToSpareWritesSoonAndABusyOneWaits() {
    let tuning = ShardTuning()
    #expect(tuning.liveLinger(at: 0) == .milliseconds(3))
    #expect(tuning.liveLinger(at: 0.5) == .milliseconds(3))
    #expect(tuning.liveLinger(at: 0.75) == .microseconds(126_500))
    #expect(tuning.liveLinger(at: 1) == .milliseconds(250))
    #expect(tuning.liveLinger(at: 7) == .milliseconds(250))
    #expect(tuning.settleLinger(at: 0.5) == .milliseconds(20))
    #expect(tuning.settleLinger(at: 1) == .milliseconds(100))
  }

  @Test func onABusyLoopTheDiskWaitsForTheDeviceLonger() async throws {
    let harness = ShardHarness()
    for shard in harness.shards { shard.load = 1 }
    let phone = try await harness.register("a")
    let (_, slot) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    harness.send("m1", to: phone, from: stream, slot: 0)
    harness.send("m2", to: phone, from: stream, slot: 1)
    harness.advance(.milliseconds(230), inStepsOf: .milliseconds(5))
    #expect(sender.answers.isEmpty)
    harness.deviceAcks("m1", slot)
    harness.settle()
    #expect(sender.answers[0] == [.ack])
    harness.advance(.milliseconds(20), inStepsOf: .milliseconds(5))
    #expect(sender.answers[1] == [.ack])
    #expect(harness.storedCount() == 1)
  }

  @Test func aMessageGoesToTheDiskWhenItsOwnTimeHasComeNotAnOthers() async throws {
    let harness = ShardHarness(shards: 1)
    let phone = try await harness.register("a")
    let away = try await harness.register("b")
    _ = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    harness.send("m1", to: phone, from: stream, slot: 0)
    harness.advance(.milliseconds(2))
    harness.send("m2", to: phone, from: stream, slot: 1)
    harness.send("m3", to: away, from: stream, slot: 2)
    harness.settle()
    #expect(sender.answers.keys.sorted() == [2])
    harness.advance(.milliseconds(1))
    #expect(sender.answers.keys.sorted() == [0, 2])
    harness.advance(.milliseconds(2))
    #expect(sender.answers.keys.sorted() == [0, 1, 2])
    #expect(harness.storedCount() == 3)
  }

  @Test func whatADeviceLeftUnackedIsWrittenAtOnceWhenItsStreamEnds() async throws {
    let harness = ShardHarness()
    for shard in harness.shards { shard.load = 1 }
    let phone = try await harness.register("a")
    let (device, slot) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    for index in 0..<3 { harness.send("m\(index)", to: phone, from: stream, slot: UInt32(index)) }
    harness.settle()
    harness.deviceAcks("m1", slot)
    harness.disconnect(device, slot)
    #expect(sender.answers.keys.sorted() == [0, 1, 2])
    #expect(harness.storedCount() == 2)
    let (second, _) = harness.connect(phone)
    #expect(second.delivered.map(\.body) == [Array("m0".utf8), Array("m2".utf8)])
    harness.advance(.seconds(1), inStepsOf: .milliseconds(50))
    #expect(harness.storedCount() == 2)
  }

  @Test func aRepeatFindsAMessageThatStillWaits() async throws {
    let harness = ShardHarness()
    for shard in harness.shards { shard.load = 1 }
    let phone = try await harness.register("a")
    let (device, slot) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    harness.send("m1", to: phone, from: stream, slot: 0)
    harness.settle()
    harness.send("m1", to: phone, from: stream, slot: 1)
    harness.advance(.milliseconds(60), inStepsOf: .milliseconds(20))
    #expect(sender.answers.isEmpty)
    harness.deviceAcks("m1", slot)
    harness.settle()
    #expect(sender.answers == [0: [.ack], 1: [.ack]])
    #expect(device.delivered.count == 1)
  }

  @Test func aQueueOfThousandsThatAreAckedEndsEmpty() async throws {
    var tuning = ShardTuning()
    tuning.deviceWindow = 10_000
    let harness = ShardHarness(shards: 1, tuning: tuning)
    harness.shards[0].load = 1
    let phone = try await harness.register("a")
    let (_, slot) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    for index in 0..<5_000 { harness.send("m\(index)", to: phone, from: stream, slot: UInt32(index)) }
    harness.settle()
    for index in 0..<4_900 { harness.deviceAcks("m\(index)", slot) }
    for index in (4_900..<5_000).reversed() { harness.deviceAcks("m\(index)", slot) }
    harness.settle()
    #expect(sender.answers.count == 5_000)
    #expect(harness.shards[0].writing.queuedCount == 0)
    harness.advance(.milliseconds(100))
    // A value of its own, since what an expectation is about is printed whole.
    let isIdle = harness.shards[0].writing.isIdle
    #expect(isIdle)
    #expect(harness.storedCount() == 0)
  }
}
