package import PushModel
package import Seams

/// Turns one completion into a return.
///
/// For the edges: administration, tests, start; never per message.
func answer<Value: Sendable>(
  _ call: (@escaping Completion<Value>) -> Void
) async throws(StoreFault) -> Value {
  let result = await withCheckedContinuation {
    (continuation: CheckedContinuation<Result<Value, StoreFault>, Never>) in
    call { continuation.resume(returning: $0) }
  }
  return try result.get()
}

extension MessageStore {
  package func write(_ batch: WriteBatch, now: WallTime) async throws(StoreFault) -> WriteOutcome {
    try await answer { write(batch, now: now, $0) }
  }

  package func backlog(
    of device: DeviceNumber, after: MessageNumber? = nil, max: Int, now: WallTime
  ) async throws(StoreFault) -> Backlog {
    try await answer { backlog(of: device, after: after, max: max, now: now, $0) }
  }

  package func backlogs(
    of devices: [DeviceNumber], max: Int, now: WallTime
  ) async throws(StoreFault) -> [DeviceNumber: Backlog] {
    try await answer { (done: @escaping Completion<[DeviceNumber: Backlog]>) in
      guard !devices.isEmpty else { return done(.success([:])) }
      let found = Guarded<(pages: [DeviceNumber: Backlog], left: Int)>(([:], devices.count))
      backlogs(of: devices, max: max, now: now) { device, result in
        let pages = found.withLock { found -> [DeviceNumber: Backlog]? in
          if case .success(let page) = result { found.pages[device] = page }
          found.left -= 1
          return found.left == 0 ? found.pages : nil
        }
        if let pages { done(.success(pages)) }
      }
    }
  }

  package func lease(
    for sender: SenderID, after: MessageNumber? = nil, max: Int, node: Int, until: WallTime, now: WallTime
  ) async throws(StoreFault) -> [StoredUpstream] {
    try await answer { lease(for: sender, after: after, max: max, node: node, until: until, now: now, $0) }
  }

  package func sendersWithUpstream() async throws(StoreFault) -> [SenderID] {
    try await answer { sendersWithUpstream($0) }
  }

  package func sweep(now: WallTime, budget: Int) async throws(StoreFault) -> [WriteOutcome.Ended] {
    try await answer { sweep(now: now, budget: budget, $0) }
  }

  package func journal(since: WallTime, max: Int) async throws(StoreFault) -> [JournalEntry] {
    try await answer { journal(since: since, max: max, $0) }
  }

  package func pruneJournal(before: WallTime) async throws(StoreFault) {
    try await answer { pruneJournal(before: before, $0) }
  }

  package func find(_ key: MessageKey) async throws(StoreFault) -> [StoredMessage] {
    try await answer { find(key, $0) }
  }
}

extension DeviceStore {
  package func register(
    _ request: RegistrationRequest, now: WallTime
  ) async throws(StoreFault) -> Registration {
    try await answer { register(request, now: now, $0) }
  }

  package func lookUp(_ tokens: [String]) async throws(StoreFault) -> [Registration?] {
    try await answer { lookUp(tokens, $0) }
  }

  package func credentials(of deviceID: String) async throws(StoreFault) -> DeviceCredentials? {
    try await answer { credentials(of: deviceID, $0) }
  }

  package func unregister(
    _ token: String, now: WallTime
  ) async throws(StoreFault) -> (Bool, [WriteOutcome.Ended]) {
    try await answer { unregister(token, now: now, $0) }
  }

  package func claim(
    _ device: DeviceNumber, node: Int, awaySince: WallTime? = nil, now: WallTime
  ) async throws(StoreFault) -> StreamGrant {
    try await answer { claim(device, node: node, awaySince: awaySince, now: now, $0) }
  }

  package func touch(_ devices: [DeviceNumber], now: WallTime) async throws(StoreFault) {
    try await answer { touch(devices, now: now, $0) }
  }

  package func sweepIdle(
    seenBefore: WallTime, budget: Int, now: WallTime
  ) async throws(StoreFault) -> IdleSweep {
    try await answer { sweepIdle(seenBefore: seenBefore, budget: budget, now: now, $0) }
  }

  package func release(_ device: DeviceNumber, epoch: Int64, now: WallTime) async throws(StoreFault) {
    try await answer { release(device, epoch: epoch, now: now, $0) }
  }

  package func registrations(
    sender: SenderID? = nil, after: String? = nil, max: Int
  ) async throws(StoreFault) -> [Registration] {
    try await answer { registrations(sender: sender, after: after, max: max, $0) }
  }
}

extension AccountStore {
  package func createProject(_ project: Project) async throws(StoreFault) -> Project {
    try await answer { createProject(project, $0) }
  }

  package func projects() async throws(StoreFault) -> [Project] {
    try await answer { projects($0) }
  }

  package func addKey(_ key: AccountKey) async throws(StoreFault) {
    try await answer { addKey(key, $0) }
  }

  package func keys() async throws(StoreFault) -> [AccountKey] {
    try await answer { keys($0) }
  }

  package func revokeKey(hash: [UInt8]) async throws(StoreFault) -> Bool {
    try await answer { revokeKey(hash: hash, $0) }
  }

  package func setting(_ name: String) async throws(StoreFault) -> [UInt8]? {
    try await answer { setting(name, $0) }
  }

  package func saveSetting(_ name: String, _ value: [UInt8]) async throws(StoreFault) {
    try await answer { saveSetting(name, value, $0) }
  }

  package func counts() async throws(StoreFault) -> [String: Int] {
    try await answer { counts($0) }
  }
}

extension Store {
  package func close() async {
    await withCheckedContinuation { continuation in close { continuation.resume() } }
  }
}
