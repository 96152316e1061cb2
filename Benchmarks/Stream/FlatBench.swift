import Bytes
import DeviceRuntime
import Foundation
import LoadGenerator
import PushModel
import Seams
import StoreSQLite
import Stores
import Synchronization
import TLSCore

/// Whether a message costs the same however many devices are connected and however many messages wait in the store.
///
/// The same load of 10 senders with a window of 100 each time: first to all of a growing number of connected devices, then
/// to 1,000 of them beside a growing number of messages for devices that are away.
struct FlatBench {
  /// What is measured.
  enum Part: String { case devices, stored, fill }

  let loops: Int
  let weir: String
  var devicesMax = 18_000
  var storedMax = 10_000_000
  var seconds = 6.0
  var warmUp = 2.0
  /// A data directory that is filled once and kept; nil for one that is removed.
  var keep: String?
  var only: Part?

  private static let devicesMin = 1_000
  /// Messages for each device that is away: what it may have at most.
  private static let storedEach = 100
  /// How much dearer a message may become.
  private static let spread = 0.10

  /// One row: processor time of the server a message, in microseconds.
  private struct Figure {
    var devices: Int
    var stored: Int
    var rate: Double
    var cost: Double
  }

  /// - Returns: Whether the cost is flat.
  func run() async throws -> Bool {
    _ = FileLimit.raise()
    if only == .fill { return try await fillAlone() }
    print("devices     stored   acked+delivered/s   server CPU µs/msg   to the first")
    var isFlat = true
    if only != .stored { isFlat = try await devices() && isFlat }
    if only != .devices { isFlat = try await stored() && isFlat }
    print(isFlat ? "flat: within 10 % of the first row" : "NOT flat: over 10 % dearer than the first row")
    return isFlat
  }

  // MARK: Connected devices

  private func devices() async throws -> Bool {
    let server = try await ServerUnderTest(loops: loops, weir: weir)
    defer { server.stop() }
    server.end()
    let credentials = try await Crowd(server).connecting(devicesMax)
    try await server.start()
    let generator = try Generator(caFile: server.credentials + "/ca.pem")
    var figures: [Figure] = []
    var connected = 0
    for share in [0, 4, 2, 1] {
      let count = share == 0 ? min(Self.devicesMin, devicesMax) : devicesMax / share
      guard count > connected else { continue }
      try await generator.connectDevices(Array(credentials[connected..<count]), port: server.xmpp)
      connected = count
      figures.append(try await measure(server, generator, devices: count, stored: 0, first: figures.first))
    }
    // Again what came first: whether it was the devices or the hour.
    try await generator.closeDevices(keeping: Self.devicesMin)
    try await server.becomeQuiet()
    let again = try await measure(
      server, generator, devices: min(Self.devicesMin, devicesMax), stored: 0, first: figures.first)
    await generator.stop()
    let base = max(figures[0].cost, again.cost)
    return figures.allSatisfy { $0.cost <= base * (1 + Self.spread) }
  }

  // MARK: Stored messages

  private func stored() async throws -> Bool {
    var figures: [Figure] = []
    let fresh = try await ServerUnderTest(loops: loops, weir: weir)
    defer { fresh.stop() }
    let crowd = Crowd(fresh)
    if keep == nil {
      for count in [0, storedMax / 10, storedMax] {
        fresh.end()
        try await crowd.fill(to: count, each: Self.storedEach)
        figures.append(try await row(fresh, crowd, stored: count, first: figures.first))
      }
    } else {
      fresh.end()
      figures.append(try await row(fresh, crowd, stored: 0, first: nil))
      let kept = try await keptServer()
      kept.end()
      let filled = Crowd(kept)
      try await filled.fill(to: storedMax, each: Self.storedEach)
      figures.append(try await row(kept, filled, stored: storedMax, first: figures.first))
      kept.end()
    }
    return figures.allSatisfy { $0.cost <= figures[0].cost * (1 + Self.spread) }
  }

  private func row(
    _ server: ServerUnderTest, _ crowd: Crowd, stored: Int, first: Figure?
  ) async throws -> Figure {
    let credentials = try await crowd.connecting(Self.devicesMin)
    try await server.start()
    let generator = try Generator(caFile: server.credentials + "/ca.pem")
    try await generator.connectDevices(credentials, port: server.xmpp)
    let figure = try await measure(
      server, generator, devices: credentials.count, stored: stored, first: first)
    await generator.stop()
    return figure
  }

  private func fillAlone() async throws -> Bool {
    let server = try await keptServer()
    server.end()
    let begun = ContinuousClock.now
    try await Crowd(server).fill(to: storedMax, each: Self.storedEach)
    print("\(storedMax) messages stored in \(ContinuousClock.now - begun)")
    return true
  }

  private func keptServer() async throws -> ServerUnderTest {
    guard let keep else { throw BenchFault("--only fill needs --keep DIR") }
    return try await ServerUnderTest(loops: loops, weir: weir, directory: keep)
  }

  // MARK: Measuring

