import Bytes
import Connections
import EventLoops
import Seams
package import Telemetry

/// Latencies of a while, in milliseconds; nil when there was none.
package struct LoadLatency: Sendable, Equatable {
  package var p50: Double
  package var p90: Double
  package var p99: Double
  package var p999: Double
  package var max: Double

  package init?(_ snapshot: HistogramSnapshot) {
    func at(_ fraction: Double) -> Double? { snapshot.quantile(fraction).map { Double($0) / 1e6 } }
    guard let p50 = at(0.5), let p90 = at(0.9), let p99 = at(0.99), let p999 = at(0.999) else { return nil }
    self.p50 = p50
    self.p90 = p90
    self.p99 = p99
    self.p999 = p999
    max = Double(snapshot.largest) / 1e6
  }
}

/// One second of a load test.
package struct LoadSecond: Sendable, Equatable {
  /// From 1: the first second ends one second after the first connection was begun.
  package var number = 0
  package var phase = ""
  package var due = 0
  package var written = 0
  package var acked = 0
  package var nacked = 0
  /// Deliveries that devices showed; those to the subscribers of a topic count one by one.
  package var delivered = 0
  /// Deliveries that the devices hid, since they had shown them before.
  package var repeated = 0
  package var upstreamSent = 0
  package var upstreamReceived = 0
  package var connected = 0
  package var connects = 0
  /// Streams cut on purpose.
  package var cuts = 0
  /// Streams that ended otherwise, or could not be opened.
  package var losses = 0
  /// Written and not answered.
  package var pending = 0
  /// Due and not written.
  package var backlog = 0
  package var ack: LoadLatency?
  package var delivery: LoadLatency?
  /// What was done on purpose: waves, and kinds of faults that the server was asked for.
  package var events: [String] = []
  /// Longest time between two looks of the generator at its clock.
  package var lagMs = 0.0
  /// Share of one core that the generator used.
  package var processor = 0.0

  package init() {}
}

/// What became of all messages.
package struct LoadVerdict: Sendable, Equatable {
  /// False when the targets are somebody else's: then deliveries are not known.
  package var countsDeliveries = true
  package var written = 0
  package var acked = 0
  package var nacked = 0
  /// Written, and neither acked nor nacked when the wait was over.
  package var unanswered = 0
  /// Due, and not written before the load ended.
  package var unsent = 0
  /// Messages that all they were for have shown.
  package var delivered = 0
  /// Acked, not delivered, and told to the device as discarded.
  package var discarded = 0
  /// Acked, not delivered, and nobody was told.
  package var lost = 0
  /// Came again under an id that the device remembered; no user saw them twice.
  package var repeated = 0
  /// Shown twice.
  package var doubled = 0
  /// Shown by a device they were not for.
  package var strayed = 0
  /// Nacked and delivered all the same.
  package var contradicted = 0
  /// Nacked with a code that leaves open what became of the message, and delivered.
  package var deliveredUnsure = 0
  package var upstreamSent = 0
  package var upstreamAcked = 0
  package var upstreamNacked = 0
  package var upstreamUnanswered = 0
  package var upstreamLost = 0
  /// Came to an app server again, under the same id.
  package var upstreamRepeated = 0

  package init() {}

  /// One sentence for each way in which the promise was broken; empty when it was kept.
  package var faults: [String] {
    var found: [String] = []
    func add(_ count: Int, _ what: String) { if count > 0 { found.append("\(count) \(what)") } }
    add(unanswered, "written and neither acked nor nacked")
    add(lost, "acked and lost")
    add(doubled, "shown twice")
    add(strayed, "shown by another device than meant")
    add(contradicted, "nacked and delivered all the same")
    add(upstreamUnanswered, "sent upstream and neither acked nor nacked")
    add(upstreamLost, "acked upstream and lost")
    if written == 0 { found.append("no message was written") }
    return found
  }

  package var isClean: Bool { faults.isEmpty }
}

/// All of a load test.
package struct LoadResult: Sendable {
  package var runID: String
  package var scenario: LoadScenario
  package var seconds: [LoadSecond]
  package var verdict: LoadVerdict
  package var ack: HistogramSnapshot
  package var delivery: HistogramSnapshot
  package var connect: HistogramSnapshot
  package var nacks: [String: Int]
  package var losses: [String: Int]
  package var loadSeconds: Double
  /// While the load lasted.
  package var ackedPerSecond: Double
  package var deliveredPerSecond: Double
  /// Expectations of the scenario that were not met.
  package var missed: [String]

  package var isPassed: Bool { verdict.isClean && missed.isEmpty }
}

