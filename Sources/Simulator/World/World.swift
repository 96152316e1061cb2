import Seams

/// The one clock of a simulation, what is due on it, and the order of everything.
///
/// One thread runs a world and all in it. What is due at the same instant happens in the order in which it was
/// asked for.
// Sendable by argument: one thread makes, runs and drops a world; nothing of it is ever given to another.
final class World: @unchecked Sendable {
  private struct Event {
    var at: Int64
    var number: UInt64
    var body: () -> Void

    static func < (left: Event, right: Event) -> Bool {
      left.at != right.at ? left.at < right.at : left.number < right.number
    }
  }

  /// Wall clocks show this at the virtual time 0: 2027-01-15, eight in the morning.
  static let epochMs: Int64 = 1_800_000_000_000

  /// Virtual nanoseconds since the beginning.
  private(set) var now: Int64 = 0
  private(set) var eventCount = 0
  private var heap: [Event] = []
  private var made: UInt64 = 0
  let executor = WorldExecutor()
  var trace = Trace()
  /// The loop whose round runs.
  var currentLoop: VirtualLoop?
  private let seed: UInt64

  init(seed: UInt64) { self.seed = seed }

  /// A stream of chance of its own, so that a draw more in one place changes nothing in another.
  func chance(_ name: StaticString, _ index: Int = 0) -> SeededChance {
    var mixed = SeededChance(seed: seed)
    var value = mixed.next() ^ UInt64(truncatingIfNeeded: index) &* 0x9e37_79b9_7f4a_7c15
    name.withUTF8Buffer { for byte in $0 { value = (value ^ UInt64(byte)) &* 0x100_0000_01b3 } }
    var second = SeededChance(seed: value)
    return SeededChance(seed: second.next())
  }

  // MARK: What is due

  func at(_ moment: Int64, _ body: @escaping () -> Void) {
    made += 1
    heap.append(Event(at: max(moment, now), number: made, body: body))
    var index = heap.count - 1
    while index > 0 {
      let parent = (index - 1) / 2
      guard heap[index] < heap[parent] else { break }
      heap.swapAt(index, parent)
      index = parent
    }
  }

  func after(_ delay: Duration, _ body: @escaping () -> Void) { at(now + max(0, delay.ns), body) }

  /// Runs what is due next.
  ///
  /// - Returns: False when nothing is.
  @discardableResult
  func step() -> Bool {
    guard let first = heap.first else { return false }
    heap.swapAt(0, heap.count - 1)
    heap.removeLast()
    siftDown()
    now = first.at
    eventCount += 1
    first.body()
    executor.drain()
    return true
  }

  private func siftDown() {
    var index = 0
    while true {
      var child = 2 * index + 1
      guard child < heap.count else { return }
      if child + 1 < heap.count, heap[child + 1] < heap[child] { child += 1 }
      guard heap[child] < heap[index] else { return }
      heap.swapAt(index, child)
      index = child
    }
  }

  /// Runs until `moment`, or until `isDone`, which is asked after every event.
  func run(until moment: Int64, _ isDone: () -> Bool = { false }) {
    executor.drain()
    while !isDone() {
      guard let first = heap.first, first.at <= moment else {
        now = max(now, moment)
        return
      }
      step()
    }
  }

  /// Drops all that is due: the end of the world.
  func clear() {
    heap.removeAll()
    executor.drain()
  }

  // MARK: The trace

  func note(_ kind: StaticString, _ first: UInt64 = 0, _ second: UInt64 = 0) {
    trace.note(now, kind, first, second)
    trace.output?("\(stamp) \(kind) \(first) \(second)")
  }

  /// A line of the trace; the text counts for the hash.
  func say(_ kind: StaticString, _ text: @autoclosure () -> String) {
    let text = text()
    trace.note(now, kind)
    trace.mix(text)
    trace.output?("\(stamp) \(kind) \(text)")
  }

  /// A line for people only.
  func remark(_ text: @autoclosure () -> String) {
    if trace.output != nil { trace.output?("\(stamp) \(text())") }
  }

  private var stamp: String {
    let micro = now / 1_000
    let fraction = String(micro % 1_000_000)
    return "\(micro / 1_000_000)." + String(repeating: "0", count: 6 - fraction.count) + fraction
  }
}

extension SeededChance {
  mutating func below(_ bound: Int) -> Int { bound > 1 ? Int(next() % UInt64(bound)) : 0 }
  mutating func within(_ range: ClosedRange<Int>) -> Int {
    range.lowerBound + below(range.upperBound - range.lowerBound + 1)
  }
  /// True in `percent` of a hundred cases.
  mutating func percent(_ percent: Int) -> Bool { below(100) < percent }
  mutating func pick<Element>(_ choices: [Element]) -> Element { choices[below(choices.count)] }
  /// Nanoseconds between the two, small ones more often than large ones.
  mutating func time(_ least: Duration, _ most: Duration) -> Duration {
    let unit = Double(next() >> 11) / Double(1 << 53)
    let span = Double(max(0, most.ns - least.ns))
    return .nanoseconds(least.ns + Int64(span * unit * unit))
  }
}
