import Connections
import DeviceRuntime
import EventLoops
import Foundation
import HTTPCore
import JSONCore
import PushModel
import Seams
import StoreSQLite
import Stores
import TLSCore
import Telemetry

/// One message to a topic with many subscribers, while other senders go on.
///
/// Shows how soon the topic's sender is acked, what the messages that wait take in the store, and how much longer a
/// message for a single device takes meanwhile.
struct FanoutBench {
  let loops: Int
  let weir: String
  let subscribers: Int
  let connected: Int
  let seconds: Double
  private let topic = "news"
  private let payloadBytes = 2_000

  init(loops: Int, weir: String, subscribers: Int, connected: Int, seconds: Double) {
    self.loops = loops
    self.weir = weir
    self.subscribers = subscribers
    self.connected = connected
    self.seconds = seconds
  }

  func run() async throws {
    let server = try await ServerUnderTest(loops: loops, weir: weir)
    defer { server.stop() }
    server.end()
    let devices = try await crowd(server)
    let before = try await storedBytes(server)
    try await server.start()
    let generator = try Generator(caFile: server.credentials + "/ca.pem")
    let key = try server.key("server-key")
    try await generator.connectDevices(devices, port: server.xmpp)
    try await generator.connectSenders(1, identity: server.senderID, key: key, port: server.xmpp)
    try await generator.start(window: 1)
    try await pause(0.5)
    try await generator.resetLatency()
    try await pause(seconds)
    let quiet = try await generator.loop.perform { generator.latency.snapshot() }
    try await generator.resetLatency()

    let begun = ContinuousClock.now
    let ack = try await generator.sendToTopic(
      topic, id: "fan-out", payloadBytes: payloadBytes, identity: server.senderID, key: key, port: server.xmpp
    )
    var isOver = false
    while !isOver {
      guard ContinuousClock.now - begun < .seconds(300) else {
        throw BenchFault("the message to the topic is not handed out after 300 s")
      }
      try await pause(0.02)
      isOver = try await isFannedOut(server, generator)
    }
    let taken = ContinuousClock.now - begun
    let busy = try await generator.loop.perform { generator.latency.snapshot() }
    try await generator.stopSending()
    await generator.stop()
    server.end()
    let grown = try await storedBytes(server) - before

    func ms(_ duration: Duration) -> String { String(format: "%.1f", duration / .milliseconds(1)) }
    func ms(_ histogram: HistogramSnapshot, _ quantile: Double) -> String {
      String(format: "%.2f", Double(histogram.quantile(quantile) ?? 0) / 1e6)
    }
    print(
      """

      one message of \(payloadBytes) bytes to a topic of \(subscribers), \(connected) of them connected:
        acked after \(ms(ack)) ms; all handed out or stored after \(ms(taken)) ms
        stored: \(grown) bytes, \(grown / max(1, subscribers - connected)) for each that is away
        a message to a single device meanwhile: p50 \(ms(busy, 0.5)) ms, p99 \(ms(busy, 0.99)) ms \
      (quiet: p50 \(ms(quiet, 0.5)) ms, p99 \(ms(quiet, 0.99)) ms)
      """)
  }

  /// Writes the devices and their subscriptions, before the server has the data.
  ///
  /// - Returns: Those that connect.
  private func crowd(_ server: ServerUnderTest) async throws -> [Device.Credentials] {
    let store = try SQLiteStore(directory: server.directory)
    let now = SystemTime().wall
    guard let number = Int64(server.senderID), let name = TopicName(topic) else {
      throw BenchFault("no sender or topic")
    }
    let sender = SenderID(number)
    let secret = "secret"
    let hash = try Secrets.sha256(Array(secret.utf8))
    var chance = SeededChance(seed: 1)
    let tokens = (0..<subscribers).map { _ in
      RegistrationToken(random: (0..<48).map { _ in UInt8.random(in: 0...255, using: &chance) }).text
    }
    func deviceID(_ index: Int) -> String {
      let digits = String(index)
      return String(repeating: "d", count: 22 - digits.count) + digits
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (index, token) in tokens.enumerated() {
        group.addTask {
          _ = try await store.register(
            RegistrationRequest(
              token: token, deviceID: deviceID(index), secretHash: hash, sender: sender,
              app: "org.example.app",
              platform: .linux, user: nil, previousToken: nil), now: now)
        }
        if index >= 1_000 { try await group.next() }
      }
      try await group.waitForAll()
    }
    for start in stride(from: 0, to: tokens.count, by: 1_000) {
      _ = try await store.change(
        tokens[start..<min(start + 1_000, tokens.count)].map {
          SubscriptionChange(token: $0, sender: sender, topic: name, isSubscribed: true)
        }, now: now)
    }
    await store.close()
    // Spread over the order in which a fan-out visits them.
    return (0..<connected).map { $0 * (subscribers / connected) }.map { index in
      Device.Credentials(token: tokens[index], deviceID: deviceID(index), deviceSecret: secret)
    }
  }

  private func storedBytes(_ server: ServerUnderTest) async throws -> Int {
    let store = try SQLiteStore(directory: server.directory)
    let pages = try await store.pagesUsed()
    await store.close()
    return pages * 4_096
  }

  private func isFannedOut(_ server: ServerUnderTest, _ generator: Generator) async throws -> Bool {
    var fields = HTTPFields()
    fields.append("Authorization", "Bearer \(try server.key("admin-key"))")
    let request = HTTPRequest(
      method: "GET", target: "/admin/v1/messages/\(server.senderID)/fan-out", fields: fields, body: [])
    let port = server.admin
    let response = try await withCheckedThrowingContinuation { continuation in
      generator.loop.submit {
        HTTPExchange.send(
          request, host: "127.0.0.1", port: port, context: nil, timeout: .seconds(20), on: generator.loop
        ) { continuation.resume(with: $0) }
      }
    }
    let state = try? JSONValue(parsing: response.body)["state"]?.string
    guard response.status == 200, let state else {
      throw BenchFault("the fan-out cannot be inspected: \(String(decoding: response.body, as: UTF8.self))")
    }
    return state == "fanned_out"
  }

  private func pause(_ seconds: Double) async throws { try await Task.sleep(for: .seconds(seconds)) }
}
