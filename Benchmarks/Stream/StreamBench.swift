import CLinux
import DeviceRuntime
import EventLoops
import Foundation
import Glibc
import Synchronization
import Telemetry
import TestKit

/// Measures the running server over real TLS streams, generator on the same machine.
///
/// `stream-bench [--weir PATH] [--loops N] [--devices N] [--seconds S] [--only SHAPE|fanout|memory|devices] [--smoke] [--http]`
/// `stream-bench --storm N` has N devices on WebSockets come, go and come back, and gives a verdict
/// `stream-bench --flat [--stored N] [--only devices|stored|fill] [--keep DIR]` tells whether a message costs the same with
/// many devices and many stored messages
/// `stream-bench --logins N` has N devices log in, with full and with resumed handshakes
@main
struct StreamBench {
  var weir = ".build/release/weir"
  var loops = 1
  /// Connected devices, which the senders' messages go to in turn.
  var devices = 1_000
  var seconds = 5.0
  var isSmoke = false
  var only: String?
  /// The ways to send alone.
  var isHTTP = false
  var storm: Int?
  var logins: Int?
  var isFlat = false
  var stored: Int?
  var keep: String?

  static func main() async {
    shim_line_buffer_stdout()
    var bench = StreamBench()
    var words = CommandLine.arguments.dropFirst()
    while let word = words.popFirst() {
      switch word {
      case "--weir": bench.weir = words.popFirst() ?? bench.weir
      case "--loops": bench.loops = words.popFirst().flatMap { Int($0) } ?? 1
      case "--devices": bench.devices = words.popFirst().flatMap { Int($0) } ?? 1_000
      case "--seconds": bench.seconds = words.popFirst().flatMap { Double($0) } ?? 5
      case "--only": bench.only = words.popFirst()
      case "--http": bench.isHTTP = true
      case "--smoke": bench.isSmoke = true
      case "--storm": bench.storm = words.popFirst().flatMap { Int($0) } ?? 5_000
      case "--logins": bench.logins = words.popFirst().flatMap { Int($0) } ?? 2_000
      case "--flat": bench.isFlat = true
      case "--stored": bench.stored = words.popFirst().flatMap { Int($0) }
      case "--keep": bench.keep = words.popFirst()
      default:
        print("stream-bench: unknown argument \(word)")
        exit(2)
      }
    }
    do { try await bench.run() } catch {
      print("stream-bench: \(error)")
      exit(1)
    }
  }

  func run() async throws {
    if let storm {
      guard try await WebSocketStorm(loops: loops, weir: weir, devices: storm).run() else { exit(1) }
      return
    }
    if let logins {
      try await LoginBench(loops: loops, weir: weir, devices: logins, turns: isSmoke ? 1 : 3).run()
      return
    }
    if isFlat {
      guard try await flat.run() else { exit(1) }
      return
    }
    if isHTTP {
      try await HTTPCompared(weir: weir, loops: loops, seconds: isSmoke ? 0.2 : seconds).run()
      return
    }
    if isSmoke {
      try await throughput(devices: 20, shapes: [(2, 10)], seconds: 0.5)
      try await deviceMemory(devices: 20)
      try await FanoutBench(loops: loops, weir: weir, subscribers: 500, connected: 20, seconds: 0.3).run()
      try await LoginBench(loops: loops, weir: weir, devices: 20, turns: 1).run()
      // Too short for a verdict.
      _ = try await flat.run()
      return
    }
    print(
      "Weir over TLS 1.3 streams, about 600 bytes a message, durable acks; \(loops) loop(s), generator beside it."
    )
    if let cost = Calibration.loopbackMicroseconds() {
      print(
        "For scale: one write and read of 700 bytes over loopback TCP costs this machine",
        String(format: "%.1f µs of processor time.", cost))
    }
    print("senders × window   acked+delivered/s   server CPU µs/msg   ack p50 ms   p99 ms   p99.9 ms   nacks")
    let shapes = [(1, 1), (10, 1), (100, 1), (1, 100), (10, 100), (100, 100)].filter { shape in
      only == nil || only == "\(shape.0)x\(shape.1)"
    }
    try await throughput(devices: devices, shapes: shapes, seconds: seconds)
    if only == nil || only == "fanout" {
      try await FanoutBench(
        loops: loops, weir: weir, subscribers: 100_000, connected: 1_000, seconds: max(3, seconds)
      ).run()
    }
    if only == nil || only == "memory" { try await memory() }
    if only == nil || only == "devices" { try await deviceMemory(devices: 1_000) }
  }

  private var flat: FlatBench {
    var flat = FlatBench(loops: loops, weir: weir)
    flat.keep = keep
    flat.only = only.flatMap { FlatBench.Part(rawValue: $0) }
    if isSmoke { (flat.devicesMax, flat.storedMax, flat.seconds, flat.warmUp) = (60, 2_000, 0.3, 0.1) }
    if let stored { flat.storedMax = stored }
    return flat
  }

