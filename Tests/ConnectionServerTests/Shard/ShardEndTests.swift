import DeliveryCore
import PushModel
import Seams
import Stores
import Telemetry
import Testing

@testable import ConnectionServer

/// Each way in which a message can end is counted, once.
@Suite struct ShardEndTests {
  private func count(_ harness: ShardHarness, _ state: MessageState, _ direction: String = "downstream")
    -> Int
  {
    let line = "weir_messages_total{direction=\"\(direction)\",state=\"\(state.name)\"} "
    let text = String(decoding: harness.context.metrics.exposition(), as: UTF8.self)
    for row in text.split(separator: "\n") where row.hasPrefix(line) {
      return Int(row.dropFirst(line.count)) ?? -1
    }
    return -1
  }

  @Test func everyStateHasACounter() {
    let harness = ShardHarness()
    for state in MessageState.allCases { #expect(count(harness, state) == 0, "\(state.name)") }
    for state in [MessageState.accepted, .delivered, .expired, .nacked] {
      #expect(count(harness, state, "upstream") == 0, "\(state.name)")
    }
  }

  @Test func aMessageThatIsDeliveredIsCountedAtEachStep() async throws {
    let harness = ShardHarness()
    let phone = try await harness.register("a")
    let (_, stream) = harness.openSender()
    harness.send("m1", to: phone, from: stream, slot: 0)
    harness.advance(.seconds(1))
    let (_, slot) = harness.connect(phone)
    harness.deviceAcks("m1", slot)
    harness.advance(.seconds(1))
    for state in [MessageState.accepted, .stored, .inFlight, .delivered] {
      #expect(count(harness, state) == 1, "\(state.name)")
    }
  }

  @Test func refusedExpiredAndOfflineMessagesAreCounted() async throws {
    let harness = ShardHarness { $0.deviceMessagesPerMinuteMax = 3 }
    let phone = try await harness.register("a")
    let (_, stream) = harness.openSender()
    harness.send("away", to: phone, from: stream, slot: 0, ttl: 0)
    harness.send("late", to: phone, from: stream, slot: 1, ttl: 10)
    harness.send("kept", to: phone, from: stream, slot: 2)
    harness.send("refused", to: phone, from: stream, slot: 3)
    harness.advance(.seconds(11))
    harness.context.endedByRule(
      try harness.ask { harness.store.sweep(now: harness.steady.wall, budget: 10, $0) })
    harness.settle()
    #expect(count(harness, .droppedOffline) == 1)
    #expect(count(harness, .expired) == 1)
    #expect(count(harness, .nacked) == 1)
    #expect(count(harness, .accepted) == 3)
  }

  @Test func collapsedOverflowedAndUnregisteredMessagesAreCounted() async throws {
    let harness = ShardHarness()
    let (phone, other) = (try await harness.register("a"), try await harness.register("b"))
    let (_, stream) = harness.openSender()
    for id in 0..<2 { harness.send("c\(id)", to: phone, from: stream, slot: UInt32(id), collapse: "k") }
    for id in 0..<101 { harness.send("m\(id)", to: phone, from: stream, slot: UInt32(10 + id)) }
    harness.send("u", to: other, from: stream, slot: 200)
    harness.advance(.seconds(1))
    #expect(count(harness, .collapsed) == 1)
    #expect(count(harness, .droppedOverflow) == 101)
    let (found, ended) = try harness.ask {
      harness.store.unregister(other.token, now: harness.steady.wall, $0)
    }
    #expect(found)
    harness.context.endedByRule(ended)
    harness.settle()
    #expect(count(harness, .droppedUnregistered) == 1)
  }

  @Test func aDryRunIsCountedAndNothingElse() throws {
    let harness = ShardHarness()
    _ = try harness.add("a", topics: ["news"])
    let (_, stream) = harness.openSender()
    try harness.sendToTopic("news", "m1", from: stream, slot: 0, more: ",\"dry_run\":true")
    harness.settle()
    #expect(count(harness, .dryRun) == 1)
    #expect(count(harness, .accepted) == 0)
  }
}
