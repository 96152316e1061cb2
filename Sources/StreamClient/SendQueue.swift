import Connections
import Synchronization

/// Who waits for the end of a message.
enum Reply: Sendable {
  case call(number: UInt64, CheckedContinuation<Result<Ack, SendError>, Never>)
  case bulk(BulkChannel)

  func answer(_ messageID: String, _ result: Result<Ack, SendError>) {
    switch self {
    case .call(_, let continuation): continuation.resume(returning: result)
    case .bulk(let channel): channel.send([BulkOutcome(messageID: messageID, result: result)])
    }
  }
}

/// What callers handed over and the loop has not taken: the bridge from async code to the loop.
///
/// The loop is woken only when it has room and found nothing; while its window is full it takes more by
/// itself as acks come. Callers bound what is in here: a call holds one message, a bulk send its credit.
final class SendQueue: Sendable {
  struct Item: Sendable {
    var message: EncodedMessage
    var reply: Reply
  }

  enum Put {
    case queued
    /// Queued, and the loop waits for it: wake it.
    case wake
    case closed
    case cancelled
  }

  private struct State {
    var items: [Item] = []
    var next = 0
    var loopWaits = true
    var isClosed = false
  }

  private let state = Mutex(State())

  func put(_ item: Item) -> Put {
    state.withLock { state in
      if state.isClosed { return .closed }
      // A cancelled call whose handler ran before this must not be queued, nobody would take it out.
      if case .call = item.reply, Task.isCancelled { return .cancelled }
      state.items.append(item)
      guard state.loopWaits else { return .queued }
      state.loopWaits = false
      return .wake
    }
  }

  /// Takes up to  items out, in order.
  ///
  /// order. For the loop.
  func take(_ room: Int, into items: inout [Item]) {
    state.withLock { state in
      let count = min(room, state.items.count - state.next)
      items.append(contentsOf: state.items[state.next..<(state.next + max(0, count))])
      state.next += max(0, count)
      if state.next == state.items.count {
        state.items.removeAll(keepingCapacity: state.items.capacity <= 4_096)
        state.next = 0
      } else if state.next > 1_024, state.next * 2 > state.items.count {
        state.items.removeFirst(state.next)
        state.next = 0
      }
      state.loopWaits = state.items.isEmpty && room > 0
    }
  }

  var isEmpty: Bool { state.withLock { $0.items.isEmpty } }

  /// Takes one call's item out.
  ///
  /// - Returns: nil when the loop has it already, or it never came.
  func remove(call number: UInt64) -> Item? {
    state.withLock { state in
      let index = state.items[state.next...].firstIndex { item in
        if case .call(number, _) = item.reply { true } else { false }
      }
      return index.map { state.items.remove(at: $0) }
    }
  }

  /// Refuses what comes from now on.
  ///
  /// - Returns: What nobody will take.
  func close() -> [Item] {
    state.withLock { state in
      state.isClosed = true
      let left = Array(state.items[state.next...])
      state.items = []
      state.next = 0
      return left
    }
  }
}
