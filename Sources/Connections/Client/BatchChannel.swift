import Synchronization

/// Values from a loop to async code, handed over in arrays.
///
/// The sender never waits: who sends bounds what is in here (a window, a ledger, a credit). A receiver that
/// waits costs one continuation a batch, not one a value. Several receivers share the values.
package final class BatchChannel<Element: Sendable>: Sendable {
  private struct Waiter {
    var number: UInt64
    var valuesMax: Int
    var continuation: CheckedContinuation<[Element], Never>
  }

  private struct State {
    var values: [Element] = []
    var waiters: [Waiter] = []
    var lastNumber: UInt64 = 0
    var isFinished = false
  }

  private let state = Mutex(State())

  package init() {}

  /// Values that nobody has taken yet.
  package var count: Int { state.withLock { $0.values.count } }

  /// Adds values at the end; they go nowhere once the channel is finished.
  package func send(_ batch: [Element]) {
    guard !batch.isEmpty else { return }
    let served: [(Waiter, [Element])] = state.withLock { state in
      guard !state.isFinished else { return [] }
      guard !state.waiters.isEmpty else {
        state.values.append(contentsOf: batch)
        return []
      }
      if batch.count <= state.waiters[0].valuesMax { return [(state.waiters.removeFirst(), batch)] }
      var served: [(Waiter, [Element])] = []
      var rest = batch[...]
      while !rest.isEmpty, !state.waiters.isEmpty {
        let waiter = state.waiters.removeFirst()
        served.append((waiter, Array(rest.prefix(waiter.valuesMax))))
        rest = rest.dropFirst(waiter.valuesMax)
      }
      state.values.append(contentsOf: rest)
      return served
    }
    for (waiter, values) in served { waiter.continuation.resume(returning: values) }
  }

  package func send(_ value: Element) { send([value]) }

  /// No more values; what is in here can still be received.
  package func finish() {
    let waiters = state.withLock { state in
      state.isFinished = true
      let waiters = state.waiters
      state.waiters = []
      return waiters
    }
    for waiter in waiters { waiter.continuation.resume(returning: []) }
  }

  /// Waits for values and takes all there are, or `valuesMax`: several receivers share more evenly then.
  ///
  /// - Returns: Never empty, except when the channel is finished and drained or the task is cancelled.
  package func receive(_ valuesMax: Int = .max) async -> [Element] {
    let number = state.withLock { state in
      state.lastNumber += 1
      return state.lastNumber
    }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        // Cancellation sets the task's flag before its handler takes the lock: one of the two sees the other.
        let ready: [Element]? = state.withLock { state in
          if Task.isCancelled { return [] }
          if !state.values.isEmpty {
            let values = state.values
            guard values.count > valuesMax else {
              state.values = []
              return values
            }
            state.values.removeFirst(valuesMax)
            return Array(values.prefix(valuesMax))
          }
          if state.isFinished { return [] }
          state.waiters.append(Waiter(number: number, valuesMax: valuesMax, continuation: continuation))
          return nil
        }
        if let ready { continuation.resume(returning: ready) }
      }
    } onCancel: {
      let waiter = state.withLock { state in
        state.waiters.firstIndex { $0.number == number }.map { state.waiters.remove(at: $0) }
      }
      waiter?.continuation.resume(returning: [])
    }
  }
}

/// Takes the values of a channel one by one, without suspending while a batch lasts.
package struct BatchIterator<Element: Sendable> {
  private let channel: BatchChannel<Element>
  private var batch: [Element] = []
  private var next = 0

  package init(_ channel: BatchChannel<Element>) { self.channel = channel }

  /// - Returns: nil when the channel is finished and drained, or the task is cancelled.
  package mutating func value() async -> Element? {
    if next == batch.count {
      next = 0
      batch = await channel.receive()
      if batch.isEmpty { return nil }
    }
    defer { next += 1 }
    return batch[next]
  }
}

/// The latest states of something, to any number of observers; a slow one misses the oldest.
package final class StateBoard<State: Sendable & Equatable>: Sendable {
  private struct Board {
    var latest: State
    var observers: [UInt64: AsyncStream<State>.Continuation] = [:]
    var lastNumber: UInt64 = 0
    var isFinished = false
  }

  private let board: Mutex<Board>

  package init(_ state: State) { board = Mutex(Board(latest: state)) }

  package var latest: State { board.withLock { $0.latest } }

  package func set(_ state: State) {
    let observers = board.withLock { board in
      guard !board.isFinished, board.latest != state else { return [AsyncStream<State>.Continuation]() }
      board.latest = state
      return Array(board.observers.values)
    }
    for observer in observers { observer.yield(state) }
  }

  /// The last state was set: observers see their sequence end.
  package func finish() {
    let observers = board.withLock { board in
      board.isFinished = true
      let observers = Array(board.observers.values)
      board.observers = [:]
      return observers
    }
    for observer in observers { observer.finish() }
  }

  /// The present state, then each later one; ends after the last.
  package func observe() -> AsyncStream<State> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: State.self, bufferingPolicy: .bufferingNewest(64))
    let number: UInt64? = board.withLock { board in
      continuation.yield(board.latest)
      guard !board.isFinished else { return nil }
      board.lastNumber += 1
      board.observers[board.lastNumber] = continuation
      return board.lastNumber
    }
    guard let number else {
      continuation.finish()
      return stream
    }
    continuation.onTermination = { [weak self] _ in
      _ = self?.board.withLock { $0.observers.removeValue(forKey: number) }
    }
    return stream
  }
}
