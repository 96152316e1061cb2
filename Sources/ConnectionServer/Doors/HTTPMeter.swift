import PushHTTP
import Seams
import Telemetry

/// Counts one loop's answers over HTTP by route and status, and how long they took.
final class HTTPMeter {
  private struct Kind: Hashable {
    var route: HTTPRoute
    var status: Int
  }
  private let metrics: Metrics
  private var counters: [Kind: Counter] = [:]
  private var times: [HTTPRoute: Histogram] = [:]

  init(_ metrics: Metrics) { self.metrics = metrics }

  func answered(_ route: HTTPRoute, status: Int, after time: Duration) {
    let kind = Kind(route: route, status: status)
    if let counter = counters[kind] {
      counter.add()
    } else {
      let counter = metrics.counter(.httpRequests, route.rawValue, String(status))
      counters[kind] = counter
      counter.add()
    }
    if let histogram = times[route] {
      histogram.record(time)
    } else {
      let histogram = metrics.histogram(.httpSeconds, route.rawValue)
      times[route] = histogram
      histogram.record(time)
    }
  }
}
