import Bytes
import PushModel
import Seams
import StoreConformance
import Stores
import Synchronization
import Testing

@Suite struct MemoryStoreTests {
  private func stage(_ store: MemoryStore) -> Stage {
    Stage(
      StoreUnderTest(store: store, crash: { throw StoreFault.refused(detail: "") }, failWrites: { _ in }),
      limits: StoreLimits())
  }

  @Test func answersComeBeforeTheCallReturns() {
    let store = MemoryStore()
    let results = Results<WriteOutcome>()
    store.write(WriteBatch(), now: WallTime(ms: 0)) { results.add($0) }
    #expect(results.all == [.success(WriteOutcome())])
  }

  @Test func aDeliveryHookDecidesWhenAnswersCome() {
    let later = Held()
    let store = MemoryStore(deliver: { later.add($0) })
    let results = Results<WriteOutcome>()
    store.write(WriteBatch(), now: WallTime(ms: 0)) { results.add($0) }
    #expect(results.all.isEmpty)
    later.release()
    #expect(results.all == [.success(WriteOutcome())])
  }

  @Test func aLostAnswerIsAFaultWithTheWorkDone() async throws {
    let store = MemoryStore()
    var stage = stage(store)
    let device = try await stage.device()
    var batch = WriteBatch()
    batch.enqueue = [stage.message(for: device)]
    let fault = StoreFault.unavailable(outcomeUnknown: true, detail: "the answer got lost")
    store.setBeforeWrite { $0 == .write ? .losesAnswer(fault) : .goesWell }
    await #expect(throws: fault) { try await store.write(batch, now: stage.now) }
    store.setBeforeWrite(nil)
    #expect(try await store.write(batch, now: stage.now).enqueue == [.duplicate])
  }

  @Test(arguments: MemoryStore.Call.allCases)
  func theFaultHookIsAskedForCallsThatWrite(_ call: MemoryStore.Call) async throws {
    let calls = Calls()
    let store = MemoryStore(beforeWrite: {
      calls.add($0)
      return .fails(.refused(detail: "no"))
    })
    let now = WallTime(ms: 0)
    let project = Project(id: "p", sender: SenderID(1), createdAt: now)
    let key = AccountKey(hash: [], purpose: .admin, sender: nil, createdAt: now, hint: "")
    let request = RegistrationRequest(
      token: "", deviceID: "", secretHash: [], sender: SenderID(1), app: "", platform: .web, user: nil,
      previousToken: nil)
    let device = DeviceNumber(1)
    switch call {
    case .write: _ = try? await store.write(WriteBatch(), now: now)
    case .backlog: _ = try await store.backlog(of: device, max: 1, now: now)
    case .lease: _ = try? await store.lease(for: SenderID(1), max: 1, node: 1, until: now, now: now)
    case .sendersWithUpstream: _ = try await store.sendersWithUpstream()
    case .sweep: _ = try? await store.sweep(now: now, budget: 1)
    case .journal: _ = try await store.journal(since: now, max: 1)
    case .pruneJournal: try? await store.pruneJournal(before: now)
    case .find: _ = try await store.find(MessageKey(Hash128(high: 1, low: 2)))
    case .register: _ = try? await store.register(request, now: now)
    case .lookUp: _ = try await store.lookUp([])
    case .credentials: _ = try await store.credentials(of: "")
    case .unregister: _ = try? await store.unregister("", now: now)
    case .touch: try? await store.touch([device], now: now)
    case .sweepIdle: _ = try? await store.sweepIdle(seenBefore: now, budget: 1, now: now)
    case .claim: _ = try? await store.claim(device, node: 1, now: now)
    case .release: try? await store.release(device, epoch: 1, now: now)
    case .registrations: _ = try await store.registrations(max: 1)
    case .changeSubscriptions: _ = try? await store.change([], now: now)
    case .topics: _ = try await store.topics(of: "")
    case .beginFanout:
      let audience = try #require(FanoutJob.Audience(text: "/topics/t"))
      try? await store.begin(
        FanoutJob(
          number: MessageNumber(1), key: MessageKey(Hash128(high: 1, low: 2)), sender: SenderID(1),
          audience: audience, begun: now, expires: now, tail: []))
    case .advanceFanouts: _ = try? await store.advance(fanouts: [], max: 1, spares: [], now: now)
    case .fanouts: _ = try await store.fanouts(since: now)
    case .pruneFanouts: _ = try? await store.pruneFanouts(before: now, max: 1, now: now)
    case .changeGroup: _ = try? await store.changeGroup(key: "", sender: SenderID(1))
    case .groups: _ = try await store.group(key: "")
    case .users: _ = try await store.devices(ofUser: "", sender: SenderID(1))
    case .changeBadge: _ = try? await store.countBadges([], sender: SenderID(1), step: 1)
    case .handOver: store.handOver(upstreamOf: SenderID(1)) { _ in }
    case .createProject: _ = try? await store.createProject(project)
    case .projects: _ = try await store.projects()
    case .addKey: try? await store.addKey(key)
    case .keys: _ = try await store.keys()
    case .revokeKey: _ = try? await store.revokeKey(hash: [])
    case .setting: _ = try await store.setting("")
    case .saveSetting: try? await store.saveSetting("", [])
    case .counts: _ = try await store.counts()
    }
    #expect(calls.all == (call.writes ? [call] : []))
  }
}

private final class Held: Sendable {
  private let list = Mutex<[@Sendable () -> Void]>([])
  func add(_ answer: @escaping @Sendable () -> Void) { list.withLock { $0.append(answer) } }
  func release() {
    for answer in list.withLock({ $0 }) { answer() }
  }
}

private final class Calls: Sendable {
  private let list = Mutex<[MemoryStore.Call]>([])
  func add(_ call: MemoryStore.Call) { list.withLock { $0.append(call) } }
  var all: [MemoryStore.Call] { list.withLock { $0 } }
}
