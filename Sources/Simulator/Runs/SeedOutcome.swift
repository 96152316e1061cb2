/// What became of one seed.
package struct SeedOutcome: Sendable {
  package var seed: UInt64
  /// Of everything that happened, with its virtual time.
  package var hash: UInt64
  /// In words, with the virtual time; empty when the run kept to the contract.
  package var failures: [String]
  package var summary: String
  package var virtualSeconds: Int64
  package var events: Int
  package var sent: Int
  package var acked: Int
  /// How often an app took a message.
  package var taken: Int
  package var upstream: Int
  package var receipts: Int
  package var faults: Int
  package var kills: Int
  /// Messages that came to a device again and were hidden.
  package var repeats: Int
  package var nodes: Int
  /// Between nodes: those that were sent, those that were lost, and how often a node looked at everything.
  package var notices: Int
  package var lostNotices: Int
  package var gaps: Int

  init(_ run: Simulation) {
    seed = run.seed
    failures = run.ledger.failures
    summary = run.swarm.summary
    virtualSeconds = run.world.now / 1_000_000_000
    events = run.world.eventCount
    sent = run.ledger.sent.count
    acked = run.ledger.ackedCount
    taken = run.ledger.takenCount
    upstream = run.ledger.upstream.reduce(0) { $0 + $1.successCount }
    receipts = run.ledger.receiptCount
    faults = run.faultCount
    kills = run.servers.reduce(0) { $0 + $1.killCount }
    nodes = run.servers.count
    notices = run.cluster?.noticeCount ?? 0
    lostNotices = run.cluster?.lostNotices ?? 0
    gaps = run.cluster?.gapCount ?? 0
    repeats = run.devices.reduce(0) { $0 + $1.repeatCount }
    run.world.say("counts", "\(sent) \(acked) \(taken) \(upstream) \(receipts) \(repeats) \(failures.count)")
    hash = run.world.trace.hash
  }
}

/// The way in for programs and tests.
package enum Simulator {
  /// Runs one seed to its end, on the caller's thread.
  ///
  /// - Parameters:
  ///   - nodes: Nodes that share a store, 1 for a server that is alone; nil lets the seed decide.
  ///   - output: Gets a line for everything that happens.
  package static func run(
    seed: UInt64, canary: Canary? = nil, nodes: Int? = nil, output: ((String) -> Void)? = nil
  ) -> SeedOutcome {
    Simulation(seed: seed, canary: canary, nodes: nodes, output: output).perform()
  }
}
