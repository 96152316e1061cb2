import Connections
import DeviceRuntime
import EventLoops
import Foundation
import HTTPCore
import LoadGenerator
import TLSCore
import Telemetry

/// Devices on secure WebSockets that come, go and come back all at once, some of them slow readers, under messages.
///
/// Passes when every message had its answer and was delivered once, and no loop of the server stood still for over
/// 100 ms.
struct WebSocketStorm {
  let loops: Int
  let weir: String
  let devices: Int

  /// - Returns: Whether it passed; says why not.
  func run() async throws -> Bool {
    let server = try await ServerUnderTest(loops: loops, weir: weir)
    defer { server.stop() }
    _ = FileLimit.raise()
    let identities = try await StreamBench.register(devices, at: server).map {
      LoadIdentity(token: $0.token, id: $0.deviceID, secret: $0.deviceSecret)
    }
    let atRest = try await roundsOf(server)
    let context = try TLSContext(client: TLSClientOptions(trust: .files([server.credentials + "/ca.pem"])))
    let run = LoadRun(
      scenario,
      LoadRun.Setup(
        server: LeanServer(
          host: "127.0.0.1", port: UInt16(clamping: server.https), name: "localhost", context: context,
          webSocketPath: "/xmpp"),
        senderID: server.senderID, serverKey: try server.key("server-key"), devices: identities))
    let result = try await run.run { second in
      print(
        "  second \(second.number), \(second.phase): \(second.connected) connected, \(second.cuts) cut,",
        "\(second.acked) acked, \(second.delivered) delivered")
    }
    let rounds = try await roundsOf(server)
    let longest = String(format: "%.1f", rounds.longest * 1_000)
    let stalls = rounds.stalls - atRest.stalls
    let verdict = result.verdict
    let connected = LoadLatency(result.connect)
    let cuts = result.seconds.reduce(0) { $0 + $1.cuts }
    print(
      """
      \(devices) devices on WebSockets, \(scenario.devices.slowReaders) of them slow readers; cut in two waves, \(cuts) times
        connections made: \(result.connect.count), p50 \(Int(connected?.p50 ?? 0)) ms, p99 \(Int(connected?.p99 ?? 0)) ms
        messages: \(verdict.written) written, \(verdict.acked) acked, \(verdict.delivered) delivered, \
      \(verdict.discarded) discarded and told, \(verdict.lost) lost, \(verdict.doubled) doubled
        loops of the server: longest round \(longest) ms, \(stalls) over 100 ms
      """)
    for (why, count) in result.losses { print("  \(count) streams lost: \(why)") }
    for fault in verdict.faults { print("  fault: \(fault)") }
    let isPassed = result.isPassed && stalls == 0 && cuts >= devices
    print(isPassed ? "passed" : "FAILED")
    return isPassed
  }

  private var scenario: LoadScenario {
    var scenario = LoadScenario()
    scenario.name = "WebSocket storm"
    scenario.duration = devices > 1_000 ? .seconds(30) : .seconds(8)
    scenario.settle = .seconds(60)
    scenario.devices.count = devices
    // Handshakes of TLS fill a core at about this rate; more at once would only wait, and some past their deadline.
    scenario.devices.connectRate = Double(min(1_000, max(100, devices / 3)))
    scenario.devices.away = .milliseconds(100)
    scenario.devices.slowReaders = devices / 50
    scenario.devices.waves =
      devices > 1_000
      ? [.init(at: 5, share: 1), .init(at: 17, share: 1)] : [.init(at: 1, share: 1), .init(at: 5, share: 1)]
    scenario.senders.count = 2
    scenario.arrivals = .constant(500)
    return scenario
  }

  /// What the metrics say of the loops: seconds of the longest round, and rounds over 100 ms.
  private func roundsOf(_ server: ServerUnderTest) async throws -> (longest: Double, stalls: Int) {
    let loop = EventLoop(name: "metrics")
    try loop.start()
    defer { loop.stop() }
    let port = server.admin
    let response = try await withCheckedThrowingContinuation { continuation in
      loop.submit {
        HTTPExchange.send(
          HTTPRequest(method: "GET", target: "/metrics"), host: "127.0.0.1", port: port, context: nil,
          timeout: .seconds(20), on: loop
        ) { continuation.resume(with: $0) }
      }
    }
    guard response.status == 200 else { throw BenchFault("the metrics cannot be read: \(response.status)") }
    let text = String(decoding: response.body, as: UTF8.self)
    func values(_ name: String) -> [Double] {
      text.split(separator: "\n").filter { $0.hasPrefix(name + "{") }
        .compactMap { $0.split(separator: " ").last.flatMap { Double($0) } }
    }
    let stalls = values("weir_loop_stalls_total")
    guard stalls.count == loops else { throw BenchFault("the metrics tell of \(stalls.count) loops") }
    return (values("weir_loop_longest_round_seconds").max() ?? 0, Int(stalls.reduce(0, +)))
  }
}
