import DeliveryCore
import PushModel
import Seams
import Testing

@Suite struct UpstreamBoardTests {
  private func number(_ value: UInt64) -> MessageNumber { MessageNumber(value) }

  @Test func messagesGoRoundTheStreams() {
    var board = UpstreamBoard<String>(windowMax: 100)
    _ = board.streamOpened("a")
    _ = board.streamOpened("b")
    #expect(board.offer(number(1)) == [.hand(number(1), "a")])
    #expect(board.offer(number(2)) == [.hand(number(2), "b")])
    #expect(board.offer(number(3)) == [.hand(number(3), "a")])
  }

  @Test func withoutAStreamTheyWaitInOrder() {
    var board = UpstreamBoard<String>(windowMax: 100)
    #expect(board.offer(number(1)).isEmpty)
    #expect(board.offer(number(2)).isEmpty)
    #expect(board.streamOpened("a") == [.hand(number(1), "a"), .hand(number(2), "a")])
  }

  @Test func aFullWindowHoldsTheNextMessage() {
    var board = UpstreamBoard<String>(windowMax: 2)
    _ = board.streamOpened("a")
    _ = board.offer(number(1))
    _ = board.offer(number(2))
    #expect(board.offer(number(3)).isEmpty)
    let (verdict, actions) = board.acked(number(1), on: "a")
    #expect(verdict == .settled)
    #expect(actions == [.hand(number(3), "a")])
  }

  @Test func whatAClosedStreamHadNotAckedGoesToAnother() {
    var board = UpstreamBoard<String>(windowMax: 2)
    _ = board.streamOpened("a")
    for value in 1...4 { _ = board.offer(number(UInt64(value))) }
    #expect(board.streamClosed("a").isEmpty)
    #expect(board.streamOpened("b") == [.hand(number(1), "b"), .hand(number(2), "b")])
    #expect(board.waitingCount == 2)
  }

  @Test func aDrainingStreamGetsNothingNewAndItsAcksCount() {
    var board = UpstreamBoard<String>(windowMax: 100)
    _ = board.streamOpened("a")
    _ = board.offer(number(1))
    board.streamDrains("a")
    #expect(board.offer(number(2)).isEmpty)
    #expect(board.acked(number(1), on: "a").0 == .settled)
    #expect(board.acked(number(1), on: "a").0 == .unknown)
    #expect(board.pendingCount == 0)
  }

  @Test func underRandomUseEachMessageIsAckedOnceAndNoWindowOverflows() {
    var chance = SeededChance(seed: 7)
    var board = UpstreamBoard<Int>(windowMax: 5)
    var open: [Int] = []
    var pending: [Int: Set<MessageNumber>] = [:]
    var acked: Set<MessageNumber> = []
    var offered: UInt64 = 0
    var nextStream = 0
    func note(_ actions: [UpstreamBoard<Int>.Action]) {
      for case .hand(let number, let stream) in actions {
        pending[stream, default: []].insert(number)
        #expect(pending[stream, default: []].count <= 5)
        #expect(!acked.contains(number))
      }
    }
    for _ in 0..<20_000 {
      switch Int.random(in: 0..<10, using: &chance) {
      case 0 where open.count < 6:
        nextStream += 1
        open.append(nextStream)
        note(board.streamOpened(nextStream))
      case 1 where !open.isEmpty && Int.random(in: 0..<4, using: &chance) == 0:
        let stream = open.remove(at: Int.random(in: 0..<open.count, using: &chance))
        pending[stream] = nil
        note(board.streamClosed(stream))
      case 2...5:
        offered += 1
        note(board.offer(MessageNumber(offered)))
      default:
        guard let stream = open.randomElement(using: &chance),
          let number = pending[stream]?.min()
        else { continue }
        pending[stream]?.remove(number)
        acked.insert(number)
        let (verdict, actions) = board.acked(number, on: stream)
        #expect(verdict == .settled)
        note(actions)
      }
    }
    let held = pending.values.reduce(0) { $0 + $1.count }
    #expect(acked.count + held + board.waitingCount == Int(offered))
  }
}
