package import PushModel

/// What was handed to a device's stream and waits for its ack.
///
/// Devices ack in order, so a ring that is searched from its oldest end finds nearly each ack at the first
/// look; an ack out of order costs a walk over at most the window. An empty queue holds no memory.
package struct InFlightQueue<Element> {
  private struct Slot {
    var key: MessageKey
    var element: Element?
  }
  private var slots: [Slot] = []
  private var head = 0
  /// How many elements wait.
  package private(set) var count = 0

  package init() {}

  package var isEmpty: Bool { count == 0 }

  package mutating func append(_ element: Element, key: MessageKey) {
    slots.append(Slot(key: key, element: element))
    count += 1
  }

  /// Takes the element with this key out; nil when it does not wait here.
  package mutating func remove(_ key: MessageKey) -> Element? {
    var index = head
    while index < slots.count {
      if slots[index].key == key, let element = slots[index].element {
        slots[index].element = nil
        count -= 1
        skipEmpty()
        return element
      }
      index += 1
    }
    return nil
  }

  package func contains(_ key: MessageKey) -> Bool {
    slots[head...].contains { $0.key == key && $0.element != nil }
  }

  package func find(_ key: MessageKey) -> Element? {
    slots[head...].first { $0.key == key && $0.element != nil }?.element
  }

  /// Takes everything out, oldest first.
  package mutating func removeAll() -> [Element] {
    let left = slots[head...].compactMap(\.element)
    slots = []
    head = 0
    count = 0
    return left
  }

  private mutating func skipEmpty() {
    if count == 0 {
      slots = []
      head = 0
      return
    }
    while head < slots.count, slots[head].element == nil { head += 1 }
    if head > 64, head * 2 > slots.count {
      slots.removeFirst(head)
      head = 0
    }
  }
}
