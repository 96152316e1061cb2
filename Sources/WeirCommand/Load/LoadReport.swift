import Foundation
import JSONCore
import LoadGenerator
import Telemetry

/// What a load test tells, while it runs and afterwards.
enum LoadReport {
  static func text(of arrivals: Arrivals) -> String {
    func rate(_ value: Double) -> String { ScenarioValue.text(of: value) }
    return switch arrivals {
    case .closed: "windows kept full"
    case .constant(let value): "\(rate(value)) messages/s evenly"
    case .poisson(let value): "\(rate(value)) messages/s at random"
    case .ramp(let from, let to): "\(rate(from)) to \(rate(to)) messages/s"
    case .spike(let base, let peak, let at, let length):
      "\(rate(base)) messages/s, \(rate(peak)) from second \(rate(at)) for \(rate(length)) s"
    }
  }

  // MARK: While it runs

  static func tell(_ second: LoadSecond, _ console: Console) {
    if console.isJSON { return console.result(json(second)) }
    func ms(_ value: Double?) -> String { value.map { String(format: "%.2f", $0) } ?? "–" }
    var text = "\(second.number) s  \(second.phase)  \(second.connected) connected"
    if second.phase != "connecting" {
      text +=
        "  \(second.acked) acked  \(second.delivered) delivered  ack p50 \(ms(second.ack?.p50)) p99 \(ms(second.ack?.p99)) ms"
      if second.backlog > 0 { text += "  \(second.backlog) wait for a window" }
      if second.nacked > 0 { text += "  \(second.nacked) nacked" }
      if second.losses > 0 { text += "  \(second.losses) streams lost" }
    }
    console.say(text)
  }

  static func json(_ second: LoadSecond) -> JSONValue {
    [
      "kind": "second", "second": .number(second.number), "phase": .string(second.phase),
      "due": .number(second.due), "written": .number(second.written), "acked": .number(second.acked),
      "nacked": .number(second.nacked), "delivered": .number(second.delivered),
      "repeated": .number(second.repeated), "upstream_sent": .number(second.upstreamSent),
      "upstream_received": .number(second.upstreamReceived), "connected": .number(second.connected),
      "connects": .number(second.connects), "cuts": .number(second.cuts), "losses": .number(second.losses),
      "pending": .number(second.pending), "backlog": .number(second.backlog), "ack_ms": json(second.ack),
      "delivery_ms": json(second.delivery), "events": .array(second.events.map { .string($0) }),
      "generator_lag_ms": rounded(second.lagMs),
      "generator_processor": rounded(second.processor),
    ]
  }

  // MARK: Afterwards

  static func summary(_ result: LoadResult) -> JSONValue {
    let verdict = result.verdict
    func counts(_ counts: [String: Int]) -> JSONValue {
      .object(counts.sorted { $0.key < $1.key }.map { .init($0.key, .number($0.value)) })
    }
    return [
      "kind": "summary", "name": .string(result.scenario.name), "run": .string(result.runID),
      "passed": .bool(result.isPassed), "ledger_clean": .bool(verdict.isClean),
      "faults": .array((verdict.faults + result.missed).map { .string($0) }),
      "seconds": rounded(result.loadSeconds), "acked_per_second": rounded(result.ackedPerSecond),
      "delivered_per_second": rounded(result.deliveredPerSecond), "ack_ms": json(LoadLatency(result.ack)),
      "delivery_ms": json(LoadLatency(result.delivery)), "login_ms": json(LoadLatency(result.connect)),
      "ledger": [
        "written": .number(verdict.written), "acked": .number(verdict.acked),
        "nacked": .number(verdict.nacked),
        "unanswered": .number(verdict.unanswered), "unsent": .number(verdict.unsent),
        "delivered": verdict.countsDeliveries ? .number(verdict.delivered) : .null,
        "discarded": .number(verdict.discarded), "lost": .number(verdict.lost),
        "hidden_repeats": .number(verdict.repeated), "doubled": .number(verdict.doubled),
        "strayed": .number(verdict.strayed), "contradicted": .number(verdict.contradicted),
        "delivered_though_unavailable": .number(verdict.deliveredUnsure),
        "upstream_sent": .number(verdict.upstreamSent), "upstream_acked": .number(verdict.upstreamAcked),
        "upstream_nacked": .number(verdict.upstreamNacked), "upstream_lost": .number(verdict.upstreamLost),
        "upstream_unanswered": .number(verdict.upstreamUnanswered),
        "upstream_repeats": .number(verdict.upstreamRepeated),
      ],
      "nacks": counts(result.nacks), "lost_streams": counts(result.losses),
    ]
  }

