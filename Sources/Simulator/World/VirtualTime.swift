import Seams

/// The clocks of one simulated machine.
///
/// The monotonic one counts from an origin of its own; the wall clock can be stepped.
// Sendable by argument: as ``World``.
final class VirtualTime: TimeSource, @unchecked Sendable {
  private let world: World
  private let origin: Int64
  private(set) var stepMs: Int64 = 0
  /// What the wall clock showed just before and after each step, with the virtual time.
  private(set) var steps: [(at: Int64, fromMs: Int64, toMs: Int64)] = []

  init(_ world: World, origin: Int64) {
    self.world = world
    self.origin = origin
  }

  var moment: Moment { Moment(ns: world.now + origin) }
  var wall: WallTime { WallTime(ms: World.epochMs + world.now / 1_000_000 + stepMs) }

  func stepWall(by ms: Int64) {
    let before = wall.ms
    stepMs += ms
    steps.append((world.now, before, wall.ms))
  }

  /// The lowest and the highest that the wall clock showed between two virtual times.
  func wallRange(from start: Int64, to end: Int64) -> ClosedRange<Int64> {
    var offset: Int64 = 0
    var low = Int64.max
    var high = Int64.min
    func see(_ at: Int64, _ offset: Int64) {
      let shown = World.epochMs + at / 1_000_000 + offset
      low = min(low, shown)
      high = max(high, shown)
    }
    var seenStart = false
    for step in steps {
      if step.at > start, !seenStart {
        see(start, offset)
        seenStart = true
      }
      if step.at > start, step.at <= end { see(step.at, offset) }
      offset += step.toMs - step.fromMs
      if step.at > start, step.at <= end { see(step.at, offset) }
    }
    if !seenStart { see(start, offset) }
    let atEnd = steps.filter { $0.at <= end }.reduce(0) { $0 + $1.toMs - $1.fromMs }
    see(end, atEnd)
    return low...max(low, high)
  }

  func sleep(for duration: Duration) async throws {
    let sleeper = Sleeper()
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        sleeper.continuation = continuation
        if Task.isCancelled {
          sleeper.end(throwing: CancellationError())
        } else {
          world.after(duration) { sleeper.end(throwing: nil) }
        }
      }
    } onCancel: {
      sleeper.end(throwing: CancellationError())
    }
  }

  // Sendable by argument: as ``World``.
  private final class Sleeper: @unchecked Sendable {
    var continuation: CheckedContinuation<Void, any Error>?

    /// The world ended before the sleep.
    deinit { end(throwing: CancellationError()) }

    func end(throwing error: (any Error)?) {
      guard let continuation else { return }
      self.continuation = nil
      if let error { continuation.resume(throwing: error) } else { continuation.resume() }
    }
  }
}
