package import Seams

/// One call that a loop makes later; made by `EventLoop.after`.
///
/// Belongs to the loop's thread.
package final class LoopTimer {
  /// When it is due.
  package let deadline: Moment
  var body: (() -> Void)?
  /// In the heap; not once it is due.
  fileprivate var isWaiting = true
  private unowned let heap: TimerHeap

  init(deadline: Moment, heap: TimerHeap, body: @escaping () -> Void) {
    self.deadline = deadline
    self.heap = heap
    self.body = body
  }

  /// Whether it will still fire.
  package var isActive: Bool { body != nil }

  /// Makes the call, unless it was made or cancelled; for the loop.
  package func fire() {
    let body = body
    self.body = nil
    body?()
  }

  /// Takes the call back; harmless if it fired or was cancelled.
  ///
  /// O(1) on average.
  package func cancel() {
    guard body != nil else { return }
    body = nil
    if isWaiting { heap.noteCancelled() }
  }
}

/// Timers by deadline; those of one deadline in the order they were made.
///
/// A binary heap. A cancelled timer stays until it surfaces or until more than half of the entries are
/// cancelled, when the heap is rebuilt: so a cancel costs O(1) on average and the heap is at most twice as
/// large as what it holds.
package final class TimerHeap {
  private struct Entry {
    let deadline: Int64
    let number: UInt64
    let timer: LoopTimer

    static func < (left: Entry, right: Entry) -> Bool {
      left.deadline != right.deadline ? left.deadline < right.deadline : left.number < right.number
    }
  }

  private var entries: [Entry] = []
  private var cancelled = 0
  private var made: UInt64 = 0

  package init() {}

  package var count: Int { entries.count }

  /// Those of them that will still fire.
  package var activeCount: Int { entries.count - cancelled }

  /// The earliest deadline; a cancelled timer may make it too early, never too late.
  package var earliest: Moment? { entries.first.map { Moment(ns: $0.deadline) } }

  package func add(at deadline: Moment, _ body: @escaping () -> Void) -> LoopTimer {
    let timer = LoopTimer(deadline: deadline, heap: self, body: body)
    made &+= 1
    entries.append(Entry(deadline: deadline.ns, number: made, timer: timer))
    siftUp(entries.count - 1)
    return timer
  }

  func noteCancelled() {
    cancelled += 1
    guard cancelled > 64, cancelled * 2 > entries.count else { return }
    entries.removeAll { !$0.timer.isActive }
    cancelled = 0
    var index = entries.count / 2
    while index > 0 {
      index -= 1
      siftDown(index)
    }
  }

  /// Takes out every timer due at `now`, in order.
  package func takeDue(at now: Moment, into due: inout [LoopTimer]) {
    while let first = entries.first, first.deadline <= now.ns || !first.timer.isActive {
      entries.swapAt(0, entries.count - 1)
      entries.removeLast()
      siftDown(0)
      first.timer.isWaiting = false
      if first.timer.isActive { due.append(first.timer) } else { cancelled -= 1 }
    }
  }

  package func removeAll() {
    let dropped = entries
    entries = []
    cancelled = 0
    for entry in dropped { entry.timer.body = nil }
  }

  private func siftUp(_ from: Int) {
    var index = from
    while index > 0 {
      let parent = (index - 1) / 2
      guard entries[index] < entries[parent] else { return }
      entries.swapAt(index, parent)
      index = parent
    }
  }

  private func siftDown(_ from: Int) {
    var index = from
    while true {
      var child = 2 * index + 1
      guard child < entries.count else { return }
      if child + 1 < entries.count, entries[child + 1] < entries[child] { child += 1 }
      guard entries[child] < entries[index] else { return }
      entries.swapAt(index, child)
      index = child
    }
  }
}
