import Bytes
import CLinux
import Connections
import DeliveryCore
import DeviceRuntime
import EventLoops
import Glibc
import PushModel
import Synchronization
import TLSCore

/// How much memory devices take that wait for messages.
///
/// `device-memory WHAT COUNT FOLDER XMPP HTTPS CREDENTIALS`: `WHAT` is `app` (messaging, notification center and data of
/// one app), `objects` (`Device`s, each with its thread) or `engines` (devices that share a loop). Prints the process's
/// resident memory before and after, in KiB.
@main
struct DeviceMemory {
  static func main() async throws {
    let words = CommandLine.arguments
    guard words.count == 7, let count = Int(words[2]), let xmpp = Int(words[4]), let https = Int(words[5])
    else { exit(2) }
    let place = Place(folder: words[3], xmpp: xmpp, https: https, credentials: words[6])
    let measured: (before: Int, after: Int)
    switch words[1] {
    case "app": measured = try await place.app()
    case "objects": measured = try await place.objects(count)
    default: measured = try await place.engines(count)
    }
    print("\(measured.before) \(measured.after)")
  }
}

struct Place: Sendable {
  var folder: String
  var xmpp: Int
  var https: Int
  var credentials: String

  private var caFile: String { credentials + "/ca.pem" }

  private func apiKey() -> String {
    let file = open(credentials + "/api-key", O_RDONLY)
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 256)
    let count = read(file, &bytes, bytes.count)
    return String(decoding: bytes.prefix(max(0, count)).filter { $0 > 32 }, as: UTF8.self)
  }

  private func device() -> Device.Configuration {
    var configuration = Device.Configuration(host: "127.0.0.1", port: xmpp, trust: .file(caFile))
    configuration.connectTimeout = .seconds(60)
    return configuration
  }

  func app() async throws -> (Int, Int) {
    let before = Self.residentKiB()
    let center = try DeviceRuntime.NotificationCenter(
      DeviceRuntime.NotificationCenter.Configuration(dataFolder: folder, presenter: RecordingPresenter()))
    _ = try await center.requestAuthorization([.alert, .badge, .sound])
    await center.start()
    let messaging = Messaging(
      Messaging.Configuration(
        device: device(), httpsPort: https, project: "demo", apiKey: apiKey(), app: "org.example.app"), center
    )
    try await messaging.start()
    try await Task.sleep(for: .seconds(1))
    let after = Self.residentKiB()
    await messaging.stop()
    return (before, after)
  }

  private func register(_ count: Int) async throws -> [Device.Credentials] {
    let registrar = try DeviceRegistrar(
      port: https, project: "demo", apiKey: apiKey(), trust: .file(caFile), timeout: .seconds(60))
    return try await withThrowingTaskGroup(of: Device.Credentials.self) { group in
      var made: [Device.Credentials] = []
      for number in 0..<count {
        if number >= 8, let next = try await group.next() { made.append(next) }
        group.addTask { try await registrar.register(app: "org.example.app") }
      }
      for try await next in group { made.append(next) }
      return made
    }
  }

  func objects(_ count: Int) async throws -> (Int, Int) {
    let credentials = try await register(count)
    malloc_trim(0)
    let before = Self.residentKiB()
    var devices: [Device] = []
    for one in credentials {
      let device = try Device(one, device())
      try await device.connect()
      devices.append(device)
    }
    try await Task.sleep(for: .seconds(1))
    let after = Self.residentKiB()
    for device in devices { await device.close(within: .zero) }
    return (before, after)
  }

  func engines(_ count: Int) async throws -> (Int, Int) {
    let credentials = try await register(count)
    malloc_trim(0)
    let before = Self.residentKiB()
    let crowd = try Crowd()
    let context = try Device.Trust.file(caFile).makeContext(protocols: ["xmpp-client"])
    let configuration = device()
    for one in credentials {
      try await crowd.loop.perform { try crowd.add(one, configuration, context) }
    }
    let deadline = ContinuousClock.now + .seconds(60)
    while crowd.connected.load(ordering: .relaxed) < count, ContinuousClock.now < deadline {
      try await Task.sleep(for: .milliseconds(20))
    }
    try await Task.sleep(for: .seconds(1))
    guard crowd.connected.load(ordering: .relaxed) == count else { exit(1) }
    return (before, Self.residentKiB())
  }

  static func residentKiB() -> Int {
    let file = open("/proc/self/statm", O_RDONLY)
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 256)
    let count = read(file, &bytes, bytes.count)
    let words = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).split(separator: " ")
    return (words.count > 1 ? Int(words[1]) ?? 0 : 0) * (sysconf(Int32(_SC_PAGESIZE)) / 1_024)
  }
}

/// Devices on one loop.
///
/// `@unchecked Sendable`: the engines are touched on the loop's thread alone.
final class Crowd: DeviceEngineDelegate, @unchecked Sendable {
  let loop = EventLoop(name: "devices")
  let connected = Atomic<Int>(0)
  private var engines: [DeviceEngine] = []

  init() throws { try loop.start() }

  func add(_ one: Device.Credentials, _ configuration: Device.Configuration, _ context: TLSContext) throws {
    let endpoint = try configuration.makeEndpoint(for: one, context: context)
    let line = ClientLine(
      on: loop, settings: configuration.machineSettings, seed: UInt64(engines.count)
    ) { endpoint.makeConnection($0, $1) }
    let engine = DeviceEngine(line: line, tag: engines.count)
    engine.delegate = self
    engines.append(engine)
    engine.start()
  }

  func received(_ message: DeviceDelivery.Message, key: Hash128, by device: DeviceEngine) {
    device.handled(key, success: true)
  }
  func deleted(from: String, category: String, total: Int64, by device: DeviceEngine) {}
  func finished(_ messages: [FinishedMessage], of device: DeviceEngine) {}
  func changed(_ status: SenderMachine.Status, of device: DeviceEngine) {
    if case .connected = status { connected.wrappingAdd(1, ordering: .relaxed) }
  }
}
