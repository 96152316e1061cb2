import Foundation
import JSONCore
import StreamClient
import Synchronization
import Telemetry

/// Counts the outcomes of a bulk job and measures their latencies.
final class BulkTally: Sendable {
  private struct State {
    var byOutcome: [String: Int] = [:]
    var done = 0
  }
  private let state = Mutex(State())
  private let latency = Histogram()
  private let start = ContinuousClock.now

  func count(_ outcome: BulkOutcome) {
    switch outcome.result {
    case .success(let ack):
      latency.record(ack.latency)
      state.withLock {
        $0.byOutcome["ack", default: 0] += 1
        $0.done += 1
      }
    case .failure(let error):
      state.withLock {
        $0.byOutcome[error.nackCode ?? error.code.description, default: 0] += 1
        $0.done += 1
      }
    }
  }

  /// Counts a line that was never sent.
  func countRefusedLine() {
    state.withLock {
      $0.byOutcome[SendError.Code.invalidMessage.description, default: 0] += 1
      $0.done += 1
    }
  }

  var done: Int { state.withLock { $0.done } }
  var acked: Int { state.withLock { $0.byOutcome["ack"] ?? 0 } }
  var byOutcome: [String: Int] { state.withLock { $0.byOutcome } }
  var elapsed: Duration { ContinuousClock.now - start }

  /// Latency of acked messages in milliseconds; nil while there are none.
  func quantile(_ fraction: Double) -> Double? {
    latency.snapshot().quantile(fraction).map { Double($0) / 1_000_000 }
  }

  func report(lines: Int, skipped: Int) -> JSONValue {
    let seconds = max(0.001, elapsed.milliseconds / 1000)
    func rounded(_ value: Double?) -> JSONValue {
      value.map { .number(String(format: "%.3f", $0)) } ?? .null
    }
    return [
      "messages": .number(done), "skipped": .number(skipped), "lines": .number(lines),
      "seconds": rounded(seconds), "messages_per_second": rounded(Double(done) / seconds),
      "outcomes": .object(byOutcome.sorted { $0.key < $1.key }.map { .init($0.key, .number($0.value)) }),
      "ack_latency_ms": [
        "p50": rounded(quantile(0.5)), "p90": rounded(quantile(0.9)), "p99": rounded(quantile(0.99)),
        "p99.9": rounded(quantile(0.999)), "max": rounded(quantile(1)),
      ],
    ]
  }
}
