import Bytes
import PushModel
import Seams
import Testing

@testable import ConnectionServer

@Suite struct InFlightQueueTests {
  private func key(_ value: Int) -> MessageKey { MessageKey(Hash128(high: 7, low: UInt64(value))) }

  @Test func acksInAnyOrderFindTheirMessage() {
    var queue = InFlightQueue<Int>()
    for value in 0..<100 { queue.append(value, key: key(value)) }
    for value in stride(from: 99, through: 0, by: -1) {
      #expect(queue.remove(key(value)) == value)
    }
    #expect(queue.isEmpty)
  }

  @Test func anAckThatCameTwiceFindsNothing() {
    var queue = InFlightQueue<Int>()
    queue.append(1, key: key(1))
    #expect(queue.remove(key(1)) == 1)
    #expect(queue.remove(key(1)) == nil)
    #expect(queue.remove(key(2)) == nil)
  }

  @Test func itAgreesWithADictionaryUnderRandomUse() {
    var chance = SeededChance(seed: 42)
    var queue = InFlightQueue<Int>()
    var model: [Int: Int] = [:]
    // Counted, since an expectation costs far more than a step.
    var disagreements = 0
    for step in 0..<20_000 {
      if model.isEmpty || Bool.random(using: &chance) {
        queue.append(step, key: key(step))
        model[step] = step
      } else {
        let picked = Int.random(in: max(0, step - 300)...step, using: &chance)
        if queue.remove(key(picked)) != model.removeValue(forKey: picked) { disagreements += 1 }
      }
      if queue.count != model.count { disagreements += 1 }
    }
    #expect(disagreements == 0)
    #expect(queue.removeAll() == model.keys.sorted())
    #expect(queue.isEmpty)
  }
}
