import Foundation
import JSONCore
import Telemetry
import Testing

@testable import LoadGenerator
@testable import WeirCommand

@Suite struct ScenarioTests {
  private func read(_ text: String) throws -> LoadScenario {
    try LoadScenario(json5: Data(text.utf8), name: "test")
  }

  private func fault(_ text: String) -> String? {
    do { _ = try read(text) } catch let fault as UsageFault { return fault.message } catch {}
    return nil
  }

  @Test func whatIsLeftOutHasItsDefault() throws {
    var expected = LoadScenario()
    expected.name = "test"
    #expect(try read("{}") == expected)
    #expect(try read("// nothing but a comment\n{ devices: {}, messages: {}, }") == expected)
  }

  @Test func everyFieldIsRead() throws {
    let scenario = try read(
      """
      { name: "all", duration: "1m", settle: 5, seed: 7,
        devices: { count: 50, connect_rate: 20, connecting_max: 7, churn: 2, away: "300ms", half_open: 3,
          slow_acks: { count: 4, delay: "2s" }, slow_readers: { count: 5, bytes_per_second: 99 },
          waves: [{ at: 3, share: 0.5 }] },
        senders: { count: 2, window: 30, answer_within: "3s" },
        arrivals: { spike: { base: 10, peak: 100, at: 2, for: 1 } },
        messages: { bytes: { from: 100, to: 200 }, topics: { count: 2, share: 0.1, subscribers: 9 } },
        faults: [{ at: 4, kind: "nack", code: "INVALID_TTL", message: 3, count: 2 },
          { at: 5, kind: "delay", delay_ms: 300 }],
        upstream: 8, expect: { ack_p99: "20ms", delivery_p99: 1, nacks: 0, per_second: 100 } }
      """)
    #expect(scenario.name == "all" && scenario.duration == .seconds(60) && scenario.settle == .seconds(5))
    #expect(scenario.seed == 7)
    #expect(
      scenario.devices.count == 50 && scenario.devices.connectRate == 20
        && scenario.devices.connectingMax == 7 && scenario.devices.churn == 2)
    #expect(scenario.devices.away == .milliseconds(300) && scenario.devices.halfOpen == 3)
    #expect(scenario.devices.slowAcks == 4 && scenario.devices.slowAckDelay == .seconds(2))
    #expect(scenario.devices.slowReaders == 5 && scenario.devices.slowReaderBytes == 99)
    #expect(scenario.devices.waves == [.init(at: 3, share: 0.5)])
    #expect(scenario.senders.count == 2 && scenario.senders.window == 30)
    #expect(scenario.arrivals == .spike(base: 10, peak: 100, at: 2, length: 1))
    #expect(scenario.sizes == .between(100, 200))
    #expect(scenario.topics.count == 2 && scenario.topics.share == 0.1 && scenario.topics.subscribers == 9)
    #expect(scenario.upstreamRate == 8 && scenario.senders.answerWithin == .seconds(3))
    #expect(scenario.faults.map(\.at) == [4, 5] && scenario.faults.map(\.kind) == ["nack", "delay"])
    let order = try JSONValue(parsing: scenario.faults[0].order)
    #expect(order["code"]?.string == "INVALID_TTL" && order["message"]?.int == 3)
    #expect(order["count"]?.int == 2 && order["delay_ms"] == nil)
    #expect(scenario.expect.ackP99 == .milliseconds(20) && scenario.expect.deliveryP99 == .seconds(1))
    #expect(scenario.expect.nacksMax == 0 && scenario.expect.perSecondMin == 100)
  }

  @Test func arrivalsAndSizesHaveSeveralForms() throws {
    #expect(try read("{ arrivals: 'closed' }").arrivals == .closed)
    #expect(try read("{ arrivals: { constant: 5 } }").arrivals == .constant(5))
    #expect(try read("{ arrivals: { poisson: 5.5 } }").arrivals == .poisson(5.5))
    #expect(try read("{ arrivals: { ramp: { from: 1, to: 2 } } }").arrivals == .ramp(from: 1, to: 2))
    #expect(try read("{ messages: { bytes: 700 } }").sizes == .fixed(700))
    #expect(
      try read("{ messages: { bytes: [{ bytes: 100, weight: 3 }, { bytes: 4096 }] } }").sizes
        == .mixed([.init(bytes: 100, weight: 3), .init(bytes: 4_096, weight: 1)]))
  }

  @Test(arguments: [
    (
      "{ devices: { conect_rate: 5 } }",
      "devices.conect_rate has no meaning. Did you mean devices.connect_rate?"
    ),
    ("{ devices: { count: 0 } }", "devices.count must be a whole number from 1 to 1000000, not 0."),
    ("{ devices: { count: 1.5 } }", "devices.count must be a whole number from 1 to 1000000, not 1.5."),
    ("{ devices: 5 }", "devices must be an object, not 5."),
    (
      "{ senders: { window: 'wide' } }",
      "senders.window must be a whole number from 1 to 10000, not \"wide\"."
    ),
    ("{ duration: '5 parsecs' }", "duration must be seconds, or a text as"),
    ("{ arrivals: 'fast' }", "arrivals must be \"closed\", {constant: RATE}"),
    ("{ arrivals: { constant: 1, poisson: 2 } }", "arrivals must be one of"),
    ("{ arrivals: { poison: 2 } }", "arrivals.poison has no meaning"),
    ("{ arrivals: { spike: { base: -1 } } }", "arrivals.spike.base must be a number from 0 to 10000000"),
    ("{ messages: { bytes: 63 } }", "messages.bytes must be a number of bytes from 64 to 4096"),
    ("{ messages: { bytes: [] } }", "messages.bytes must be a number of bytes"),
    ("{ messages: { bytes: [{ bytes: 100, weight: 0 }] } }", "messages.bytes needs a weight above 0."),
    (
      "{ messages: { bytes: { from: 300, to: 200 } } }",
      "messages.bytes.from is larger than messages.bytes.to."
    ),
    (
      "{ devices: { waves: [{ at: 1, share: 2 }] } }",
      "devices.waves[0].share must be a number from 0 to 1, not 2."
    ),
    (
      "{ devices: { count: 3, half_open: 2, slow_readers: { count: 2 } } }",
      "devices: 4 are to be slow or half-open"
    ),
    ("{ messages: { topics: { count: 1, subscribers: 101 } } }", "messages.topics.subscribers is 101"),
    ("{ expect: { nacks: true } }", "expect.nacks must be a whole number"),
    ("{ devices: { count: }", "test is no JSON5:"),
    ("{ faults: [{ at: 1, kind: 'fire' }] }", "faults[0].kind must be one of nack, drop_ack"),
    ("{ faults: [{ kind: 'delay' }] }", "faults[0].delay_ms is missing."),
    (
      "{ faults: [{ kind: 'cut', coutn: 2 }] }",
      "faults[0].coutn has no meaning. Did you mean faults[0].count?"
    ),
    ("[]", "A scenario must be an object, not a list."),
  ])
  func aFaultNamesItsField(text: String, message: String) {
    let found = fault(text)
    #expect(found?.hasPrefix(message) == true, "\(found ?? "no fault")")
  }

  @Test func theExamplesAreScenarios() throws {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appendingPathComponent("Examples/scenarios")
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter {
      $0.hasSuffix(".json5")
    }
    #expect(names.count >= 6)
    for name in names { _ = try LoadScenario(file: folder.appendingPathComponent(name).path) }
  }
}