  private func measure(
    _ server: ServerUnderTest, _ generator: Generator, devices: Int, stored: Int, first: Figure?
  ) async throws -> Figure {
    try await generator.connectSenders(
      10, identity: server.senderID, key: try server.key("server-key"), port: server.xmpp)
    try await generator.start(window: 100)
    try await Task.sleep(for: .seconds(warmUp))
    var slices: [(rate: Double, cost: Double)] = []
    for _ in 0..<3 {
      let before = (
        generator.acked.load(ordering: .relaxed), generator.delivered.load(ordering: .relaxed),
        server.cpuMicroseconds, ContinuousClock.now
      )
      try await Task.sleep(for: .seconds(seconds / 3))
      let done = Double(
        min(
          generator.acked.load(ordering: .relaxed) - before.0,
          generator.delivered.load(ordering: .relaxed) - before.1))
      let time = (ContinuousClock.now - before.3) / .seconds(1)
      slices.append((done / time, (server.cpuMicroseconds - before.2) / max(1, done)))
    }
    try await generator.stopSending()
    try await generator.closeSenders()
    let middle = slices.sorted { $0.cost < $1.cost }[1]
    let figure = Figure(devices: devices, stored: stored, rate: middle.rate, cost: middle.cost)
    print(
      String(
        format: "%7d %10d %19.0f %19.1f %14.2f", devices, stored, figure.rate, figure.cost,
        figure.cost / (first ?? figure).cost))
    return figure
  }
}

/// Devices and messages that are written past the server, while it is down.
private struct Crowd {
  let server: ServerUnderTest
  private static let secret = "secret"

  init(_ server: ServerUnderTest) { self.server = server }

  /// Devices that connect.
  func connecting(_ count: Int) async throws -> [Device.Credentials] {
    let store = try SQLiteStore(directory: server.directory)
    let tokens = try await register("c", count, in: store).tokens
    await store.close()
    return tokens.enumerated().map {
      Device.Credentials(token: $1, deviceID: Self.deviceID("c", $0), deviceSecret: Self.secret)
    }
  }

  /// Brings the messages for devices that are away up to `count`.
  func fill(to count: Int, each: Int) async throws {
    guard count > 0 else { return }
    let mark = server.directory + "/filled"
    let filled = (try? String(contentsOfFile: mark, encoding: .utf8)).flatMap { Int($0) } ?? 0
    guard filled < count else { return }
    let store = try SQLiteStore(directory: server.directory)
    let devices = try await register("a", count / each, in: store).numbers
    guard let number = Int64(server.senderID) else { throw BenchFault("no sender") }
    let body = Array(
      ("{\"data\":{\"text\":\""
        + String(repeating: "the quick brown fox jumps over the lazy dog; ", count: 12)
        + "\"}}").utf8)
    let expires = SystemTime().wall + .seconds(28 * 86_400)
    try await withThrowingTaskGroup(of: Void.self) { group in
      var waiting = 0
      for (index, device) in devices.enumerated() where (index + 1) * each > filled {
        group.addTask {
          var batch = WriteBatch()
          batch.enqueue = (0..<each).map { place in
            let id = UInt64(index * each + place + 1)
            return StoredMessage(
              number: MessageNumber(id), device: device, sender: SenderID(number), app: "org.example.app",
              key: MessageKey(Hash128(high: id &* 0x9E37_79B9_7F4A_7C15, low: id)), expires: expires,
              body: body)
          }
          let outcome = try await store.write(batch, now: SystemTime().wall)
          guard outcome.enqueue.allSatisfy({ $0 == .stored || $0 == .duplicate }) else {
            throw BenchFault("messages were not stored")
          }
        }
        waiting += 1
        if waiting > 64 { try await group.next() }
      }
      try await group.waitForAll()
    }
    await store.close()
    try String(count).write(toFile: mark, atomically: true, encoding: .utf8)
  }

  private func register(
    _ kind: String, _ count: Int, in store: SQLiteStore
  ) async throws -> (tokens: [String], numbers: [DeviceNumber]) {
    guard let number = Int64(server.senderID) else { throw BenchFault("no sender") }
    let hash = try Secrets.sha256(Array(Self.secret.utf8))
    let now = SystemTime().wall
    // The same tokens each time, so that what is there already is found.
    var chance = SeededChance(seed: kind == "c" ? 1 : 2)
    let tokens = (0..<count).map { _ in
      RegistrationToken(random: (0..<48).map { _ in UInt8.random(in: 0...255, using: &chance) }).text
    }
    var numbers = [DeviceNumber](repeating: DeviceNumber(0), count: count)
    try await withThrowingTaskGroup(of: (Int, DeviceNumber).self) { group in
      for (index, token) in tokens.enumerated() {
        group.addTask {
          let made = try await store.register(
            RegistrationRequest(
              token: token, deviceID: Self.deviceID(kind, index), secretHash: hash, sender: SenderID(number),
              app: "org.example.app", platform: .linux, user: nil, previousToken: nil), now: now)
          return (index, made.device)
        }
        if index >= 1_000, let (at, device) = try await group.next() { numbers[at] = device }
      }
      for try await (at, device) in group { numbers[at] = device }
    }
    return (tokens, numbers)
  }

  private static func deviceID(_ kind: String, _ index: Int) -> String {
    let digits = String(index)
    return String(repeating: kind, count: 22 - digits.count) + digits
  }
}
