import CLinux
import DeviceRuntime
import Foundation
import Glibc
import LoadGenerator
import TLSCore
import Telemetry
import TestKit

/// Measures nodes on three databases beside a node on SQLite, all on this machine, in one run.
///
/// `cluster-bench [--weir PATH] [--seconds S] [--devices N] [--smoke] [--only WORDS] [--store URL]`: messages are accepted by
/// one node and delivered by another, at given rates; then as many as are taken with an ack that says they are durable.
/// With `--store` that PostgreSQL is used instead of a cluster made for the run; with `--only`, only the rows of the table
/// whose store or shape begins with one of the words, which commas separate: `--only durable`, `--only PostgreSQL`.
@main
struct ClusterBench {
  var weir = ".build/release/weir"
  var seconds = 8
  var devices = 1_000
  var isSmoke = false
  var store: String?
  var only: [String] = []

  static func main() async {
    shim_line_buffer_stdout()
    var bench = ClusterBench()
    var words = CommandLine.arguments.dropFirst()
    while let word = words.popFirst() {
      switch word {
      case "--weir": bench.weir = words.popFirst() ?? bench.weir
      case "--seconds": bench.seconds = words.popFirst().flatMap { Int($0) } ?? bench.seconds
      case "--devices": bench.devices = words.popFirst().flatMap { Int($0) } ?? bench.devices
      case "--store": bench.store = words.popFirst()
      case "--only": bench.only = words.popFirst()?.split(separator: ",").map(String.init) ?? []
      case "--smoke": (bench.isSmoke, bench.seconds, bench.devices) = (true, 2, 100)
      default:
        print("cluster-bench: unknown argument \(word)")
        exit(2)
      }
    }
    do {
      exit(try await bench.run() ? 0 : 1)
    } catch {
      print("cluster-bench: \(error)")
      exit(1)
    }
  }

  private func run() async throws -> Bool {
    print(
      "\(sysconf(Int32(_SC_NPROCESSORS_ONLN))) cores for everything: generator, nodes with one loop each, databases; 600 bytes a message"
    )
    print(
      "store                    shape                    acked/s  delivered/s   ack p50    p99 ms   delivery p50    p99 ms   Weir µs/msg   database µs/msg   generator"
    )
    let rates = isSmoke ? [200.0] : [1_000, 10_000]
    var isGood = true
    let alone = try await node([])
    isGood = try await measure("SQLite", alone, alone, rates, []) && isGood
    _ = try await alone.terminate()
    guard only.isEmpty || only.contains(where: { !$0.hasPrefix("SQLite") }) else { return isGood }

    let databases = store == nil ? try await DatabaseCluster.start() : nil
    let url = store ?? databases?.url ?? ""
    let (first, second) = (try await node(["--store", url]), try await node(["--store", url]))
    isGood = try await measure("PostgreSQL", first, second, rates, databases?.postmasters ?? []) && isGood
    _ = try await first.terminate()
    _ = try await second.terminate()
    try await databases?.stop()
    return isGood
  }

  private func node(_ flags: [String]) async throws -> ServerProcess {
    try await ServerProcess.start(
      flags: flags + ["--loops", "1", "--log-level", "error", "--limit", "stored-per-device=1000000"],
      executable: weir)
  }

  private func measure(
    _ name: String, _ near: ServerProcess, _ far: ServerProcess, _ rates: [Double], _ databases: [Int32]
  ) async throws -> Bool {
    let identities = try await register(at: near.address)
    let nodes = near === far ? [near] : [near, far]
    var isGood = true
    for rate in rates {
      var scenario = scenario(name)
      scenario.arrivals = .constant(rate)
      scenario.senders.count = 4
      let setup = LoadRun.Setup(
        server: try server(near.address), deviceServer: try server(far.address),
        senderID: near.address.senderID, serverKey: try near.address.secret("server-key"), devices: identities
      )
      let where_ = near === far ? "one node" : "A to B"
      isGood = try await run(scenario, setup, name, "\(where_), \(Int(rate))/s", nodes, databases) && isGood
    }
    // To devices that are away: every message is written before it is acked.
    var scenario = scenario(name)
    scenario.senders.count = 40
    let setup = LoadRun.Setup(
      server: try server(near.address), senderID: near.address.senderID,
      serverKey: try near.address.secret("server-key"), devices: [], tokens: identities.map(\.token))
    return try await run(scenario, setup, name, "durable, all it takes", nodes, databases) && isGood
  }

