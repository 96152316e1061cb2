import DeliveryCore
import PushModel
import Seams
import Testing

@Suite struct UpstreamBoardTests {
  private let start = Moment(ns: 1)

  private func number(_ value: UInt64) -> MessageNumber { MessageNumber(value) }

  @Test func messagesGoRoundTheStreams() {
    var board = UpstreamBoard<String>(windowMax: 100)
    _ = board.streamOpened("a", now: start)
    _ = board.streamOpened("b", now: start)
    #expect(board.offer(number(1), now: start) == [.hand(number(1), "a")])
    #expect(board.offer(number(2), now: start) == [.hand(number(2), "b")])
    #expect(board.offer(number(3), now: start) == [.hand(number(3), "a")])
  }

  @Test func withoutAStreamTheyWaitInOrder() {
    var board = UpstreamBoard<String>(windowMax: 100)
    #expect(board.offer(number(1), now: start).isEmpty)
    #expect(board.offer(number(2), now: start).isEmpty)
    #expect(board.streamOpened("a", now: start) == [.hand(number(1), "a"), .hand(number(2), "a")])
  }

  @Test func aFullWindowHoldsTheNextMessage() {
    var board = UpstreamBoard<String>(windowMax: 2)
    _ = board.streamOpened("a", now: start)
    _ = board.offer(number(1), now: start)
    _ = board.offer(number(2), now: start)
    #expect(board.offer(number(3), now: start).isEmpty)
    let (verdict, actions) = board.acked(number(1), on: "a", now: start)
    #expect(verdict == .settled)
    #expect(actions == [.hand(number(3), "a")])
  }

  @Test func whatAClosedStreamHadNotAckedGoesToAnother() {
    var board = UpstreamBoard<String>(windowMax: 2)
    _ = board.streamOpened("a", now: start)
    for value in 1...4 { _ = board.offer(number(UInt64(value)), now: start) }
    #expect(board.streamClosed("a", now: start).isEmpty)
    #expect(board.streamOpened("b", now: start) == [.hand(number(1), "b"), .hand(number(2), "b")])
    #expect(board.waitingCount == 2)
  }

  @Test func aDrainingStreamGetsNothingNewAndItsAcksCount() {
    var board = UpstreamBoard<String>(windowMax: 100)
    _ = board.streamOpened("a", now: start)
    _ = board.offer(number(1), now: start)
    board.streamDrains("a")
    #expect(board.offer(number(2), now: start).isEmpty)
    #expect(board.acked(number(1), on: "a", now: start).0 == .settled)
    #expect(board.acked(number(1), on: "a", now: start).0 == .unknown)
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
        note(board.streamOpened(nextStream, now: start))
      case 1 where !open.isEmpty && Int.random(in: 0..<4, using: &chance) == 0:
        let stream = open.remove(at: Int.random(in: 0..<open.count, using: &chance))
        pending[stream] = nil
        note(board.streamClosed(stream, now: start))
      case 2...5:
        offered += 1
        note(board.offer(MessageNumber(offered), now: start))
      default:
        guard let stream = open.randomElement(using: &chance),
          let number = pending[stream]?.min()
        else { continue }
        pending[stream]?.remove(number)
        acked.insert(number)
        let (verdict, actions) = board.acked(number, on: stream, now: start)
        #expect(verdict == .settled)
        note(actions)
      }
    }
    let held = pending.values.reduce(0) { $0 + $1.count }
    #expect(acked.count + held + board.waitingCount == Int(offered))
  }

  private func board(_ first: Duration = .seconds(30), longest: Duration = .seconds(100)) -> UpstreamBoard<
    String
  > {
    var board = UpstreamBoard<String>(windowMax: 2, retryFirst: first, retryLongest: longest)
    _ = board.streamOpened("a", now: start)
    return board
  }

  @Test func withoutAnAckAMessageIsHandedOutAgainAfterGrowingPauses() {
    var board = board()
    _ = board.offer(number(1), now: start)
    var due: [Int64] = []
    var now = start
    for _ in 0..<5 {
      guard let next = board.nextDue else { break }
      #expect(board.redeliver(now: Moment(ns: next.ns - 1)).isEmpty)
      now = next
      #expect(board.redeliver(now: now) == [.hand(number(1), "a")])
      #expect(board.redeliver(now: now).isEmpty)
      due.append((now - start).ns / 1_000_000_000)
    }
    // 30, 60, and then the longest pause.
    #expect(due == [30, 90, 190, 290, 390])
    // It holds one place of the window all the while.
    #expect(board.pendingCount == 1)
    #expect(board.acked(number(1), on: "a", now: now).0 == .settled)
    let last = board.nextDue ?? now
    #expect(board.redeliver(now: last + .seconds(1)).isEmpty)
    #expect(board.nextDue == nil)
  }

  @Test func theFirstPauseBeginsWhenAMessageIsHandedOutNotWhenItCame() {
    var board = board()
    for value in 1...3 { _ = board.offer(number(UInt64(value)), now: start) }
    let later = start + .seconds(29)
    #expect(board.acked(number(1), on: "a", now: later).1 == [.hand(number(3), "a")])
    #expect(board.redeliver(now: start + .seconds(30)) == [.hand(number(2), "a")])
    #expect(board.nextDue == later + .seconds(30))
    #expect(board.redeliver(now: later + .seconds(30)) == [.hand(number(3), "a")])
  }

  @Test func aDrainingStreamGetsNothingAgainAndAClosedOnesPausesBeginAnew() {
    var board = board()
    _ = board.offer(number(1), now: start)
    board.streamDrains("a")
    #expect(board.redeliver(now: start + .seconds(30)).isEmpty)
    _ = board.streamClosed("a", now: start + .seconds(40))
    #expect(board.streamOpened("b", now: start + .seconds(40)) == [.hand(number(1), "b")])
    #expect(board.redeliver(now: start + .seconds(69)).isEmpty)
    #expect(board.redeliver(now: start + .seconds(70)) == [.hand(number(1), "b")])
  }

  @Test func withAPauseOfZeroNothingIsHandedOutAgain() {
    var board = board(.zero)
    _ = board.offer(number(1), now: start)
    #expect(board.nextDue == nil)
    #expect(board.redeliver(now: start + .seconds(1_000_000)).isEmpty)
  }
}
