import Bytes
import PushModel
import Seams
import Testing

@testable import DeliveryCore

@Suite struct EventRingLatestTests {
  private func event(_ number: Int) -> EventRing.Event {
    EventRing.Event(
      key: MessageKey(Hash128(high: 0, low: UInt64(number))), sender: SenderID(1),
      device: DeviceNumber(Int64(number)), state: .accepted, at: WallTime(ms: Int64(number)))
  }

  @Test func theNewestStepsComeOldestFirstWithinEachBound() {
    var ring = EventRing(capacity: 8)
    for number in 0..<20 { ring.record(event(number)) }
    #expect(ring.recorded == 20)
    func latest(_ new: Int, walkMax: Int = 100, max: Int = 100) -> ([Int64], Int) {
      let found = ring.latest(new, walkMax: walkMax, max: max) { _ in true }
      return (found.events.map(\.device.value), found.passedOver)
    }
    #expect(latest(3) == ([17, 18, 19], 0))
    #expect(latest(0) == ([], 0))
    // What the ring has lost, what is not walked to, and what has no room is told.
    #expect(latest(10) == ([12, 13, 14, 15, 16, 17, 18, 19], 2))
    #expect(latest(6, walkMax: 2) == ([18, 19], 4))
    #expect(latest(6, max: 2) == ([18, 19], 4))
    #expect(ring.latest(6, walkMax: 100, max: 100) { $0.device.value % 2 == 0 }.events.count == 3)
    #expect(EventRing(capacity: 4).latest(9, walkMax: 9, max: 9) { _ in true }.events.isEmpty)
  }
}
