import PushModel
import Seams

/// The stored messages of one device, in number order, and the rules that end some of them.
struct MemoryShelf: Sendable {
  private(set) var rows: [StoredMessage] = []

  /// Non-collapsible rows.
  private(set) var looseCount = 0

  /// Where nodes share the store: the incarnation that has each live row, and those that live.
  ///
  /// A row of another one is no longer live.
  private var holders: [MessageNumber: Int64] = [:]
  var living: Set<Int64>?

  private func isLive(_ row: StoredMessage) -> Bool {
    guard row.live, let living, let holder = holders[row.number] else { return row.live }
    return living.contains(holder)
  }

  /// A row that was just stored is with the stream of this incarnation, or with none.
  mutating func setHolder(_ holder: Int64?, of number: MessageNumber) {
    let place = insertionIndex(of: number)
    guard place < rows.count, rows[place].number == number else { return }
    rows[place].live = holder != nil
    holders[number] = holder
  }

  var isEmpty: Bool { rows.isEmpty }

  /// Puts one row in by the rules of ``StoreLimits``.
  /// - Parameter overflowed: Raised by the number of rows that overflow discarded.
  mutating func enqueue(
    _ row: StoredMessage, limits: StoreLimits, now: WallTime, ended: inout [WriteOutcome.Ended],
    overflowed: inout Int
  ) -> WriteOutcome.Enqueue {
    let place = insertionIndex(of: row.number)
    if place < rows.count, rows[place].number == row.number { return .duplicate }
    guard let collapse = row.collapse else {
      return enqueueLoose(row, limits: limits, now: now, ended: &ended, overflowed: &overflowed)
    }
    if let same = rows.firstIndex(where: { $0.collapse == collapse }) {
      if rows[same].number > row.number {
        ended.append(row.ended(as: .collapsed))
        return .stored
      }
      ended.append(rows.remove(at: same).ended(as: .collapsed))
    }
    insert(row)
    while rows.count - looseCount > limits.collapseKeysPerDeviceMax,
      let oldest = rows.firstIndex(where: { $0.collapse != nil })
    {
      ended.append(rows.remove(at: oldest).ended(as: .collapsed))
    }
    return .stored
  }

  private mutating func enqueueLoose(
    _ row: StoredMessage, limits: StoreLimits, now: WallTime, ended: inout [WriteOutcome.Ended],
    overflowed: inout Int
  ) -> WriteOutcome.Enqueue {
    if !row.live, looseCount >= limits.storedPerDeviceMax {
      remove(endingAs: .expired, &ended) { [self] in $0.collapse == nil && !isLive($0) && $0.expires <= now }
      if looseCount >= limits.storedPerDeviceMax {
        let before = ended.count
        remove(endingAs: .droppedOverflow, &ended) { [self] in $0.collapse == nil && !isLive($0) }
        ended.append(row.ended(as: .droppedOverflow))
        overflowed += ended.count - before
        return .overflowed
      }
    }
    insert(row)
    return .stored
  }

  private func insertionIndex(of number: MessageNumber) -> Int {
    if let last = rows.last, last.number < number { return rows.count }
    var low = 0
    var high = rows.count
    while low < high {
      let middle = (low + high) / 2
      if rows[middle].number < number { low = middle + 1 } else { high = middle }
    }
    return low
  }

  private mutating func insert(_ row: StoredMessage) {
    rows.insert(row, at: insertionIndex(of: row.number))
    if row.collapse == nil { looseCount += 1 }
  }

  /// The row that was removed; nil when there is no such row.
  @discardableResult
  mutating func remove(_ number: MessageNumber) -> StoredMessage? {
    let place = insertionIndex(of: number)
    guard place < rows.count, rows[place].number == number else { return nil }
    let row = rows.remove(at: place)
    holders[number] = nil
    if row.collapse == nil { looseCount -= 1 }
    return row
  }

  /// Removes up to `max` rows that `matches` holds for and adds them to `ended` in number order.
  mutating func remove(
    endingAs state: MessageState, _ ended: inout [WriteOutcome.Ended], max: Int = .max,
    where matches: (StoredMessage) -> Bool
  ) {
    var left = max
    rows.removeAll { row in
      guard left > 0, matches(row) else { return false }
      left -= 1
      ended.append(row.ended(as: state))
      if row.collapse == nil { looseCount -= 1 }
      return true
    }
  }

  /// Rows above `after` that are not expired, one more than `max` when there are more.
  func page(after: MessageNumber?, max: Int, now: WallTime) -> ArraySlice<StoredMessage> {
    var page: [StoredMessage] = []
    let start = after.map { insertionIndex(of: MessageNumber($0.value &+ 1)) } ?? 0
    for row in rows[start...] where row.expires > now {
      page.append(row)
      if page.count > max { break }
    }
    return page[...]
  }

  /// The stream that the live rows were handed to is gone.
  mutating func streamEnded() {
    for index in rows.indices where rows[index].live { rows[index].live = false }
    holders = [:]
  }
}
