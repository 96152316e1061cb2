import Bytes
import DeliveryCore
import PushModel
import Seams
import Stores
import Testing

@testable import ConnectionServer

/// What the simulator found: the store fails, answers late or loses an answer.
@Suite struct ShardFaultTests {
  private static let fault = StoreFault.unavailable(outcomeUnknown: false, detail: "test")
  private static let lost = StoreFault.unavailable(outcomeUnknown: true, detail: "test")

  private func ends(_ id: String, _ harness: ShardHarness) -> [MessageState] {
    let key = harness.key(id)
    return harness.shards.flatMap { $0.events.history(max: 100) { $0.key == key } }.map(\.state).filter(
      \.isEnd)
  }

  /// Lets a batch be tried as often as it is, and given up.
  private func waitForGivingUp(_ harness: ShardHarness) {
    for _ in 0..<12 { harness.advance(.milliseconds(200)) }
  }

  @Test func anAckedMessageKeepsItsEndWhenANewerOneMeetsItsRow() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (_, slot) = harness.connect(phone)
    let (_, stream) = harness.openSender()
    harness.send("m1", to: phone, from: stream, slot: 0, collapse: "k")
    harness.advance(.milliseconds(10))
    harness.deviceAcks("m1", slot)
    harness.send("m2", to: phone, from: stream, slot: 1, collapse: "k")
    harness.advance(.seconds(1))
    #expect(ends("m1", harness) == [.delivered])
    harness.deviceAcks("m2", slot)
    harness.advance(.seconds(1))
    #expect(ends("m2", harness) == [.delivered])
    #expect(harness.storedCount() == 0)
  }

  @Test func aMessageAckedWhileItIsWrittenKeepsItsEndWhenTheSameBatchCollapsesIt() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (_, slot) = harness.connect(phone)
    let (_, stream) = harness.openSender()
    harness.holdsStore = true
    harness.send("m1", to: phone, from: stream, slot: 0, collapse: "k")
    harness.send("m2", to: phone, from: stream, slot: 1, collapse: "k")
    harness.advance(.milliseconds(10))
    harness.deviceAcks("m1", slot)
    harness.releaseStore()
    harness.advance(.seconds(1))
    #expect(ends("m1", harness) == [.delivered])
  }

  @Test func aBacklogThatCouldNotBeReadIsReadAgain() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (_, stream) = harness.openSender()
    harness.send("m1", to: phone, from: stream, slot: 0)
    harness.advance(.seconds(1))
    harness.store.setBeforeRead { $0 == .backlog ? .fails(Self.fault) : .goesWell }
    let (device, _) = harness.connect(phone)
    harness.advance(.seconds(1))
    #expect(device.delivered.isEmpty)
    harness.store.setBeforeRead(nil)
    harness.advance(.seconds(1))
    #expect(device.delivered.count == 1)
  }

  @Test func aMessageSentAgainAfterARefusedBatchIsInFlightOnce() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (device, slot) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    harness.store.setBeforeWrite { $0 == .write ? .fails(Self.fault) : .goesWell }
    harness.send("m1", to: phone, from: stream, slot: 0)
    waitForGivingUp(harness)
    #expect(sender.answers[0]?.count == 1)
    harness.store.setBeforeWrite(nil)
    harness.send("m1", to: phone, from: stream, slot: 1)
    harness.advance(.milliseconds(10))
    #expect(device.delivered.count == 2)
    // The device joins the second to the first, which it still handles, and acks once.
    harness.deviceAcks("m1", slot)
    harness.advance(.seconds(1))
    #expect(slot.inFlight.isEmpty)
    #expect(harness.storedCount() == 0)
    #expect(sender.answers[1] == [.ack])
  }

  @Test func aBatchGivenUpThatWasWrittenAfterAllLeavesNoRow() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (_, slot) = harness.connect(phone)
    let (_, stream) = harness.openSender()
    harness.store.setBeforeWrite { $0 == .write ? .losesAnswer(Self.lost) : .goesWell }
    harness.send("m1", to: phone, from: stream, slot: 0)
    waitForGivingUp(harness)
    harness.store.setBeforeWrite(nil)
    #expect(harness.storedCount() == 1)
    harness.deviceAcks("m1", slot)
    harness.advance(.seconds(1))
    #expect(harness.storedCount() == 0)
  }

  private func upstream(_ number: UInt64, _ harness: ShardHarness, isReceipt: Bool) -> Upstream {
    let row = StoredUpstream(
      number: MessageNumber(number), sender: harness.sender,
      key: MessageKey(Hash128(high: number, low: 1)), device: isReceipt ? nil : DeviceNumber(1),
      expires: harness.time.wall + .seconds(3_600), body: [], messageID: "u\(number)", from: "t")
    return Upstream(row, origin: nil, write: .queued)
  }

  private func storedUpstream(_ harness: ShardHarness) -> Int {
    let found = Guarded(0)
    harness.store.snapshot().counts { result in
      if case .success(let counts) = result { found.withLock { $0 = counts["upstream"] ?? 0 } }
    }
    return found.withLock { $0 }
  }

  @Test func aReceiptOutlivesABatchThatIsGivenUp() async throws {
    let harness = ShardHarness(shards: 1)
    harness.store.setBeforeWrite { $0 == .write ? .fails(Self.fault) : .goesWell }
    harness.shards[0].handle(.upstream(upstream(1, harness, isReceipt: true)))
    waitForGivingUp(harness)
    #expect(storedUpstream(harness) == 0)
    harness.store.setBeforeWrite(nil)
    for _ in 0..<5 { harness.advance(.seconds(1)) }
    #expect(storedUpstream(harness) == 1)
  }

  @Test func anUpstreamMessageWrittenAfterAPassOverTheStoreIsNotLeftThere() async throws {
    let held = Guarded<[@Sendable () -> Void]>([])
    let isHolding = Guarded(false)
    let answers = ShardHarness.Answers()
    let store = MemoryStore(
      arrive: { call, work in
        if call == .write, isHolding.withLock({ $0 }) { held.withLock { $0.append(work) } } else { work() }
      }, deliver: { answers.add($0) })
    var tuning = ShardTuning()
    tuning.upstreamKept = 4
    let harness = ShardHarness(shards: 1, tuning: tuning, store: store, answers: answers)
    let (sender, stream) = harness.openSender()
    for number in 1...4 {
      harness.shards[0].handle(.upstream(upstream(UInt64(number), harness, isReceipt: false)))
    }
    harness.advance(.seconds(1))
    isHolding.withLock { $0 = true }
    // The desk has no room for this one; its row comes late.
    harness.shards[0].handle(.upstream(upstream(5, harness, isReceipt: false)))
    for number in 1...4 {
      harness.shards[0].handle(.upstreamAcked(harness.sender, MessageNumber(UInt64(number)), stream))
    }
    harness.advance(.seconds(1))
    #expect(sender.upstream.count == 4)
    isHolding.withLock { $0 = false }
    for work in held.withLock({ $0 }) { work() }
    harness.advance(.seconds(1))
    #expect(sender.upstream.map(\.row.messageID) == ["u1", "u2", "u3", "u4", "u5"])
  }

  @Test func anUpstreamMessageThatWasRefusedIsNewWhenItComesAgain() async throws {
    let harness = ShardHarness(shards: 1)
    let phone = try await harness.register("a")
    let (device, _) = harness.connect(phone)
    let shard = harness.shards[0]
    let row = upstream(1, harness, isReceipt: false).row
    func take() -> Bool { shard.upstreamSeen.insert(row.key, shard: 0, now: harness.time.wall) == nil }
    #expect(take())
    harness.store.setBeforeWrite { $0 == .write ? .fails(Self.fault) : .goesWell }
    let origin = DeviceOrigin(stream: device.reference, rawMessageID: Array("u1".utf8))
    shard.handle(.upstream(Upstream(row, origin: origin, write: .queued)))
    waitForGivingUp(harness)
    #expect(device.upstreamAnswers.count == 1)
    #expect(take())
  }

  @Test func messagesEndedByARuleMakeRoomForWhatWaits() async throws {
    var tuning = ShardTuning()
    tuning.deviceWindow = 2
    let harness = ShardHarness(tuning: tuning)
    let phone = try await harness.register("a")
    let (_, stream) = harness.openSender()
    for index in 0..<4 {
      harness.send("m\(index)", to: phone, from: stream, slot: UInt32(index), ttl: index < 2 ? 5 : 3600)
    }
    harness.advance(.seconds(1))
    let (device, slot) = harness.connect(phone)
    #expect(device.delivered.count == 2)
    harness.advance(.seconds(5))
    // The sweeper finds the two that the device never acked.
    let rows = Guarded<[WriteOutcome.Ended]>([])
    harness.store.sweep(now: harness.time.wall, budget: 100) { result in
      if case .success(let found) = result { rows.withLock { $0 = found } }
    }
    harness.settle()
    harness.shards[harness.shards[0].home(of: phone.device)].handle(.ended(rows.withLock { $0 }))
    harness.settle()
    #expect(slot.inFlight.count == 2)
    #expect(device.delivered.count == 4)
  }
}
