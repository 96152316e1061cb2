import Foundation
import JSONCore
import LoadGenerator
import Synchronization

/// Asks the server for the faults of a scenario while it runs, and takes back what is left of them.
final class FaultArmer: Sendable {
  private struct State {
    var ids: [String] = []
    var failures: [String] = []
    var underWay: [Task<Void, Never>] = []
  }
  private let client: AdminClient
  private let state = Mutex(State())

  /// - Throws: ``CommandFault`` when the administration does not answer.
  init(_ endpoint: Endpoint, key: String) async throws {
    client = try AdminClient(endpoint, key: key)
    _ = try await client.call("GET", "/faults")
  }

  func arm(_ fault: LoadScenario.Fault) {
    let task = Task {
      do {
        guard let order = try? JSONValue(parsing: fault.order) else { return }
        let answer = try await client.call("POST", "/faults", order)
        if let id = answer["id"]?.string { state.withLock { $0.ids.append(id) } }
      } catch {
        state.withLock { $0.failures.append("the fault \(fault.kind) could not be armed: \(error)") }
      }
    }
    state.withLock { $0.underWay.append(task) }
  }

  /// Takes back what has not befallen a message yet.
  ///
  /// - Returns: Why faults could not be armed.
  func end() async -> [String] {
    for task in state.withLock({ $0.underWay }) { await task.value }
    // One that has befallen all its messages is gone: no matter.
    for id in state.withLock({ $0.ids }) { _ = try? await client.call("DELETE", "/faults/\(id)") }
    return state.withLock { $0.failures }
  }
}
