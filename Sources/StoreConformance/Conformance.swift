package import Stores

/// A store that a case is run on, with what befalls stores.
package struct StoreUnderTest: Sendable {
  package var store: any Store
  /// Ends the process of the store as a kill would, at a moment when nothing is under way, and starts another
  /// one on what is left.
  ///
  /// This value's store is not used again.
  package var crash: @Sendable () async throws -> StoreUnderTest
  /// While true, a write of a hundred rows or more fails and leaves nothing behind.
  package var failWrites: @Sendable (Bool) async throws -> Void

  package init(
    store: any Store, crash: @escaping @Sendable () async throws -> StoreUnderTest,
    failWrites: @escaping @Sendable (Bool) async throws -> Void
  ) {
    self.store = store
    self.crash = crash
    self.failWrites = failWrites
  }
}

/// Makes empty stores of one kind.
package struct StoreFactory: Sendable, CustomStringConvertible {
  package var description: String
  package var make: @Sendable (StoreLimits) async throws -> StoreUnderTest

  package init(
    _ description: String, make: @escaping @Sendable (StoreLimits) async throws -> StoreUnderTest
  ) {
    self.description = description
    self.make = make
  }
}

/// A promise of the store port, as a check that any store has to pass.
package struct ConformanceCase: Sendable, CustomStringConvertible {
  package var description: String
  var limits: StoreLimits
  var check: @Sendable (inout Stage) async throws -> Void

  init(
    _ description: String, limits: StoreLimits = StoreLimits(),
    _ check: @escaping @Sendable (inout Stage) async throws -> Void
  ) {
    self.description = description
    self.limits = limits
    self.check = check
  }

  /// Runs the case on a new store.
  /// - Throws: ``ConformanceFailure`` where the store breaks the promise; what the store threw.
  package func run(on factory: StoreFactory) async throws {
    var stage = Stage(try await factory.make(limits), limits: limits)
    let outcome: Result<Void, any Error>
    do {
      outcome = .success(try await check(&stage))
    } catch {
      outcome = .failure(error)
    }
    await stage.store.close()
    try outcome.get()
  }

  /// All promises.
  package static let all: [ConformanceCase] =
    messages + caps + collapses + upstreams + journals + devices + streams + accounts + failures + races
    + models + topics + audiences + fanouts
}

/// Where a store broke a promise.
package struct ConformanceFailure: Error, CustomStringConvertible {
  package var description: String
}

func expect(
  _ holds: Bool, _ what: @autoclosure () -> String, file: StaticString = #fileID, line: UInt = #line
) throws(ConformanceFailure) {
  guard holds else { throw ConformanceFailure(description: "\(file):\(line): \(what())") }
}

func expectEqual<Value: Equatable>(
  _ found: Value, _ wanted: Value, _ what: @autoclosure () -> String = "", file: StaticString = #fileID,
  line: UInt = #line
) throws(ConformanceFailure) {
  try expect(found == wanted, "\(what()) found \(found), wanted \(wanted)", file: file, line: line)
}

/// Checks that a call is answered with a fault of a kind.
func expectFault<Value>(
  _ what: String, file: StaticString = #fileID, line: UInt = #line,
  _ call: () async throws(StoreFault) -> Value, where matches: (StoreFault) -> Bool
) async throws(ConformanceFailure) {
  do throws(StoreFault) {
    _ = try await call()
  } catch {
    try expect(matches(error), "\(what): \(error)", file: file, line: line)
    return
  }
  throw ConformanceFailure(description: "\(file):\(line): \(what): no fault")
}

extension StoreFault {
  var isRefused: Bool { if case .refused = self { true } else { false } }
  var isUnavailable: Bool { if case .unavailable = self { true } else { false } }
}
