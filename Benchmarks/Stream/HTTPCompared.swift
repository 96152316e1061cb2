import DeviceRuntime
import EventLoops
import Foundation
import Glibc
import Synchronization
import Telemetry
import TestKit

/// The ways to send, side by side in one run: HTTP one at a time, HTTP/1.1 on 100 connections, HTTP/2 with 100
/// streams, and one stream with windows of 1, 100 and 1,000; nginx with a fixed answer to the same POST stands beside
/// them for scale.
///
/// All messages go to one connected device that acks; those of the window of 1,000 go to ``deviceCount``, since they
/// come faster than one device here can read them. h2load makes the requests; it must be installed, and nginx for its
/// rows.
struct HTTPCompared {
  let weir: String
  let loops: Int
  let seconds: Double
  private let deviceCount = 10

  init(weir: String, loops: Int, seconds: Double) {
    self.weir = weir
    self.loops = loops
    self.seconds = seconds
  }

  private struct Way {
    var name: String
    var options: [String]
    var requests: Int
  }

  private struct Row {
    var rate: Double
    var cpu: Double
    var p50: Double
    var p99: Double
    var failed: Int
  }

  private var ways: [Way] {
    let scale = seconds / 5
    func count(_ requests: Int) -> Int { max(200, Int(Double(requests) * scale)) }
    return [
      Way(name: "HTTP/1.1, one at a time", options: ["--h1", "-c", "1", "-m", "1"], requests: count(10_000)),
      Way(
        name: "HTTP/1.1 × 100 connections", options: ["--h1", "-c", "100", "-m", "1"], requests: count(60_000)
      ),
      Way(name: "HTTP/2 × 100 streams", options: ["-c", "1", "-m", "100"], requests: count(60_000)),
    ]
  }

  func run() async throws {
    guard Self.find("h2load") != nil else {
      print("h2load is not here (package nghttp2-client): the ways to send are not compared.")
      return
    }
    let server = try await ServerUnderTest(
      loops: loops, weir: weir, more: ["--test-mode", "--limit", "pending-per-stream=1000"])
    defer { server.stop() }
    let generator = try Generator(caFile: server.credentials + "/ca.pem")
    let registrar = try DeviceRegistrar(
      port: server.https, project: "demo", apiKey: try server.key("api-key"),
      trust: .file(server.credentials + "/ca.pem"), timeout: .seconds(60))
    var devices: [Device.Credentials] = []
    for _ in 0..<deviceCount { devices.append(try await registrar.register(app: "org.example.app")) }
    try await generator.connectDevices(devices, port: server.xmpp)
    let body = server.directory + "/message.json"
    let text = String(repeating: "x", count: 400)
    try Data("{\"message\":{\"token\":\"\(devices[0].token)\",\"data\":{\"text\":\"\(text)\"}}}".utf8)
      .write(to: URL(fileURLWithPath: body))

    print(
      "\nWays to send, one run; \(loops) loop(s), one device that acks (ten for a window of 1,000), generator beside it."
    )
    print("way                                messages/s   server CPU µs/msg   p50 ms    p99 ms   failed")
    let path = "/v1/projects/demo/messages:send?prettyPrint=false"
    for way in ways {
      let row = try load(way, port: server.https, path, body, in: server.directory) { server.cpuMicroseconds }
      show(way.name, row)
    }
    for window in [1, 100, 1_000] {
      show("XMPP stream, window \(window)", try await stream(generator, server, window))
    }
    await generator.stop()
    try nginx(path, body, server)
  }

  private func stream(
    _ generator: Generator, _ server: ServerUnderTest, _ window: Int
  ) async throws -> Row {
    try await generator.connectSenders(
      1, identity: server.senderID, key: try server.key("server-key"), port: server.xmpp)
    try await generator.start(window: window, targets: window > 100 ? deviceCount : 1)
    try await Task.sleep(for: .milliseconds(300))
    try await generator.resetLatency()
    let acked = generator.acked.load(ordering: .relaxed)
    let delivered = generator.delivered.load(ordering: .relaxed)
    let nacked = generator.nacked.load(ordering: .relaxed)
    let (cpu, begin) = (server.cpuMicroseconds, ContinuousClock.now)
    try await Task.sleep(for: .seconds(seconds))
    // A backlog that only grows would be no throughput.
    let done = Double(
      min(
        generator.acked.load(ordering: .relaxed) - acked,
        generator.delivered.load(ordering: .relaxed) - delivered))
    let used = server.cpuMicroseconds - cpu
    let time = ContinuousClock.now - begin
    let failed = generator.nacked.load(ordering: .relaxed) - nacked
    let latency = try await generator.loop.perform { generator.latency.snapshot() }
    try await generator.stopSending()
    try await generator.closeSenders()
    return Row(
      rate: done / (time / .seconds(1)), cpu: used / max(1, done),
      p50: Double(latency.quantile(0.5) ?? 0) / 1e6,
      p99: Double(latency.quantile(0.99) ?? 0) / 1e6, failed: failed)
  }

