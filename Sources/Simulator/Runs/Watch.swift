import ConnectionServer
import PushModel
import Seams
import Stores

/// Looks twice a second whether the nodes forgot something that their store holds: nothing may lie there for long that no
/// node does anything about, although there is a stream that it could go to.
///
/// Other messages to the same device, and every gap, would heal it; so the end of a run alone says little.
final class Watch {
  private unowned let run: Simulation
  private let cluster: Cluster
  /// By what it is, and where.
  private var idleSince: [String: Int64] = [:]
  /// A node without a word, its lease, the look that follows and a second one are over by then.
  static let patience: Duration = .seconds(15)
  /// Where nothing but notices can be late.
  static let shortPatience: Duration = .seconds(2)
  private var patience: Duration { run.canary == .ownerReadBeforeCommit ? Self.shortPatience : Self.patience }

  init(_ run: Simulation, _ cluster: Cluster) {
    self.run = run
    self.cluster = cluster
  }

  func begin() { next() }

  private func next() {
    run.world.after(.milliseconds(500)) { [self] in
      look()
      next()
    }
  }

  /// Somebody has a reason to wait: the database is away or in trouble, a node hears nothing or stands still.
  private var isExcused: Bool {
    run.isStoreTroubled || run.servers.contains { $0.process?.bus?.isOutOfReach == true }
  }

  private func look() {
    guard !isExcused else {
      idleSince = [:]
      return
    }
    let view = cluster.store.view()
    let cores = run.servers.filter(\.isUp).compactMap(\.core)
    let now = cluster.clock.wall
    var idle: Set<String> = []
    for row in view.messages where row.expires > now {
      guard let device = run.devices.first(where: { view.devices[$0.deviceID] == row.device }),
        device.isConnected
      else { continue }
      let found = cores.map { $0.attention(to: row.number, of: row.device) }
      guard found.contains(where: { $0.streams > 0 }), !found.contains(where: \.isBusy) else { continue }
      idle.insert("a message for device \(device.number), row \(row.number.value)")
    }
    for row in view.upstream where row.expires > now {
      let found = cores.map { $0.attention(toUpstream: row.number, of: row.sender) }
      guard found.contains(where: { $0.streams > 0 }), !found.contains(where: \.isBusy) else { continue }
      idle.insert("an upstream message, \(row.messageID), row \(row.number.value)")
    }
    if !cores.isEmpty {
      for job in view.fanouts where !cores.contains(where: { $0.advances(job) }) {
        idle.insert("fan-out \(job.value)")
      }
    }
    judge(idle)
  }

  private func judge(_ idle: Set<String>) {
    for name in idleSince.keys where !idle.contains(name) { idleSince[name] = nil }
    for name in idle.sorted() {
      guard let since = idleSince[name] else {
        idleSince[name] = run.world.now
        continue
      }
      guard run.world.now - since > patience.ns else { continue }
      run.ledger.fail(
        "STRANDED: \(name) lies in the store for \(patience), and no node does anything about it")
      idleSince[name] = .max / 2
    }
  }
}
