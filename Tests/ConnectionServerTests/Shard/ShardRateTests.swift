import DeliveryCore
import PushModel
import Seams
import Stores
import Testing

@testable import ConnectionServer

/// Rates of messages to one device, and messages that are held back for a while.
@Suite struct ShardRateTests {
  private func send(
    _ ids: Range<Int>, _ harness: ShardHarness, to phone: Registration, from stream: StreamRef
  ) {
    for id in ids { harness.send("m\(id)", to: phone, from: stream, slot: UInt32(id)) }
    harness.advance(.milliseconds(10))
  }

  @Test func aDeviceIsSentSoManyInAMinuteAndTheRestIsRefusedWithThePause() async throws {
    let harness = ShardHarness { $0.deviceMessagesPerMinuteMax = 240 }
    let (phone, other) = (try await harness.register("a"), try await harness.register("b"))
    let (sender, stream) = harness.openSender()
    let before = harness.time.moment
    send(0..<240, harness, to: phone, from: stream)
    #expect(sender.answers.values.allSatisfy { $0 == [.ack] })
    harness.time.advance(by: .seconds(10))
    send(240..<241, harness, to: phone, from: stream)
    let wait = 60 - Int((harness.time.moment - before).ns / 1_000_000_000)
    #expect(
      sender.answers[240] == [
        .nack(
          .deviceMessageRateExceeded,
          "Downstream message rate exceeded for this registration id; retry after \(wait) s",
          retryAfter: wait)
      ])
    // Another device has a count of its own.
    send(500..<501, harness, to: other, from: stream)
    #expect(sender.answers[500] == [.ack])
    // After the pause the refused message is taken under its own id.
    harness.time.advance(by: .seconds(wait))
    harness.send("m240", to: phone, from: stream, slot: 241)
    harness.advance(.milliseconds(10))
    #expect(sender.answers[241] == [.ack])
  }

  @Test func theHourCountsBesideTheMinute() async throws {
    let harness = ShardHarness {
      $0.deviceMessagesPerMinuteMax = 10
      $0.deviceMessagesPerHourMax = 25
    }
    let phone = try await harness.register("a")
    let (sender, stream) = harness.openSender()
    send(0..<10, harness, to: phone, from: stream)
    harness.time.advance(by: .seconds(60))
    send(10..<20, harness, to: phone, from: stream)
    harness.time.advance(by: .seconds(60))
    send(20..<26, harness, to: phone, from: stream)
    #expect((0..<25).allSatisfy { sender.answers[$0] == [.ack] })
    guard case .nack(.deviceMessageRateExceeded, _, let wait?)? = sender.answers[25]?.first else {
      Issue.record("\(sender.answers[25] ?? [])")
      return
    }
    #expect(wait > 3_400 && wait <= 3_480)
    // What was refused counts for nothing.
    harness.time.advance(by: .seconds(3_480))
    send(26..<36, harness, to: phone, from: stream)
    #expect((26..<36).allSatisfy { sender.answers[$0] == [.ack] })
  }

  @Test func withoutLimitsNothingIsCounted() {
    let harness = ShardHarness()
    #expect(harness.shards.allSatisfy { $0.meters == nil })
    let rates = harness.context.accounts.sender(harness.sender)?.rates
    #expect(rates?.messages == nil && rates?.topicChanges == nil && rates?.upstream == nil)
  }

  @Test func tooManyTopicMessagesAtOnceAreToldWhenToTryAgain() throws {
    let harness = ShardHarness { $0.fanoutsPerProjectMax = 1 }
    _ = try harness.add("a", topics: ["news"])
    let (sender, stream) = harness.openSender()
    harness.holdsStore = true
    try harness.sendToTopic("news", "m1", from: stream, slot: 0)
    try harness.sendToTopic("news", "m2", from: stream, slot: 1)
    harness.settle()
    guard case .nack(.topicsMessageRateExceeded, _, 1)? = sender.answers[1]?.first else {
      Issue.record("\(sender.answers)")
      return
    }
    harness.releaseStore()
    harness.advance(.seconds(1))
    try harness.sendToTopic("news", "m2", from: stream, slot: 2)
    harness.advance(.seconds(1))
    #expect(sender.answers[2] == [.ack])
  }

  // MARK: Collapsible messages

  private func collapsing(_ change: (inout Limits) -> Void = { _ in }) -> ShardHarness {
    ShardHarness {
      $0.collapsibleBurstMax = 20
      change(&$0)
    }
  }

  @Test func collapsibleMessagesOverTheBurstAreTakenAndComeWhenTheBurstHasGrown() async throws {
    let harness = collapsing()
    let phone = try await harness.register("a")
    let (device, slot) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    for id in 0..<20 {
      harness.send("m\(id)", to: phone, from: stream, slot: UInt32(id), collapse: "k\(id)")
      harness.settle()
      harness.deviceAcks("m\(id)", slot)
    }
    harness.send("late", to: phone, from: stream, slot: 20, collapse: "k")
    harness.send("plain", to: phone, from: stream, slot: 21)
    harness.advance(.seconds(1))
    // No error; only later. What is not collapsible has no part in it.
    #expect(sender.answers[20] == [.ack] && sender.answers[21] == [.ack])
    #expect(device.delivered.map(\.body).last == Array("plain".utf8))
    #expect(device.delivered.count == 21)
    harness.advance(.seconds(178), inStepsOf: .seconds(2))
    #expect(device.delivered.count == 21)
    harness.advance(.seconds(2))
    #expect(device.delivered.map(\.body).last == Array("late".utf8))
    harness.deviceAcks("late", slot)
    harness.deviceAcks("plain", slot)
    harness.advance(.seconds(1))
    #expect(harness.storedCount() == 0)
    #expect(harness.state("late") == .delivered)
  }

  @Test func aNewerMessageTakesThePlaceOfOneThatIsHeldBack() async throws {
    let harness = collapsing { $0.collapsibleBurstMax = 1 }
    let phone = try await harness.register("a")
    let (device, slot) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    for id in 0..<4 {
      harness.send("m\(id)", to: phone, from: stream, slot: UInt32(id), collapse: "k")
      harness.settle()
      if id == 0 { harness.deviceAcks("m0", slot) }
      harness.advance(.milliseconds(50))
    }
    #expect((0..<4).allSatisfy { sender.answers[$0] == [.ack] })
    harness.advance(.seconds(400), inStepsOf: .seconds(5))
    #expect(device.delivered.map(\.body) == ["m0", "m3"].map { Array($0.utf8) })
    #expect(harness.state("m1") == .collapsed && harness.state("m2") == .collapsed)
    #expect(slot.held.isEmpty)
  }

  @Test func timeToLiveZeroIsNotHeldBack() async throws {
    let harness = collapsing { $0.collapsibleBurstMax = 1 }
    let phone = try await harness.register("a")
    let (device, _) = harness.connect(phone)
    let (_, stream) = harness.openSender()
    for id in 0..<5 {
      harness.send("m\(id)", to: phone, from: stream, slot: UInt32(id), ttl: 0, collapse: "k")
    }
    harness.settle()
    #expect(device.delivered.count == 5)
  }

  @Test func whatIsHeldBackComesAtTheNextConnectionAndOnce() async throws {
    let harness = collapsing { $0.collapsibleBurstMax = 1 }
    let phone = try await harness.register("a")
    let (device, slot) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    harness.send("m0", to: phone, from: stream, slot: 0, collapse: "j")
    harness.settle()
    harness.deviceAcks("m0", slot)
    harness.send("m1", to: phone, from: stream, slot: 1, collapse: "k")
    harness.advance(.seconds(1))
    #expect(sender.answers[1] == [.ack])
    harness.disconnect(device, slot)
    let (again, second) = harness.connect(phone)
    #expect(again.delivered.map(\.body) == [Array("m1".utf8)])
    harness.deviceAcks("m1", second)
    harness.advance(.seconds(400), inStepsOf: .seconds(5))
    #expect(again.delivered.count == 1)
    #expect(harness.storedCount() == 0)
  }

  // MARK: Normal priority

  private func waiting() -> ShardHarness { ShardHarness { $0.normalPriorityDelay = .seconds(60) } }

  @Test func normalPriorityWaitsAndGoesAlongWithHighPriority() async throws {
    let harness = waiting()
    let phone = try await harness.register("a")
    let (device, _) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    harness.send("n1", to: phone, from: stream, slot: 0, high: false)
    harness.send("n2", to: phone, from: stream, slot: 1, high: false)
    harness.advance(.seconds(5))
    #expect(device.delivered.isEmpty)
    #expect(sender.answers[0] == [.ack] && sender.answers[1] == [.ack])
    harness.send("h1", to: phone, from: stream, slot: 2)
    harness.settle()
    #expect(device.delivered.map(\.body) == ["h1", "n1", "n2"].map { Array($0.utf8) })
  }

  @Test func normalPriorityWaitsNoLongerThanItsDelay() async throws {
    let harness = waiting()
    let phone = try await harness.register("a")
    let (device, slot) = harness.connect(phone)
    let (_, stream) = harness.openSender()
    harness.send("n1", to: phone, from: stream, slot: 0, high: false)
    harness.advance(.seconds(59), inStepsOf: .seconds(1))
    #expect(device.delivered.isEmpty)
    harness.advance(.seconds(1))
    #expect(device.delivered.count == 1)
    harness.deviceAcks("n1", slot)
    harness.advance(.seconds(100), inStepsOf: .seconds(1))
    #expect(device.delivered.count == 1)
    #expect(harness.storedCount() == 0)
  }

  @Test func whatExpiresWhileItWaitsIsNotDelivered() async throws {
    let harness = waiting()
    let phone = try await harness.register("a")
    let (device, slot) = harness.connect(phone)
    let (_, stream) = harness.openSender()
    harness.send("n1", to: phone, from: stream, slot: 0, ttl: 30, high: false)
    harness.advance(.seconds(61), inStepsOf: .seconds(1))
    #expect(device.delivered.isEmpty)
    #expect(harness.state("n1") == .expired)
    harness.advance(.seconds(1))
    #expect(harness.storedCount() == 0 && slot.held.isEmpty)
  }

  @Test func withoutADelayNormalPriorityGoesAtOnce() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (device, _) = harness.connect(phone)
    let (_, stream) = harness.openSender()
    harness.send("n1", to: phone, from: stream, slot: 0, high: false)
    harness.settle()
    #expect(device.delivered.count == 1)
  }

  @Test func aStoreThatFailsRefusesWhatIsHeldBack() async throws {
    var tuning = ShardTuning()
    tuning.writeTriesMax = 1
    let harness = ShardHarness(tuning: tuning) { $0.normalPriorityDelay = .seconds(60) }
    let phone = try await harness.register("a")
    let (device, slot) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    harness.store.setBeforeWrite { call in
      call == .write ? .fails(.unavailable(outcomeUnknown: false, detail: "disk")) : .goesWell
    }
    harness.send("n1", to: phone, from: stream, slot: 0, high: false)
    harness.advance(.seconds(1))
    guard case .nack(.serviceUnavailable, _, _)? = sender.answers[0]?.first else {
      Issue.record("\(sender.answers)")
      return
    }
    #expect(slot.held.isEmpty)
    harness.store.setBeforeWrite(nil)
    harness.advance(.seconds(100), inStepsOf: .seconds(1))
    #expect(device.delivered.isEmpty)
  }
}

