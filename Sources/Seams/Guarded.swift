import Glibc

/// A value behind a POSIX mutex.
///
/// Used in place of `Synchronization.Mutex` where threads meet often: its futex code on Linux spins long under
/// contention (swiftlang/swift#88440) and is opaque to the thread sanitizer, which then reports what it guards. A
/// mailbox or a queue of work is contended by its nature, and the order it creates between threads is what the
/// sanitizer must see.
// Sendable by argument: `value` is touched with the mutex held.
package final class Guarded<Value>: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private var value: Value

  package init(_ value: Value) {
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
  package func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body(&value)
  }
}
