import Bytes
import Connections
import DeliveryCore
import DeviceRuntime
import EventLoops
import PushModel
import Synchronization
import TLSCore
import TestKit

/// The devices of a run, on one loop: each shown message goes into the ledger, each is acked.
///
/// `@unchecked Sendable`: engines are touched on the loop's thread alone; the rest is constant.
final class Phones: DeviceEngineDelegate, @unchecked Sendable {
  private let loop: EventLoop
  /// Where each try to connect goes, in turn.
  private var places: [(context: TLSContext, port: Int)] = []
  private let note: @Sendable (Int) -> Void
  /// Message ids that each device remembers.
  private let rememberedMax: Int
  private var engines: [DeviceEngine] = []

  init(
    note: @escaping @Sendable (Int) -> Void, addresses: [ServerAddress], rememberedMax: Int = 100_000
  ) throws {
    self.note = note
    self.rememberedMax = rememberedMax
    for address in addresses {
      let trust = Device.Trust.file(address.certificateAuthority)
      places.append((try trust.makeContext(protocols: ["xmpp-client"]), address.xmpp))
    }
    loop = EventLoop(name: "phones")
    try loop.start()
  }

  func connect(_ credentials: [Device.Credentials]) async throws {
    try await loop.perform { [self] in
      for device in credentials {
        var configuration = Device.Configuration()
        configuration.reconnectWaitFirst = .milliseconds(50)
        configuration.reconnectWaitMax = .milliseconds(300)
        configuration.rememberedMax = rememberedMax
        let endpoints = try places.map { place in
          configuration.port = place.port
          return try configuration.makeEndpoint(for: device, context: place.context)
        }
        var tries = engines.count
        let line = ClientLine(
          on: loop, settings: configuration.machineSettings, seed: .random(in: .min ... .max)
        ) {
          tries += 1
          return endpoints[tries % endpoints.count].makeConnection($0, $1)
        }
        let engine = DeviceEngine(line: line, tag: engines.count, rememberedMax: configuration.rememberedMax)
        engine.delegate = self
        engines.append(engine)
        engine.start()
      }
    }
    _ = try await waitUntilConnected(within: .seconds(60))
  }

  /// - Returns: When all were connected; nil when that did not come to pass.
  func waitUntilConnected(within time: Duration) async throws -> ContinuousClock.Instant? {
    let end = ContinuousClock.now + time
    while ContinuousClock.now < end {
      if try await loop.perform({ [self] in engines.allSatisfy(\.isConnected) }) { return .now }
      try await Task.sleep(for: .milliseconds(10))
    }
    return nil
  }

  /// - Returns: Deliveries that were recognised as repeats and hidden.
  func stop() async -> Int {
    let hidden = try? await loop.perform { [self] in
      for engine in engines { engine.abort() }
      return engines.reduce(0) { $0 + $1.repeatCount }
    }
    loop.stop()
    return hidden ?? 0
  }

  func received(_ message: DeviceDelivery.Message, key: Hash128, by device: DeviceEngine) {
    if let number = message.data["n"].flatMap({ Int($0) }) { note(number) }
    device.handled(key, success: true)
  }

  func deleted(from: String, category: String, total: Int64, by device: DeviceEngine) {}
  func finished(_ messages: [FinishedMessage], of device: DeviceEngine) {}
  func changed(_ status: SenderMachine.Status, of device: DeviceEngine) {}
}
