import DeviceRuntime
import Foundation
import StreamClient
import TestKit

/// Messages that an embedded store holds for devices which are away are moved to PostgreSQL by `weir migrate`, and shown
/// to the devices from there: each once.
struct MigrationRun {
  /// How many are stored and moved.
  let messages: Int
  let devices: Int

  /// - Returns: Whether all arrived, once each.
  func perform() async throws -> Bool {
    let cap = ["--limit", "stored-per-device=\(messages)", "--log-level", "error"]
    let server = try await ServerProcess.start(flags: cap, executable: KillRun.weir)
    let credentials = try await register(at: server.address)
    let ledger = SharedLedger()
    var begin = ContinuousClock.now
    func lap(_ what: String) {
      print("\(what) after \((ContinuousClock.now - begin).tenths) s")
      begin = .now
    }
    try await store(credentials, at: server.address, ledger)
    guard try await server.terminate() == 0 else {
      throw MigrationFailure(description: "the server did not end well")
    }
    let acked = ledger.withLock { $0.acked.count }
    lap("\(acked) of \(messages) messages are acked and stored")

    let database = try await PostgresServer.start(settings: ["shared_buffers = 512MB", "max_wal_size = 2GB"])
    let (code, text) = try await ChildProcess.run(
      KillRun.weir,
      ["migrate", "--from", server.directory.path + "/data/weir.sqlite", "--to", database.url(), "--json"],
      errors: server.directory.path + "/errors", within: .seconds(600))
    let errors = (try? String(contentsOfFile: server.directory.path + "/errors", encoding: .utf8)) ?? ""
    guard code == 0 else { throw MigrationFailure(description: "weir migrate ended with \(code): \(errors)") }
    lap("weir migrate: \(text.trimmingCharacters(in: .whitespacesAndNewlines))")

    let moved = try await ServerProcess.start(
      flags: cap + ["--store", database.url()], in: server.directory, executable: KillRun.weir)
    let phones = try Phones(
      note: { number in ledger.withLock { $0.show(number) } }, addresses: [moved.address])
    try await phones.connect(credentials)
    let deadline = ContinuousClock.now + .seconds(60 + messages / 1_000)
    while ContinuousClock.now < deadline, ledger.withLock({ $0.shown.count }) < acked {
      try await Task.sleep(for: .milliseconds(200))
    }
    // A double may still be on its way.
    try await Task.sleep(for: .seconds(1))
    let hidden = await phones.stop()
    _ = try await moved.terminate()
    try await database.kill()
    let result = ledger.withLock { $0 }
    lap("\(result.shown.count) messages were shown")
    print(
      "\(result.isClean ? "clean" : "BAD"): acked \(acked), lost \(result.lost.count), "
        + "shown twice \(result.doubled.count), repeats hidden by devices \(hidden), "
        + "failed \(result.failed.count), open \(result.open)")
    return result.isClean && acked == messages
  }

  private func register(at address: ServerAddress) async throws -> [Device.Credentials] {
    let registrar = try DeviceRegistrar(
      port: address.https, project: address.projectID, apiKey: try address.secret("api-key"),
      trust: .file(address.certificateAuthority))
    var made: [Device.Credentials] = []
    for _ in 0..<devices { made.append(try await registrar.register(app: "org.example.app")) }
    return made
  }

  private func store(
    _ credentials: [Device.Credentials], at address: ServerAddress, _ ledger: SharedLedger
  ) async throws {
    let count = 4
    let tokens = credentials.map(\.token)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<count {
        let client = try StreamClient(
          StreamClient.Configuration(
            port: address.xmpp, senderID: address.senderID, serverKey: try address.secret("server-key"),
            trust: .file(address.certificateAuthority)))
        try await client.connect()
        var source = PacedMessages(
          tokens: tokens, rate: 100_000, first: index, step: count, isStopped: { false },
          sent: { number in ledger.withLock { $0.send(number) } })
        source.end = messages
        let numbered = source
        group.addTask {
          try await Run.pump(client, numbered, ledger)
          await client.close()
        }
      }
      try await group.waitForAll()
    }
  }
}

/// A step that did not go as it should.
struct MigrationFailure: Error, CustomStringConvertible {
  let description: String
}
