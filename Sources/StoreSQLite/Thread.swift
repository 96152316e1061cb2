import CLinux
import Glibc
import Seams

/// A counting semaphore.
///
/// `@unchecked Sendable`: `sem_post` and `sem_wait` are made to be called from any thread, and the pointer
/// does not change from `init` to `deinit`.
final class Semaphore: @unchecked Sendable {
  private let pointer = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(pointer, 0, 0) }

  deinit {
    sem_destroy(pointer)
    pointer.deallocate()
  }

  func post() { sem_post(pointer) }

  /// Waits for a post, until `deadline` of the monotonic clock at most.
  func wait(until deadline: Moment) {
    var time = timespec(
      tv_sec: Int(deadline.ns / 1_000_000_000), tv_nsec: Int(deadline.ns % 1_000_000_000))
    while sem_clockwait(pointer, CLOCK_MONOTONIC, &time) != 0, errno == EINTR {}
  }

  /// Waits for a post; signals do not end the wait.
  func wait() {
    while sem_wait(pointer) != 0, errno == EINTR {}
  }
}

private final class ThreadBody: Sendable {
  let name: String
  let run: @Sendable () -> Void

  init(name: String, run: @escaping @Sendable () -> Void) {
    self.name = name
    self.run = run
  }
}

private func threadMain(_ raw: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  guard let raw else { return nil }
  let body = Unmanaged<ThreadBody>.fromOpaque(raw).takeRetainedValue()
  pthread_setname_np(pthread_self(), body.name)
  body.run()
  return nil
}

/// Starts a detached thread.
///
/// False when the system refuses; then `run` is never called.
/// - Parameter name: At most 15 bytes, for debuggers.
func startThread(name: String, _ run: @escaping @Sendable () -> Void) -> Bool {
  let body = Unmanaged.passRetained(ThreadBody(name: name, run: run))
  var thread = pthread_t()
  guard pthread_create(&thread, nil, threadMain, body.toOpaque()) == 0 else {
    body.release()
    return false
  }
  pthread_detach(thread)
  return true
}
