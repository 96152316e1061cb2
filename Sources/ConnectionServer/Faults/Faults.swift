import PushModel
import Seams
import Synchronization

/// The faults that tests armed, for every front door of the server.
///
/// While none is armed a message costs one relaxed load.
final class Faults: Sendable {
  /// Orders that may be armed at once.
  static let ordersMax = 1_000

  private struct State {
    var orders: [(id: Int, order: FaultOrder)] = []
    var lastID = 0
  }
  private let state = Guarded(State())
  private let count = Atomic<Int>(0)

  var isArmed: Bool { count.load(ordering: .relaxed) > 0 }

  /// The fault that befalls this message; nil for none.
  ///
  /// Orders are looked at in the order of arming. Each that matches counts the message, the first that is due applies.
  /// - Parameter token: The target as the sender wrote it.
  func next(sender: SenderID, token: String?) -> ArmedFault? {
    guard isArmed else { return nil }
    return state.withLock { state in
      var due: ArmedFault?
      for place in state.orders.indices where state.orders[place].order.matches(sender, token) {
        if state.orders[place].order.skip > 0 {
          state.orders[place].order.skip -= 1
        } else if due == nil {
          due = state.orders[place].order.fault
          state.orders[place].order.left = state.orders[place].order.left.map { $0 - 1 }
        }
      }
      if due != nil {
        state.orders.removeAll { $0.order.left == 0 }
        count.store(state.orders.count, ordering: .relaxed)
      }
      return due
    }
  }

  /// - Returns: Its id; nil when too many are armed.
  func arm(_ order: FaultOrder) -> Int? {
    state.withLock { state in
      guard state.orders.count < Self.ordersMax else { return nil }
      state.lastID += 1
      state.orders.append((state.lastID, order))
      count.store(state.orders.count, ordering: .relaxed)
      return state.lastID
    }
  }

  /// - Parameter id: Nil for all.
  /// - Returns: How many were armed.
  func disarm(_ id: Int?) -> Int {
    state.withLock { state in
      let before = state.orders.count
      state.orders.removeAll { id == nil || $0.id == id }
      count.store(state.orders.count, ordering: .relaxed)
      return before - state.orders.count
    }
  }

  var armed: [(id: Int, order: FaultOrder)] { state.withLock { $0.orders } }
}
