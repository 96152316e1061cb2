import Synchronization

/// What was sent, acked and shown, from both ends: the judge of a kill run.
struct Ledger: Sendable {
  /// Messages by number: acked to the sender.
  var acked: Set<Int> = []
  /// Refused or given up by the sender's client.
  var failed: [Int: String] = [:]
  /// How often a device's app was shown each.
  var shown: [Int: Int] = [:]
  /// Deliveries that the device runtime recognised and hid.
  var hidden = 0
  var sent = 0
  /// The highest number that was sent.
  private(set) var highest = -1
  /// A mark that later messages are told by, and the devices that have not been shown one.
  private var mark = Int.max
  private(set) var unserved: Set<Int> = []

  mutating func send(_ number: Int) {
    sent += 1
    highest = max(highest, number)
  }

  mutating func show(_ number: Int) {
    shown[number, default: 0] += 1
    if number >= mark, !unserved.isEmpty { unserved.remove(number % devices) }
  }

  private var devices = 1

  /// From now on ``unserved`` holds who has not been shown a message that was sent later.
  mutating func setMark(devices: Int) {
    self.devices = devices
    mark = highest + 1
    unserved = Set(0..<devices)
  }

  var lost: [Int] { acked.filter { shown[$0] == nil }.sorted() }
  var doubled: [Int] { shown.filter { $0.value > 1 }.map(\.key).sorted() }
  /// Sent and neither acked nor failed.
  var open: Int { sent - acked.count - failed.count }

  var isClean: Bool { lost.isEmpty && doubled.isEmpty && open == 0 && failed.isEmpty }
}

/// A ledger that both ends write.
final class SharedLedger: Sendable {
  private let ledger = Mutex(Ledger())
  func withLock<Value: Sendable>(_ body: (inout Ledger) -> Value) -> Value { ledger.withLock { body(&$0) } }
}

/// Something that happens once.
final class Flag: Sendable {
  private let flag = Atomic<Bool>(false)
  var isSet: Bool { flag.load(ordering: .relaxed) }
  func set() { flag.store(true, ordering: .relaxed) }
}
