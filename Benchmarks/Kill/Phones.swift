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
  private let context: TLSContext
  private let port: Int
  private let note: @Sendable (Int) -> Void
  /// Message ids that each device remembers.
  private let rememberedMax: Int
  private var engines: [DeviceEngine] = []

  init(note: @escaping @Sendable (Int) -> Void, address: ServerAddress, rememberedMax: Int = 100_000) throws {
    self.note = note
    self.rememberedMax = rememberedMax
    port = address.xmpp
    context = try Device.Trust.file(address.certificateAuthority).makeContext(protocols: ["xmpp-client"])
    loop = EventLoop(name: "phones")
    try loop.start()
  }

  func connect(_ credentials: [Device.Credentials]) async throws {
    try await loop.perform { [self] in
      for device in credentials {
        var configuration = Device.Configuration(port: port)
        configuration.reconnectWaitFirst = .milliseconds(50)
        configuration.reconnectWaitMax = .milliseconds(300)
        configuration.rememberedMax = rememberedMax
        let endpoint = try configuration.makeEndpoint(for: device, context: context)
        let line = ClientLine(
          on: loop, settings: configuration.machineSettings, seed: .random(in: .min ... .max)
        ) { endpoint.makeConnection($0, $1) }
        let engine = DeviceEngine(line: line, tag: engines.count, rememberedMax: configuration.rememberedMax)
        engine.delegate = self
        engines.append(engine)
        engine.start()
      }
    }
    for _ in 0..<1_000 {
      if try await loop.perform({ [self] in engines.allSatisfy(\.isConnected) }) { return }
      try await Task.sleep(for: .milliseconds(10))
    }
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
