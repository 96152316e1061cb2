import Telemetry
import Testing

struct MetricsTests {
  @Test func cellsOfOneSeriesAreAddedUp() {
    let metrics = Metrics()
    let first = metrics.counter(.messages, "downstream", "delivered")
    let second = metrics.counter(.messages, "downstream", "delivered")
    let other = metrics.counter(.messages, "downstream", "expired")
    first.add()
    second.add(41)
    other.add(3)
    #expect(metrics.value(.messages, "downstream", "delivered") == 42)
    #expect(metrics.value(.messages, "downstream", "expired") == 3)
    #expect(metrics.value(.messages, "upstream", "expired") == nil)
  }

  @Test func theExpositionIsInPrometheusTextForm() {
    let metrics = Metrics()
    metrics.counter(.messages, "downstream", "stored").add(2)
    metrics.counter(.messages, "downstream", "delivered").add(5)
    metrics.gauge(.connections, "xmpp").set(-1)
    metrics.reading(.startTime) { 1_700_000_000.5 }
    #expect(
      String(decoding: metrics.exposition(), as: UTF8.self) == """
        # HELP weir_messages_total Messages that came to a state of their life.
        # TYPE weir_messages_total counter
        weir_messages_total{direction="downstream",state="delivered"} 5
        weir_messages_total{direction="downstream",state="stored"} 2
        # HELP weir_connections Open connections.
        # TYPE weir_connections gauge
        weir_connections{listener="xmpp"} -1
        # HELP weir_process_start_time_seconds Start of the process, in seconds since 1970-01-01 UTC.
        # TYPE weir_process_start_time_seconds gauge
        weir_process_start_time_seconds 1700000000.5

        """)
  }

  @Test func labelValuesAreEscaped() {
    let metrics = Metrics()
    metrics.counter(.nacks, "downstream", "a\"b\\c\nd").add()
    #expect(
      String(decoding: metrics.exposition(), as: UTF8.self)
        .contains("weir_nacks_total{direction=\"downstream\",code=\"a\\\"b\\\\c\\nd\"} 1\n"))
  }

  @Test func aHistogramShowsCumulativeBucketsSumAndCount() {
    let metrics = Metrics()
    let cells = [metrics.histogram(.storeCommitSeconds), metrics.histogram(.storeCommitSeconds)]
    cells[0].record(1_023)
    cells[0].record(1_024)
    cells[1].record(Duration.seconds(2))
    cells[1].record(Duration.seconds(1_000))
    let text = String(decoding: metrics.exposition(), as: UTF8.self)
    let lines = text.split(separator: "\n").map(String.init)
    #expect(lines.contains("weir_store_commit_seconds_bucket{le=\"1.023e-06\"} 1"))
    #expect(lines.contains("weir_store_commit_seconds_bucket{le=\"4.095e-06\"} 2"))
    #expect(lines.contains("weir_store_commit_seconds_bucket{le=\"4.294967295\"} 3"))
    #expect(lines.contains("weir_store_commit_seconds_bucket{le=\"+Inf\"} 4"))
    #expect(lines.contains("weir_store_commit_seconds_count 4"))
    #expect(lines.contains("weir_store_commit_seconds_sum 1002.000002047"))
    #expect(metrics.snapshot(.storeCommitSeconds)?.count == 4)
  }

  @Test func histogramsOfCountsAreShownAsTheyAre() {
    let metrics = Metrics()
    metrics.histogram(.storeBatchRows).record(3)
    let text = String(decoding: metrics.exposition(), as: UTF8.self)
    #expect(text.contains("weir_store_batch_rows_bucket{le=\"0\"} 0\n"))
    #expect(text.contains("weir_store_batch_rows_bucket{le=\"3\"} 1\n"))
  }

  @Test func namesAndLabelsKeepPrometheusRules() {
    var names: Set<String> = []
    for name in MetricName.allCases {
      #expect(names.insert(name.fullName).inserted)
      #expect(name.fullName.wholeMatch(of: /weir_[a-z0-9_]+/) != nil)
      #expect((name.kind == .counter) == name.fullName.hasSuffix("_total"), "\(name)")
      #expect(!name.help.isEmpty && name.help.hasSuffix("."))
      if name.unit == .nanoseconds { #expect(name.fullName.hasSuffix("_seconds")) }
      for label in name.labels { #expect(label.wholeMatch(of: /[a-z][a-z_]*/) != nil && label != "le") }
    }
  }
}
