import PushModel
import Seams

extension MemoryContents {
  mutating func register(
    _ request: RegistrationRequest, now: WallTime
  ) -> Result<Registration, StoreFault> {
    let known = deviceNumbers[request.deviceID]
    if let existing = registrations[request.token] {
      guard existing.device == known, existing.sender == request.sender, existing.app == request.app else {
        return .failure(.refused(detail: "the token is taken"))
      }
      return .success(seen(existing))
    }
    let number = known ?? DeviceNumber(Int64(devices.count) + 1)
    if known == nil {
      deviceNumbers[request.deviceID] = number
      devices[number] = Device(id: request.deviceID, secretHash: request.secretHash, lastSeen: now)
    }
    devices[number]?.lastSeen = now
    let made = Registration(
      token: request.token, device: number, sender: request.sender, app: request.app,
      platform: request.platform, user: request.user, registeredAt: now, lastSeen: now)
    registrations[request.token] = made
    tokens.append(request.token)
    let registrationNumber = RegistrationNumber(Int64(tokens.count))
    numbers[request.token] = registrationNumber
    if devices[number]?.firstRegistration == nil { devices[number]?.firstRegistration = registrationNumber }
    numbersOfSender[request.sender, default: []].append(registrationNumber)
    if let previous = request.previousToken { alias(previous, to: made) }
    return .success(made)
  }

  private mutating func alias(_ previous: String, to new: Registration) {
    guard let old = registrations[previous], old.token != new.token, old.state != .unregistered,
      old.sender == new.sender, old.app == new.app
    else { return }
    for (token, registration) in registrations where registration.state == .alias(of: previous) {
      registrations[token]?.state = .alias(of: new.token)
    }
    registrations[previous]?.state = .alias(of: new.token)
    if let from = numbers[previous], let to = numbers[new.token] { moveTargets(from: from, to: to) }
  }

  /// A registration with the time its device was last seen.
  func seen(_ registration: Registration) -> Registration {
    var registration = registration
    registration.lastSeen = devices[registration.device]?.lastSeen ?? registration.registeredAt
    return registration
  }

  func lookUp(_ tokens: [String]) -> [Registration?] {
    tokens.map { token in registrations[token].map(seen) }
  }

  func credentials(of deviceID: String) -> DeviceCredentials? {
    guard let number = deviceNumbers[deviceID], let device = devices[number] else { return nil }
    let active = registrations.values.filter { $0.device == number && $0.state == .active }
    return DeviceCredentials(
      number: number, secretHash: device.secretHash,
      registrations: active.sorted { $0.token < $1.token }.map(seen))
  }

  mutating func unregister(_ token: String) -> (Bool, [WriteOutcome.Ended]) {
    guard let gone = registrations[token], gone.state == .active else { return (false, []) }
    registrations[token]?.state = .unregistered
    if let number = numbers[token] { leaveTargets(number) }
    let stays = registrations.values.contains {
      $0.state == .active && $0.device == gone.device && $0.sender == gone.sender && $0.app == gone.app
    }
    var ended: [WriteOutcome.Ended] = []
    if !stays {
      shelves[gone.device]?.remove(endingAs: .droppedUnregistered, &ended) {
        $0.sender == gone.sender && $0.app == gone.app
      }
      if shelves[gone.device]?.isEmpty == true { shelves[gone.device] = nil }
    }
    countShares(ended)
    return (true, ended)
  }

  mutating func claim(
    _ device: DeviceNumber, node: Int, awaySince: WallTime?, now: WallTime
  ) -> Result<StreamGrant, StoreFault> {
    guard var row = devices[device] else { return .failure(.refused(detail: "there is no such device")) }
    var grant = StreamGrant(epoch: row.epoch + 1, previousNode: row.node)
    if let awaySince, row.lastSeen < awaySince {
      shelves[device]?.remove(endingAs: .expired, &grant.ended) { $0.expires <= now }
      let expired = grant.ended.count
      shelves[device]?.remove(endingAs: .droppedOverflow, &grant.ended) { _ in true }
      shelves[device] = nil
      row.overflowed += grant.ended.count - expired
      countShares(grant.ended)
    }
    row.epoch = grant.epoch
    row.node = node
    row.lastSeen = now
    devices[device] = row
    shelves[device]?.streamEnded()
    return .success(grant)
  }

  mutating func release(_ device: DeviceNumber, epoch: Int64, now: WallTime) {
    guard let row = devices[device], row.epoch == epoch, row.node != nil else { return }
    devices[device]?.node = nil
    devices[device]?.lastSeen = now
    shelves[device]?.streamEnded()
  }

  mutating func sweepIdle(seenBefore: WallTime, budget: Int) -> IdleSweep {
    var sweep = IdleSweep()
    var left = budget
    for device in devices.keys.sorted() {
      guard left > 0, let seen = devices[device]?.lastSeen, seen < seenBefore else { continue }
      let tokens = registrations.values.filter { $0.device == device && $0.state == .active }.map(\.token)
      if !tokens.isEmpty { left -= 1 }
      for token in tokens.sorted() {
        sweep.tokens.append(token)
        sweep.ended += unregister(token).1
      }
    }
    return sweep
  }

  func registrations(sender: SenderID?, after: String?, max: Int) -> [Registration] {
    let matching = registrations.values.filter { registration in
      if let sender, registration.sender != sender { return false }
      if let after, registration.token <= after { return false }
      return true
    }
    return matching.sorted { $0.token < $1.token }.prefix(Swift.max(0, max)).map(seen)
  }

  // MARK: Accounts

  mutating func createProject(_ project: Project) -> Result<Project, StoreFault> {
    if projects.contains(where: { $0.id == project.id }) {
      return .failure(.refused(detail: "the project id is taken"))
    }
    if projects.contains(where: { $0.sender == project.sender }) {
      return .failure(.refused(detail: "the sender id is taken"))
    }
    projects.append(project)
    projects.sort { $0.id < $1.id }
    return .success(project)
  }

  mutating func addKey(_ key: AccountKey) -> Result<Void, StoreFault> {
    if keys.contains(where: { $0.hash == key.hash }) {
      return .failure(.refused(detail: "the key is there already"))
    }
    keys.append(key)
    return .success(())
  }

  mutating func revokeKey(hash: [UInt8]) -> Bool {
    guard let index = keys.firstIndex(where: { $0.hash == hash && !$0.revoked }) else { return false }
    keys[index].revoked = true
    return true
  }

  func counts() -> [String: Int] {
    var counts: [String: Int] = [:]
    for table in StoreTable.allCases {
      counts[table.rawValue] =
        switch table {
        case .devices: devices.count
        case .registrations: registrations.count
        case .messages: shelves.values.reduce(0) { $0 + $1.rows.count }
        case .upstream: upstream.values.reduce(0) { $0 + $1.count }
        case .projects: projects.count
        case .keys: keys.count
        case .journal: journal.count
        case .topics: topics.count
        case .subscriptions: topics.values.reduce(0) { $0 + $1.members.count }
        case .fanouts: fanouts.count
        case .groups: groups.count
        }
    }
    return counts
  }
}
