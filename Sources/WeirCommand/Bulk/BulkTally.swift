import Foundation
import StreamClient
import Synchronization
import Telemetry

/// Counts the outcomes of a bulk job, measures their latencies, and keeps their course over time.
final class BulkTally: Sendable {
  /// What happened in a stretch of time.
  struct Sample: Sendable {
    var acked = 0
    var failed = 0
    var latency: HistogramSnapshot = HistogramSnapshot()
  }

  /// Samples kept; with more, neighbours are joined and a sample stands for twice the time.
  static let samplesMax = 600

  private struct State {
    var byOutcome: [String: Int] = [:]
    var done = 0
    var samples: [Sample] = []
    var current = Sample()
    var ticksInCurrent = 0
    /// Ticks that one sample stands for.
    var ticksPerSample = 1
    var recent: [(at: Duration, done: Int)] = []
    var latency = Histogram()
    var latencyBefore = HistogramSnapshot()
  }
  private let state = Mutex(State())
  private let start = ContinuousClock.now

  func count(_ outcome: BulkOutcome) {
    state.withLock { state in
      state.done += 1
      switch outcome.result {
      case .success(let ack):
        state.latency.record(ack.latency)
        state.byOutcome["ack", default: 0] += 1
        state.current.acked += 1
      case .failure(let error):
        state.byOutcome[error.nackCode ?? error.code.description, default: 0] += 1
        state.current.failed += 1
      }
    }
  }

  /// Counts a line that was never sent.
  func countRefusedLine() {
    state.withLock { state in
      state.byOutcome[SendError.Code.invalidMessage.description, default: 0] += 1
      state.done += 1
      state.current.failed += 1
    }
  }

  /// A second has passed.
  func tick() {
    state.withLock { state in
      state.recent.append((elapsed, state.done))
      if state.recent.count > 10 { state.recent.removeFirst() }
      state.ticksInCurrent += 1
      if state.ticksInCurrent == state.ticksPerSample { Self.endSample(&state) }
    }
  }

  private static func endSample(_ state: inout State) {
    let snapshot = state.latency.snapshot()
    state.current.latency = snapshot
    state.latencyBefore.merge(snapshot)
    state.latency = Histogram()
    state.samples.append(state.current)
    state.current = Sample()
    state.ticksInCurrent = 0
    guard state.samples.count > samplesMax else { return }
    state.samples = stride(from: 0, to: state.samples.count, by: 2).map { index in
      var joined = state.samples[index]
      guard index + 1 < state.samples.count else { return joined }
      joined.acked += state.samples[index + 1].acked
      joined.failed += state.samples[index + 1].failed
      joined.latency.merge(state.samples[index + 1].latency)
      return joined
    }
    state.ticksPerSample *= 2
  }

  // MARK: What is so

  var done: Int { state.withLock { $0.done } }
  var acked: Int { state.withLock { $0.byOutcome["ack"] ?? 0 } }
  var byOutcome: [String: Int] { state.withLock { $0.byOutcome } }
  var elapsed: Duration { ContinuousClock.now - start }
  var seconds: Double { max(0.001, elapsed.milliseconds / 1000) }

  /// Messages a second over the last ten seconds.
  var recentRate: Double {
    state.withLock { state in
      guard let first = state.recent.first, let last = state.recent.last, last.at > first.at else {
        return Double(state.done) / seconds
      }
      return Double(last.done - first.done) / max(0.001, (last.at - first.at).milliseconds / 1000)
    }
  }

  /// Of all acked messages.
  var latency: HistogramSnapshot {
    state.withLock { state in
      var all = state.latencyBefore
      all.merge(state.latency.snapshot())
      return all
    }
  }

  /// The course of the job, and how many seconds a sample stands for.
  var course: (samples: [Sample], seconds: Int) {
    state.withLock { state in
      var last = state.current
      last.latency = state.latency.snapshot()
      let isEmpty = last.acked == 0 && last.failed == 0
      return (isEmpty ? state.samples : state.samples + [last], state.ticksPerSample)
    }
  }

  /// Latency of acked messages in milliseconds; nil while there are none.
  func quantile(_ fraction: Double) -> Double? { latency.quantile(fraction).map { Double($0) / 1_000_000 } }
}