  private func throughput(devices count: Int, shapes: [(Int, Int)], seconds: Double) async throws {
    let server = try await ServerUnderTest(loops: loops, weir: weir)
    defer { server.stop() }
    let generator = try Generator(caFile: server.credentials + "/ca.pem")
    let devices = try await register(count, at: server)
    try await generator.connectDevices(devices, port: server.xmpp)
    for (senders, window) in shapes {
      try await generator.connectSenders(
        senders, identity: server.senderID, key: try server.key("server-key"), port: server.xmpp)
      try await generator.start(window: window)
      try await Task.sleep(for: .milliseconds(isSmoke ? 100 : 1_000))
      try await generator.resetLatency()
      let before = (
        generator.acked.load(ordering: .relaxed), generator.delivered.load(ordering: .relaxed),
        server.cpuMicroseconds, ContinuousClock.now, generator.nacked.load(ordering: .relaxed)
      )
      try await Task.sleep(for: .seconds(seconds))
      let acked = generator.acked.load(ordering: .relaxed) - before.0
      let delivered = generator.delivered.load(ordering: .relaxed) - before.1
      let cpu = server.cpuMicroseconds - before.2
      let time = ContinuousClock.now - before.3
      let nacked = generator.nacked.load(ordering: .relaxed) - before.4
      let latency = try await generator.loop.perform { generator.latency.snapshot() }
      try await generator.stopSending()
      try await generator.closeSenders()
      let taken = Double(time.components.seconds) + Double(time.components.attoseconds) / 1e18
      func ms(_ q: Double) -> String { String(format: "%.2f", Double(latency.quantile(q) ?? 0) / 1e6) }
      let done = Double(min(acked, delivered))
      print(
        pad("\(senders) × \(window)", 17), pad("\(Int(done / taken))", 19),
        pad(String(format: "%.1f", cpu / max(1, done)), 19), pad(ms(0.5), 12), pad(ms(0.99), 8),
        pad(ms(0.999), 10), pad("\(nacked)", 7))
    }
    await generator.stop()
  }

  private func memory() async throws {
    print("\nidle TLS devices   over        server memory KiB a device   to TCP")
    var overTCP: [Int: Double] = [:]
    for (count, isWebSocket) in [(1_000, false), (1_000, true), (10_000, false), (10_000, true)] {
      let server = try await ServerUnderTest(loops: loops, weir: weir)
      defer { server.stop() }
      let generator = try Generator(caFile: server.credentials + "/ca.pem")
      let devices = try await register(count, at: server)
      let before = server.residentKiB
      try await generator.connectDevices(
        devices, port: isWebSocket ? UInt16(clamping: server.https) : server.xmpp, isWebSocket: isWebSocket)
      try await Task.sleep(for: .seconds(1))
      let each = Double(server.residentKiB - before) / Double(count)
      if !isWebSocket { overTCP[count] = each }
      print(
        pad("\(count)", 16), isWebSocket ? "  WebSocket" : "  TCP      ",
        pad(String(format: "%.1f", each), 29),
        pad(String(format: "%.2f", each / (overTCP[count] ?? each)), 8))
      await generator.stop()
    }
  }

  /// Memory on the devices' side, each measured in a process of its own.
  private func deviceMemory(devices count: Int) async throws {
    let server = try await ServerUnderTest(loops: loops, weir: weir)
    defer { server.stop() }
    print("\ndevices                                     resident KiB   KiB a device")
    func measure(_ what: String, _ count: Int) async throws -> (before: Int, after: Int) {
      let folder = NSTemporaryDirectory() + "weir-device-memory-\(getpid())"
      defer { try? FileManager.default.removeItem(atPath: folder) }
      let (code, text) = try await ChildProcess.run(
        weir.replacingOccurrences(of: "/weir", with: "/device-memory"),
        [what, "\(count)", folder, "\(server.xmpp)", "\(server.https)", server.credentials],
        within: .seconds(300))
      let figures = text.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
      guard code == 0, figures.count == 2 else {
        throw DeviceMemoryFailure(description: "device-memory \(what) failed: \(text)")
      }
      return (figures[0], figures[1])
    }
    let app = try await measure("app", 1)
    print(pad("an app's process, idle", 40), pad("\(app.after)", 16))
    for (what, title, number) in [
      ("objects", "Device objects in one process", min(count, 100)),
      ("engines", "devices on one loop", count),
    ] {
      let figures = try await measure(what, number)
      let each = Double(figures.after - figures.before) / Double(number)
      print(
        pad("\(number) \(title)", 40), pad("\(figures.after)", 16), pad(String(format: "%.1f", each), 14))
    }
  }

  private func register(_ count: Int, at server: ServerUnderTest) async throws -> [Device.Credentials] {
    try await Self.register(count, at: server)
  }

  static func register(_ count: Int, at server: ServerUnderTest) async throws -> [Device.Credentials] {
    let registrar = try DeviceRegistrar(
      port: server.https, project: "demo", apiKey: try server.key("api-key"),
      trust: .file(server.credentials + "/ca.pem"), timeout: .seconds(60))
    return try await withThrowingTaskGroup(of: [Device.Credentials].self) { group in
      for part in 0..<8 {
        group.addTask {
          var made: [Device.Credentials] = []
          for index in 0..<count where index % 8 == part {
            _ = index
            made.append(try await registrar.register(app: "org.example.app"))
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

/// The program that measures devices did not do what it should.
struct DeviceMemoryFailure: Error, CustomStringConvertible {
  let description: String
}
