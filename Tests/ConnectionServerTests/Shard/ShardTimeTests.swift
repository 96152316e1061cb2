import DeliveryCore
import PushModel
import Seams
import Stores
import Testing

@testable import ConnectionServer

/// Times to live, absence, priority, and clocks that are stepped.
@Suite struct ShardTimeTests {
  private func texts(_ device: ShardHarness.FakeDevice) -> [String] {
    device.delivered.map { String(decoding: $0.body, as: UTF8.self) }
  }

  /// What housekeeping does each second.
  private func sweep(_ harness: ShardHarness) throws {
    let ended = try harness.ask { harness.store.sweep(now: harness.steady.wall, budget: 1_000, $0) }
    harness.context.endedByRule(ended)
    harness.settle()
  }

  // MARK: Time to live

  @Test func whatExpiresInTheStoreIsSweptAndCountedOnce() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (_, stream) = harness.openSender()
    harness.send("m1", to: phone, from: stream, slot: 0, ttl: 60)
    harness.send("m2", to: phone, from: stream, slot: 1, ttl: 600)
    harness.advance(.seconds(59))
    try sweep(harness)
    #expect(harness.storedCount() == 2)
    harness.advance(.seconds(1))
    try sweep(harness)
    #expect(harness.storedCount() == 1)
    #expect(harness.state("m1") == .expired && harness.state("m2") == .stored)
    let (device, _) = harness.connect(phone)
    #expect(texts(device) == ["m2"])
  }

  @Test func whatExpiresInFlightEndsAndItsLateAckChangesNothing() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (device, slot) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    harness.send("m1", to: phone, from: stream, slot: 0, ttl: 60)
    harness.advance(.seconds(30))
    #expect(texts(device) == ["m1"])
    harness.advance(.seconds(31))
    try sweep(harness)
    #expect(harness.state("m1") == .expired)
    harness.deviceAcks("m1", slot)
    harness.advance(.seconds(1))
    #expect(harness.state("m1") == .expired)
    #expect(sender.answers[0] == [.ack])
    #expect(slot.inFlight.isEmpty && harness.storedCount() == 0)
  }

  @Test func aTimeToLiveRunsOnWhileTheServerIsDown() async throws {
    let first = ShardHarness()
    let phone = try await first.register("a")
    let (_, stream) = first.openSender()
    first.send("m1", to: phone, from: stream, slot: 0, ttl: 60)
    first.send("m2", to: phone, from: stream, slot: 1, ttl: 600)
    first.advance(.seconds(1))
    first.time.advance(by: .seconds(100))
    let second = ShardHarness(time: first.time, store: first.store.restarted())
    let (device, _) = second.connect(phone)
    #expect(texts(device) == ["m2"])
    try sweep(second)
    #expect(second.storedCount() == 1)
  }

  @Test func timeToLiveZeroOnADeadSocketMayBeLostAndNeverComesLater() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (dead, slot) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    harness.send("m1", to: phone, from: stream, slot: 0, ttl: 0)
    harness.settle()
    #expect(sender.answers[0] == [.ack])
    #expect(texts(dead) == ["m1"])
    // Nobody read it; the connection is found dead.
    harness.disconnect(dead, slot)
    #expect(harness.state("m1") == .expired)
    let (device, _) = harness.connect(phone)
    harness.advance(.seconds(5))
    #expect(device.delivered.isEmpty && harness.storedCount() == 0)
  }

  // MARK: Clocks that are stepped

  @Test func aClockSteppedBackDoesNotLengthenALifeNorBringOneBack() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (_, stream) = harness.openSender()
    harness.send("m1", to: phone, from: stream, slot: 0, ttl: 60)
    harness.advance(.seconds(30))
    harness.time.stepWall(by: .seconds(-7_200))
    harness.advance(.seconds(31))
    try sweep(harness)
    #expect(harness.state("m1") == .expired)
    harness.time.stepWall(by: .seconds(-7_200))
    let (device, _) = harness.connect(phone)
    harness.advance(.seconds(10))
    #expect(device.delivered.isEmpty)
  }

  @Test func aClockSteppedForwardEndsNothingEarly() async throws {
    let harness = ShardHarness { $0.upstreamRetryFirst = .seconds(30) }
    let phone = try await harness.register("a")
    let (device, slot) = harness.connect(phone)
    let (_, stream) = harness.openSender()
    harness.send("m1", to: phone, from: stream, slot: 0, ttl: 60)
    harness.settle()
    harness.disconnect(device, slot)
    harness.advance(.seconds(1))
    harness.time.stepWall(by: .seconds(7_200))
    harness.advance(.seconds(1))
    try sweep(harness)
    #expect(harness.state("m1") == .stored)
    let (again, second) = harness.connect(phone)
    #expect(texts(again) == ["m1"])
    harness.deviceAcks("m1", second)
    harness.advance(.seconds(1))
    #expect(harness.state("m1") == .delivered)
  }

  @Test func repeatsAreKnownAcrossAStepOfTheClock() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (sender, stream) = harness.openSender()
    harness.send("m1", to: phone, from: stream, slot: 0)
    harness.advance(.seconds(1))
    harness.time.stepWall(by: .seconds(86_400))
    harness.send("m1", to: phone, from: stream, slot: 1)
    harness.advance(.seconds(1))
    #expect(sender.answers[1] == [.ack])
    #expect(harness.storedCount() == 1)
  }

  // MARK: Absence

  @Test func aDeviceAwayForTooLongIsToldOnlyHowManyItsMessagesWere() async throws {
    let harness = ShardHarness { $0.deviceAwaySecondsMax = 1_000 }
    let phone = try await harness.register("a")
    let (first, slot) = harness.connect(phone)
    harness.disconnect(first, slot)
    let (_, stream) = harness.openSender()
    for id in 0..<3 { harness.send("m\(id)", to: phone, from: stream, slot: UInt32(id), ttl: 5_000) }
    harness.advance(.seconds(1_001))
    let (device, second) = harness.connect(phone)
    #expect(device.delivered.isEmpty)
    #expect(device.deletedCounts == [3])
    #expect(harness.state("m0") == .droppedOverflow && harness.state("m2") == .droppedOverflow)
    // Told once; from here on it is a device like any other.
    harness.send("m3", to: phone, from: stream, slot: 3)
    harness.advance(.seconds(1))
    #expect(texts(device) == ["m3"])
    harness.deviceAcks("m3", second)
    harness.send("m4", to: phone, from: stream, slot: 4)
    harness.advance(.seconds(1))
    harness.disconnect(device, second)
    let (third, _) = harness.connect(phone)
    #expect(third.deletedCounts.isEmpty && texts(third) == ["m4"])
  }

  @Test func aDeviceAwayForLessGetsItsMessages() async throws {
    let harness = ShardHarness { $0.deviceAwaySecondsMax = 1_000 }
    let phone = try await harness.register("a")
    let (first, slot) = harness.connect(phone)
    harness.disconnect(first, slot)
    let (_, stream) = harness.openSender()
    harness.send("m1", to: phone, from: stream, slot: 0, ttl: 5_000)
    harness.advance(.seconds(999))
    let (device, _) = harness.connect(phone)
    #expect(texts(device) == ["m1"] && device.deletedCounts.isEmpty)
  }

  @Test func registrationsThatNobodyUsesEndAndConnectedOnesDoNot() async throws {
    let harness = ShardHarness { $0.tokenIdleSecondsMax = 200_000 }
    let (gone, there) = (try await harness.register("a"), try await harness.register("b"))
    _ = harness.connect(there)
    let keeping = Housekeeping(context: harness.context)
    for _ in 0..<3 {
      harness.advance(.seconds(86_400))
      let drive = Task { [harness = Unshared(harness)] in
        while !Task.isCancelled {
          harness.value.settle()
          await Task.yield()
        }
      }
      try await keeping.touchConnected()
      try await keeping.endIdle()
      drive.cancel()
      await drive.value
    }
    harness.settle()
    let found = try harness.ask { harness.store.lookUp([gone.token, there.token], $0) }
    #expect(found.map { $0?.state } == [.unregistered, .active])
  }

  /// The harness is driven by one task at a time: the test waits for the other one.
  private struct Unshared: @unchecked Sendable {
    let value: ShardHarness
    init(_ value: ShardHarness) { self.value = value }
  }

  // MARK: Priority

  @Test func aBacklogComesWithHighPriorityFirst() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (_, stream) = harness.openSender()
    for (slot, id) in ["n1", "h1", "n2", "h2"].enumerated() {
      harness.send(id, to: phone, from: stream, slot: UInt32(slot), high: id.hasPrefix("h"))
    }
    harness.advance(.seconds(1))
    let (device, _) = harness.connect(phone)
    #expect(texts(device) == ["h1", "h2", "n1", "n2"])
  }
}
