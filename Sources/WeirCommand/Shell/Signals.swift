import CLinux
import Foundation
import Synchronization

/// Unix signals as calls, from the moment the initializer returns until ``stop()``.
///
/// A signal that comes right after the initializer is not missed: the handler is in place, and what it writes waits in
/// a pipe. (A dispatch source is registered some time after `resume()`, and a signal before that is lost.)
final class Signals: Sendable {
  private let number: Int

  /// - Parameters:
  ///   - numbers: The signals to catch.
  ///   - handler: Called on a thread of its own, one signal after the other.
  init(_ numbers: [Int32], _ handler: @escaping @Sendable (Int32) -> Void) {
    number = SignalDesk.shared.add(numbers, handler)
  }

  /// Gives the signals back to the system's default, if nobody else takes them.
  func stop() { SignalDesk.shared.remove(number) }
}

/// The write end of the pipe that the handler writes to; -1 before there is one.
private let pipeEntrance = Atomic<Int32>(-1)

/// Who takes which signal of this process.
private final class SignalDesk: Sendable {
  static let shared = SignalDesk()

  private struct Taker {
    var numbers: [Int32]
    var handler: @Sendable (Int32) -> Void
  }
  private struct State {
    var takers: [Int: Taker] = [:]
    var nextTaker = 0
  }
  private let state = Mutex(State())

  private init() {
    var ends: [Int32] = [-1, -1]
    // Without a pipe (no descriptor left) the signals are caught and lost; the process can still be killed.
    guard pipe2(&ends, O_CLOEXEC) == 0 else { return }
    pipeEntrance.store(ends[1], ordering: .sequentiallyConsistent)
    let exit = ends[0]
    Thread.detachNewThread { [self] in
      var number: UInt8 = 0
      while true {
        let count = read(exit, &number, 1)
        if count == 1 {
          handle(Int32(number))
        } else if !(count < 0 && errno == EINTR) {
          return
        }
      }
    }
  }

  func add(_ numbers: [Int32], _ handler: @escaping @Sendable (Int32) -> Void) -> Int {
    state.withLock { state in
      state.nextTaker += 1
      state.takers[state.nextTaker] = Taker(numbers: numbers, handler: handler)
      for number in numbers {
        signal(number) { number in
          let before = errno
          var byte = UInt8(truncatingIfNeeded: number)
          _ = write(pipeEntrance.load(ordering: .relaxed), &byte, 1)
          errno = before
        }
      }
      return state.nextTaker
    }
  }

  func remove(_ taker: Int) {
    state.withLock { state in
      guard let removed = state.takers.removeValue(forKey: taker) else { return }
      let taken = Set(state.takers.values.flatMap(\.numbers))
      for number in removed.numbers where !taken.contains(number) { signal(number, SIG_DFL) }
    }
  }

  private func handle(_ number: Int32) {
    let handlers = state.withLock { state in
      state.takers.values.filter { $0.numbers.contains(number) }.map(\.handler)
    }
    for handler in handlers { handler(number) }
  }
}
