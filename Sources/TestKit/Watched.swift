import Synchronization

/// A wait that ran out: what was waited for, and what there was instead.
public struct TestTimeout: Error, Sendable, CustomStringConvertible {
  /// For people.
  public let description: String

  init(_ what: String, _ time: Duration, found: String) {
    description = "waited \(time) for \(what); found \(found)"
  }
}

/// A value that other threads change and tasks wait for, each wait with a deadline.
package final class Watched<Value: Sendable>: Sendable {
  private struct Waiter {
    /// Gives the call that ends the wait, once the value satisfies it.
    let attempt: (inout Value) -> (() -> Void)?
    let fail: (any Error) -> Void
    var deadline: Task<Void, any Error>?
  }
  private struct State {
    var value: Value
    var waiters: [Int: Waiter] = [:]
    var last = 0
  }
  private let state: Mutex<State>

  package init(_ value: Value) { state = Mutex(State(value: value)) }

  package var current: Value { state.withLock { $0.value } }

  /// Changes the value and lets those go on who waited for it.
  package func update(_ change: (inout Value) -> Void) {
    let ready = state.withLock { state in
      change(&state.value)
      var ready: [() -> Void] = []
      // In order of their coming: the first one gets what it waits for.
      for (number, waiter) in state.waiters.sorted(by: { $0.key < $1.key }) {
        guard let done = waiter.attempt(&state.value) else { continue }
        state.waiters[number] = nil
        waiter.deadline?.cancel()
        ready.append(done)
      }
      return Handed(ready)
    }
    for done in ready.calls { done() }
  }

  /// Waits until `take` gives something; it may take that out of the value.
  ///
  /// - Throws: ``TestTimeout`` after `time`, or `CancellationError`.
  package func wait<Result: Sendable>(
    for what: String, within time: Duration, _ take: @escaping @Sendable (inout Value) -> Result?
  ) async throws -> Result {
    let number = state.withLock { state in
      state.last += 1
      return state.last
    }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        register(number, take, continuation)
        if Task.isCancelled { fail(number) { _ in CancellationError() } }
        arm(number) { [weak self] in
          try await Task.sleep(for: time)
          self?.fail(number) { TestTimeout(what, time, found: "\($0)") }
        }
      }
    } onCancel: {
      fail(number) { _ in CancellationError() }
    }
  }

  private func register<Result: Sendable>(
    _ number: Int, _ take: @escaping @Sendable (inout Value) -> Result?,
    _ continuation: CheckedContinuation<Result, any Error>
  ) {
    let found: Result? = state.withLock { state in
      if let found = take(&state.value) { return found }
      state.waiters[number] = Waiter(
        attempt: { value in take(&value).map { found in { continuation.resume(returning: found) } } },
        fail: { continuation.resume(throwing: $0) })
      return nil
    }
    if let found { continuation.resume(returning: found) }
  }

  /// Runs the deadline of a wait that goes on.
  private func arm(_ number: Int, _ deadline: @escaping @Sendable () async throws -> Void) {
    state.withLock { state in
      guard state.waiters[number] != nil else { return }
      state.waiters[number]?.deadline = Task { try await deadline() }
    }
  }

  private func fail(_ number: Int, _ error: (Value) -> any Error) {
    let (fail, value) = state.withLock { state in
      (Handed(state.waiters.removeValue(forKey: number)?.fail), state.value)
    }
    fail.calls?(error(value))
  }
}

/// Calls carried out of a lock to be made outside it.
// Sendable by argument: made under the lock and used once by the thread that held it.
private struct Handed<Calls>: @unchecked Sendable {
  let calls: Calls
  init(_ calls: Calls) { self.calls = calls }
}
