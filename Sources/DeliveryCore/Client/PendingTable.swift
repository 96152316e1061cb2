import Seams

/// The messages of one sender that have not ended: held, written and waiting for their ack, or waiting for
/// their next try.
///
/// Slots are found by message id (acks come in any order) and by number. Three orders are kept: what is
/// ready to be written; what is pending, by ack deadline; all of them, by total deadline. Each is a linked
/// list over the slots because both timeouts are the same for every message of a table; only the waits
/// between tries differ, and those are in a heap.
package struct PendingTable: Sendable {
  enum Phase: Sendable, Equatable {
    case free
    /// Held until an earlier message of the same order has ended.
    case blocked
    /// Held until a window has room.
    case ready
    /// Written on a stream, neither acked nor nacked.
    case pending(StreamNumber)
    /// Nacked; its next try comes.
    case waiting
  }

  struct Entry: Sendable {
    var id: String
    var phase: Phase = .free
    var generation: UInt32 = 0
    /// Times written.
    var attempts: Int32 = 0
    /// Nacks and overdue acks.
    var failures: Int32 = 0
    var submitted: Moment
    /// Ack deadline while pending, next try while waiting.
    var due: Moment
    var lastNack: Nack?
    /// Messages of one order are sent one after the other; nil for those that nothing waits for.
    var order: UInt64?
    /// Neighbours in that order.
    var orderPrevious: Int32 = -1
    var orderNext: Int32 = -1
  }

  private struct Wait: Sendable {
    var due: Moment
    var slot: Int32
    var generation: UInt32
  }

  /// Most messages that may be here at a time.
  package let messagesMax: Int
  private(set) var entries: [Entry] = []
  private var links: [SlotList.Link] = []
  private var ageLinks: [SlotList.Link] = []
  private var free: [Int32] = []
  private var slots: [String: Int32] = [:]
  /// The last message of each order.
  private var orderTails: [UInt64: Int32] = [:]
  private(set) var ready = SlotList()
  private(set) var pending = SlotList()
  private(set) var byAge = SlotList()
  private var waits: [Wait] = []
  /// Entries in phase `waiting`; `waits` may hold more, of messages that ended meanwhile.
  private(set) var waitingCount = 0

  package init(messagesMax: Int) { self.messagesMax = max(1, messagesMax) }

  package var count: Int { byAge.count }
  package var isEmpty: Bool { byAge.count == 0 }

  func slot(of id: String) -> Int32? { slots[id] }

  func handle(_ slot: Int32) -> SendSlot {
    SendSlot(index: slot, generation: entries[Int(slot)].generation)
  }

  /// The slot a handle stands for, nil when its message has ended.
  func resolve(_ handle: SendSlot) -> Int32? {
    guard handle.index >= 0, Int(handle.index) < entries.count,
      entries[Int(handle.index)].generation == handle.generation,
      entries[Int(handle.index)].phase != .free
    else { return nil }
    return handle.index
  }

  // MARK: Moves

  /// Takes a message in, ready to be written after those before it, or blocked by one of its order.
  ///
  /// - Returns: nil when the id is here already or the table is full.
  mutating func insert(id: String, order: UInt64? = nil, now: Moment) -> Int32? {
    guard count < messagesMax else { return nil }
    let slot: Int32
    if let last = free.last { slot = last } else { slot = Int32(entries.count) }
    guard slots[id] == nil else { return nil }
    slots[id] = slot
    if free.isEmpty {
      entries.append(Entry(id: id, submitted: now, due: now))
      links.append(SlotList.Link())
      ageLinks.append(SlotList.Link())
    } else {
      free.removeLast()
      let generation = entries[Int(slot)].generation
      entries[Int(slot)] = Entry(id: id, generation: generation, submitted: now, due: now)
    }
    byAge.append(slot, &ageLinks)
    if let order, let tail = joinOrder(slot, order) {
      entries[Int(slot)].phase = .blocked
      entries[Int(slot)].orderPrevious = tail
      entries[Int(tail)].orderNext = slot
    } else {
      entries[Int(slot)].phase = .ready
      ready.append(slot, &links)
    }
    return slot
  }

  /// - Returns: The message before it; nil when it is the first of its order.
  private mutating func joinOrder(_ slot: Int32, _ order: UInt64) -> Int32? {
    entries[Int(slot)].order = order
    return orderTails.updateValue(slot, forKey: order)
  }

  /// The next message of its order, if this was the first, may be written.
  private mutating func leaveOrder(_ slot: Int32) {
    let entry = entries[Int(slot)]
    guard let order = entry.order else { return }
    if entry.orderPrevious >= 0 { entries[Int(entry.orderPrevious)].orderNext = entry.orderNext }
    guard entry.orderNext >= 0 else {
      orderTails[order] = entry.orderPrevious >= 0 ? entry.orderPrevious : nil
      return
    }
    entries[Int(entry.orderNext)].orderPrevious = entry.orderPrevious
    // It came before what is ready now.
    if entry.orderPrevious < 0 { makeReady(entry.orderNext) }
  }

  /// The first ready message was written on `stream`.
  mutating func written(_ slot: Int32, on stream: StreamNumber, ackDeadline: Moment) {
    leavePhase(slot)
    entries[Int(slot)].phase = .pending(stream)
    entries[Int(slot)].attempts &+= 1
    entries[Int(slot)].due = ackDeadline
    pending.append(slot, &links)
  }

  /// To be written before all others.
  mutating func makeReady(_ slot: Int32) {
    leavePhase(slot)
    entries[Int(slot)].phase = .ready
    ready.prepend(slot, &links)
  }

  /// To be written again at `due`.
  mutating func makeWaiting(_ slot: Int32, until due: Moment) {
    leavePhase(slot)
    entries[Int(slot)].phase = .waiting
    entries[Int(slot)].due = due
    waitingCount += 1
    if waits.count > 64, waits.count > 4 * waitingCount { compactWaits() }
    push(Wait(due: due, slot: slot, generation: entries[Int(slot)].generation))
  }

  mutating func noteFailure(_ slot: Int32, _ nack: Nack?) -> Int {
    entries[Int(slot)].failures &+= 1
    if let nack { entries[Int(slot)].lastNack = nack }
    return Int(entries[Int(slot)].failures)
  }

  /// The message ended; its slot is free.
  mutating func remove(_ slot: Int32) {
    leavePhase(slot)
    leaveOrder(slot)
    byAge.remove(slot, &ageLinks)
    slots.removeValue(forKey: entries[Int(slot)].id)
    entries[Int(slot)].phase = .free
    entries[Int(slot)].generation &+= 1
    entries[Int(slot)].lastNack = nil
    entries[Int(slot)].id = ""
    free.append(slot)
  }

  private mutating func leavePhase(_ slot: Int32) {
    switch entries[Int(slot)].phase {
    case .free, .blocked: break
    case .ready: ready.remove(slot, &links)
    case .pending: pending.remove(slot, &links)
    case .waiting:
      waitingCount -= 1
      entries[Int(slot)].phase = .free
      while let wait = waits.first, !isCurrent(wait) { popWait() }
    }
  }

  /// The pending messages of a stream become ready, in the order they were written, before all others.
  ///
  /// - Returns: How many.
  mutating func releasePending(of stream: StreamNumber) -> Int {
    var released = 0
    var slot = pending.last
    while slot >= 0 {
      let previous = links[Int(slot)].previous
      if entries[Int(slot)].phase == .pending(stream) {
        makeReady(slot)
        released += 1
      }
      slot = previous
    }
    return released
  }

  /// The pending messages of a stream, oldest first.
  func pendingSlots(of stream: StreamNumber) -> [Int32] {
    var found: [Int32] = []
    var slot = pending.first
    while slot >= 0 {
      if entries[Int(slot)].phase == .pending(stream) { found.append(slot) }
      slot = links[Int(slot)].next
    }
    return found
  }

  // MARK: Times

  /// When the oldest pending message's ack is overdue.
  var ackDeadline: Moment? { pending.first >= 0 ? entries[Int(pending.first)].due : nil }

  /// When the oldest message of all came.
  var oldestSubmitted: Moment? { byAge.first >= 0 ? entries[Int(byAge.first)].submitted : nil }

  /// When the next waiting message is due.
  ///
  /// The first of the heap is always one that still waits.
  var nextTry: Moment? { waits.first?.due }

  /// Takes the next waiting message whose time has come out of its wait, to be written before all others.
  mutating func wakeWaiting(now: Moment) -> Bool {
    guard let wait = waits.first, wait.due <= now else { return false }
    makeReady(wait.slot)
    return true
  }

  private func isCurrent(_ wait: Wait) -> Bool {
    let entry = entries[Int(wait.slot)]
    return entry.phase == .waiting && entry.generation == wait.generation && entry.due == wait.due
  }

  // MARK: Heap of waits

  private mutating func push(_ wait: Wait) {
    waits.append(wait)
    var child = waits.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard waits[child].due < waits[parent].due else { return }
      waits.swapAt(child, parent)
      child = parent
    }
  }

  private mutating func popWait() {
    guard let last = waits.popLast(), !waits.isEmpty else { return }
    waits[0] = last
    siftDown(0)
  }

  private mutating func siftDown(_ start: Int) {
    var parent = start
    while true {
      var least = 2 * parent + 1
      guard least < waits.count else { return }
      if least + 1 < waits.count, waits[least + 1].due < waits[least].due { least += 1 }
      guard waits[least].due < waits[parent].due else { return }
      waits.swapAt(parent, least)
      parent = least
    }
  }

  private mutating func compactWaits() {
    waits = waits.filter { isCurrent($0) }
    var parent = waits.count / 2
    while parent > 0 {
      parent -= 1
      siftDown(parent)
    }
  }
}
