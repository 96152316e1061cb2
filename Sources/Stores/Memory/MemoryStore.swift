package import PushModel
package import Seams
import Synchronization

/// A ``Store`` without a disk: the whole contract, kept in memory.
///
/// For tests, simulation and trials.
///
/// It answers before the call returns, on the caller's thread, unless `deliver` sends the answer elsewhere or
/// later. Calls may come from any thread.
package final class MemoryStore: Store {
  /// What a call is, for the fault hook.
  package enum Call: Sendable, CaseIterable {
    case write, backlog, lease, sendersWithUpstream, sweep, journal, pruneJournal, find
    case register, lookUp, credentials, unregister, claim, release, registrations
    case touch, sweepIdle
    case changeSubscriptions, topics, beginFanout, advanceFanouts, fanouts, pruneFanouts
    case changeGroup, groups, users, changeBadge
    case handOver
    case createProject, projects, addKey, keys, revokeKey, setting, saveSetting, counts

    /// The call may change what is stored.
    package var writes: Bool {
      switch self {
      case .write, .lease, .sweep, .pruneJournal, .register, .unregister, .claim, .release, .touch,
        .sweepIdle, .createProject,
        .addKey, .revokeKey, .saveSetting, .changeSubscriptions, .beginFanout, .advanceFanouts, .pruneFanouts,
        .changeGroup, .changeBadge, .handOver:
        true
      case .backlog, .sendersWithUpstream, .journal, .find, .lookUp, .credentials, .registrations,
        .projects, .keys, .setting, .counts, .topics, .fanouts, .groups, .users:
        false
      }
    }
  }

  /// Told of devices, see ``joined(as:arrive:deliver:wrote:)``.
  package typealias Wrote = @Sendable ([DeviceNumber]) -> Void

  /// What befalls a call.
  package enum Fate: Sendable {
    case goesWell
    /// Nothing is done, the fault is answered.
    case fails(StoreFault)
    /// All is done and the fault is answered all the same, as when a connection breaks after a commit.
    case losesAnswer(StoreFault)
  }

  /// Hands an answer out: at once, or by a simulator's clock.
  package typealias Deliver = @Sendable (@escaping @Sendable () -> Void) -> Void

  /// Takes a call in: at once, or when a simulator's clock says so.
  ///
  /// What writes must be run in the order of the calls. A call never run, nor answered, is one that a kill came before.
  package typealias Arrive = @Sendable (Call, _ work: @escaping @Sendable () -> Void) -> Void

  private struct State {
    var beforeWrite: (@Sendable (Call) -> Fate)?
    var beforeRead: (@Sendable (Call) -> Fate)?
    var closed = false
  }

  /// The tables; those of several stores when nodes share them.
  let tables: MemoryTables
  /// Taken inside the lock of `tables`, when both are.
  private let state: Mutex<State>
  private let deliver: Deliver
  private let arrive: Arrive?
  /// Who asks, where nodes share the tables.
  let node: MemoryNode?
  /// Told of the devices that a call wrote messages for, once it is done.
  private let wrote: Wrote?

  /// - Parameter beforeWrite: Asked before each call that may change something, outside the store's lock.
  package init(
    limits: StoreLimits = StoreLimits(), arrive: Arrive? = nil, deliver: @escaping Deliver = { $0() },
    beforeWrite: (@Sendable (Call) -> Fate)? = nil
  ) {
    tables = MemoryTables(MemoryContents(limits: limits))
    state = Mutex(State(beforeWrite: beforeWrite))
    self.arrive = arrive
    self.deliver = deliver
    node = nil
    wrote = nil
  }

  init(
    _ tables: MemoryTables, arrive: Arrive?, deliver: @escaping Deliver, node: MemoryNode? = nil,
    wrote: Wrote? = nil
  ) {
    self.tables = tables
    state = Mutex(State())
    self.arrive = arrive
    self.deliver = deliver
    self.node = node
    self.wrote = wrote
  }

  /// A store as a new process would find it after this one was killed now.
  ///
  /// This one is closed; the fault hook is not taken over.
  package func restarted(arrive: Arrive? = nil, deliver: @escaping Deliver = { $0() }) -> MemoryStore {
    var contents = tables.contents.withLock { contents in
      state.withLock { $0.closed = true }
      return contents
    }
    contents.restart()
    return MemoryStore(MemoryTables(contents), arrive: arrive, deliver: deliver)
  }

  /// What a new process would find if this one were killed now; this store goes on.
  package func snapshot(arrive: Arrive? = nil, deliver: @escaping Deliver = { $0() }) -> MemoryStore {
    var contents = tables.contents.withLock { $0 }
    contents.restart()
    return MemoryStore(MemoryTables(contents), arrive: arrive, deliver: deliver)
  }

  /// Puts another fault hook in place; nil for none.
  package func setBeforeWrite(_ hook: (@Sendable (Call) -> Fate)?) {
    state.withLock { $0.beforeWrite = hook }
  }

  /// The same for calls that change nothing.
  package func setBeforeRead(_ hook: (@Sendable (Call) -> Fate)?) {
    state.withLock { $0.beforeRead = hook }
  }

  /// One call: asks the hook, does the work under the lock, answers outside it.
  func run<Value: Sendable>(
    _ call: Call, _ done: @escaping Completion<Value>,
    _ work: @escaping @Sendable (inout MemoryContents) -> Result<Value, StoreFault>
  ) {
    guard let arrive else { return execute(call, done, work) }
    arrive(call) { [self] in execute(call, done, work) }
  }

  private func execute<Value: Sendable>(
    _ call: Call, _ done: @escaping Completion<Value>,
    _ work: (inout MemoryContents) -> Result<Value, StoreFault>
  ) {
    var fate = Fate.goesWell
    if let hook = state.withLock({ call.writes ? $0.beforeWrite : $0.beforeRead }) { fate = hook(call) }
    if case .fails(let fault) = fate {
      deliver { done(.failure(fault)) }
      return
    }
    let closed = StoreFault.unavailable(outcomeUnknown: false, detail: "the store is closed")
    let (found, written) = tables.contents.withLock {
      contents -> (Result<Value, StoreFault>, [DeviceNumber]) in
      guard !state.withLock({ $0.closed }) else { return (.failure(closed), []) }
      guard let node else { return (work(&contents), []) }
      contents.caller = node
      let result = work(&contents)
      contents.caller = nil
      return (result, contents.takeWritten())
    }
    var answer = found
    if case .losesAnswer(let fault) = fate { answer = .failure(fault) }
    let told = answer
    deliver { done(told) }
    // A lost answer is a lost connection, and nobody is asked over that.
    if !written.isEmpty, case .goesWell = fate { wrote?(written) }
  }

  package func close(_ done: @escaping @Sendable () -> Void) {
    state.withLock { $0.closed = true }
    deliver(done)
  }
}

