import Bytes
import DeliveryCore
import PushModel
import Seams
import Stores
import Testing

@testable import ConnectionServer

@Suite struct ShardTopicTests {
  @Test func connectedSubscribersGetATopicMessageAtOnceAndTheOthersWhenTheyCome() throws {
    let harness = ShardHarness()
    let phones = try (0..<4).map { try harness.add("\($0)", topics: ["news"]) }
    let other = try harness.add("other", topics: ["sport"])
    let (near, nearSlot) = harness.connect(phones[0])
    let (otherDevice, _) = harness.connect(other)
    let (sender, stream) = harness.openSender()
    try harness.sendToTopic("news", "m1", from: stream, slot: 0)
    harness.settle()
    #expect(sender.answers[0] == [.ack])
    #expect(near.delivered.count == 1)
    #expect(near.delivered.first?.text.contains("\"from\":\"/topics/news\"") == true)
    #expect(near.delivered.first?.text.contains("\"token\":\"dev-0\"") == true)
    #expect(near.delivered.first?.text.hasSuffix("\"data\":{\"id\":\"m1\"}}") == true)
    #expect(otherDevice.delivered.isEmpty)
    let (late, lateSlot) = harness.connect(phones[3])
    #expect(
      late.delivered.map(\.text)
        == near.delivered.map { $0.text }.map {
          $0.replacing("dev-0", with: "dev-3").replacing(
            near.delivered[0].key.hash.hex, with: late.delivered[0].key.hash.hex)
        })
    harness.ackAll(near, nearSlot)
    harness.ackAll(late, lateSlot)
    let progress = try #require(try harness.progress("m1"))
    #expect(progress.isDone)
    #expect(progress.counts.matched == 4)
    #expect(progress.counts.delivered == 2)
    #expect(progress.counts.waiting == 2)
    #expect(harness.storedCount() == 2)
  }

  @Test func theSenderIsAckedWhenTheJobIsDurableAndNotBefore() throws {
    let harness = ShardHarness()
    _ = try harness.add("a", topics: ["news"])
    let (sender, stream) = harness.openSender(on: 1)
    harness.holdsStore = true
    try harness.sendToTopic("news", "m1", from: stream, slot: 0)
    harness.advance(.seconds(1))
    #expect(sender.answers.isEmpty)
    try harness.sendToTopic("news", "m1", from: stream, slot: 1)
    harness.advance(.seconds(1))
    #expect(sender.answers.isEmpty)
    harness.releaseStore()
    #expect(sender.answers == [0: [.ack], 1: [.ack]])
    #expect(harness.storedCount() == 1)
    try harness.sendToTopic("news", "m1", from: stream, slot: 2)
    harness.advance(.milliseconds(60))
    #expect(sender.answers[2] == [.ack])
    #expect(harness.storedCount() == 1)
  }

  @Test func aTopicThatNobodyIsInIsASuccess() throws {
    let harness = ShardHarness()
    let (sender, stream) = harness.openSender()
    try harness.sendToTopic("nobody", "m1", from: stream, slot: 0)
    harness.settle()
    #expect(sender.answers[0] == [.ack])
    #expect(try harness.progress("m1")?.isDone == true)
  }

  @Test func slicesComeOneAfterTheOtherAndOtherTrafficInBetween() throws {
    var tuning = ShardTuning()
    tuning.fanoutSlice = 2
    let harness = ShardHarness(tuning: tuning)
    let phones = try (0..<7).map { try harness.add("\($0)", topics: ["news"]) }
    let (_, stream) = harness.openSender()
    try harness.sendToTopic("news", "m1", from: stream, slot: 0)
    harness.holdsStore = true
    harness.settle()
    for answer in harness.answers.takeAll() { answer() }
    harness.settle()
    // The job is durable and one slice is out, whose answer is held.
    let (first, _) = harness.connect(phones[6])
    harness.send("direct", to: phones[6], from: stream, slot: 1)
    harness.settle()
    #expect(harness.shards[0].fanouts.isBusy)
    harness.releaseStore()
    #expect(first.delivered.count == 2)
    for phone in phones.dropLast() {
      let (device, _) = harness.connect(phone)
      #expect(device.delivered.count == 1)
    }
    #expect(!harness.shards[0].fanouts.isBusy)
    #expect(harness.shards[0].fanouts.count == 0)
  }

  @Test func jobsShareTheirSlices() throws {
    var tuning = ShardTuning()
    tuning.fanoutSlice = 4
    tuning.fanoutJobsAtOnce = 2
    let harness = ShardHarness(tuning: tuning)
    let phones = try (0..<9).map { try harness.add("\($0)", topics: ["big"]) }
    _ = try harness.change("dev-8", "small")
    let (device, _) = harness.connect(phones[8])
    let (sender, stream) = harness.openSender()
    try harness.sendToTopic("big", "b", from: stream, slot: 0)
    for index in 0..<5 {
      try harness.sendToTopic("small", "s\(index)", from: stream, slot: UInt32(index + 1))
    }
    harness.settle()
    #expect(sender.answers.count == 6)
    #expect(device.delivered.count == 6)
    #expect(harness.storedCount() == 8 + 6)
    #expect(try harness.progress("b")?.counts.matched == 9)
  }

  @Test func timeToLiveZeroReachesWhoIsConnectedAndCountsTheOthers() throws {
    let harness = ShardHarness()
    let phones = try (0..<3).map { try harness.add("\($0)", topics: ["news"]) }
    let (device, slot) = harness.connect(phones[1])
    let (sender, stream) = harness.openSender()
    try harness.sendToTopic("news", "m1", from: stream, slot: 0, more: ",\"time_to_live\":0")
    harness.settle()
    #expect(sender.answers[0] == [.ack])
    #expect(device.delivered.count == 1)
    #expect(harness.storedCount() == 0)
    harness.ackAll(device, slot)
    let (late, _) = harness.connect(phones[0])
    #expect(late.delivered.isEmpty)
    let counts = try harness.progress("m1")?.counts
    #expect(counts?.delivered == 1)
    #expect(counts?.droppedOffline == 2)
    #expect(counts?.waiting == 0)
  }

  @Test func moreFanOutsThanAllowedAreRefusedAndMayBeSentAgain() throws {
    let harness = ShardHarness(limits: { $0.fanoutsPerProjectMax = 2 })
    _ = try harness.add("a", topics: ["news"])
    let (sender, stream) = harness.openSender()
    harness.holdsStore = true
    for index in 0..<3 { try harness.sendToTopic("news", "m\(index)", from: stream, slot: UInt32(index)) }
    harness.settle()
    guard case .nack(.topicsMessageRateExceeded, _, _)? = sender.answers[2]?.first else {
      Issue.record("\(sender.answers)")
      return
    }
    harness.releaseStore()
    try harness.sendToTopic("news", "m2", from: stream, slot: 3)
    harness.settle()
    #expect(sender.answers[3] == [.ack])
    #expect(harness.storedCount() == 3)
  }

  @Test func aConditionReachesThoseItHoldsFor() throws {
    let harness = ShardHarness()
    let both = try harness.add("both", topics: ["a", "b"])
    let one = try harness.add("one", topics: ["a"])
    let none = try harness.add("none")
    let devices = [both, one, none].map { harness.connect($0).0 }
    let (sender, stream) = harness.openSender()
    for (slot, condition) in [
      "'a' in topics && 'b' in topics", "'a' in topics && !('b' in topics)", "!('a' in topics)",
      "('a' in topics)",
    ].enumerated() {
      try harness.sendToTarget(
        "{\"condition\":\"\(condition)\",\"message_id\":\"m\(slot)\",\"data\":{\"n\":\"\(slot)\"}}",
        from: stream,
        slot: UInt32(slot))
    }
    harness.settle()
    #expect(sender.answers.values.allSatisfy { $0 == [.ack] })
    func got(_ device: ShardHarness.FakeDevice) -> [String] {
      device.delivered.map(\.text).map { String($0.suffix(4).prefix(1)) }
    }
    #expect(devices.map(got) == [["0", "3"], ["1", "3"], ["2"]])
    #expect(devices[2].delivered[0].text.contains("\"from\":\"\(harness.sender)\""))
  }

  @Test func twoAppsOfADeviceGetAMessageEach() throws {
    let harness = ShardHarness()
    let first = try harness.add("first", device: "d", topics: ["news"])
    _ = try harness.add("second", device: "d", app: "org.example.other", topics: ["news"])
    let (device, slot) = harness.connect(first)
    let (_, stream) = harness.openSender()
    try harness.sendToTopic("news", "m1", from: stream, slot: 0)
    harness.settle()
    #expect(device.delivered.map(\.app) == ["org.example.app", "org.example.other"])
    #expect(Set(device.delivered.map(\.key)).count == 2)
    harness.ackAll(device, slot)
    #expect(harness.storedCount() == 0)
    #expect(try harness.progress("m1")?.counts.delivered == 2)
  }

  @Test func aRestartBetweenSlicesGivesEachSubscriberExactlyOne() throws {
    var tuning = ShardTuning()
    tuning.fanoutSlice = 3
    var harness = ShardHarness(tuning: tuning)
    let phones = try (0..<20).map { try harness.add("\($0)", topics: ["news"]) }
    let (sender, stream) = harness.openSender()
    harness.holdsStore = true
    try harness.sendToTopic("news", "m1", from: stream, slot: 0)
    harness.settle()
    for _ in 0..<3 {
      for answer in harness.answers.takeAll() { answer() }
      harness.settle()
    }
    #expect(sender.answers[0] == [.ack])
    // Three answers further: some slices are written, the rest is not.
    for round in 0..<3 {
      let answers = ShardHarness.Answers()
      let store = harness.store.restarted(deliver: { answers.add($0) })
      harness = ShardHarness(tuning: tuning, store: store, answers: answers)
      let open = try harness.ask { store.fanouts(since: harness.time.wall, $0) }
      #expect(open.count == 1)
      harness.shards[0].resumeFanouts(open.map { .init(number: $0.number, sender: $0.sender) })
      harness.holdsStore = round < 2
      harness.settle()
    }
    harness.holdsStore = false
    harness.settle()
    #expect(try harness.progress("m1")?.isDone == true)
    #expect(harness.storedCount() == 20)
    for phone in phones {
      let (device, _) = harness.connect(phone)
      #expect(device.delivered.count == 1)
    }
  }

  @Test func aSliceThatTheStoreDoesNotTakeIsTriedAgain() throws {
    let harness = ShardHarness()
    let phone = try harness.add("a", topics: ["news"])
    let (device, _) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    let fault = StoreFault.unavailable(outcomeUnknown: false, detail: "injected")
    harness.store.setBeforeWrite { $0 == .advanceFanouts ? .fails(fault) : .goesWell }
    try harness.sendToTopic("news", "m1", from: stream, slot: 0)
    harness.settle()
    #expect(sender.answers[0] == [.ack])
    #expect(device.delivered.isEmpty)
    harness.store.setBeforeWrite(nil)
    harness.advance(.seconds(1))
    #expect(device.delivered.count == 1)
  }

  @Test func aSliceWhoseAnswerGotLostIsReadFromTheStore() throws {
    let harness = ShardHarness()
    let phone = try harness.add("a", topics: ["news"])
    let (device, _) = harness.connect(phone)
    let (_, stream) = harness.openSender()
    let fault = StoreFault.unavailable(outcomeUnknown: true, detail: "the answer got lost")
    harness.store.setBeforeWrite { $0 == .advanceFanouts ? .losesAnswer(fault) : .goesWell }
    try harness.sendToTopic("news", "m1", from: stream, slot: 0)
    harness.settle()
    harness.store.setBeforeWrite(nil)
    harness.advance(.seconds(1))
    #expect(device.delivered.count == 1)
    #expect(harness.shards[0].fanouts.count == 0)
  }

  @Test func aStoreThatTakesNoJobMakesTheSenderTryAgain() throws {
    let harness = ShardHarness()
    _ = try harness.add("a", topics: ["news"])
    let (sender, stream) = harness.openSender()
    let fault = StoreFault.unavailable(outcomeUnknown: false, detail: "injected")
    harness.store.setBeforeWrite { $0 == .beginFanout ? .fails(fault) : .goesWell }
    try harness.sendToTopic("news", "m1", from: stream, slot: 0)
    harness.settle()
    guard case .nack(.serviceUnavailable, _, _)? = sender.answers[0]?.first else {
      Issue.record("\(sender.answers)")
      return
    }
    harness.store.setBeforeWrite(nil)
    try harness.sendToTopic("news", "m1", from: stream, slot: 1)
    harness.settle()
    #expect(sender.answers[1] == [.ack])
    #expect(harness.storedCount() == 1)
  }

  @Test func aDrainLeavesTheRestToTheNextStart() throws {
    let harness = ShardHarness()
    _ = try harness.add("a", topics: ["news"])
    let (sender, stream) = harness.openSender()
    harness.shards[0].fanouts.pause()
    try harness.sendToTopic("news", "m1", from: stream, slot: 0)
    harness.settle()
    #expect(sender.answers[0] == [.ack])
    #expect(!harness.shards[0].fanouts.isBusy)
    #expect(try harness.progress("m1")?.counts.matched == 0)
  }

  @Test func dryRunReachesNobody() throws {
    let harness = ShardHarness()
    _ = try harness.add("a", topics: ["news"])
    let (sender, stream) = harness.openSender()
    try harness.sendToTopic("news", "m1", from: stream, slot: 0, more: ",\"dry_run\":true")
    harness.settle()
    #expect(sender.answers[0] == [.ack])
    #expect(try harness.progress("m1") == nil)
  }

  @Test func aSubscriberWithAFullWindowGetsTheRestAsItAcks() throws {
    var tuning = ShardTuning()
    tuning.deviceWindow = 4
    let harness = ShardHarness(tuning: tuning)
    let phone = try harness.add("a", topics: ["news"])
    let (device, slot) = harness.connect(phone)
    let (_, stream) = harness.openSender()
    for index in 0..<20 { try harness.sendToTopic("news", "m\(index)", from: stream, slot: UInt32(index)) }
    harness.settle()
    #expect(device.delivered.count == 4)
    for _ in 0..<20 { harness.ackAll(device, slot) }
    #expect(device.delivered.count == 20)
    #expect(Set(device.delivered.map(\.key)).count == 20)
    #expect(harness.storedCount() == 0)
  }

  @Test func rowsWrittenWhileAPageIsReadAreReadAgain() throws {
    let harness = ShardHarness()
    let phone = try harness.add("a", topics: ["news"])
    let (_, stream) = harness.openSender()
    // The page is read, and its answer held.
    harness.holdsStore = true
    let (device, _) = harness.connect(phone)
    let page = harness.answers.takeAll()
    harness.send("direct", to: phone, from: stream, slot: 0)
    try harness.sendToTopic("news", "m1", from: stream, slot: 1)
    for _ in 0..<4 {
      harness.advance(.milliseconds(10))
      for answer in harness.answers.takeAll() { answer() }
    }
    harness.settle()
    #expect(device.delivered.isEmpty)
    // The old page comes last and does not hold them.
    for answer in page { answer() }
    harness.releaseStore()
    #expect(device.delivered.count == 2)
  }
}
