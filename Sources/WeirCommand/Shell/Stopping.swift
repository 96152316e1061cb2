import Synchronization

/// A wish to stop, from a signal.
final class Stopping: Sendable {
  private let flag = Atomic<Bool>(false)
  var isStopped: Bool { flag.load(ordering: .relaxed) }
  func stop() { flag.store(true, ordering: .relaxed) }
}