  private func scenario(_ name: String) -> LoadScenario {
    var scenario = LoadScenario()
    scenario.name = name
    scenario.duration = .seconds(seconds)
    scenario.devices.count = devices
    scenario.devices.connectRate = 2_000
    scenario.senders.window = 100
    return scenario
  }

  private func run(
    _ scenario: LoadScenario, _ setup: LoadRun.Setup, _ name: String, _ shape: String,
    _ nodes: [ServerProcess], _ databases: [Int32]
  ) async throws -> Bool {
    guard only.isEmpty || only.contains(where: { name.hasPrefix($0) || shape.hasPrefix($0) }) else {
      return true
    }
    let load = LoadRun(scenario, setup)
    func used() -> (weir: Double, databases: Double) {
      (
        nodes.reduce(0) { $0 + ProcessUse.microseconds(of: $1.processID) },
        databases.reduce(0) { $0 + ProcessUse.microsecondsWithChildren(of: $1) }
      )
    }
    let before = used()
    let result = try await load.run { _ in }
    let after = used()
    let count = Double(max(1, result.verdict.acked))
    func ms(_ snapshot: HistogramSnapshot, _ quantile: Double) -> String {
      snapshot.quantile(quantile).map { String(format: "%.1f", Double($0) / 1e6) } ?? "-"
    }
    let busy = result.seconds.filter { $0.acked > 0 }.map(\.processor)
    print(
      name.padding(toLength: 24, withPad: " ", startingAt: 0),
      shape.padding(toLength: 22, withPad: " ", startingAt: 0),
      pad("\(Int(result.ackedPerSecond))", 9), pad("\(Int(result.deliveredPerSecond))", 12),
      pad(ms(result.ack, 0.5), 9), pad(ms(result.ack, 0.99), 9), pad(ms(result.delivery, 0.5), 14),
      pad(ms(result.delivery, 0.99), 9), pad(String(format: "%.0f", (after.weir - before.weir) / count), 13),
      pad(
        databases.isEmpty ? "-" : String(format: "%.0f", (after.databases - before.databases) / count), 17),
      pad(String(format: "%.0f %%", 100 * busy.reduce(0, +) / Double(max(1, busy.count))), 11))
    for fault in result.verdict.faults { print("  FAULT: \(fault)") }
    if !result.nacks.isEmpty { print("  nacks: \(result.nacks)") }
    return result.verdict.isClean
  }

  private func server(_ address: ServerAddress) throws -> LeanServer {
    let context = try TLSContext(
      client: TLSClientOptions(trust: .files([address.certificateAuthority])))
    return LeanServer(host: "127.0.0.1", port: UInt16(address.xmpp), name: "localhost", context: context)
  }

  private func register(at address: ServerAddress) async throws -> [LoadIdentity] {
    let registrar = try DeviceRegistrar(
      port: address.https, project: address.projectID, apiKey: try address.secret("api-key"),
      trust: .file(address.certificateAuthority), timeout: .seconds(60))
    let count = devices
    return try await withThrowingTaskGroup(of: [LoadIdentity].self) { group in
      for part in 0..<8 {
        group.addTask {
          var made: [LoadIdentity] = []
          for index in part..<count where index % 8 == part {
            let device = try await registrar.register(app: "org.example.app")
            made.append(
              LoadIdentity(token: device.token, id: device.deviceID, secret: device.deviceSecret))
          }
          return made
        }
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
  }

  private func pad(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
  }
}