extension MemoryStore {
  package func write(_ batch: WriteBatch, now: WallTime, _ done: @escaping Completion<WriteOutcome>) {
    run(.write, done) { .success($0.apply(batch, now: now)) }
  }

  package func backlog(
    of device: DeviceNumber, after: MessageNumber?, max: Int, now: WallTime,
    _ done: @escaping Completion<Backlog>
  ) {
    run(.backlog, done) { .success($0.backlog(of: device, after: after, max: max, now: now)) }
  }

  package func lease(
    for sender: SenderID, after: MessageNumber?, max: Int, node: Int, until: WallTime, now: WallTime,
    _ done: @escaping Completion<[StoredUpstream]>
  ) {
    run(.lease, done) {
      .success($0.lease(for: sender, after: after, max: max, node: node, until: until, now: now))
    }
  }

  package func sendersWithUpstream(_ done: @escaping Completion<[SenderID]>) {
    run(.sendersWithUpstream, done) { .success($0.upstream.keys.sorted()) }
  }

  package func sweep(now: WallTime, budget: Int, _ done: @escaping Completion<[WriteOutcome.Ended]>) {
    run(.sweep, done) { .success($0.sweep(now: now, budget: budget)) }
  }

  package func journal(since: WallTime, max: Int, _ done: @escaping Completion<[JournalEntry]>) {
    run(.journal, done) { .success($0.journal(since: since, max: max)) }
  }

