import Bytes
import Synchronization

/// All metrics of one server: cells are registered at start and held by those who count; ``exposition()`` reads
/// them.
///
/// Registering takes a lock and is not for the hot path. Registering the same name and labels again gives a new
/// cell of the same series.
package final class Metrics: Sendable {
  private enum Cell: Sendable {
    case counter(Counter)
    case gauge(Gauge)
    case histogram(Histogram)
    case reading(@Sendable () -> Double)
  }

  private struct SeriesKey: Hashable {
    var name: MetricName
    var labels: [String]
  }

  private let series = Mutex<[SeriesKey: [Cell]]>([:])

  package init() {}

  /// - Parameter labels: One value for each of ``MetricName/labels``, in that order.
  package func counter(_ name: MetricName, _ labels: String...) -> Counter {
    let cell = Counter()
    register(name, labels, .counter, .counter(cell))
    return cell
  }

  package func gauge(_ name: MetricName, _ labels: String...) -> Gauge {
    let cell = Gauge()
    register(name, labels, .gauge, .gauge(cell))
    return cell
  }

  package func histogram(_ name: MetricName, _ labels: String...) -> Histogram {
    let cell = Histogram()
    register(name, labels, .histogram, .histogram(cell))
    return cell
  }

  /// A histogram that someone else keeps.
  package func reading(_ name: MetricName, _ labels: String..., from cell: Histogram) {
    register(name, labels, .histogram, .histogram(cell))
  }

  /// A counter or gauge that someone else keeps; `read` is called at each exposition, on its thread, and must
  /// neither block nor call into these metrics.
  package func reading(_ name: MetricName, _ labels: String..., read: @escaping @Sendable () -> Double) {
    precondition(name.kind != .histogram, "a histogram is recorded, not read")
    register(name, labels, name.kind, .reading(read))
  }

  private func register(_ name: MetricName, _ labels: [String], _ kind: MetricName.Kind, _ cell: Cell) {
    precondition(name.kind == kind, "\(name) is not a \(kind)")
    precondition(name.labels.count == labels.count, "\(name) takes the labels \(name.labels)")
    series.withLock { $0[SeriesKey(name: name, labels: labels), default: []].append(cell) }
  }

  /// The sum of a counter's or gauge's cells; nil when no such series was registered.
  package func value(_ name: MetricName, _ labels: String...) -> Double? {
    let cells = series.withLock { $0[SeriesKey(name: name, labels: labels)] }
    return cells.map(Self.sum)
  }

  /// The merged cells of a histogram series; nil when no such series was registered.
  package func snapshot(_ name: MetricName, _ labels: String...) -> HistogramSnapshot? {
    let cells = series.withLock { $0[SeriesKey(name: name, labels: labels)] }
    return cells.map(Self.merge)
  }

  private static func sum(_ cells: [Cell]) -> Double {
    var integers: Int64 = 0
    var others = 0.0
    for cell in cells {
      switch cell {
      case .counter(let counter): integers &+= Int64(truncatingIfNeeded: counter.count)
      case .gauge(let gauge): integers &+= gauge.current
      case .reading(let read): others += read()
      case .histogram: break
      }
    }
    return Double(integers) + others
  }

  private static func merge(_ cells: [Cell]) -> HistogramSnapshot {
    var merged = HistogramSnapshot()
    for case .histogram(let histogram) in cells { merged.merge(histogram.snapshot()) }
    return merged
  }

  /// All series in Prometheus' text form, version 0.0.4, in the order of ``MetricName`` and then of the labels.
  ///
  /// - Source: https://prometheus.io/docs/instrumenting/exposition_formats/
  package func exposition() -> [UInt8] {
    let copy = series.withLock { $0 }
    var byName: [MetricName: [(labels: [String], cells: [Cell])]] = [:]
    for (key, cells) in copy { byName[key.name, default: []].append((key.labels, cells)) }
    var text = ExpositionWriter()
    for name in MetricName.allCases {
      guard let rows = byName[name] else { continue }
      text.header(name)
      for row in rows.sorted(by: { $0.labels.lexicographicallyPrecedes($1.labels) }) {
        switch name.kind {
        case .counter, .gauge:
          let sum = Self.sum(row.cells)
          text.sample(name, row.labels, name.unit == .nanoseconds ? sum / 1e9 : sum)
        case .histogram: text.histogram(name, row.labels, Self.merge(row.cells))
        }
      }
    }
    return text.finish()
  }

  /// The value of the `Content-Type` header that goes with ``exposition()``.
  package static let contentType = "text/plain; version=0.0.4; charset=utf-8"
}
