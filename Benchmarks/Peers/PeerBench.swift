import CLinux
import EventLoops
import Foundation
import Glibc
import LoadGenerator
import Synchronization
import Telemetry

/// Weir beside other servers: the same load on each, one after the other, and one table.
///
/// `peer-bench [--weir PATH] [--only NAME,NAME] [--seconds S] [--devices N] [--idle N] [--offline N] [--smoke]`
@main
struct PeerBench {
  private var weir = ".build/release/weir"
  private var kinds = PeerKind.allCases
  private var seconds = 10.0
  private var devices = 1_000
  private var senders = 10
  private var window = 100
  private var offline = 20_000

  static func main() async {
    shim_line_buffer_stdout()
    signal(SIGPIPE, SIG_IGN)
    var bench = PeerBench()
    var words = CommandLine.arguments.dropFirst()
    while let word = words.popFirst() {
      switch word {
      case "--weir": bench.weir = words.popFirst() ?? bench.weir
      case "--only":
        let names = (words.popFirst() ?? "").split(separator: ",").map(String.init)
        bench.kinds = names.compactMap { PeerKind(rawValue: $0) }
        guard !bench.kinds.isEmpty, bench.kinds.count == names.count else {
          print("peer-bench: --only takes \(PeerKind.allCases.map(\.rawValue).joined(separator: ", "))")
          exit(2)
        }
      case "--seconds": bench.seconds = words.popFirst().flatMap { Double($0) } ?? 10
      case "--devices": bench.devices = words.popFirst().flatMap { Int($0) } ?? 1_000
      case "--senders": bench.senders = words.popFirst().flatMap { Int($0) } ?? 10
      case "--window": bench.window = words.popFirst().flatMap { Int($0) } ?? 100
      case "--offline": bench.offline = words.popFirst().flatMap { Int($0) } ?? 20_000
      case "--smoke": (bench.seconds, bench.devices, bench.offline) = (1, 50, 1_000)
      default:
        print("peer-bench: unknown argument \(word)")
        exit(2)
      }
    }
    do { exit(try await bench.run() ? 0 : 1) } catch {
      print("peer-bench: \(error)")
      exit(1)
    }
  }

  private struct Row {
    var kind: PeerKind
    var perSecond = 0.0
    var cpu = 0.0
    var latency: [Double] = []
    var memoryKiB = 0.0
    var connects = 0.0
    var loginMs = 0.0
    var kept: (acked: Int, lost: Int, doubled: Int)?
    var failure: String?
  }

