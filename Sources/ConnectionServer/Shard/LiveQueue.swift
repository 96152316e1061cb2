import PushModel
import Seams

/// Messages that are with their devices and are written if no ack comes first, in the order of coming.
///
/// What was withdrawn meanwhile, or written for another reason, stays in its place until its turn comes and is passed
/// over then.
struct LiveQueue {
  private struct Entry {
    var record: Downstream?
    let since: Moment
  }

  private static let keptCapacityMax = 4_096

  private var entries: [Entry] = []
  private var head = 0

  /// When the first that still waits came; nil while none does.
  var oldest: Moment? { head < entries.count ? entries[head].since : nil }

  mutating func append(_ record: Downstream, now: Moment) {
    entries.append(Entry(record: record, since: now))
  }

  /// Passes over those at the front that wait no more.
  mutating func skipEnded() {
    while head < entries.count, entries[head].record?.isQueued != true { passFirst() }
    giveWay()
  }

  /// Hands out those that came until `moment` and still wait.
  mutating func take(until moment: Moment, _ body: (Downstream) -> Void) {
    while head < entries.count, entries[head].since <= moment {
      if let record = entries[head].record, record.isQueued { body(record) }
      passFirst()
    }
    skipEnded()
  }

  /// The last one with this key that its sender has not been answered about.
  func unanswered(_ key: MessageKey) -> Downstream? {
    entries[head...].last { $0.record?.key == key && $0.record?.origin != nil }?.record
  }

  private mutating func passFirst() {
    entries[head].record = nil
    head += 1
  }

  private mutating func giveWay() {
    if head == entries.count {
      entries.removeAll(keepingCapacity: entries.capacity <= Self.keptCapacityMax)
      head = 0
    } else if head > Self.keptCapacityMax, head * 2 > entries.count {
      entries.removeFirst(head)
      head = 0
    }
  }
}
