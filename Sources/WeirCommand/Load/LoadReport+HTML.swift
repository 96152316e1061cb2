import Foundation
import LoadGenerator

extension LoadReport {
  /// One page that opens anywhere.
  static func html(_ result: LoadResult) -> String {
    let scenario = result.scenario
    var page = HTMLPage(title: "Load test: \(scenario.name)")
    page.headline(scenario.name, verdict: verdictText(result), isGood: result.isPassed)
    page.paragraph(
      "\(scenario.senders.count) sender(s) × window \(scenario.senders.window), \(text(of: scenario.arrivals)), "
        + "\(scenario.devices.count) device(s), payloads of about \(Int(scenario.sizes.mean)) bytes, run \(result.runID)."
    )
    page.figures(figures(result))
    page.list(remarks(result))
    page.section("Over time")
    for chart in charts(result.seconds) { page.chart(chart) }
    page.section("Latency")
    page.paragraph(
      "From the moment a message was meant to leave, also when it had to wait for room in a window.")
    page.table(latencies(result))
    page.section("Ledger")
    page.table([["", "messages"]] + ledger(result.verdict))
    if !result.nacks.isEmpty {
      page.section("Nacks")
      page.table([["code", "messages"]] + rows(result.nacks))
    }
    if !result.losses.isEmpty {
      page.section("Streams lost")
      page.table([["reason", "streams"]] + rows(result.losses))
    }
    return page.text
  }

  private static func rows(_ counts: [String: Int]) -> [[String]] {
    counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { [$0.key, String($0.value)] }
  }

  private static func figures(_ result: LoadResult) -> [(value: String, label: String)] {
    func ms(_ value: Double?) -> String { value.map { Chart.milliseconds($0) } ?? "–" }
    let (ack, delivery) = (LoadLatency(result.ack), LoadLatency(result.delivery))
    var figures = [
      (Chart.number(result.ackedPerSecond.rounded()), "messages a second, acked"),
      (ms(ack?.p50), "ack, half of them within"), (ms(ack?.p99), "ack, 99 % within"),
    ]
    if result.verdict.countsDeliveries { figures.append((ms(delivery?.p99), "delivery, 99 % within")) }
    figures.append((String(result.verdict.nacked), "nacked"))
    return figures
  }

  static func charts(_ seconds: [LoadSecond]) -> [Chart] {
    let loading = seconds.indices.filter { seconds[$0].phase == "loading" }
    let band = loading.first.flatMap { first in loading.last.map { first..<($0 + 1) } }
    let marks = seconds.indices.flatMap { index in
      Set(seconds[index].events).sorted().map { (at: index, name: $0.replacing("_", with: " ")) }
    }
    func values(_ value: (LoadSecond) -> Double?) -> [Double?] { seconds.map(value) }
    func chart(_ title: String, _ unit: String, _ lines: [Chart.Line], isLogarithmic: Bool = false) -> Chart?
    {
      // A line of nothing but zeros says nothing; its name would only take room.
      let useful = lines.filter { $0.values.contains { ($0 ?? 0) > 0 } }
      guard !useful.isEmpty else { return nil }
      return Chart(
        title: title, unit: unit, lines: useful, band: band, bandName: "the load", marks: marks,
        isLogarithmic: isLogarithmic)
    }
    return [
      chart(
        "Throughput", "messages a second",
        [
          .init(name: "acked", values: values { Double($0.acked) }, isFilled: true),
          .init(name: "delivered", values: values { Double($0.delivered) }),
          .init(name: "upstream received", values: values { Double($0.upstreamReceived) }),
        ]),
      chart(
        "Ack latency", "milliseconds, logarithmic",
        [
          .init(name: "p50", values: values { $0.ack?.p50 }),
          .init(name: "p99", values: values { $0.ack?.p99 }),
          .init(name: "p99.9", values: values { $0.ack?.p999 }),
          .init(name: "slowest", values: values { $0.ack?.max }),
        ], isLogarithmic: true),
      chart(
        "Delivery latency", "milliseconds, logarithmic",
        [
          .init(name: "p50", values: values { $0.delivery?.p50 }),
          .init(name: "p99", values: values { $0.delivery?.p99 }),
          .init(name: "slowest", values: values { $0.delivery?.max }),
        ], isLogarithmic: true),
      chart(
        "Devices", "connected",
        [.init(name: "connected", values: values { Double($0.connected) }, isFilled: true)]),
      chart(
        "Waiting", "messages",
        [
          .init(name: "written, not answered", values: values { Double($0.pending) }, isFilled: true),
          .init(name: "due, waiting for a window", values: values { Double($0.backlog) }),
        ]),
      chart(
        "Trouble", "a second",
        [
          .init(name: "nacked", values: values { Double($0.nacked) }),
          .init(name: "streams lost", values: values { Double($0.losses) }),
          .init(name: "streams cut on purpose", values: values { Double($0.cuts) }),
          .init(name: "repeats hidden by devices", values: values { Double($0.repeated) }),
        ]),
    ].compactMap { $0 }
  }
}
