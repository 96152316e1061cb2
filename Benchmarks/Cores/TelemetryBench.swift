import Telemetry

let telemetryCases: [Bench.Case] = [
  Bench.Case(name: "histogram-record") { count in
    let histogram = Histogram()
    for index in 0..<count { histogram.record(UInt64(truncatingIfNeeded: index &* 977)) }
    return Int(truncatingIfNeeded: histogram.snapshot().count)
  },
  Bench.Case(name: "counter-add") { count in
    let counter = Counter()
    for _ in 0..<count { counter.add() }
    return Int(truncatingIfNeeded: counter.count)
  },
  Bench.Case(name: "log-off") { count in
    let log = Log.off
    for index in 0..<count { log.debug("nothing", ["index": .init(index)]) }
    return count
  },
  Bench.Case(name: "log-suppressed") { count in
    let log = Log(sink: LogSink(threshold: .info, output: { _ in true }))
    for index in 0..<count { log.info("flood", ["index": .init(index)]) }
    return count
  },
]
