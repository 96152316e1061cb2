import DeliveryCore
import Seams
import Testing

@Suite struct RateTests {
  private func at(_ seconds: Double) -> Moment { Moment(ns: Int64(seconds * 1e9)) }

  @Test func aWindowTakesItsMaximumAndTellsWhenItIsWholeAgain() {
    var window = RateWindow()
    for step in 0..<240 {
      #expect(window.take(max: 240, per: .seconds(60), now: at(10 + Double(step) / 100)) == nil)
    }
    #expect(window.take(max: 240, per: .seconds(60), now: at(15)) == .seconds(55))
    // A refusal takes nothing and moves nothing.
    #expect(window.take(max: 240, per: .seconds(60), now: at(69.5)) == .milliseconds(500))
    #expect(window.take(max: 240, per: .seconds(60), now: at(70)) == nil)
    for _ in 0..<239 { #expect(window.take(max: 240, per: .seconds(60), now: at(70)) == nil) }
    #expect(window.take(max: 240, per: .seconds(60), now: at(70)) == .seconds(60))
  }

  @Test func aBatchFitsWholeOrNotAtAllAndAWholeWindowTakesAnyNumber() {
    var window = RateWindow()
    #expect(window.take(5_000, max: 3_000, per: .seconds(1), now: at(0)) == nil)
    #expect(window.take(1, max: 3_000, per: .seconds(1), now: at(0.25)) == .milliseconds(750))
    #expect(window.take(2_000, max: 3_000, per: .seconds(1), now: at(1)) == nil)
    #expect(window.take(1_001, max: 3_000, per: .seconds(1), now: at(1)) == .seconds(1))
    #expect(window.take(1_000, max: 3_000, per: .seconds(1), now: at(1)) == nil)
  }

  @Test func aBucketGivesItsBurstAndThenOneEachPause() {
    var bucket = TokenBucket()
    for _ in 0..<20 { #expect(bucket.take(burst: 20, refill: .seconds(180), now: at(0)) == nil) }
    #expect(bucket.take(burst: 20, refill: .seconds(180), now: at(0)) == .seconds(180))
    #expect(bucket.take(burst: 20, refill: .seconds(180), now: at(179)) == .seconds(1))
    #expect(bucket.take(burst: 20, refill: .seconds(180), now: at(180)) == nil)
    #expect(bucket.take(burst: 20, refill: .seconds(180), now: at(180)) == .seconds(180))
    #expect(!bucket.isFull(at(3_000)))
    #expect(bucket.isFull(at(180 * 21)))
    // After two hours of quiet the burst is there again, and no more than that.
    for _ in 0..<20 { #expect(bucket.take(burst: 20, refill: .seconds(180), now: at(9_000)) == nil) }
    #expect(bucket.take(burst: 20, refill: .seconds(180), now: at(9_000)) != nil)
  }

  @Test func whatAPeerIsToldToWaitIsRoundedUp() {
    #expect(Duration.milliseconds(1).secondsUp == 1)
    #expect(Duration.seconds(60).secondsUp == 60)
    #expect(Duration.milliseconds(60_001).secondsUp == 61)
  }

  @Test func quietKeysAreForgottenAndBusyOnesAreNot() {
    var table = RateTable<Int, Int>(entriesMax: 1_000, quietAfter: .seconds(3600), now: at(0))
    for key in 0..<100 { table.update(key, now: at(0), new: 0) { $0 += 1 } }
    for hour in 1...3 {
      #expect(
        table.update(7, now: at(Double(hour) * 3600), new: 0) {
          $0 += 1; return $0
        } == hour + 1)
    }
    #expect(table.count == 1)
    #expect(
      table.update(8, now: at(10_801), new: 0) {
        $0 += 1; return $0
      } == 1)
  }

  @Test func aKeyIsRememberedForTheWholeTimeAfterItsLastUse() {
    var table = RateTable<String, Int>(entriesMax: 1_000, quietAfter: .seconds(100), now: at(0))
    table.update("a", now: at(99), new: 0) { $0 = 5 }
    #expect(table.update("a", now: at(198), new: 0) { $0 } == 5)
    // The other way round: after twice the time without any use nothing is left.
    #expect(table.update("a", now: at(1_000), new: 0) { $0 } == 0)
  }

  @Test func theTableIsBounded() {
    var table = RateTable<Int, Int>(entriesMax: 64, quietAfter: .seconds(100), now: at(0))
    for key in 0..<10_000 {
      table.update(key, now: at(0), new: 0) { $0 += 1 }
      #expect(table.count <= 128)
    }
    #expect(table.update(9_999, now: at(0), new: 0) { $0 } == 1)
    #expect(table.update(0, now: at(0), new: 0) { $0 } == 0)
  }

  @Test func whatIsDueComesInOrderOfTimeAndThenOfAdding() {
    var chance = SeededChance(seed: 3)
    var queue = DueQueue<Int>()
    var wanted: [(due: Int, order: Int)] = []
    for order in 0..<500 {
      let due = Int.random(in: 0..<50, using: &chance)
      queue.add(order, due: at(Double(due)))
      wanted.append((due, order))
    }
    wanted.sort { ($0.due, $0.order) < ($1.due, $1.order) }
    #expect(queue.nextDue == at(Double(wanted[0].due)))
    var found: [Int] = []
    for second in 0..<50 {
      while let element = queue.popDue(at(Double(second))) { found.append(element) }
    }
    #expect(found == wanted.map(\.order))
    #expect(queue.isEmpty && queue.nextDue == nil)
  }
}
