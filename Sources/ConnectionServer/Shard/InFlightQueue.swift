import PushModel

/// What was handed to a device's stream and waits for its ack.
///
/// Nearly always that is one message, which lies in the queue itself. Devices ack in order, so the rest is a ring that
/// is searched from its oldest end and finds nearly each ack at the first look; an ack out of order costs a walk over
/// at most the window. A queue of one, or none, holds no memory of its own.
struct InFlightQueue<Element> {
  private struct Slot {
    let key: MessageKey
    var element: Element?
  }

  /// The oldest; nil when nothing waits.
  private var oldest: Slot?
  /// Those that came after it; what was taken out of the middle leaves a gap.
  private var others: [Slot] = []
  /// Where `others` begin.
  private var head = 0
  /// How many elements wait.
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  mutating func append(_ element: Element, key: MessageKey) {
    let slot = Slot(key: key, element: element)
    if oldest == nil { oldest = slot } else { others.append(slot) }
    count += 1
  }

  /// Takes the element with this key out; nil when it does not wait here.
  mutating func remove(_ key: MessageKey) -> Element? {
    if let first = oldest, first.key == key {
      count -= 1
      advance()
      return first.element
    }
    var index = head
    while index < others.count {
      if others[index].key == key, let element = others[index].element {
        others[index].element = nil
        count -= 1
        return element
      }
      index += 1
    }
    return nil
  }

  func contains(_ key: MessageKey) -> Bool { find(key) != nil }

  func find(_ key: MessageKey) -> Element? {
    if let oldest, oldest.key == key { return oldest.element }
    return others[head...].first { $0.key == key && $0.element != nil }?.element
  }

  /// Takes everything out, oldest first.
  mutating func removeAll() -> [Element] {
    var left: [Element] = []
    left.reserveCapacity(count)
    if let element = oldest?.element { left.append(element) }
    left += others[head...].compactMap(\.element)
    self = InFlightQueue()
    return left
  }

  /// Moves the next one up.
  private mutating func advance() {
    oldest = nil
    while head < others.count {
      let next = others[head]
      others[head].element = nil
      head += 1
      if next.element != nil {
        oldest = next
        break
      }
    }
    if head == others.count {
      others = []
      head = 0
    } else if head > 64, head * 2 > others.count {
      others.removeFirst(head)
      head = 0
    }
  }
}