  // MARK: h2load

  private func load(
    _ way: Way, port: Int, _ path: String, _ body: String, in directory: String, cpu: () -> Double
  ) throws -> Row {
    let log = directory + "/h2load.log"
    try? FileManager.default.removeItem(atPath: log)
    let before = cpu()
    _ = try Self.run(
      "h2load",
      ["-n", String(way.requests), "-t", "1", "-d", body, "--log-file", log]
        + ["-H", "Authorization: Bearer any", "-H", "Content-Type: application/json"] + way.options
        + ["https://localhost:\(port)\(path)"])
    let used = cpu() - before
    // Start in microseconds, status, duration in microseconds.
    let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").map { line in
      line.split(separator: "\t").compactMap { Int64($0) }
    }.filter { $0.count == 3 }
    let good = lines.filter { $0[1] == 200 }
    guard let first = lines.map({ $0[0] }).min(), let last = lines.map({ $0[0] + $0[2] }).max(), last > first
    else { throw BenchFault("h2load measured nothing") }
    let times = good.map { Double($0[2]) / 1_000 }.sorted()
    func quantile(_ share: Double) -> Double {
      times.isEmpty ? 0 : times[min(times.count - 1, Int(share * Double(times.count)))]
    }
    return Row(
      rate: Double(good.count) / (Double(last - first) / 1e6), cpu: used / Double(max(1, good.count)),
      p50: quantile(0.5), p99: quantile(0.99), failed: way.requests - good.count)
  }

  private func nginx(_ path: String, _ body: String, _ server: ServerUnderTest) throws {
    guard let program = Self.find("nginx") else {
      print("nginx is not here: no rows for scale.")
      return
    }
    let directory = server.directory + "/nginx"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    let port = Int.random(in: 20_000...29_000)
    let configuration = """
      daemon off; master_process off; pid \(directory)/pid; error_log \(directory)/error.log;
      events { worker_connections 1024; }
      http {
        access_log off; keepalive_requests 100000000; default_type application/json;
        client_body_temp_path \(directory)/b; proxy_temp_path \(directory)/p; fastcgi_temp_path \(directory)/f;
        uwsgi_temp_path \(directory)/u; scgi_temp_path \(directory)/s;
        server {
          listen 127.0.0.1:\(port) ssl http2; http2_max_concurrent_streams 256;
          ssl_certificate \(server.credentials)/server.pem; ssl_certificate_key \(server.credentials)/server.key;
          location / { return 200 '{"name":"projects/demo/messages/0:1700000000000001%7b0e42f9f9fd7ecd"}'; }
        }
      }
      """
    try Data(configuration.utf8).write(to: URL(fileURLWithPath: directory + "/nginx.conf"))
    let nginx = try ChildProcess(
      program, ["-c", directory + "/nginx.conf", "-p", directory], errors: "/dev/null")
    defer {
      // It has nothing to lose, and in this mode it does not always heed a milder signal.
      nginx.signal(SIGKILL)
      _ = nginx.blockUntilEnd(within: .seconds(15))
    }
    for _ in 0..<100 where !FileManager.default.fileExists(atPath: directory + "/pid") { usleep(20_000) }
    for way in ways {
      let row = try load(way, port: port, path, body, in: server.directory) {
        ProcessUse.microseconds(of: nginx.processID)
      }
      show("nginx, fixed answer: " + way.name.replacingOccurrences(of: ", one at a time", with: " × 1"), row)
    }
  }

  // MARK: Helpers

  private func show(_ name: String, _ row: Row) {
    func number(_ value: Double, _ width: Int) -> String {
      let text = String(format: "%.2f", value)
      return String(repeating: " ", count: max(0, width - text.count)) + text
    }
    let label = name.padding(toLength: max(36, name.count), withPad: " ", startingAt: 0)
    print(
      label + number(row.rate, 10), number(row.cpu, 17), number(row.p50, 12), number(row.p99, 9),
      "   \(row.failed)")
  }

  private static func find(_ tool: String) -> String? {
    ["/usr/bin/", "/usr/sbin/", "/usr/local/bin/"].map { $0 + tool }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  @discardableResult
  private static func run(_ tool: String, _ arguments: [String]) throws -> String {
    guard let path = find(tool) else { throw BenchFault("\(tool) is not installed") }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    let text = String(decoding: data, as: UTF8.self)
    guard process.terminationStatus == 0 else { throw BenchFault("\(tool) failed: \(text)") }
    return text
  }
}
