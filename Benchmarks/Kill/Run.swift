import Bytes
import Connections
import DeliveryCore
import DeviceRuntime
import EventLoops
import Foundation
import PushModel
import Seams
import StreamClient
import Synchronization
import TestKit

/// One run: load, kills, recovery, verdict.
struct Run {
  struct Figures {
    /// Messages a second while the server was up.
    var rate: Int
    var kills: Int
  }

  let devices: Int
  let rate: Int
  let kills: Int
  let seed: UInt64

  func perform() async throws -> (Ledger, Figures) {
    var chance = SeededChance(seed: seed)
    let server = try await ServerProcess.start(
      flags: ["--limit", "stored-per-device=100000"], executable: KillRun.weir)
    let address = server.address
    let registrar = try DeviceRegistrar(
      port: address.https, project: address.projectID, apiKey: try address.secret("api-key"),
      trust: .file(address.certificateAuthority))
    var credentials: [Device.Credentials] = []
    for _ in 0..<devices { credentials.append(try await registrar.register(app: "org.example.app")) }
    let ledger = SharedLedger()
    let phones = try Phones(
      note: { number in ledger.withLock { $0.show(number) } }, addresses: [address])
    try await phones.connect(credentials)

    var configuration = StreamClient.Configuration(
      port: address.xmpp, senderID: address.senderID, serverKey: try address.secret("server-key"),
      trust: .file(address.certificateAuthority))
    configuration.retry.triesMax = 1_000
    configuration.retry.totalTimeout = .seconds(60)
    configuration.reconnect.waitMax = .milliseconds(300)
    let clients = try [StreamClient(configuration), StreamClient(configuration)]
    for client in clients { try await client.connect() }

    let isStopped = Flag()
    let start = ContinuousClock.now
    let rate = rate / clients.count
    var sending: [Task<Void, any Error>] = []
    for (index, client) in clients.enumerated() {
      let source = PacedMessages(
        tokens: credentials.map(\.token), rate: rate, first: index, step: clients.count,
        isStopped: { isStopped.isSet }, sent: { number in ledger.withLock { $0.send(number) } })
      sending.append(Task { try await Self.pump(client, source, ledger) })
    }
    var down = Duration.zero
    for _ in 0..<kills {
      try await Task.sleep(for: .milliseconds(Int.random(in: 300...1_200, using: &chance)))
      let killed = ContinuousClock.now
      try await server.kill()
      try await server.restart()
      down += ContinuousClock.now - killed
    }
    try await Task.sleep(for: .milliseconds(500))
    isStopped.set()
    let took = ContinuousClock.now - start - down
    for task in sending { try await task.value }
    try await Self.settle(ledger)
    for client in clients { await client.close() }
    let hidden = await phones.stop()
    _ = try await server.terminate()
    var result = ledger.withLock { $0 }
    result.hidden = hidden
    let seconds = Double(took.components.seconds) + Double(took.components.attoseconds) / 1e18
    return (result, Figures(rate: Int(Double(result.sent) / seconds), kills: kills))
  }

  static func pump(
    _ client: StreamClient, _ source: PacedMessages, _ ledger: SharedLedger
  ) async throws {
    var outcomes = client.send(contentsOf: source).makeAsyncIterator()
    while let batch = try await outcomes.nextBatch() {
      ledger.withLock { ledger in
        for outcome in batch {
          guard let number = Int(outcome.messageID.drop { $0 != "-" }.dropFirst()) else { continue }
          switch outcome.result {
          case .success: ledger.acked.insert(number)
          case .failure(let error): ledger.failed[number] = "\(error)"
          }
        }
      }
    }
  }

  /// Waits until every acked message was shown, at most 30 seconds.
  static func settle(_ ledger: SharedLedger) async throws {
    let deadline = ContinuousClock.now + .seconds(30)
    while ContinuousClock.now < deadline {
      if ledger.withLock({ $0.lost.isEmpty }) { break }
      try await Task.sleep(for: .milliseconds(50))
    }
    // A double may still be on its way.
    try await Task.sleep(for: .milliseconds(500))
  }
}
