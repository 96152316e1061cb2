import Seams

/// Answers of several stores, gathered into one.
final class Gathered<Value: Sendable>: Sendable {
  private let state: Guarded<(found: [Value?], left: Int, fault: StoreFault?)>
  private let done: @Sendable (Result<[Value], StoreFault>) -> Void

  /// - Parameter done: Called once all `count` answers are there, in order; with a fault when one of them is one.
  init(_ count: Int, _ done: @escaping @Sendable (Result<[Value], StoreFault>) -> Void) {
    state = Guarded((Array(repeating: nil, count: count), count, nil))
    self.done = done
    if count == 0 { done(.success([])) }
  }

  func take(_ result: Result<Value, StoreFault>, at place: Int) {
    let whole = state.withLock { state -> Result<[Value], StoreFault>? in
      switch result {
      case .success(let value): state.found[place] = value
      case .failure(let fault): state.fault = state.fault.map { $0.joined(fault) } ?? fault
      }
      state.left -= 1
      guard state.left == 0 else { return nil }
      if let fault = state.fault {
        // What one store did is done, so all of it may be, as far as the caller can know.
        if state.found.contains(where: { $0 != nil }), case .unavailable(_, let detail) = fault {
          return .failure(.unavailable(outcomeUnknown: true, detail: detail))
        }
        return .failure(fault)
      }
      return .success(state.found.compactMap { $0 })
    }
    if let whole { done(whole) }
  }
}

extension StoreFault {
  /// Two faults of one call: its outcome is unknown when that of either is.
  fileprivate func joined(_ other: StoreFault) -> StoreFault {
    if case .unavailable(outcomeUnknown: true, _) = self { return self }
    if case .unavailable(outcomeUnknown: true, _) = other { return other }
    return self
  }
}
