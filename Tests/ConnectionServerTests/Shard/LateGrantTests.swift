import PushModel
import Seams
import Stores
import Testing

@testable import ConnectionServer

/// A device's stream that ended before the store had answered its claim.
@Suite struct LateGrantTests {
  /// Keeps what is told to other nodes.
  private final class HeardBus: NodeBus {
    struct Said: Hashable {
      let event: BusEvent
      let node: Int?
    }
    let node = 3
    let clockAhead: Duration = .zero
    private let said = Guarded<[Said]>([])

    var all: [Said] { said.withLock { $0 } }
    func listen(_ handler: @escaping @Sendable ([BusEvent]) -> Void) {}
    func send(_ event: BusEvent, to node: Int?) {
      said.withLock { $0.append(Said(event: event, node: node)) }
    }
    func handOver(upstreamOf sender: SenderID) {}
    func nodes(_ done: @escaping Completion<[NodeSummary]>) { done(.success([])) }
  }

  private let bus = HeardBus()
  private let harness: ShardHarness
  private let store = MemoryStore()

  init() { harness = ShardHarness(store: store, bus: bus) }

  private func device() async throws -> DeviceNumber {
    let request = RegistrationRequest(
      token: "token", deviceID: "device", secretHash: [], sender: harness.sender, app: "app",
      platform: .linux,
      user: nil, previousToken: nil)
    return try await store.register(request, now: harness.time.wall).device
  }

  private func claim(_ device: DeviceNumber, node: Int) async throws -> StreamGrant {
    try await store.claim(device, node: node, awaySince: nil, now: harness.time.wall)
  }

  @Test func aGrantNobodyWaitsForIsGivenBackAndTheNodeBeforeIsTold() async throws {
    let device = try await device()
    _ = try await claim(device, node: 7)
    let grant = try await claim(device, node: bus.node)
    #expect(grant.previousNode == 7)
    DeviceSession.giveUp(.success(grant), of: device, on: harness.shards[0], harness.context)
    #expect(bus.all == [.init(event: .kick(device, epoch: grant.epoch), node: 7)])
    #expect(try await claim(device, node: 8).previousNode == nil, "nobody has the stream")
  }

  @Test func aGrantOfThisNodesOwnDeviceIsGivenBackInSilence() async throws {
    let device = try await device()
    _ = try await claim(device, node: bus.node)
    let grant = try await claim(device, node: bus.node)
    DeviceSession.giveUp(.success(grant), of: device, on: harness.shards[0], harness.context)
    #expect(bus.all.isEmpty)
    #expect(try await claim(device, node: 8).previousNode == nil)
  }

  @Test func aLaterGrantIsLeftAlone() async throws {
    let device = try await device()
    let late = try await claim(device, node: bus.node)
    let newer = try await claim(device, node: 7)
    DeviceSession.giveUp(.success(late), of: device, on: harness.shards[0], harness.context)
    let next = try await claim(device, node: 8)
    #expect(next.previousNode == 7 && next.epoch == newer.epoch + 1)
  }

  @Test func whenNobodyKnowsWhetherItWasGrantedAllNodesAskTheStore() {
    let device = DeviceNumber(5)
    DeviceSession.giveUp(
      .failure(.unavailable(outcomeUnknown: true, detail: "lost")), of: device, on: harness.shards[0],
      harness.context)
    #expect(bus.all == [.init(event: .kick(device, epoch: .max), node: nil)])
  }

  @Test(arguments: [StoreFault.refused(detail: "gone"), .unavailable(outcomeUnknown: false, detail: "full")])
  func aRefusalChangesNothing(_ fault: StoreFault) {
    DeviceSession.giveUp(.failure(fault), of: DeviceNumber(5), on: harness.shards[0], harness.context)
    #expect(bus.all.isEmpty)
  }
}
