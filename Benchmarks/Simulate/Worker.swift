import Glibc
import Simulator

/// One process' share of seeds, told line by line to the process that started it.
enum Worker {
  static func run(_ options: Options, _ first: UInt64, _ last: UInt64, _ step: UInt64) {
    var seed = first
    while seed <= last {
      print("begin\t\(seed)")
      let start = cpuMicroseconds()
      let outcome = Simulator.run(seed: seed, canary: options.canary, nodes: options.nodes)
      print(Report(outcome, cpuMicroseconds: cpuMicroseconds() - start).line)
      seed += step
    }
  }

  private static func cpuMicroseconds() -> Int {
    var spec = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spec)
    return Int(spec.tv_sec) * 1_000_000 + Int(spec.tv_nsec) / 1_000
  }
}

/// What a worker says of one seed.
struct Report {
  var seed: UInt64
  var hash: UInt64
  var figures: [Int]
  var summary: String
  var failures: [String]

  static let names = [
    "cpu_us", "virtual_s", "events", "sent", "acked", "taken", "upstream", "receipts", "faults", "kills",
    "repeats", "nodes", "notices", "lost_notices", "gaps",
  ]

  init(_ outcome: SeedOutcome, cpuMicroseconds: Int) {
    seed = outcome.seed
    hash = outcome.hash
    figures = [
      cpuMicroseconds, Int(outcome.virtualSeconds), outcome.events, outcome.sent, outcome.acked,
      outcome.taken,
      outcome.upstream, outcome.receipts, outcome.faults, outcome.kills, outcome.repeats, outcome.nodes,
      outcome.notices,
      outcome.lostNotices, outcome.gaps,
    ]
    summary = outcome.summary
    failures = outcome.failures
  }

  var line: String {
    let parts = [
      "end", String(seed), String(hash, radix: 16), figures.map(String.init).joined(separator: " "), summary,
    ]
    return (parts + failures).joined(separator: "\t")
  }

  init?(_ line: Substring) {
    let parts = line.split(separator: "\t", omittingEmptySubsequences: false)
    guard parts.count >= 5, parts[0] == "end", let seed = UInt64(parts[1]),
      let hash = UInt64(parts[2], radix: 16)
    else { return nil }
    self.seed = seed
    self.hash = hash
    figures = parts[3].split(separator: " ").compactMap { Int($0) }
    summary = String(parts[4])
    failures = parts[5...].map(String.init)
    guard figures.count == Self.names.count else { return nil }
  }
}
