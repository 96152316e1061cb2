import PushModel
import Seams
package import Stores
import Synchronization

/// How fast a store takes messages: batches of 100 rows of 600 bytes for random devices.
///
/// The device is registered, the body is shared, so what is measured is the store.
package struct StoreBench: Sendable {
  /// One figure, in rows (or pairs) a second.
  package struct Figure: Sendable, CustomStringConvertible {
    package var name: String
    package var perSecond: Double
    package var description: String { "\(name): \(Int(perSecond))/s" }
  }

  private let devicesMax: Int
  private let seconds: Int

  package init(devices: Int = 10_000, seconds: Int = 2) {
    devicesMax = devices
    self.seconds = seconds
  }

  /// - Parameter store: Empty, with a cap that the run does not reach.
  package func run(on store: any Store) async throws -> [Figure] {
    let now = SystemTime().wall
    let devices = try await registerDevices(store, now)
    var figures: [Figure] = []
    var first: UInt64 = 1
    for (name, outstanding, settles) in [
      ("inserts, one batch at a time", 1, false), ("inserts, 4 batches under way", 4, false),
      ("insert and delete pairs, one batch at a time", 1, true),
      ("insert and delete pairs, 4 batches under way", 4, true),
    ] {
      let load = BenchLoad(store: store, devices: devices, now: now, settles: settles, first: first)
      let start = SystemTime().moment
      let end = start + .seconds(seconds)
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<outstanding {
          group.addTask { while SystemTime().moment < end { await load.batch() } }
        }
      }
      let taken = Double((SystemTime().moment - start).ns) / 1e9
      let rows = load.written
      first += UInt64(rows) + 1_000
      figures.append(Figure(name: name, perSecond: Double(rows) / taken))
    }
    return figures
  }

  private func registerDevices(_ store: any Store, _ now: WallTime) async throws -> [DeviceNumber] {
    try await withThrowingTaskGroup(of: DeviceNumber.self) { group in
      for index in 0..<devicesMax {
        group.addTask {
          try await store.register(
            RegistrationRequest(
              token: "bench-\(index)", deviceID: "bench-\(index)", secretHash: [], sender: SenderID(1),
              app: "org.example.app", platform: .linux, user: nil, previousToken: nil), now: now
          ).device
        }
        if index >= 256 { _ = try await group.next() }
      }
      try await group.waitForAll()
      return (1...devicesMax).map { DeviceNumber(Int64($0)) }
    }
  }
}

/// Makes batches and counts what was stored.
private final class BenchLoad: Sendable {
  private struct State: Sendable {
    var chance = SeededChance(seed: 1)
    var next: UInt64
    var written = 0
    var old: [WriteBatch.Settlement] = []
  }

  private let store: any Store
  private let devices: [DeviceNumber]
  private let now: WallTime
  private let settles: Bool
  private let state: Mutex<State>
  private let body = [UInt8](repeating: 120, count: 600)

  init(store: any Store, devices: [DeviceNumber], now: WallTime, settles: Bool, first: UInt64) {
    self.store = store
    self.devices = devices
    self.now = now
    self.settles = settles
    state = Mutex(State(next: first))
  }

  var written: Int { state.withLock { $0.written } }

  func batch() async {
    let batch = state.withLock { state in
      var batch = WriteBatch()
      batch.enqueue.reserveCapacity(100)
      for _ in 0..<100 {
        let number = state.next
        state.next += 1
        batch.enqueue.append(
          StoredMessage(
            number: MessageNumber(number),
            device: devices[Int.random(in: devices.indices, using: &state.chance)],
            sender: SenderID(1), app: "org.example.app", key: Stage.key(number),
            expires: now + .seconds(100_000), body: body))
      }
      if settles, state.old.count >= 1_000 {
        batch.settle = Array(state.old.prefix(100))
        state.old.removeFirst(100)
      }
      return batch
    }
    guard (try? await store.write(batch, now: now)) != nil else { return }
    state.withLock { state in
      state.written += batch.enqueue.count
      if settles {
        state.old += batch.enqueue.map { .init(device: $0.device, number: $0.number) }
      }
    }
  }
}
