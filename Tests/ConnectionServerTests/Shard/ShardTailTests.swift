import Bytes
import DeliveryCore
import PushModel
import Seams
import Testing

@testable import ConnectionServer

/// What a shard keeps and hands out for the console's tail: nothing while nobody watches, and never more than its bounds.
@Suite struct ShardTailTests {
  private func key(_ number: Int) -> MessageKey {
    // As spread as the hashes of message ids are.
    let spread = UInt64(number) &* 0x9E37_79B9_7F4A_7C15
    return MessageKey(Hash128(high: UInt64(number), low: spread ^ spread >> 29))
  }

  private func record(_ messages: Range<Int>, in shard: Shard) {
    for number in messages {
      for state in [MessageState.accepted, .inFlight, .delivered] {
        shard.events.record(
          .init(
            key: key(number), sender: SenderID(1), device: DeviceNumber(Int64(number % 7)), state: state,
            at: WallTime(ms: Int64(number))))
      }
    }
  }

  @Test func namesAreKeptOnlyWhileSomebodyWatches() {
    let harness = ShardHarness()
    let shard = harness.shards[0]
    shard.nameMessage(key(1), "m1", to: "t")
    shard.noteRefusal(harness.sender, "m2", to: "t", .badRegistration)
    #expect(shard.tail.names.isEmpty && shard.tail.takeNotes().isEmpty)
    harness.context.watch.begin()
    shard.nameMessage(key(1), "m1", to: "t")
    shard.noteRefusal(harness.sender, "m2", to: "t", .badRegistration)
    #expect(shard.tail.names[key(1)] == .init(messageID: "m1", target: "t"))
    #expect(shard.tail.takeNotes().map(\.code) == ["BAD_REGISTRATION"])
    #expect(shard.tail.takeNotes().isEmpty)
    harness.context.watch.end()
    shard.nameMessage(key(2), "m3", to: "t")
    #expect(shard.tail.names[key(2)] == nil)
  }

  @Test func namesAndNotesAreBoundedInASecondAndInAll() {
    let harness = ShardHarness()
    let shard = harness.shards[0]
    harness.context.watch.begin()
    for second in 0..<8 {
      shard.wall = WallTime(ms: Int64(second) * 1_000)
      for number in 0..<3_000 { shard.nameMessage(key(second * 10_000 + number), "m", to: "t") }
      let kept = min(MessageTail.namesMax, (second + 1) * MessageTail.notesPerSecondMax)
      #expect(shard.tail.names.count == kept)
    }
    // The oldest have gone.
    #expect(shard.tail.names[key(0)] == nil && shard.tail.names[key(70_000)] != nil)
    shard.wall = WallTime(ms: 20_000)
    for _ in 0..<3_000 { shard.noteRefusal(harness.sender, "m", to: "t", .badRegistration) }
    #expect(shard.tail.takeNotes().count == MessageTail.notesMax)
  }

  @Test func aLookBeginsWithWhatHappensAfterIt() {
    let harness = ShardHarness()
    let shard = harness.shards[0]
    record(0..<10, in: shard)
    #expect(shard.consoleSteps([ConsoleFilter()]).map(\.events.count) == [0])
    record(10..<12, in: shard)
    #expect(shard.consoleSteps([ConsoleFilter()]).map(\.events.count) == [6])
    #expect(shard.consoleSteps([ConsoleFilter()]).map(\.events.count) == [0])
  }

  @Test func aboveARateMessagesAreSampledWhole() throws {
    let harness = ShardHarness()
    let shard = harness.shards[0]
    _ = shard.consoleSteps([ConsoleFilter()])
    record(0..<4_000, in: shard)
    let found = try #require(shard.consoleSteps([ConsoleFilter()]).first)
    #expect(found.every >= 64 && found.events.count <= ConsoleSteps.stepsMax)
    #expect(found.events.count > ConsoleSteps.stepsMax / 8)
    let lives = Dictionary(grouping: found.events, by: \.key)
    #expect(lives.values.allSatisfy { $0.map(\.state) == [.accepted, .inFlight, .delivered] })
    // Who is in a smaller sample was in the larger one.
    record(4_000..<4_010, in: shard)
    let calm = try #require(shard.consoleSteps([ConsoleFilter()]).first)
    #expect(calm.every == 1 && calm.events.count == 30)
  }

  @Test func aFilterSeesAllThatMatchesAndTellsWhatHadNoRoom() throws {
    let harness = ShardHarness()
    let shard = harness.shards[0]
    _ = shard.consoleSteps([ConsoleFilter()])
    record(0..<350, in: shard)
    var filter = ConsoleFilter()
    filter.device = DeviceNumber(3)
    filter.state = .delivered
    let found = try #require(shard.consoleSteps([filter]).first)
    #expect(found.every == 1 && found.leftOut == 0)
    #expect(found.events.count == 50 && found.events.allSatisfy { $0.device == DeviceNumber(3) })
    record(0..<7_000, in: shard)
    let many = try #require(shard.consoleSteps([filter]).first)
    #expect(many.events.count == ConsoleSteps.stepsMax)
    // Of 21,000 steps the newest 16,384 were looked at.
    #expect(many.leftOut > 21_000 - ConsoleSteps.walkMax)
  }
}
