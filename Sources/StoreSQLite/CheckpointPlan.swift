import Synchronization

/// When the write-ahead log is copied into the database, and by whom.
final class CheckpointPlan: Sendable {
  /// Log size in pages from which a reader's thread copies it; 4,096 pages are 16 MiB.
  let backgroundFromPages: Int
  /// Log size from which the writer helps.
  let ownFromPages: Int

  private let running = Atomic(false)
  private let background: Mutex<(@Sendable () -> Void)?> = Mutex(nil)

  init(backgroundFromPages: Int) {
    self.backgroundFromPages = max(1, backgroundFromPages)
    ownFromPages = self.backgroundFromPages * 4
  }

  /// Sets what copies the log elsewhere; it calls ``backgroundEnded()`` when done.
  func runBackground(with start: @escaping @Sendable () -> Void) {
    background.withLock { $0 = start }
  }

  /// One at a time.
  func requestBackground() {
    guard let start = background.withLock({ $0 }) else { return }
    guard running.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
    else { return }
    start()
  }

  func backgroundEnded() { running.store(false, ordering: .releasing) }
}
