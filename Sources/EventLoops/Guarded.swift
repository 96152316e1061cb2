import Glibc

/// A value behind a POSIX mutex.
///
/// Used here in place of `Synchronization.Mutex`, whose futex code on Linux spins long under contention
/// (swiftlang/swift#88440) and is opaque to the thread sanitizer, which then reports what it guards. A mailbox is
/// contended by its nature, and the order it creates between threads is what the sanitizer must see.
// Sendable by argument: `value` is touched with the mutex held.
final class Guarded<Value>: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private var value: Value

  init(_ value: Value) {
    self.value = value
    pthread_mutex_init(mutex, nil)
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  /// Calls `body` with the value; nobody else has it meanwhile.
  ///
  /// Keep it to a few lines that call nobody.
  func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body(&value)
  }
}
