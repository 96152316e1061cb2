import Glibc

/// A value that other threads change and a test waits for, with a deadline instead of a sleep.
// Sendable by argument: `value` is touched with the mutex held.
final class Watched<Value>: @unchecked Sendable {
  private var value: Value
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

  init(_ value: Value) {
    self.value = value
    pthread_mutex_init(mutex, nil)
    pthread_cond_init(condition, nil)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  var current: Value { update { $0 } }

  @discardableResult
  func update<Result>(_ body: (inout Value) -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer {
      pthread_cond_broadcast(condition)
      pthread_mutex_unlock(mutex)
    }
    return body(&value)
  }

  /// Waits until `isDone` holds; false when it does not within `seconds`.
  func wait(within seconds: Int = 20, until isDone: (Value) -> Bool) -> Bool {
    var deadline = timespec()
    clock_gettime(CLOCK_REALTIME, &deadline)
    deadline.tv_sec += seconds
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while !isDone(value) {
      if pthread_cond_timedwait(condition, mutex, &deadline) == ETIMEDOUT { return isDone(value) }
    }
    return true
  }
}

extension Watched where Value == Bool {
  convenience init() { self.init(false) }
  func raise() { update { $0 = true } }
  func wait(within seconds: Int = 20) -> Bool { wait(within: seconds, until: { $0 }) }
}

/// Compares long runs of bytes; `==` within an expectation would print a difference, which takes hours.
func isSame(_ left: [UInt8], _ right: [UInt8]) -> Bool { left == right }
