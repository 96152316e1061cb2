import Foundation
import JSONCore
import Telemetry

/// What a bulk job tells, while it runs and afterwards.
enum BulkReport {
  private static let fractions = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("max", 1)]

  static func json(_ tally: BulkTally, lines: Int, skipped: Int) -> JSONValue {
    func rounded(_ value: Double?) -> JSONValue {
      value.map { .number(String(format: "%.3f", $0)) } ?? .null
    }
    return [
      "messages": .number(tally.done), "skipped": .number(skipped), "lines": .number(lines),
      "seconds": rounded(tally.seconds), "messages_per_second": rounded(Double(tally.done) / tally.seconds),
      "outcomes": .object(
        tally.byOutcome.sorted { $0.key < $1.key }.map { .init($0.key, .number($0.value)) }),
      "ack_latency_ms": .object(fractions.map { .init($0.0, rounded(tally.quantile($0.1))) }),
    ]
  }

  static func text(_ tally: BulkTally, skipped: Int) -> String {
    var parts = [
      "\(tally.done) messages in \(String(format: "%.2f", tally.seconds)) s, "
        + "\(Int(Double(tally.done) / tally.seconds)) a second"
        + (skipped > 0 ? "; \(skipped) lines were finished by an earlier run" : "")
    ]
    parts.append(Table.text([["outcome", "messages"]] + outcomes(tally)))
    let latencies = fractions.map { name, fraction in
      "\(name) " + (tally.quantile(fraction).map { String(format: "%.2f ms", $0) } ?? "–")
    }
    parts.append("ack latency: " + latencies.joined(separator: ", "))
    return parts.joined(separator: "\n")
  }

  static func html(_ tally: BulkTally, name: String, skipped: Int) -> String {
    var page = HTMLPage(title: "Bulk job: \(name)")
    let failed = tally.done - tally.acked
    page.headline(
      name,
      verdict: failed == 0
        ? "all \(tally.done) messages were acked." : "\(failed) of \(tally.done) messages were not acked.",
      isGood: failed == 0)
    if skipped > 0 { page.paragraph("\(skipped) lines were finished by an earlier run.") }
    func ms(_ fraction: Double) -> String { tally.quantile(fraction).map { Chart.milliseconds($0) } ?? "–" }
    page.figures([
      (Chart.number(Double(tally.done)), "messages"),
      (Chart.number((Double(tally.done) / tally.seconds).rounded()), "a second"),
      (String(format: "%.1f s", tally.seconds), "in all"), (ms(0.5), "ack, half of them within"),
      (ms(0.99), "ack, 99 % within"),
    ])
    let (samples, seconds) = tally.course
    page.section("Over time")
    let span = Double(seconds)
    var rates = [
      Chart.Line(name: "acked", values: samples.map { Double($0.acked) / span }, isFilled: true)
    ]
    if failed > 0 { rates.append(.init(name: "not acked", values: samples.map { Double($0.failed) / span })) }
    page.chart(Chart(title: "Throughput", unit: "messages a second", lines: rates, secondsPerValue: seconds))
    func course(_ fraction: Double) -> [Double?] {
      samples.map { $0.latency.quantile(fraction).map { Double($0) / 1e6 } }
    }
    if tally.acked > 0 {
      page.chart(
        Chart(
          title: "Ack latency", unit: "milliseconds, logarithmic",
          lines: [
            .init(name: "p50", values: course(0.5)), .init(name: "p99", values: course(0.99)),
            .init(name: "slowest", values: course(1)),
          ], isLogarithmic: true, secondsPerValue: seconds))
    }
    page.section("Outcomes")
    page.table([["outcome", "messages"]] + outcomes(tally))
    return page.text
  }

  private static func outcomes(_ tally: BulkTally) -> [[String]] {
    tally.byOutcome.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { [$0.key, String($0.value)] }
  }

  /// One line for a terminal: a bar, how much, how fast, how long still, and what went wrong.
  ///
  /// - Parameters:
  ///   - share: How much of the input was read, 0 to 1; nil when nobody knows.
  ///   - seconds: Of this run, which began at share `from`.
  static func progress(_ tally: BulkTally, share: Double?, from: Double, width: Int = 24) -> String {
    let rate = tally.recentRate
    var text = "\(tally.done) done, \(Int(rate))/s"
    if let share {
      let full = Int(min(1, max(0, share)) * Double(width))
      let bar = String(repeating: "█", count: full) + String(repeating: "░", count: width - full)
      text = "\(bar) \(Int(share * 100)) %  \(text)"
      if share > from, rate > 0 {
        let left = tally.seconds * (1 - share) / max(share - from, 1e-9)
        text += ", \(duration(left)) left"
      }
    }
    let failures = tally.byOutcome.filter { $0.key != "ack" }.sorted {
      ($1.value, $0.key) < ($0.value, $1.key)
    }
    if !failures.isEmpty {
      text += "  " + failures.prefix(3).map { "\($0.key) \($0.value)" }.joined(separator: ", ")
      if failures.count > 3 { text += ", …" }
    }
    return text
  }

  static func duration(_ seconds: Double) -> String {
    let whole = Int(min(max(seconds, 0), 8_640_000).rounded(.up))
    if whole < 60 { return "\(whole) s" }
    if whole < 3_600 { return "\(whole / 60) min \(whole % 60) s" }
    return "\(whole / 3_600) h \(whole % 3_600 / 60) min"
  }
}
