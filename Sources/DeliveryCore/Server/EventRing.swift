package import PushModel
package import Seams

/// The last steps of messages, oldest overwritten first: what inspection reads.
///
/// Recording is one store into preallocated memory; a look-up walks the ring. At 262,144 steps it holds
/// 12 MiB and a walk takes about a millisecond, which only a person asking pays.
package struct EventRing: Sendable {
  package struct Event: Sendable, Equatable {
    package var key: MessageKey
    package var sender: SenderID
    package var device: DeviceNumber
    package var state: MessageState
    package var at: WallTime

    package init(
      key: MessageKey, sender: SenderID, device: DeviceNumber, state: MessageState, at: WallTime
    ) {
      self.key = key
      self.sender = sender
      self.device = device
      self.state = state
      self.at = at
    }
  }

  private var events: [Event] = []
  private var next = 0
  /// Steps recorded so far, the overwritten ones too.
  package private(set) var recorded: UInt64 = 0
  private let capacity: Int

  /// - Parameter capacity: Steps kept; memory is taken as they come, 48 bytes each.
  package init(capacity: Int) {
    precondition(capacity > 0, "a ring holds at least one event")
    self.capacity = capacity
  }

  package mutating func record(_ event: Event) {
    recorded &+= 1
    if events.count < capacity {
      events.append(event)
    } else {
      events[next] = event
      next += 1
      if next == capacity { next = 0 }
    }
  }

  /// Of the newest `new` steps those that `wanted` picks, oldest first, at most the newest `max`.
  ///
  /// - Parameter walkMax: Steps that are looked at.
  /// - Returns: Them, and how many steps were chosen and had no room or were not looked at.
  /// - Complexity: O(steps looked at).
  package func latest(
    _ new: Int, walkMax: Int, max: Int, where wanted: (Event) -> Bool
  ) -> (events: [Event], passedOver: Int) {
    let looked = Swift.max(0, min(new, min(walkMax, events.count)))
    var found: [Event] = []
    var passedOver = Swift.max(0, new - looked)
    for offset in stride(from: events.count - 1, to: events.count - 1 - looked, by: -1) {
      let event = events[(next + offset) % events.count]
      guard wanted(event) else { continue }
      if found.count < max { found.append(event) } else { passedOver += 1 }
    }
    return (found.reversed(), passedOver)
  }

  /// The steps that `wanted` picks, oldest first, at most the newest `max`.
  package func history(max: Int, where wanted: (Event) -> Bool) -> [Event] {
    var found: [Event] = []
    for offset in stride(from: events.count - 1, through: 0, by: -1) {
      let event = events[(next + offset) % events.count]
      if wanted(event) {
        found.append(event)
        if found.count == max { break }
      }
    }
    return found.reversed()
  }
}
