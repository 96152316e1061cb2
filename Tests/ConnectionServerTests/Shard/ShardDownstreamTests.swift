import DeliveryCore
import PushModel
import Seams
import Stores
import Telemetry
import Testing

@testable import ConnectionServer

@Suite struct ShardDownstreamTests {
  @Test func aDeviceThatAcksBeforeTheBatchKeepsTheDiskOut() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (device, slot) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    harness.send("m1", to: phone, from: stream, slot: 0)
    harness.settle()
    #expect(device.delivered.count == 1)
    #expect(sender.answers[0] == nil)
    harness.deviceAcks("m1", slot)
    harness.settle()
    #expect(sender.answers[0] == [.ack])
    harness.advance(.seconds(1))
    #expect(harness.state("m1") == .delivered)
    #expect(harness.storedCount() == 0)
    #expect(harness.shards.map(\.counters.elided.count).reduce(0, +) == 1)
  }

  @Test func withoutTheDevicesAckTheSenderWaitsForTheDisk() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (device, slot) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    harness.holdsStore = true
    harness.send("m1", to: phone, from: stream, slot: 0)
    harness.advance(.milliseconds(10))
    #expect(device.delivered.count == 1)
    #expect(sender.answers.isEmpty)
    harness.releaseStore()
    #expect(sender.answers[0] == [.ack])
    #expect(harness.storedCount() == 1)
    harness.deviceAcks("m1", slot)
    harness.advance(.seconds(1))
    #expect(harness.storedCount() == 0)
    #expect(sender.answers[0] == [.ack])
  }

  @Test func aMessageForAnAbsentDeviceIsDeliveredWhenItComes() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (sender, stream) = harness.openSender()
    for index in 0..<5 { harness.send("m\(index)", to: phone, from: stream, slot: UInt32(index)) }
    harness.advance(.milliseconds(10))
    #expect(sender.answers.count == 5)
    #expect(harness.state("m0") == .stored)
    let (device, slot) = harness.connect(phone)
    #expect(device.delivered.map(\.body) == (0..<5).map { Array("m\($0)".utf8) })
    for index in 0..<5 { harness.deviceAcks("m\(index)", slot) }
    harness.advance(.seconds(1))
    #expect(harness.storedCount() == 0)
    #expect(harness.state("m4") == .delivered)
  }

  @Test func whatTheStreamLostIsDeliveredOnTheNextOne() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (first, firstSlot) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    harness.send("m1", to: phone, from: stream, slot: 0)
    harness.settle()
    #expect(first.delivered.count == 1)
    harness.disconnect(first, firstSlot)
    harness.advance(.milliseconds(20))
    #expect(sender.answers[0] == [.ack])
    let (second, slot) = harness.connect(phone)
    #expect(second.delivered.count == 1)
    harness.deviceAcks("m1", slot)
    harness.advance(.seconds(1))
    #expect(harness.storedCount() == 0)
  }

  @Test func aSecondLoginReplacesTheFirst() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (first, _) = harness.connect(phone)
    let (second, _) = harness.connect(phone)
    #expect(first.isReplaced)
    let (_, stream) = harness.openSender()
    harness.send("m1", to: phone, from: stream, slot: 0)
    harness.settle()
    #expect(first.delivered.isEmpty)
    #expect(second.delivered.count == 1)
  }

  @Test func theSameIdAgainIsAckedAndNotDeliveredAgain() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (device, slot) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    harness.send("m1", to: phone, from: stream, slot: 0)
    harness.settle()
    harness.deviceAcks("m1", slot)
    harness.settle()
    harness.send("m1", to: phone, from: stream, slot: 1)
    harness.advance(.milliseconds(60))
    #expect(sender.answers[1] == [.ack])
    #expect(device.delivered.count == 1)
  }

  @Test func aRepeatIsNotAckedBeforeTheFirstIsDurable() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (sender, stream) = harness.openSender()
    let (other, otherStream) = harness.openSender(on: 1)
    harness.holdsStore = true
    harness.send("m1", to: phone, from: stream, slot: 0)
    harness.advance(.milliseconds(10))
    harness.send("m1", to: phone, from: otherStream, slot: 7)
    harness.advance(.seconds(1))
    #expect(sender.answers.isEmpty)
    #expect(other.answers.isEmpty)
    harness.releaseStore()
    #expect(sender.answers[0] == [.ack])
    #expect(other.answers[7] == [.ack])
  }

  @Test func timeToLiveZeroReachesAConnectedDeviceAndIsNeverStored() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (sender, stream) = harness.openSender()
    harness.send("away", to: phone, from: stream, slot: 0, ttl: 0)
    harness.advance(.milliseconds(50))
    #expect(sender.answers[0] == [.ack])
    #expect(harness.state("away") == .droppedOffline)
    let (device, slot) = harness.connect(phone)
    #expect(device.delivered.isEmpty)
    harness.send("there", to: phone, from: stream, slot: 1, ttl: 0)
    harness.settle()
    #expect(device.delivered.count == 1)
    #expect(sender.answers[1] == [.ack])
    harness.disconnect(device, slot)
    #expect(harness.state("there") == .expired)
    harness.advance(.seconds(1))
    #expect(harness.storedCount() == 0)
    let (again, _) = harness.connect(phone)
    #expect(again.delivered.isEmpty)
  }

  @Test func aFullDeviceWindowHoldsMessagesInTheStoreUntilAcksCome() async throws {
    var tuning = ShardTuning()
    tuning.deviceWindow = 10
    let harness = ShardHarness(tuning: tuning)
    let phone = try await harness.register("a")
    let (device, slot) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    for index in 0..<60 { harness.send("m\(index)", to: phone, from: stream, slot: UInt32(index)) }
    harness.advance(.milliseconds(20))
    #expect(device.delivered.count == 10)
    #expect(sender.answers.count == 60)
    var acked = 0
    while acked < device.delivered.count {
      harness.deviceAcks(String(decoding: device.delivered[acked].body, as: UTF8.self), slot)
      acked += 1
      harness.advance(.milliseconds(5))
      #expect(slot.inFlight.count <= 10)
    }
    #expect(Set(device.delivered.map(\.number)).count == 60)
    #expect(device.delivered.count == 60)
    harness.advance(.seconds(1))
    #expect(harness.storedCount() == 0)
  }

  /// A phone for which 101 messages came while it was away, and the stream that sent them.
  private func overflowed(_ harness: ShardHarness) async throws -> (phone: Registration, sender: StreamRef) {
    let phone = try await harness.register("a")
    let (_, stream) = harness.openSender()
    for index in 0..<101 { harness.send("m\(index)", to: phone, from: stream, slot: UInt32(index)) }
    harness.advance(.milliseconds(20))
    return (phone, stream)
  }

  /// A notice that went out on a stream that then broke has reached nobody.
  @Test func aNoticeOfDiscardedMessagesIsRepeatedUntilSomethingBehindItIsAcked() async throws {
    let harness = ShardHarness()
    let (phone, stream) = try await overflowed(harness)
    let (first, one) = harness.connect(phone)
    harness.send("n1", to: phone, from: stream, slot: 200)
    harness.advance(.seconds(1))
    #expect(first.deletedCounts == [101], "once on a stream, however often its backlog is read")
    harness.disconnect(first, one)
    let (second, two) = harness.connect(phone)
    harness.settle()
    #expect(second.deletedCounts == [101])
    #expect(second.delivered.count == 1)
    harness.deviceAcks("n1", two)
    harness.advance(.seconds(1))
    harness.disconnect(second, two)
    let (third, _) = harness.connect(phone)
    harness.settle()
    #expect(third.deletedCounts.isEmpty)
  }

  /// Nothing may ever come behind it; then it is told for good once the stream has stood for a while.
  @Test func aNoticeCountsAsToldOnAStreamThatStands() async throws {
    for (wait, unread, isTold) in [(59, 0, false), (61, 1, false), (61, 0, true)] {
      let harness = ShardHarness()
      let (phone, _) = try await overflowed(harness)
      let (first, one) = harness.connect(phone)
      harness.settle()
      first.backlogBytes = unread
      harness.advance(.seconds(wait))
      harness.advance(.seconds(1))
      harness.disconnect(first, one)
      let (second, _) = harness.connect(phone)
      harness.settle()
      #expect(second.deletedCounts == (isTold ? [] : [101]), "after \(wait) s, \(unread) bytes unread")
    }
  }

  /// What overflows between the telling and its proof is told as well.
  @Test func aNoticeTakesNothingOfALaterOne() async throws {
    let harness = ShardHarness()
    let (phone, stream) = try await overflowed(harness)
    let (first, one) = harness.connect(phone)
    harness.send("n1", to: phone, from: stream, slot: 200)
    harness.advance(.seconds(1))
    // The store writes the proof only after 101 more were discarded.
    harness.holdsStore = true
    harness.deviceAcks("n1", one)
    harness.disconnect(first, one)
    for index in 0..<101 { harness.send("o\(index)", to: phone, from: stream, slot: UInt32(300 + index)) }
    harness.advance(.seconds(1))
    harness.releaseStore()
    harness.advance(.seconds(1))
    let (second, _) = harness.connect(phone)
    harness.settle()
    #expect(second.deletedCounts == [101])
  }

  @Test func overflowDiscardsAllAndTellsTheDeviceOnce() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (sender, stream) = harness.openSender()
    for index in 0..<101 { harness.send("m\(index)", to: phone, from: stream, slot: UInt32(index)) }
    harness.advance(.milliseconds(20))
    #expect(sender.answers.count == 101)
    #expect(harness.state("m0") == .droppedOverflow)
    #expect(harness.state("m100") == .droppedOverflow)
    let (device, _) = harness.connect(phone)
    harness.settle()
    #expect(device.deletedCounts == [101])
    #expect(device.delivered.isEmpty)
    harness.advance(.seconds(61))
    harness.advance(.seconds(1))
    let (again, _) = harness.connect(phone)
    #expect(again.deletedCounts.isEmpty)
  }

  @Test func aNewerMessageOfTheSameCollapseKeyReplacesTheOlder() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (_, stream) = harness.openSender()
    harness.send("old", to: phone, from: stream, slot: 0, collapse: "score")
    harness.advance(.milliseconds(20))
    harness.send("new", to: phone, from: stream, slot: 1, collapse: "score")
    harness.advance(.milliseconds(20))
    #expect(harness.state("old") == .collapsed)
    let (device, _) = harness.connect(phone)
    #expect(device.delivered.map(\.body) == [Array("new".utf8)])
  }

  @Test func aMessageThatExpiredInTheStoreIsNotDelivered() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (_, stream) = harness.openSender()
    harness.send("m1", to: phone, from: stream, slot: 0, ttl: 60)
    harness.advance(.milliseconds(20))
    harness.time.advance(by: .seconds(61))
    let (device, _) = harness.connect(phone)
    #expect(device.delivered.isEmpty)
  }

  @Test func whenTheStoreCannotBeWrittenTheSenderIsToldToRetry() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (sender, stream) = harness.openSender()
    harness.store.setBeforeWrite { call in
      call == .write ? .fails(.unavailable(outcomeUnknown: false, detail: "full")) : .goesWell
    }
    harness.send("m1", to: phone, from: stream, slot: 0)
    for _ in 0..<20 { harness.advance(.milliseconds(200)) }
    guard case .nack(.serviceUnavailable, _, _) = sender.answers[0]?.first else {
      Issue.record("expected SERVICE_UNAVAILABLE, got \(sender.answers)")
      return
    }
    harness.store.setBeforeWrite(nil)
    // The same id may be sent again.
    harness.send("m1", to: phone, from: stream, slot: 1)
    harness.advance(.milliseconds(100))
    #expect(sender.answers[1] == [.ack])
    #expect(harness.storedCount() == 1)
  }

  @Test func anAckThatCameTwiceChangesNothing() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (_, slot) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    harness.send("m1", to: phone, from: stream, slot: 0)
    harness.settle()
    harness.deviceAcks("m1", slot)
    harness.deviceAcks("m1", slot)
    harness.deviceAcks("never sent", slot)
    harness.settle()
    #expect(sender.answers[0] == [.ack])
  }
}
