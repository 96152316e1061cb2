package import PushModel
package import Seams

/// Decides which of a sender's streams gets which upstream message, and when it gets it again.
///
/// Round-robin over the streams that are bound, do not drain and have room in their window; what finds no room
/// waits in order; what a closed stream had not acked goes back to the front (docs/protocol). What a living stream does
/// not ack is handed to it again, after pauses that double. Values only: the shard holds the messages and does what the
/// actions say.
package struct UpstreamBoard<StreamID: Hashable & Sendable>: Sendable {
  package enum Action: Equatable, Sendable {
    case hand(MessageNumber, StreamID)
  }

  package enum Acked: Equatable, Sendable {
    /// The message is done; its slot is free again.
    case settled
    /// Not pending on that stream: an ack that came twice, or never belonged there.
    case unknown
  }

  private struct Handed: Sendable {
    /// When it is handed out again.
    var due: Moment
    var pause: Duration
  }

  private struct Line: Sendable {
    var pending: [MessageNumber: Handed] = [:]
    var draining = false
  }

  private let windowMax: Int
  private let retryFirst: Duration
  private let retryLongest: Duration
  private var lines: [StreamID: Line] = [:]
  private var order: [StreamID] = []
  private var turn = 0
  /// Waiting numbers, a ring by way of a moving head.
  private var waiting: [MessageNumber] = []
  private var head = 0
  /// Nothing pending is due before this.
  private var earliest: Moment?

  /// - Parameters:
  ///   - windowMax: Unacked messages a stream may hold.
  ///   - retryFirst: Without an ack for so long a message is handed out again; zero for never.
  ///   - retryLongest: The longest pause after that.
  package init(windowMax: Int, retryFirst: Duration = .zero, retryLongest: Duration = .seconds(600)) {
    self.windowMax = windowMax
    self.retryFirst = retryFirst
    self.retryLongest = max(retryFirst, retryLongest)
  }

  package var waitingCount: Int { waiting.count - head }
  package var streamCount: Int { order.count }
  package var pendingCount: Int { lines.values.reduce(0) { $0 + $1.pending.count } }
  package var hasOpenStream: Bool { lines.values.contains { !$0.draining } }

  /// When ``redeliver(now:)`` may have something to hand out; nil for never.
  package var nextDue: Moment? { earliest }

  package mutating func streamOpened(_ id: StreamID, now: Moment) -> [Action] {
    if lines[id] == nil {
      lines[id] = Line()
      order.append(id)
    }
    return dispatch(now)
  }

  package mutating func streamDrains(_ id: StreamID) {
    lines[id]?.draining = true
  }

  /// - Returns: The stream's unacked messages, now waiting again, and what to hand out at once.
  package mutating func streamClosed(_ id: StreamID, now: Moment) -> [Action] {
    guard let line = lines.removeValue(forKey: id) else { return [] }
    order.removeAll { $0 == id }
    if turn >= order.count { turn = 0 }
    waiting = line.pending.keys.sorted() + waiting[head...]
    head = 0
    return dispatch(now)
  }

  package mutating func offer(_ number: MessageNumber, now: Moment) -> [Action] {
    waiting.append(number)
    return dispatch(now)
  }

  package mutating func acked(_ number: MessageNumber, on id: StreamID, now: Moment) -> (Acked, [Action]) {
    guard lines[id]?.pending.removeValue(forKey: number) != nil else { return (.unknown, []) }
    return (.settled, dispatch(now))
  }

  /// Takes a waiting message away, because it expired.
  package mutating func withdraw(_ number: MessageNumber) {
    if let index = waiting[head...].firstIndex(of: number) { waiting.remove(at: index) }
  }

  /// Hands out again what its stream has not acked for too long; to a draining stream nothing.
  ///
  /// Walks all pending messages, yet only when ``nextDue`` has come, which is at most about once in the first pause as
  /// long as acks flow.
  package mutating func redeliver(now: Moment) -> [Action] {
    guard let earliest, earliest <= now else { return [] }
    self.earliest = nil
    var actions: [Action] = []
    for id in order {
      guard var line = lines[id] else { continue }
      for number in line.pending.keys.sorted() {
        guard var handed = line.pending[number] else { continue }
        if handed.due <= now {
          handed.pause = min(handed.pause * 2, retryLongest)
          handed.due = now + handed.pause
          line.pending[number] = handed
          if !line.draining { actions.append(.hand(number, id)) }
        }
        noteDue(handed.due)
      }
      lines[id] = line
    }
    return actions
  }

  private mutating func noteDue(_ due: Moment) {
    earliest = min(earliest ?? due, due)
  }

  private mutating func dispatch(_ now: Moment) -> [Action] {
    var actions: [Action] = []
    while head < waiting.count, let id = nextStream() {
      let number = waiting[head]
      head += 1
      lines[id]?.pending[number] = Handed(due: now + retryFirst, pause: retryFirst)
      if retryFirst > .zero { noteDue(now + retryFirst) }
      actions.append(.hand(number, id))
    }
    if head == waiting.count {
      waiting.removeAll(keepingCapacity: waiting.capacity <= 1024)
      head = 0
    } else if head > 1024, head * 2 > waiting.count {
      waiting.removeFirst(head)
      head = 0
    }
    return actions
  }

  private mutating func nextStream() -> StreamID? {
    for _ in 0..<order.count {
      let id = order[turn]
      turn = turn + 1 == order.count ? 0 : turn + 1
      if let line = lines[id], !line.draining, line.pending.count < windowMax { return id }
    }
    return nil
  }
}