extension LoadRun {
  func endSecond(_ now: Moment) {
    second.number = seconds.count + 1
    second.phase = "\(phase)"
    second.connected = connected
    second.pending = senders.reduce(0) { $0 + $1.ledger.unanswered }
    second.backlog = phase == .loading ? senders.reduce(0) { $0 + $1.backlog } : 0
    let (ack, delivery) = (ackNow.snapshot(), deliveryNow.snapshot())
    second.ack = LoadLatency(ack)
    second.delivery = LoadLatency(delivery)
    ackAll.merge(ack)
    deliveryAll.merge(delivery)
    if ack.count > 0 { ackNow = Histogram() }
    if delivery.count > 0 { deliveryNow = Histogram() }
    let used = threadProcessorNs()
    second.processor = Double(used - processorNs) / 1e9
    processorNs = used
    seconds.append(second)
    each(second)
    second = LoadSecond()
  }

  func makeResult() -> LoadResult {
    let taken = max(0.001, Double(((loadEnd ?? clock) - loadStart).ns) / 1e9)
    let perSecond = (
      Double(atLoadEnd?.acked ?? 0) / taken, Double(atLoadEnd?.delivered ?? 0) / taken
    )
    return LoadResult(
      runID: runID, scenario: scenario, seconds: seconds, verdict: makeVerdict(), ack: ackAll,
      delivery: deliveryAll, connect: connectTimes.snapshot(), nacks: nacks, losses: losses,
      loadSeconds: taken, ackedPerSecond: perSecond.0, deliveredPerSecond: perSecond.1,
      missed: missed(perSecond.0))
  }

  private func makeVerdict() -> LoadVerdict {
    var verdict = LoadVerdict()
    verdict.countsDeliveries = hasDevices
    var missing = [Int](repeating: 0, count: devices.count)
    var missingOfTopics = 0
    for sender in senders {
      let ledger = sender.ledger
      verdict.written += ledger.written
      verdict.acked += ledger.acked
      verdict.nacked += ledger.nacked
      verdict.unanswered += ledger.unanswered
      verdict.unsent += ledger.due - ledger.written
      verdict.delivered += ledger.delivered
      verdict.contradicted += ledger.contradicted
      verdict.deliveredUnsure += ledger.deliveredUnsure
      guard hasDevices else { continue }
      for number in ledger.undeliveredNumbers() {
        switch plan.target(sender: sender.number, number: number) {
        case .device(let index): missing[index] += 1
        case .topic: missingOfTopics += ledger.awaitedDeliveries(number)
        }
      }
    }
    verdict.unsent += skipped
    var untold = 0
    for (device, missing) in zip(devices, missing) {
      verdict.lost += max(0, missing - device.discarded)
      verdict.discarded += min(missing, device.discarded)
      untold += max(0, device.discarded - missing)
    }
    // A device is told how many of its messages were discarded, not which: the rest may be those of topics.
    verdict.lost += max(0, missingOfTopics - untold)
    verdict.discarded += min(missingOfTopics, untold)
    verdict.repeated = repeated
    verdict.doubled = doubled
    verdict.strayed = strayed
    verdict.upstreamSent = upstream.written
    verdict.upstreamAcked = upstream.acked
    verdict.upstreamNacked = upstream.nacked
    verdict.upstreamUnanswered = upstream.unanswered
    verdict.upstreamLost = upstream.undeliveredNumbers().count
    verdict.upstreamRepeated = upstreamRepeated
    return verdict
  }

  private func missed(_ perSecond: Double) -> [String] {
    let expect = scenario.expect
    var missed: [String] = []
    func check(_ limit: Duration?, _ snapshot: HistogramSnapshot, _ what: String) {
      guard let limit, let p99 = snapshot.quantile(0.99), p99 > UInt64(max(0, limit.ns)) else { return }
      missed.append(
        "\(what) p99 is \(Double(p99 / 10_000) / 100) ms, expected at most \(Double(limit.ns) / 1e6) ms")
    }
    check(expect.ackP99, ackAll, "ack")
    check(expect.deliveryP99, deliveryAll, "delivery")
    let nacked = nacks.values.reduce(0, +)
    if let most = expect.nacksMax, nacked > most {
      missed.append("\(nacked) messages were nacked, expected at most \(most)")
    }
    if let least = expect.perSecondMin, perSecond < least {
      missed.append("\(Int(perSecond)) messages a second were acked, expected at least \(Int(least))")
    }
    return missed
  }
}
