import Bytes
import PushModel
import Seams
import Stores
import Testing

/// What a memory store promises the nodes that share it, as the one in PostgreSQL does.
@Suite struct MemoryNodesTests {
  /// Two nodes on one store, with a clock that a test moves.
  private final class Bed: Sendable {
    let clock = Guarded<Int64>(1_000_000)
    let store: MemoryStore
    let first: MemoryNode
    let second: MemoryNode
    let a: MemoryStore
    let b: MemoryStore
    let wrote = Guarded<[DeviceNumber]>([])

    init(limits: StoreLimits = StoreLimits()) {
      store = MemoryStore(limits: limits)
      let clock = clock
      store.setClock { WallTime(ms: clock.withLock { $0 }) }
      first = store.join(name: "a", lease: .seconds(5))
      second = store.join(name: "b", lease: .seconds(5))
      let wrote = wrote
      a = store.joined(as: first) { devices in wrote.withLock { $0 += devices } }
      b = store.joined(as: second) { _ in }
    }

    var now: WallTime { WallTime(ms: clock.withLock { $0 }) }
    func pass(_ ms: Int64) { clock.withLock { $0 += ms } }

    func device() async throws -> DeviceNumber {
      let request = RegistrationRequest(
        token: "token", deviceID: "device", secretHash: [], sender: SenderID(1), app: "app",
        platform: .linux, user: nil, previousToken: nil)
      return try await store.register(request, now: now).device
    }

    func message(_ number: Int64, _ device: DeviceNumber, live: Bool = false) -> StoredMessage {
      StoredMessage(
        number: MessageNumber(UInt64(number)), device: device, sender: SenderID(1), app: "app",
        key: MessageKey(Hash128(high: 1, low: UInt64(number))), expires: now + .seconds(1_000), live: live,
        body: [])
    }

    func upstream(_ number: UInt64, held: Bool) -> StoredUpstream {
      var row = StoredUpstream(
        number: MessageNumber(number), sender: SenderID(1),
        key: MessageKey(Hash128(high: 2, low: number)), device: nil, expires: now + .seconds(1_000), body: [],
        messageID: "u", from: "f")
      row.isHeld = held
      return row
    }

    func leasable(by store: MemoryStore, _ node: MemoryNode) async throws -> Int {
      try await store.lease(
        for: SenderID(1), after: nil, max: 10, node: node.number, until: now + .seconds(100), now: now
      ).count
    }
  }

  @Test func anotherNodesDeviceIsFoundAfterAWriteForIt() async throws {
    let bed = Bed()
    let device = try await bed.device()
    let grant = try await bed.b.claim(device, node: bed.second.number, awaySince: nil, now: bed.now)
    #expect(grant.previousNode == nil)
    var batch = WriteBatch()
    batch.enqueue = [bed.message(1, device)]
    _ = try await bed.a.write(batch, now: bed.now)
    let wrote = bed.wrote.withLock { $0 }
    #expect(wrote == [device])
    #expect(bed.store.owners(of: wrote, otherThan: bed.first.number) == [bed.second.number: [device]])
    #expect(bed.store.owners(of: wrote, otherThan: bed.second.number) == [:])
    let next = try await bed.a.claim(device, node: bed.first.number, awaySince: nil, now: bed.now)
    #expect(next.previousNode == bed.second.number)
    #expect(try await bed.a.epochs(of: [device]) == [device: grant.epoch + 1])
  }

  @Test func aLeaseEndsWithItsNodesIncarnation() async throws {
    let bed = Bed()
    var batch = WriteBatch()
    batch.append = [bed.upstream(1, held: true)]
    _ = try await bed.a.write(batch, now: bed.now)
    #expect(try await bed.leasable(by: bed.b, bed.second) == 0)
    bed.pass(4_000)
    _ = bed.store.beat(bed.second, lease: .seconds(5))
    #expect(try await bed.leasable(by: bed.b, bed.second) == 0)
    bed.pass(1_500)
    #expect(bed.store.beat(bed.second, lease: .seconds(5)) == [bed.second.incarnation])
    #expect(try await bed.leasable(by: bed.b, bed.second) == 1)
  }

  @Test func whatIsHandedOverIsForAnyNode() async throws {
    let bed = Bed()
    var batch = WriteBatch()
    batch.append = [bed.upstream(1, held: true), bed.upstream(2, held: false)]
    _ = try await bed.a.write(batch, now: bed.now)
    #expect(try await bed.leasable(by: bed.b, bed.second) == 1)
    await withCheckedContinuation { continuation in
      bed.a.handOver(upstreamOf: SenderID(1)) { _ in continuation.resume() }
    }
    #expect(try await bed.leasable(by: bed.b, bed.second) == 2)
  }

  @Test func aStreamAtAnotherLivingNodeRaisesTheCapAndADeadOneDoesNot() async throws {
    var limits = StoreLimits()
    limits.storedPerDeviceMax = 2
    let bed = Bed(limits: limits)
    let device = try await bed.device()
    _ = try await bed.b.claim(device, node: bed.second.number, awaySince: nil, now: bed.now)
    var batch = WriteBatch()
    batch.enqueue = (1...4).map { bed.message($0, device) }
    #expect(try await bed.a.write(batch, now: bed.now).enqueue == [.stored, .stored, .stored, .stored])
    bed.pass(6_000)
    batch.enqueue = [bed.message(5, device)]
    let outcome = try await bed.a.write(batch, now: bed.now)
    #expect(outcome.enqueue == [.overflowed])
    #expect(outcome.ended.count == 5)
  }

  @Test func aRestartedNodeKeepsItsNumberAndGetsANewIncarnation() {
    let bed = Bed()
    let again = bed.store.join(name: "a", lease: .seconds(5))
    #expect(again.number == bed.first.number)
    #expect(again.incarnation > bed.second.incarnation)
    #expect(bed.store.beat(bed.second, lease: .seconds(5)) == [again.incarnation, bed.second.incarnation])
  }
}
