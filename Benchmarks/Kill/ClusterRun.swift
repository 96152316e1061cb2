import DeviceRuntime
import Foundation
import Glibc
import Seams
import StreamClient
import TestKit

/// Kill runs over several nodes on one cluster of databases: a random node, the primary, or both go in the middle of a
/// load that crosses nodes.
final class ClusterRun: Sendable {
  enum Kind: String, CaseIterable {
    /// SIGKILL for a node; it is started again after a second.
    case node
    /// The primary's machine is gone; a standby takes over when its lease has run out.
    case primary
    /// The primary's PostgreSQL is gone; its Patroni starts it again.
    case crash
    case both
    /// A node and the primary's PostgreSQL.
    case nodeAndCrash = "node+crash"
    case standby
    case etcd
  }

  /// How long everybody was without service.
  struct Figures {
    var rate = 0
    /// Until every device that lost its stream had one again.
    var devicesBack: Duration?
    /// Until every device had been shown a message that was sent after the kill.
    var served: Duration?
  }

  let databases: DatabaseCluster
  let nodes: [ServerProcess]
  let credentials: [Device.Credentials]
  let rate: Int

  private init(
    _ databases: DatabaseCluster, _ nodes: [ServerProcess], _ credentials: [Device.Credentials], _ rate: Int
  ) {
    self.databases = databases
    self.nodes = nodes
    self.credentials = credentials
    self.rate = rate
  }

  static func start(devices: Int, rate: Int) async throws -> ClusterRun {
    let begin = ContinuousClock.now
    let databases = try await DatabaseCluster.start()
    print("three databases are ready after \((ContinuousClock.now - begin).tenths) s")
    var nodes: [ServerProcess] = []
    for _ in 0..<3 {
      nodes.append(
        try await ServerProcess.start(
          flags: ["--store", databases.url, "--loops", "1", "--limit", "stored-per-device=100000"],
          executable: KillRun.weir))
    }
    let address = nodes[0].address
    let registrar = try DeviceRegistrar(
      port: address.https, project: address.projectID, apiKey: try address.secret("api-key"),
      trust: .file(address.certificateAuthority))
    var credentials: [Device.Credentials] = []
    for _ in 0..<devices { credentials.append(try await registrar.register(app: "org.example.app")) }
    print("three nodes and \(devices) devices are ready after \((ContinuousClock.now - begin).tenths) s")
    return ClusterRun(databases, nodes, credentials, rate)
  }

  func stop() async throws {
    for node in nodes { _ = try await node.terminate() }
    try await databases.stop()
  }

  func perform(_ kind: Kind, run: Int, _ chance: inout SeededChance) async throws -> (Ledger, Figures) {
    try await databases.waitUntilWhole()
    let ledger = SharedLedger()
    let phones = try Phones(
      note: { number in ledger.withLock { $0.show(number) } },
      addresses: nodes.map(\.address))
    try await phones.connect(credentials)
    let clients = try nodes.map { try StreamClient(Self.configuration($0.address)) }
    for client in clients { try await client.connect() }

    let isStopped = Flag()
    let start = ContinuousClock.now
    var sending: [Task<Void, any Error>] = []
    for (index, client) in clients.enumerated() {
      var source = PacedMessages(
        tokens: credentials.map(\.token), rate: rate / clients.count, first: index, step: clients.count,
        isStopped: { isStopped.isSet },
        sent: { number in ledger.withLock { $0.send(number) } })
      source.prefix = "c\(run)-"
      source.catchesUp = false
      sending.append(Task { try await Run.pump(client, source, ledger) })
    }
    try await Task.sleep(for: .milliseconds(Int.random(in: 1_500...2_500, using: &chance)))
    var figures = Figures()
    figures.rate = Int(Double(ledger.withLock { $0.sent }) / (ContinuousClock.now - start).seconds)
    try await strike(kind, ledger, phones, &figures, &chance)
    try await Task.sleep(for: .seconds(1))
    isStopped.set()
    for task in sending { try await task.value }
    try await Run.settle(ledger)
    await tellOfLost(ledger.withLock { $0.lost }, run: run)
    for client in clients { await client.close() }
    let hidden = await phones.stop()
    var result = ledger.withLock { $0 }
    result.hidden = hidden
    return (result, figures)
  }

  /// What the nodes know of the first few messages that were acked and not shown.
  private func tellOfLost(_ numbers: [Int], run: Int) async {
    for number in numbers.prefix(3) {
      for node in nodes {
        let path = "/admin/v1/messages/\(node.address.senderID)/c\(run)-\(number)"
        let told = try? await node.address.administer("GET", path)
        print("  lost: message \(number), \(told.map { "\($0)" } ?? "a node that does not answer")")
      }
    }
  }

  private func strike(
    _ kind: Kind, _ ledger: SharedLedger, _ phones: Phones, _ figures: inout Figures,
    _ chance: inout SeededChance
  ) async throws {
    let leader = try await databases.leader() ?? 1
    let node = [.node, .both, .nodeAndCrash].contains(kind) ? nodes.randomElement(using: &chance) : nil
    let count = credentials.count
    ledger.withLock { $0.setMark(devices: count) }
    let begin = ContinuousClock.now
    switch kind {
    case .node: break
    case .primary, .both: try await databases.kill(leader)
    case .crash, .nodeAndCrash: try await databases.crash(leader)
    case .standby: try await databases.kill(leader % 3 + 1)
    case .etcd: try await databases.killEtcd(1)
    }
    try await node?.kill()
    if node != nil {
      // The devices notice a moment later.
      try await Task.sleep(for: .milliseconds(100))
      figures.devicesBack = try await phones.waitUntilConnected(within: .seconds(60)).map { $0 - begin }
      try await node?.restart()
    }
    while ContinuousClock.now < begin + .seconds(90) {
      if ledger.withLock({ $0.unserved.isEmpty }) {
        figures.served = ContinuousClock.now - begin
        break
      }
      try await Task.sleep(for: .milliseconds(20))
    }
    switch kind {
    case .primary, .both: try await databases.revive(leader)
    case .standby: try await databases.revive(leader % 3 + 1)
    case .etcd: try await databases.reviveEtcd(1)
    default: break
    }
  }

  private static func configuration(_ address: ServerAddress) throws -> StreamClient.Configuration {
    var configuration = StreamClient.Configuration(
      port: address.xmpp, senderID: address.senderID, serverKey: try address.secret("server-key"),
      trust: .file(address.certificateAuthority))
    configuration.retry.triesMax = 1_000
    configuration.retry.totalTimeout = .seconds(120)
    configuration.retry.waitMax = .seconds(2)
    configuration.reconnect.waitMax = .milliseconds(300)
    return configuration
  }
}

extension Duration {
  var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
  var tenths: String { String(format: "%.1f", seconds) }
}