@Suite struct ProjectRateTests {
  @Test func aGateTakesWholeBatchesAndTellsSeconds() {
    let gate = RateGate(max: 3_000, per: .seconds(1))
    let now = Moment(ns: 5)
    #expect(gate.take(1_000, now: now) == nil)
    #expect(gate.take(2_000, now: now) == nil)
    #expect(gate.take(1, now: now + .milliseconds(1)) == 1)
    #expect(gate.take(1_000, now: now + .seconds(1)) == nil)
  }

  @Test func thePublishedNumbersAreOnWhereTheyArePublished() {
    let rates = SenderRates(.asPublished)
    #expect(rates.messages?.max == 600_000)
    #expect(rates.topicChanges?.max == 3_000)
    let limits = ServerConfiguration.LimitSet.published.limits
    #expect(limits.deviceMessagesPerMinuteMax == 240 && limits.deviceMessagesPerHourMax == 5_000)
    #expect(limits.collapsibleBurstMax == 20 && limits.collapsibleRefill == .seconds(180))
    #expect(ServerConfiguration.LimitSet.off.limits.fanoutsPerProjectMax == nil)
    #expect(ServerConfiguration.LimitSet.usual.limits == Limits())
  }

  @Test func aDeviceWithManyAppsHasABucketForEachOfTheLast() throws {
    var limits = Limits()
    limits.collapsibleBurstMax = 1
    var meters = try #require(DeviceMeters(limits, entriesMax: 10, now: Moment(ns: 0)))
    let (device, now) = (DeviceNumber(1), Moment(ns: 1))
    for app in 0..<16 {
      #expect(meters.collapsible(for: device, app: "a\(app)", now: now) == nil)
      #expect(meters.collapsible(for: device, app: "a\(app)", now: now) == .seconds(180))
    }
    // The 17th pushes the first one out: bounded, and to the sender's good.
    #expect(meters.collapsible(for: device, app: "a16", now: now) == nil)
    #expect(meters.collapsible(for: device, app: "a0", now: now) == nil)
  }
}

