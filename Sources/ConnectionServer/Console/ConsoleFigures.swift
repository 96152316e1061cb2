import JSONCore
import PushModel
import Seams
import Stores
import Telemetry

/// The numbers of one second, read from the metrics where they are.
///
/// Counters are told as they stand; quantiles are of what was recorded since the figures before.
struct ConsoleFigures: Sendable {
  private static let quantiles = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)]
  private static let timed: [(name: String, metric: MetricName)] = [
    ("accept_us", .acceptSeconds), ("delivery_us", .deliverySeconds), ("write_us", .storeCommitSeconds),
  ]

  private var earlier: [String: HistogramSnapshot] = [:]
  private var rows: [String: Int] = [:]
  private var turn = 0
  /// Rows are counted once in so many seconds: with a million of them it takes the reader a while.
  private static let countEvery = 5

  /// - Returns: The figures as a JSON object.
  mutating func next(_ context: ServerContext) async -> JSONValue {
    if turn % Self.countEvery == 0, let found = try? await context.store.counts() { rows = found }
    turn += 1
    let metrics = context.metrics
    func value(_ name: MetricName) -> JSONValue { Self.number(metrics.value(name)) }
    var members: [JSONValue.Member] = [
      .init("at", .number(context.time.wall.ms)), .init("draining", .bool(context.isDraining)),
      .init("started_at", .number(Int64(metrics.value(.startTime) ?? 0) * 1_000)),
      .init("loops", .number(context.shardCount)),
      .init("connections", Self.number(metrics.value(.connections, "xmpp"))),
      .init("app_servers", Self.number(metrics.value(.streams, "app_server"))),
      .init("devices", Self.number(metrics.value(.streams, "device"))),
      .init("resident_bytes", .number(ProcessFigures.residentBytes)),
      .init("receipts", value(.receipts)),
      .init("repeats", Self.number(metrics.value(.duplicates, "downstream"))),
      .init("writes_elided", value(.storeWritesElided)),
      .init("store_faults", Self.number(metrics.value(.storeFaults, "unavailable"))),
      .init("fanouts_begun", Self.number(metrics.value(.fanouts, "begun"))),
      .init("fanouts_done", Self.number(metrics.value(.fanouts, "done"))),
      .init("faults_armed", .number(context.faults.armed.count)),
    ]
    members.append(.init("downstream", Self.states(metrics, "downstream", MessageState.allCases)))
    members.append(
      .init("upstream", Self.states(metrics, "upstream", [.accepted, .delivered, .expired, .nacked])))
    let nacks = NackCode.allCases.compactMap { code -> JSONValue.Member? in
      let count = Int64(metrics.value(.nacks, "downstream", code.rawValue) ?? 0)
      return count > 0 ? .init(code.rawValue, .number(count)) : nil
    }
    members.append(.init("nacks", .object(nacks)))
    let queued = (0..<context.shardCount).reduce(0.0) {
      $0 + (metrics.value(.storeQueueDepth, String($1)) ?? 0)
    }
    members.append(.init("store_queue", Self.number(queued)))
    members.append(
      .init(
        "rows",
        .object(rows.sorted { $0.key < $1.key }.map { .init($0.key, .number($0.value)) })))
    for (name, metric) in Self.timed {
      let now = metrics.snapshot(metric) ?? HistogramSnapshot()
      let since = now.since(earlier[name])
      earlier[name] = now
      members.append(
        .init(
          name,
          .object(
            [.init("count", .number(Int64(clamping: since.count)))]
              + Self.quantiles.map { part in
                .init(part.0, since.quantile(part.1).map { .number(Int64(clamping: $0 / 1_000)) } ?? .null)
              })))
    }
    return .object(members)
  }

  private static func number(_ value: Double?) -> JSONValue {
    value.map { .number(Int64($0)) } ?? .null
  }

  private static func states(
    _ metrics: Metrics, _ direction: String, _ states: [MessageState]
  ) -> JSONValue {
    .object(
      states.map { .init($0.name, .number(Int64(metrics.value(.messages, direction, $0.name) ?? 0))) })
  }
}
