import LoadGenerator
import Seams
import Testing

@Suite struct SendLedgerTests {
  private func ledger(_ count: Int, deliveries: Int = 1) -> SendLedger {
    var ledger = SendLedger(countsDeliveries: true)
    for index in 0..<count {
      let number = ledger.take(intended: Int64(index) * 1_000)
      ledger.write(number, deliveries: deliveries)
    }
    return ledger
  }

  @Test func aMessageThatIsAckedAndDeliveredIsSettled() {
    var ledger = ledger(1)
    let answer = ledger.answer(0, isAck: true)
    #expect(answer.isFirst && answer.intended == 0)
    #expect(ledger.undelivered == 1)
    #expect(ledger.undeliveredNumbers() == [0])
    #expect(ledger.deliver(0) == .expected(intended: 0))
    #expect(ledger.undelivered == 0 && ledger.unanswered == 0)
    #expect(ledger.undeliveredNumbers().isEmpty && ledger.unansweredNumbers().isEmpty)
  }

  @Test func aSecondAnswerAndASecondDeliveryAreTold() {
    var ledger = ledger(1)
    #expect(ledger.answer(0, isAck: true).isFirst)
    #expect(!ledger.answer(0, isAck: true).isFirst)
    #expect(!ledger.answer(0, isAck: false).isFirst)
    _ = ledger.deliver(0)
    #expect(ledger.deliver(0) == .surplus)
    #expect(ledger.acked == 1 && ledger.nacked == 0 && ledger.delivered == 1)
  }

  @Test func whatWasNeverWrittenIsNeitherAnsweredNorDelivered() {
    var ledger = SendLedger(countsDeliveries: true)
    _ = ledger.take(intended: 0)
    #expect(!ledger.answer(0, isAck: true).isFirst)
    #expect(ledger.deliver(0) == .surplus)
    #expect(ledger.deliver(1) == .surplus)
    #expect(ledger.deliver(-1) == .surplus)
  }

  @Test(arguments: [true, false])
  func aNackedMessageThatIsDeliveredIsAContradiction(nackComesFirst: Bool) {
    var ledger = ledger(1)
    if nackComesFirst { _ = ledger.answer(0, isAck: false) }
    _ = ledger.deliver(0)
    if !nackComesFirst { _ = ledger.answer(0, isAck: false) }
    #expect(ledger.contradicted == 1)
    #expect(ledger.undelivered == 0)
  }

  @Test func aTopicMessageAwaitsAllItsDeliveries() {
    var ledger = ledger(1, deliveries: 3)
    _ = ledger.answer(0, isAck: true)
    #expect(ledger.deliver(0) != .surplus)
    #expect(ledger.awaitedDeliveries(0) == 2)
    #expect(ledger.undeliveredNumbers() == [0])
    #expect(ledger.deliver(0) != .surplus)
    #expect(ledger.deliver(0) != .surplus)
    #expect(ledger.undelivered == 0)
    #expect(ledger.deliver(0) == .surplus)
  }

  @Test func aTopicWithoutSubscribersOwesNobodyAnything() {
    var ledger = ledger(1, deliveries: 0)
    _ = ledger.answer(0, isAck: true)
    #expect(ledger.undelivered == 0 && ledger.undeliveredNumbers().isEmpty)
  }

  @Test func withoutDevicesAnAnswerSettles() {
    var ledger = SendLedger(countsDeliveries: false)
    for _ in 0..<10_000 {
      let number = ledger.take(intended: 0)
      ledger.write(number)
      _ = ledger.answer(number, isAck: true)
    }
    #expect(ledger.undelivered == 0)
    #expect(ledger.openBlockCount <= 1)
  }

  @Test func memoryFollowsWhatIsOpenAndNotWhatWasSent() {
    var ledger = SendLedger(countsDeliveries: true)
    for index in 0..<1_000_000 {
      let number = ledger.take(intended: 0)
      ledger.write(number)
      _ = ledger.answer(number, isAck: true)
      // One in 50,000 waits for a device that is away.
      if index % 50_000 != 0 { _ = ledger.deliver(number) }
    }
    #expect(ledger.undeliveredNumbers().count == 20)
    #expect(ledger.openBlockCount <= 22)
    // What came late is counted, whether its block is whole or reduced.
    for index in stride(from: 0, to: 1_000_000, by: 50_000) { #expect(ledger.deliver(index) != .surplus) }
    #expect(ledger.undelivered == 0)
    #expect(ledger.deliver(50_000) == .surplus)
  }

  @Test(arguments: 1...8 as ClosedRange<UInt64>)
  func theLedgerAgreesWithASimpleOne(seed: UInt64) {
    var chance = SeededChance(seed: seed)
    var ledger = SendLedger(countsDeliveries: true)
    var acked: Set<Int> = []
    var nacked: Set<Int> = []
    var delivered: Set<Int> = []
    let behind = Int.random(in: 1...10_000, using: &chance)
    // Counted, since an expectation costs far more than a step.
    var disagreements = 0
    for step in 0..<20_000 {
      let number = ledger.take(intended: Int64(step))
      ledger.write(number)
      let other = max(0, number - Int.random(in: 0...behind, using: &chance))
      switch Int.random(in: 0..<10, using: &chance) {
      case 0..<4:
        let isAck = Bool.random(using: &chance)
        let isFirst = !acked.contains(other) && !nacked.contains(other)
        if ledger.answer(other, isAck: isAck).isFirst != isFirst { disagreements += 1 }
        if isFirst { if isAck { acked.insert(other) } else { nacked.insert(other) } }
      default:
        // Deliveries of what is settled as nacked are surplus once forgotten: not asked here.
        guard !nacked.contains(other) else { continue }
        let isFirst = delivered.insert(other).inserted
        if (ledger.deliver(other) != .surplus) != isFirst { disagreements += 1 }
      }
    }
    #expect(disagreements == 0)
    #expect(ledger.acked == acked.count && ledger.nacked == nacked.count)
    #expect(ledger.unanswered == 20_000 - acked.count - nacked.count)
    #expect(ledger.undeliveredNumbers() == acked.subtracting(delivered).sorted())
  }
}
