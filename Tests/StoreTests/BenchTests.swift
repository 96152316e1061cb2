import Foundation
import StoreConformance
import StoreSQLite
import Stores
import Testing

/// Opt-in: `WEIR_BENCH=1 swift test -c release --filter StoreBenchTests`.
@Suite(.enabled(if: ProcessInfo.processInfo.environment["WEIR_BENCH"] == "1"), .serialized)
struct StoreBenchTests {
  private static let limits = StoreLimits(storedPerDeviceMax: 1_000_000)

  @Test func sqlite() async throws {
    let scratch = try Scratch()
    let store = try SQLiteStore(directory: scratch.path, options: .init(limits: Self.limits))
    for figure in try await StoreBench().run(on: store) { print("SQLite", figure) }
    await store.close()
  }

  @Test func memory() async throws {
    let store = MemoryStore(limits: Self.limits)
    for figure in try await StoreBench(seconds: 1).run(on: store) { print("memory", figure) }
  }
}
