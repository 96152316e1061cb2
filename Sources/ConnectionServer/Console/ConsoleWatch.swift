import Synchronization

/// Whether anybody looks at the console's feed, for every loop.
///
/// While nobody does, a message costs one relaxed load for it.
final class ConsoleWatch: Sendable {
  private let watchers = Atomic<Int>(0)

  var isOn: Bool { watchers.load(ordering: .relaxed) > 0 }
  func begin() { watchers.wrappingAdd(1, ordering: .relaxed) }
  func end() { watchers.wrappingSubtract(1, ordering: .relaxed) }
}
