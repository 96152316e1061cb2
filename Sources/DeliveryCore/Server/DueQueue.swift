package import Seams

/// What is to be done later, the earliest first; equal moments in the order in which they were added.
///
/// A binary heap: O(log n) each way. For the few things that have a time of their own, not for every message.
package struct DueQueue<Element> {
  private struct Entry {
    var due: Moment
    var order: UInt64
    var element: Element

    func isBefore(_ other: Entry) -> Bool {
      due == other.due ? order < other.order : due < other.due
    }
  }
  private var heap: [Entry] = []
  private var last: UInt64 = 0

  package init() {}

  package var isEmpty: Bool { heap.isEmpty }
  package var count: Int { heap.count }
  /// When the first is due; nil for nothing.
  package var nextDue: Moment? { heap.first?.due }

  package mutating func add(_ element: Element, due: Moment) {
    last &+= 1
    heap.append(Entry(due: due, order: last, element: element))
    var child = heap.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard heap[child].isBefore(heap[parent]) else { break }
      heap.swapAt(child, parent)
      child = parent
    }
  }

  /// Takes the first out if it is due.
  package mutating func popDue(_ now: Moment) -> Element? {
    guard let first = heap.first, first.due <= now, let last = heap.popLast() else { return nil }
    if !heap.isEmpty {
      heap[0] = last
      sink()
    }
    return first.element
  }

  private mutating func sink() {
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count {
        if heap[child].isBefore(heap[least]) { least = child }
      }
      guard least != parent else { return }
      heap.swapAt(parent, least)
      parent = least
    }
  }
}