  /// - Returns: Whether Weir lost nothing and nothing failed.
  private func run() async throws -> Bool {
    _ = FileLimit.raise()
    let root = NSTemporaryDirectory() + "weir-peers-\(getpid())"
    try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: root) }
    try makeCertificates(root + "/certs")
    print(
      "\(senders) senders × window \(window) to \(devices) devices over TLS 1.3, about 600 bytes a message, generator beside the server"
    )
    var rows: [Row] = []
    for kind in kinds {
      var row = Row(kind: kind)
      do { try await measure(&row, root) } catch { row.failure = "\(error)" }
      if let failure = row.failure { print("\(kind.title): \(failure)") }
      rows.append(row)
      print("measured: \(Self.line(row))")
    }
    print("\n" + Self.table(rows))
    let ours = rows.first { $0.kind == .weir }
    return rows.allSatisfy { $0.failure == nil } && (ours?.kept?.lost ?? 0) == 0
  }

  private func makeCertificates(_ directory: String) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: weir)
    process.arguments = ["certs", "--out", directory]
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw PeerFault("weir certs failed") }
  }

  private func measure(_ row: inout Row, _ root: String) async throws {
    let server = try await PeerServer(
      row.kind, devices: devices, weir: weir, certificates: root + "/certs",
      in: root + "/" + row.kind.rawValue)
    defer { server.stop() }
    let load = try PeerLoad(try server.address(), devices: devices, make: server.make)
    defer { load.stop() }
    try await connections(&row, server, load)
    try await throughput(&row, server, load)
    if row.kind.stores { try await kill(&row, server, load) }
  }

  private func connections(_ row: inout Row, _ server: PeerServer, _ load: PeerLoad) async throws {
    let memory = server.process.residentKiB
    let (cpu, begin) = (server.process.cpuMicroseconds, ContinuousClock.now)
    try await load.connectDevices()
    let time = Self.seconds(since: begin)
    row.connects = Double(devices) / time
    row.loginMs = (server.process.cpuMicroseconds - cpu) / 1_000 / Double(devices)
    try await Task.sleep(for: .seconds(1))
    row.memoryKiB = (server.process.residentKiB - memory) / Double(devices)
  }

  private func throughput(_ row: inout Row, _ server: PeerServer, _ load: PeerLoad) async throws {
    try await load.connectSenders(senders)
    try await load.start(window: window)
    try await Task.sleep(for: .seconds(min(2, seconds)))
    try await load.resetLatency()
    func done() -> Int { min(load.acked.load(ordering: .relaxed), load.delivered.load(ordering: .relaxed)) }
    let (before, cpu, begin) = (done(), server.process.cpuMicroseconds, ContinuousClock.now)
    try await Task.sleep(for: .seconds(seconds))
    let count = Double(max(1, done() - before))
    row.perSecond = count / Self.seconds(since: begin)
    row.cpu = (server.process.cpuMicroseconds - cpu) / count
    let latency = try await load.loop.perform { load.latency.snapshot() }
    row.latency = [0.5, 0.99, 0.999].map { Double(latency.quantile($0) ?? 0) / 1e6 }
    try await load.stopSending()
    // Not every server delivers what it acked, even undisturbed.
    let deadline = ContinuousClock.now + .seconds(10)
    func missing() -> Int { load.acked.load(ordering: .relaxed) - load.delivered.load(ordering: .relaxed) }
    while missing() > 0, ContinuousClock.now < deadline { try await Task.sleep(for: .milliseconds(50)) }
    if missing() > 0 {
      print("\(row.kind.title): \(missing()) acked messages did not come to connected devices within 10 s")
    }
    try await load.closeSenders()
  }

  /// Sends to devices that are away, kills the server in the middle, starts it again and asks the devices.
  private func kill(_ row: inout Row, _ server: PeerServer, _ load: PeerLoad) async throws {
    try await load.closeDevices()
    let before = load.acked.load(ordering: .relaxed)
    try await load.connectSenders(senders)
    let half = offline / 2
    load.expectTrouble()
    try await load.start(window: window, total: offline, keepsMarks: true)
    try await load.wait(for: "messages to be stored") {
      load.acked.load(ordering: .relaxed) - before >= half
    }
    server.process.kill9()
    try await load.closeSenders()
    try await server.start()
    // What was lost with the process would come at once; what is kept comes at the server's pace.
    try await load.connectDevices()
    var (seen, quiet) = (-1, 0)
    var kept = try await load.verdict()
    while kept.lost > 0, quiet < 20 {
      try await Task.sleep(for: .milliseconds(500))
      let now = load.delivered.load(ordering: .relaxed)
      quiet = now == seen ? quiet + 1 : 0
      seen = now
      kept = try await load.verdict()
    }
    row.kept = kept
  }

  private static func seconds(since begin: ContinuousClock.Instant) -> Double {
    let passed = (ContinuousClock.now - begin).components
    return max(0.001, Double(passed.seconds) + Double(passed.attoseconds) / 1e18)
  }

  // MARK: Table

  private static let head = [
    "server", "acked and delivered/s", "CPU µs/message", "ack p50 ms", "p99 ms", "p99.9 ms",
    "KiB/idle device", "logins/s", "CPU ms/login", "stored, then kill -9: acked", "lost", "doubled",
  ]

  private static func cells(_ row: Row) -> [String] {
    func text(_ value: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", value) }
    let latency = row.latency.isEmpty ? ["–", "–", "–"] : row.latency.map { text($0, 2) }
    let kept = row.kept.map { ["\($0.acked)", "\($0.lost)", "\($0.doubled)"] } ?? ["–", "–", "–"]
    return [row.kind.title, text(row.perSecond, 0), text(row.cpu, 1)] + latency
      + [text(row.memoryKiB, 1), text(row.connects, 0), text(row.loginMs, 2)] + kept
  }

  private static func line(_ row: Row) -> String { cells(row).joined(separator: "  ") }

  /// In Markdown, to be read as it is and to be pasted.
  private static func table(_ rows: [Row]) -> String {
    let all = [head] + rows.map(cells)
    let widths = head.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
    func line(_ cells: [String]) -> String {
      "| "
        + zip(cells, widths).enumerated().map { index, cell in
          let space = String(repeating: " ", count: max(0, cell.1 - cell.0.count))
          return index == 0 ? cell.0 + space : space + cell.0
        }.joined(separator: " | ") + " |"
    }
    let rule =
      "|"
      + widths.enumerated().map { String(repeating: "-", count: $1 + 1) + ($0 == 0 ? "-" : ":") }
      .joined(separator: "|") + "|"
    return ([line(head), rule] + rows.map { line(cells($0)) }).joined(separator: "\n")
  }
}