@Suite struct LoadReportTests {
  private func result(_ change: (inout LoadResult) -> Void = { _ in }) -> LoadResult {
    var verdict = LoadVerdict()
    verdict.written = 10
    verdict.acked = 10
    verdict.delivered = 10
    var seconds: [LoadSecond] = []
    for number in 1...3 {
      var second = LoadSecond()
      second.number = number
      second.phase = number == 1 ? "connecting" : "loading"
      second.acked = number * 100
      second.connected = 5
      seconds.append(second)
    }
    var scenario = LoadScenario()
    scenario.name = "A <b>bold</b> name"
    var result = LoadResult(
      runID: "r1", scenario: scenario, seconds: seconds, verdict: verdict, ack: .init(), delivery: .init(),
      connect: .init(), nacks: [:], losses: [:], loadSeconds: 2, ackedPerSecond: 5, deliveredPerSecond: 5,
      missed: [])
    change(&result)
    return result
  }

  @Test func aCleanLedgerPassesAndEveryFaultFails() {
    #expect(result().isPassed)
    let faults: [(inout LoadResult) -> Void] = [
      { $0.verdict.lost = 1 }, { $0.verdict.doubled = 1 }, { $0.verdict.unanswered = 1 },
      { $0.verdict.strayed = 1 }, { $0.verdict.contradicted = 1 }, { $0.verdict.upstreamLost = 1 },
      { $0.verdict.upstreamUnanswered = 1 }, { $0.verdict.written = 0 }, { $0.missed = ["too slow"] },
    ]
    for fault in faults {
      #expect(!result(fault).isPassed)
      #expect(LoadReport.text(result(fault)).contains("FAILED  "))
    }
    for harmless: (inout LoadResult) -> Void in [
      { $0.verdict.repeated = 9 }, { $0.verdict.discarded = 9 }, { $0.nacks = ["QUOTA_EXCEEDED": 1] },
    ] { #expect(result(harmless).isPassed) }
  }

  @Test func theReportIsOneFileWithChartsAndFetchesNothing() {
    let html = LoadReport.html(result { $0.losses = ["<script>": 2] })
    #expect(html.contains("<svg") && html.contains("prefers-color-scheme:dark"))
    #expect(html.contains("A &lt;b&gt;bold&lt;/b&gt; name"))
    #expect(!html.contains("<b>bold") && !html.contains("<script"))
    #expect(!html.contains("http://") && !html.contains("https://") && !html.contains("src="))
    #expect(html.components(separatedBy: "<svg").count - 1 >= 2)
  }

  @Test func theJSONReportHoldsSummaryAndSeries() {
    let value = LoadReport.json(result { $0.verdict.lost = 2 })
    #expect(value["summary"]?["passed"]?.bool == false)
    #expect(value["summary"]?["ledger"]?["lost"]?.int == 2)
    #expect(value["series"]?.array?.count == 3)
    #expect(value["series"]?[2]?["acked"]?.int == 300)
  }

  @Test func aChartHasRoundTicksAndGaps() {
    let chart = Chart(title: "t", unit: "u", lines: [.init(name: "a", values: [1, nil, 3, 4])])
    #expect(chart.svg.components(separatedBy: "class=\"line\"").count == 3)
    #expect(Chart.Scale([0, 870], isLogarithmic: false).ticks == [0, 250, 500, 750, 1_000])
    #expect(Chart.Scale([0.4, 87], isLogarithmic: true).ticks == [0.1, 1, 10, 100])
    #expect(Chart.Scale([], isLogarithmic: true).share(5) <= 1)
    #expect(Chart(title: "t", unit: "u", lines: []).svg.isEmpty)
  }
}
