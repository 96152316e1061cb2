/// A doubly linked list of slot numbers whose links live in an array beside the slots: append, prepend and
/// removal from the middle in constant time, no allocation.
struct SlotList: Sendable {
  struct Link: Sendable {
    var previous: Int32 = -1
    var next: Int32 = -1
  }

  private(set) var first: Int32 = -1
  private(set) var last: Int32 = -1
  private(set) var count = 0

  mutating func append(_ slot: Int32, _ links: inout [Link]) {
    links[Int(slot)] = Link(previous: last, next: -1)
    if last >= 0 { links[Int(last)].next = slot } else { first = slot }
    last = slot
    count += 1
  }

  mutating func prepend(_ slot: Int32, _ links: inout [Link]) {
    links[Int(slot)] = Link(previous: -1, next: first)
    if first >= 0 { links[Int(first)].previous = slot } else { last = slot }
    first = slot
    count += 1
  }

  /// - Parameter slot: Must be in this list.
  mutating func remove(_ slot: Int32, _ links: inout [Link]) {
    let link = links[Int(slot)]
    if link.previous >= 0 { links[Int(link.previous)].next = link.next } else { first = link.next }
    if link.next >= 0 { links[Int(link.next)].previous = link.previous } else { last = link.previous }
    links[Int(slot)] = Link()
    count -= 1
  }
}
