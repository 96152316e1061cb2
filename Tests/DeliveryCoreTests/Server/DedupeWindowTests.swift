import Bytes
import DeliveryCore
import PushModel
import Seams
import Testing

@Suite struct DedupeWindowTests {
  private let start = WallTime(ms: 1_700_000_000_000)

  private func key(_ value: UInt64) -> MessageKey {
    var chance = SeededChance(seed: value)
    return MessageKey(Hash128(high: chance.next(), low: chance.next()))
  }

  @Test func aKnownIdNamesTheShardThatTookIt() {
    var window = DedupeWindow(idsMax: 1_000, horizon: .seconds(600))
    #expect(window.insert(key(1), shard: 3, now: start) == nil)
    #expect(window.insert(key(1), shard: 0, now: start + .seconds(599)) == 3)
    #expect(window.insert(key(2), shard: 1, now: start) == nil)
  }

  @Test func anIdIsForgottenAfterTwiceTheHorizon() {
    var window = DedupeWindow(idsMax: 1_000, horizon: .seconds(600))
    _ = window.insert(key(1), shard: 0, now: start)
    #expect(window.insert(key(1), shard: 0, now: start + .seconds(1_201)) == nil)
  }

  @Test func theNumberOfIdsIsBounded() {
    var window = DedupeWindow(idsMax: 6_400, horizon: .seconds(600))
    for value in 0..<100_000 { _ = window.insert(key(UInt64(value)), shard: 0, now: start) }
    #expect(window.count <= 2 * 6_400)
    #expect(window.count >= 6_400)
    // The newest thousand are among them.
    for value in 99_000..<100_000 {
      #expect(window.insert(key(UInt64(value)), shard: 1, now: start) == 0)
    }
  }

  @Test func aRemovedIdMayComeAgain() {
    var window = DedupeWindow(idsMax: 1_000, horizon: .seconds(600))
    _ = window.insert(key(1), shard: 0, now: start)
    window.remove(key(1))
    #expect(window.insert(key(1), shard: 1, now: start) == nil)
  }
}