  package func pruneJournal(before: WallTime, _ done: @escaping Completion<Void>) {
    run(.pruneJournal, done) { .success($0.pruneJournal(before: before)) }
  }

  package func find(_ key: MessageKey, _ done: @escaping Completion<[StoredMessage]>) {
    run(.find, done) { .success($0.find(key)) }
  }
}

extension MemoryStore {
  package func register(
    _ request: RegistrationRequest, now: WallTime, _ done: @escaping Completion<Registration>
  ) {
    run(.register, done) { $0.register(request, now: now) }
  }

  package func lookUp(_ tokens: [String], _ done: @escaping Completion<[Registration?]>) {
    run(.lookUp, done) { .success($0.lookUp(tokens)) }
  }

  package func credentials(of deviceID: String, _ done: @escaping Completion<DeviceCredentials?>) {
    run(.credentials, done) { .success($0.credentials(of: deviceID)) }
  }

  package func unregister(
    _ token: String, now: WallTime, _ done: @escaping Completion<(Bool, [WriteOutcome.Ended])>
  ) {
    run(.unregister, done) { .success($0.unregister(token)) }
  }

  package func claim(
    _ device: DeviceNumber, node: Int, awaySince: WallTime?, now: WallTime,
    _ done: @escaping Completion<StreamGrant>
  ) {
    run(.claim, done) { $0.claim(device, node: node, awaySince: awaySince, now: now) }
  }

  package func touch(_ devices: [DeviceNumber], now: WallTime, _ done: @escaping Completion<Void>) {
    run(.touch, done) { contents in
      for device in devices { contents.devices[device]?.lastSeen = now }
      return .success(())
    }
  }

  package func sweepIdle(
    seenBefore: WallTime, budget: Int, now: WallTime, _ done: @escaping Completion<IdleSweep>
  ) {
    run(.sweepIdle, done) { .success($0.sweepIdle(seenBefore: seenBefore, budget: budget)) }
  }

  package func release(
    _ device: DeviceNumber, epoch: Int64, now: WallTime, _ done: @escaping Completion<Void>
  ) {
    run(.release, done) { .success($0.release(device, epoch: epoch, now: now)) }
  }

  package func epochs(of devices: [DeviceNumber], _ done: @escaping Completion<[DeviceNumber: Int64]>) {
    run(.credentials, done) { contents in
      var epochs: [DeviceNumber: Int64] = [:]
      for device in devices { epochs[device] = contents.devices[device]?.epoch }
      return .success(epochs)
    }
  }

  package func registrations(
    sender: SenderID?, after: String?, max: Int, _ done: @escaping Completion<[Registration]>
  ) {
    run(.registrations, done) { .success($0.registrations(sender: sender, after: after, max: max)) }
  }
}

extension MemoryStore {
  package func createProject(_ project: Project, _ done: @escaping Completion<Project>) {
    run(.createProject, done) { $0.createProject(project) }
  }

  package func projects(_ done: @escaping Completion<[Project]>) {
    run(.projects, done) { .success($0.projects) }
  }

  package func addKey(_ key: AccountKey, _ done: @escaping Completion<Void>) {
    run(.addKey, done) { $0.addKey(key) }
  }

  package func keys(_ done: @escaping Completion<[AccountKey]>) {
    run(.keys, done) { .success($0.keys) }
  }

  package func revokeKey(hash: [UInt8], _ done: @escaping Completion<Bool>) {
    run(.revokeKey, done) { .success($0.revokeKey(hash: hash)) }
  }

  package func setting(_ name: String, _ done: @escaping Completion<[UInt8]?>) {
    run(.setting, done) { .success($0.settings[name]) }
  }

  package func saveSetting(_ name: String, _ value: [UInt8], _ done: @escaping Completion<Void>) {
    run(.saveSetting, done) { contents in
      contents.settings[name] = value
      return .success(())
    }
  }

  package func counts(_ done: @escaping Completion<[String: Int]>) {
    run(.counts, done) { .success($0.counts()) }
  }
}
