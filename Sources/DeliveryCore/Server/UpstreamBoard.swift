package import PushModel

/// Decides which of a sender's streams gets which upstream message.
///
/// Round-robin over the streams that are bound, do not drain and have room in their window; what finds no room
/// waits in order; what a closed stream had not acked goes back to the front (docs/protocol). Values only: the
/// shard holds the messages and does what the actions say.
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

  private struct Line: Sendable {
    var pending: Set<MessageNumber> = []
    var draining = false
  }

  private let windowMax: Int
  private var lines: [StreamID: Line] = [:]
  private var order: [StreamID] = []
  private var turn = 0
  /// Waiting numbers, a ring by way of a moving head.
  private var waiting: [MessageNumber] = []
  private var head = 0

  /// - Parameter windowMax: Unacked messages a stream may hold.
  package init(windowMax: Int) { self.windowMax = windowMax }

  package var waitingCount: Int { waiting.count - head }
  package var streamCount: Int { order.count }
  package var pendingCount: Int { lines.values.reduce(0) { $0 + $1.pending.count } }
  package var hasOpenStream: Bool { lines.values.contains { !$0.draining } }

  package mutating func streamOpened(_ id: StreamID) -> [Action] {
    if lines[id] == nil {
      lines[id] = Line()
      order.append(id)
    }
    return dispatch()
  }

  package mutating func streamDrains(_ id: StreamID) {
    lines[id]?.draining = true
  }

  /// - Returns: The stream's unacked messages, now waiting again, and what to hand out at once.
  package mutating func streamClosed(_ id: StreamID) -> [Action] {
    guard let line = lines.removeValue(forKey: id) else { return [] }
    order.removeAll { $0 == id }
    if turn >= order.count { turn = 0 }
    waiting = line.pending.sorted() + waiting[head...]
    head = 0
    return dispatch()
  }

  package mutating func offer(_ number: MessageNumber) -> [Action] {
    waiting.append(number)
    return dispatch()
  }

  package mutating func acked(_ number: MessageNumber, on id: StreamID) -> (Acked, [Action]) {
    guard lines[id]?.pending.remove(number) != nil else { return (.unknown, []) }
    return (.settled, dispatch())
  }

  /// Takes a waiting message away, because it expired.
  package mutating func withdraw(_ number: MessageNumber) {
    if let index = waiting[head...].firstIndex(of: number) { waiting.remove(at: index) }
  }

  private mutating func dispatch() -> [Action] {
    var actions: [Action] = []
    while head < waiting.count, let id = nextStream() {
      let number = waiting[head]
      head += 1
      lines[id]?.pending.insert(number)
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
