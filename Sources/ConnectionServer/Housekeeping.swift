import PushModel
import Seams
import Stores
import Telemetry

/// What has to be done now and then: sweeping expired messages, forgetting old journal rows, ending registrations that
/// nobody uses, telling the store which devices are still there.
struct Housekeeping: Sendable {
  let context: ServerContext
  var sweepEvery: Duration = .seconds(1)
  private static let sweepBudget = 2_000
  /// Sweeps between two prunings of the journal.
  private static let sweepsPerPruning = 30
  /// Sweeps between two looks for idle registrations; a look covers some thousand devices.
  private static let sweepsPerIdleLook = 60
  private static let idleBudget = 500
  /// How often the store is told that a device is still connected, at most.
  private static let touchEvery: Duration = .seconds(86_400)
  private static let touchMax = 2_000
  /// A step of the wall clock below this is not worth a line in the log.
  private static let stepWorthTelling: Duration = .seconds(2)

  func run() async {
    var sweeps = 0
    var told = Duration.zero
    while !Task.isCancelled {
      do { try await context.time.sleep(for: sweepEvery) } catch { return }
      tellOfSteps(&told)
      do {
        sweeps += 1
        try await round(sweeps)
      } catch {
        context.log.warning("Sweeping failed; it is tried again", ["fault": .init("\(error)")])
      }
    }
  }

  /// One round of all that is due at it.
  func round(_ sweeps: Int) async throws(StoreFault) {
    context.endedByRule(try await context.store.sweep(now: context.time.wall, budget: Self.sweepBudget))
    if sweeps.isMultiple(of: Self.sweepsPerPruning) {
      let horizon = context.tuning.dedupeHorizon.ns / 1_000_000
      let before = WallTime(ms: context.time.wall.ms - horizon)
      try await context.store.pruneJournal(before: before)
      try await pruneFanouts(before: before)
      try await touchConnected()
    }
    if sweeps.isMultiple(of: Self.sweepsPerIdleLook) { try await endIdle() }
  }

  /// Forgets finished fan-outs in small steps, so that writes come in between.
  private func pruneFanouts(before: WallTime) async throws(StoreFault) {
    let step = 200
    for _ in 0..<100 {
      let gone = try await context.store.pruneFanouts(before: before, max: step, now: context.time.wall)
      if gone < step { return }
    }
  }

  /// A device that stays connected for months is not idle; a log-in notes it anyway.
  func touchConnected() async throws(StoreFault) {
    let devices = await context.gather { $0.takeUntouched(for: Self.touchEvery, max: Self.touchMax) }
      .flatMap(\.self)
    if !devices.isEmpty { try await context.store.touch(devices, now: context.time.wall) }
  }

  /// Unregisters what nobody used for longer than the limit.
  func endIdle() async throws(StoreFault) {
    let now = context.time.wall
    let sweep = try await context.store.sweepIdle(
      seenBefore: now + .seconds(-context.limits.tokenIdleSecondsMax), budget: Self.idleBudget, now: now)
    guard !sweep.tokens.isEmpty else { return }
    context.log.info("Registrations that nobody used have ended", ["count": .init(sweep.tokens.count)])
    context.unregistered(sweep.tokens, sweep.ended)
  }

  private func tellOfSteps(_ told: inout Duration) {
    guard let time = context.time as? SteadyTime else { return }
    let stepped = time.stepped
    let change = stepped - told
    guard change > Self.stepWorthTelling || change < .zero - Self.stepWorthTelling else { return }
    told = stepped
    context.log.warning(
      "The machine's wall clock was stepped; messages live on as if it had not been",
      ["by_ms": .init(change.ns / 1_000_000)])
  }
}
