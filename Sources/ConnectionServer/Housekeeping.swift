import Seams
import Stores
import Telemetry

/// What has to be done now and then: sweeping expired messages, forgetting old journal rows.
struct Housekeeping: Sendable {
  let context: ServerContext
  var sweepEvery: Duration = .seconds(1)
  private let sweepBudget = 2_000
  /// Sweeps between two prunings of the journal.
  private let sweepsPerPruning = 30

  /// Forgets finished fan-outs in small steps, so that writes come in between.
  private func pruneFanouts(before: WallTime) async throws {
    let step = 200
    for _ in 0..<100 {
      let gone = try await context.store.pruneFanouts(before: before, max: step, now: context.time.wall)
      if gone < step { return }
    }
  }

  func run() async {
    var sweeps = 0
    while !Task.isCancelled {
      do { try await context.time.sleep(for: sweepEvery) } catch { return }
      do {
        context.endedByRule(try await context.store.sweep(now: context.time.wall, budget: sweepBudget))
        sweeps += 1
        if sweeps.isMultiple(of: sweepsPerPruning) {
          let horizon = context.tuning.dedupeHorizon.ns / 1_000_000
          let before = WallTime(ms: context.time.wall.ms - horizon)
          try await context.store.pruneJournal(before: before)
          try await pruneFanouts(before: before)
        }
      } catch {
        context.log.warning("Sweeping failed; it is tried again", ["fault": .init("\(error)")])
      }
    }
  }
}