  /// The summary, and every second.
  static func json(_ result: LoadResult) -> JSONValue {
    [
      "summary": summary(result), "arrivals": .string(text(of: result.scenario.arrivals)),
      "devices": .number(result.scenario.devices.count), "senders": .number(result.scenario.senders.count),
      "window": .number(result.scenario.senders.window), "payload_bytes": rounded(result.scenario.sizes.mean),
      "series": .array(result.seconds.map { json($0) }),
    ]
  }

  static func text(_ result: LoadResult) -> String {
    let verdict = result.verdict
    var lines = [
      "",
      "\(Int(result.ackedPerSecond)) messages/s acked"
        + (verdict.countsDeliveries ? ", \(Int(result.deliveredPerSecond))/s delivered" : "")
        + String(format: ", over %.1f s", result.loadSeconds), "",
    ]
    lines.append(Table.text(latencies(result)))
    lines.append("")
    lines.append(Table.text([["ledger", "messages"]] + ledger(verdict)))
    if !result.nacks.isEmpty {
      lines.append("nacks: " + tally(result.nacks))
    }
    if !result.losses.isEmpty { lines.append("streams lost: " + tally(result.losses)) }
    lines += remarks(result)
    lines.append("")
    lines.append((result.isPassed ? "PASSED  " : "FAILED  ") + verdictText(result))
    return lines.joined(separator: "\n")
  }

  static func verdictText(_ result: LoadResult) -> String {
    let faults = result.verdict.faults + result.missed
    guard faults.isEmpty else { return faults.joined(separator: "; ") + "." }
    return result.verdict.countsDeliveries
      ? "every message was answered once and none was lost or doubled."
      : "every message was answered once."
  }

  static func tally(_ counts: [String: Int]) -> String {
    counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { "\($0.key) \($0.value)" }
      .joined(separator: ", ")
  }

  static func latencies(_ result: LoadResult) -> [[String]] {
    var rows = [["milliseconds", "p50", "p90", "p99", "p99.9", "max"]]
    for (name, snapshot) in [
      ("ack", result.ack), ("delivery", result.delivery), ("login", result.connect),
    ] {
      guard let latency = LoadLatency(snapshot) else { continue }
      rows.append(
        [name]
          + [latency.p50, latency.p90, latency.p99, latency.p999, latency.max].map {
            String(format: "%.2f", $0)
          })
    }
    return rows
  }

  static func ledger(_ verdict: LoadVerdict) -> [[String]] {
    var rows: [(String, Int, isAlways: Bool)] = [
      ("written", verdict.written, true), ("acked", verdict.acked, true), ("nacked", verdict.nacked, true),
      ("not answered", verdict.unanswered, false),
      ("due, and not sent when the load ended", verdict.unsent, false),
    ]
    if verdict.countsDeliveries {
      rows += [
        ("delivered", verdict.delivered, true), ("lost", verdict.lost, true),
        ("doubled", verdict.doubled, true),
        ("discarded, and the device told", verdict.discarded, false),
        ("repeats that the device hid", verdict.repeated, false),
        ("at another device than meant", verdict.strayed, false),
        ("nacked and delivered", verdict.contradicted, false),
        ("nacked as unavailable, yet delivered", verdict.deliveredUnsure, false),
      ]
    }
    rows += [
      ("upstream sent", verdict.upstreamSent, false), ("upstream acked", verdict.upstreamAcked, false),
      ("upstream nacked", verdict.upstreamNacked, false), ("upstream lost", verdict.upstreamLost, false),
      ("upstream not answered", verdict.upstreamUnanswered, false),
      ("upstream repeats, same id", verdict.upstreamRepeated, false),
    ]
    return rows.filter { $0.isAlways || $0.1 > 0 }.map { [$0.0, String($0.1)] }
  }

  /// What a reader must know before believing the figures.
  static func remarks(_ result: LoadResult) -> [String] {
    let loading = result.seconds.filter { $0.phase == "loading" }
    var remarks: [String] = []
    let busy = loading.map(\.processor).max() ?? 0
    if busy > 0.9 {
      remarks.append(
        "The generator used \(Int(busy * 100)) % of a core: it may be what limits these figures.")
    }
    let lag = loading.map(\.lagMs).max() ?? 0
    if lag > 100 {
      remarks.append("The generator was late by up to \(Int(lag)) ms; its latencies include that.")
    }
    if result.scenario.isCanary { remarks.append("A canary run: one device was left uncounted on purpose.") }
    return remarks
  }

  static func rounded(_ value: Double) -> JSONValue { .number(String(format: "%.3f", value)) }

  static func json(_ latency: LoadLatency?) -> JSONValue {
    guard let latency else { return .null }
    return [
      "p50": rounded(latency.p50), "p90": rounded(latency.p90), "p99": rounded(latency.p99),
      "p99.9": rounded(latency.p999), "max": rounded(latency.max),
    ]
  }
}