@Suite struct LimitSettingTests {
  @Test func eachSettingChangesOneLimitAndShowsItsValue() throws {
    for entry in LimitSettings.all {
      let value = entry.value(in: Limits()) == 7 ? 8 : 7
      let limits = try Limits(settings: [entry.name: value])
      let shown = entry.value(in: limits)
      #expect(shown == value || shown == 1, "\(entry.name)")
      #expect(limits != Limits(), "\(entry.name) changes nothing")
      for other in LimitSettings.all where other.name != entry.name {
        #expect(other.value(in: limits) == other.value(in: Limits()), "\(entry.name) changes \(other.name)")
      }
    }
    #expect(Set(LimitSettings.all.map(\.name)).count == LimitSettings.all.count)
  }

  @Test func aRateOfZeroIsOffAndABoundOfZeroIsRefused() throws {
    #expect(try Limits(settings: ["fanouts-per-project": 0]).fanoutsPerProjectMax == nil)
    // Far from where a sum of two would overflow.
    #expect(try Limits(settings: ["held-per-stream": .max]).heldPerStreamMax == 1_000_000_000)
    #expect(try Limits(settings: ["condition-topics": 1_000]).conditionTopicsMax == 64)
    #expect(
      try Limits(.published, settings: ["device-messages-per-minute": 0]).deviceMessagesPerMinuteMax == nil)
    #expect(
      try Limits(.published, settings: ["device-messages-per-minute": 9]).deviceMessagesPerHourMax == 5_000)
    #expect(throws: ServerFault.self) { try Limits(settings: ["payload-bytes": 0]) }
    #expect(throws: ServerFault.self) { try Limits(settings: ["device-messages-per-minute": -1]) }
    #expect(throws: ServerFault.self) { try Limits(settings: ["no-such": 1]) }
  }
}
