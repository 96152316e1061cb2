import PushModel
import Telemetry

/// One shard's cells of the server's metrics.
final class ShardCounters: Sendable {
  private let states: [Counter]
  private let upstreamStates: [MessageState: Counter]
  private let nacks: [NackCode: Counter]
  let repeats: Counter
  /// Upstream messages and receipts written again to a stream that had not acked them.
  let upstreamAgain: Counter
  let fanoutsBegun: Counter
  let fanoutsDone: Counter
  let receipts: Counter
  /// Records that an ack took out of their batch before it was handed over.
  let elided: Counter
  let storeFaults: Counter
  let unknownDeviceAcks: Counter
  let batchRows: Histogram
  let acceptNs: Histogram
  let deliveryNs: Histogram
  let writeNs: Histogram
  let connections: Gauge
  let senderStreams: Gauge
  let deviceStreams: Gauge
  let queued: Gauge

  init(_ metrics: Metrics, shard: Int) {
    states = MessageState.allCases.sorted { $0.rawValue < $1.rawValue }.map {
      metrics.counter(.messages, "downstream", $0.name)
    }
    upstreamStates = Dictionary(
      uniqueKeysWithValues: [.accepted, .delivered, .expired, .nacked].map {
        ($0, metrics.counter(.messages, "upstream", $0.name))
      })
    nacks = Dictionary(
      uniqueKeysWithValues: NackCode.allCases.map {
        ($0, metrics.counter(.nacks, "downstream", $0.rawValue))
      })
    repeats = metrics.counter(.duplicates, "downstream")
    upstreamAgain = metrics.counter(.upstreamRepeats)
    fanoutsBegun = metrics.counter(.fanouts, "begun")
    fanoutsDone = metrics.counter(.fanouts, "done")
    receipts = metrics.counter(.receipts)
    elided = metrics.counter(.storeWritesElided)
    storeFaults = metrics.counter(.storeFaults, "unavailable")
    unknownDeviceAcks = metrics.counter(.unknownDeviceAcks)
    batchRows = metrics.histogram(.storeBatchRows)
    acceptNs = metrics.histogram(.acceptSeconds)
    deliveryNs = metrics.histogram(.deliverySeconds)
    writeNs = metrics.histogram(.storeCommitSeconds)
    connections = metrics.gauge(.connections, "xmpp")
    senderStreams = metrics.gauge(.streams, "app_server")
    deviceStreams = metrics.gauge(.streams, "device")
    queued = metrics.gauge(.storeQueueDepth, String(shard))
  }

  func count(_ state: MessageState) { states[Int(state.rawValue)].add() }
  func count(_ state: MessageState, _ count: Int) {
    if count > 0 { states[Int(state.rawValue)].add(UInt64(count)) }
  }
  func countUpstream(_ state: MessageState) { upstreamStates[state]?.add() }
  func countNack(_ code: NackCode) {
    count(.nacked)
    nacks[code]?.add()
  }
}
