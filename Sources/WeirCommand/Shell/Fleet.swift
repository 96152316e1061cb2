import Bytes
import Connections
import DeliveryCore
import DeviceRuntime
import EventLoops
import Foundation
import JSONCore
import PushModel
import Synchronization
import TLSCore

/// Many devices on one loop.
///
/// `@unchecked Sendable`: constants are Sendable, the engines and counters of the loop are touched on its thread
/// alone; what other threads read is atomic.
final class Fleet: DeviceEngineDelegate, @unchecked Sendable {
  struct Settings: Sendable {
    var endpoint: Endpoint
    var caFile: String
    var acks: DeviceAckRule = .whenHandled
  }

  let loop: EventLoop
  private let settings: Settings
  private let context: TLSContext
  private var engines: [DeviceEngine] = []
  private var isConnected: [Bool] = []
  private let connected = Atomic<Int>(0)
  private let delivered = Atomic<Int>(0)
  private let refused = Atomic<Int>(0)
  private let failure = Mutex<String?>(nil)
  private let show: @Sendable (Int, DeviceDelivery.Message) -> Void
  private let showOutcome: @Sendable (Int, FinishedMessage) -> Void

  /// - Parameters:
  ///   - show: Called on the loop for each message, with the device's place in the list.
  ///   - showOutcome: Called on the loop when an upstream message has ended.
  init(
    _ settings: Settings, show: @escaping @Sendable (Int, DeviceDelivery.Message) -> Void = { _, _ in },
    showOutcome: @escaping @Sendable (Int, FinishedMessage) -> Void = { _, _ in }
  ) throws {
    self.settings = settings
    self.show = show
    self.showOutcome = showOutcome
    context = try Device.Trust.file(settings.caFile).makeContext(protocols: ["xmpp-client"])
    loop = EventLoop(name: "weir-devices")
    try loop.start()
  }

  /// Devices with an open stream.
  var connectedCount: Int { connected.load(ordering: .relaxed) }
  /// Messages shown.
  var deliveredCount: Int { delivered.load(ordering: .relaxed) }
  /// Why a device gave up, if one did.
  var failureText: String? { failure.withLock { $0 } }

  /// Connects the devices, at most `perSecond` a second.
  func connect(_ credentials: [Device.Credentials], perSecond: Int = 1_000) async throws {
    let chunk = max(1, perSecond / 20)
    for start in stride(from: 0, to: credentials.count, by: chunk) {
      let some = credentials[start..<min(start + chunk, credentials.count)]
      try await loop.perform { [self] in
        for device in some { try add(device) }
      }
      try await Task.sleep(for: .milliseconds(50))
    }
  }

  private func add(_ device: Device.Credentials) throws {
    var configuration = Device.Configuration(host: settings.endpoint.host, port: Int(settings.endpoint.port))
    configuration.connectTimeout = .seconds(30)
    let endpoint = try configuration.makeEndpoint(for: device, context: context)
    let line = ClientLine(
      on: loop, settings: configuration.machineSettings, seed: .random(in: .min ... .max)
    ) { endpoint.makeConnection($0, $1) }
    let engine = DeviceEngine(line: line, tag: engines.count, ackRule: settings.acks)
    engine.delegate = self
    engines.append(engine)
    isConnected.append(false)
    engine.start()
  }

  /// Sends an upstream message from the device at `index`.
  ///
  /// On the loop.
  func sendUpstream(_ index: Int, _ message: EncodedMessage, tag: UInt64) -> Bool {
    guard engines.indices.contains(index) else { return false }
    if case .accepted = engines[index].submit(message, tag: tag) { return true }
    return false
  }

  func stop() async {
    try? await loop.perform { [self] in
      for engine in engines { engine.close(within: .seconds(1)) }
    }
    let deadline = ContinuousClock.now + .seconds(3)
    while connectedCount > 0, ContinuousClock.now < deadline { try? await Task.sleep(for: .milliseconds(20)) }
    loop.stop()
  }

  // MARK: DeviceEngineDelegate

  func received(_ message: DeviceDelivery.Message, key: Hash128, by device: DeviceEngine) {
    delivered.wrappingAdd(1, ordering: .relaxed)
    show(device.tag, message)
    device.handled(key, success: true)
  }

  func deleted(from: String, category: String, total: Int64, by device: DeviceEngine) {}

  func finished(_ messages: [FinishedMessage], of device: DeviceEngine) {
    for message in messages { showOutcome(device.tag, message) }
  }

  func changed(_ status: SenderMachine.Status, of device: DeviceEngine) {
    let now = device.isConnected
    if now != isConnected[device.tag] {
      isConnected[device.tag] = now
      connected.wrappingAdd(now ? 1 : -1, ordering: .relaxed)
    }
    if case .closed = status { failure.withLock { $0 = $0 ?? "device \(device.tag) gave up: \(status)" } }
  }
}
