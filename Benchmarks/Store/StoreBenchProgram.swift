import CLinux
import Glibc
import Seams
import StoreConformance
import StorePostgres
import StoreSQLite
import Stores

/// How fast the stores take messages, one after the other in one run, so that ratios hold; SQLite alone beside them.
///
/// `store-bench DIRECTORY [POSTGRES-URL]`; the directory and the database are to be empty.
@main enum StoreBenchProgram {
  static func main() async throws {
    let words = Array(CommandLine.arguments.dropFirst())
    guard let directory = words.first else {
      print("store-bench DIRECTORY [POSTGRES-URL]")
      exit(2)
    }
    let limits = StoreLimits(storedPerDeviceMax: 1_000_000)
    let bench = StoreBench(devices: 2_000, seconds: 3)
    try await measure("memory", MemoryStore(limits: limits), StoreBench(devices: 2_000, seconds: 1))
    for (index, (batch, hasIndex)) in [(100, true), (1_000, true), (100, false), (1_000, false)].enumerated()
    {
      let rate = try SQLiteAlone(batch: batch, hasIndex: hasIndex).run(
        at: "\(directory)/alone-\(index).sqlite")
      print("SQLite alone, \(batch) inserts a transaction\(hasIndex ? "" : ", no index"): \(Int(rate))/s")
    }
    try await measure("SQLite", try SQLiteStore(directory: directory, options: .init(limits: limits)), bench)
    guard words.count > 1 else { return }
    // The default cap, as counting rows is part of the work.
    let store = try PostgresStore(
      PostgresAddress(words[1]), options: .init(limits: limits, nodeName: "store-bench"))
    try await measure("PostgreSQL", store, bench)
  }

  private static func measure(_ name: String, _ store: any Store, _ bench: StoreBench) async throws {
    let before = ownSeconds()
    for figure in try await bench.run(on: store) { print("\(name): \(figure)") }
    print("\(name): \(Int((ownSeconds() - before) * 1_000)) ms of this process's CPU")
    await store.close()
  }

  private static func ownSeconds() -> Double {
    var usage = rusage()
    getrusage(0, &usage)
    return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
      + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6
  }
}
