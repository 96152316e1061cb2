import Bytes
import DeliveryCore
import Testing

private func key(_ number: Int) -> Hash128 { Hash128(high: 7, low: UInt64(number)) }

struct InboundLedgerTests {
  @Test func theOldestIdIsForgottenFirst() {
    var filter = DuplicateFilter(idsMax: 3)
    let answers = [1, 2, 3, 2, 4].map { filter.insert(key($0)) }
    #expect(answers == [true, true, true, false, true])
    #expect(!filter.contains(key(1)))
    #expect(filter.contains(key(2)) && filter.contains(key(3)) && filter.contains(key(4)))
    #expect(filter.count == 3)
  }

  @Test func theBoundHoldsOverManyIds() {
    var filter = DuplicateFilter(idsMax: 1_000)
    for number in 0..<5_000 { filter.insert(key(number)) }
    #expect(filter.count == 1_000)
    #expect(!filter.contains(key(3_999)))
    #expect(filter.contains(key(4_000)))
  }

  @Test func aHandledMessageIsAckedAgainAndNotShown() {
    var ledger = InboundLedger()
    #expect(ledger.arrived(key(1), on: .init(1)) == .handle)
    #expect(ledger.ended(key(1), success: true) == .init(1))
    #expect(ledger.arrived(key(1), on: .init(2)) == .ackAgain)
  }

  @Test func aFailedHandlerMeansNoAckAndTheNextDeliveryIsShown() {
    var ledger = InboundLedger()
    _ = ledger.arrived(key(1), on: .init(1))
    #expect(ledger.ended(key(1), success: false) == nil)
    #expect(ledger.arrived(key(1), on: .init(1)) == .handle)
  }

  @Test func aRepeatWhileTheHandlerRunsIsAckedOnTheStreamItCameOnLast() {
    var ledger = InboundLedger()
    _ = ledger.arrived(key(1), on: .init(1))
    #expect(ledger.arrived(key(1), on: .init(2)) == .joined)
    #expect(ledger.ended(key(1), success: true) == .init(2))
    #expect(ledger.ended(key(1), success: true) == nil)
  }

  @Test func tooManyRunningHandlersLeaveTheRestToTheServer() {
    var ledger = InboundLedger(runningMax: 1)
    _ = ledger.arrived(key(1), on: .init(1))
    #expect(ledger.arrived(key(2), on: .init(1)) == .overload)
    _ = ledger.ended(key(1), success: true)
    #expect(ledger.arrived(key(2), on: .init(1)) == .handle)
  }
}
