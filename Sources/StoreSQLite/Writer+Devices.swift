import PushModel
import Seams
import Stores

extension Writer {
  func register(
    _ request: RegistrationRequest, now: WallTime
  ) throws(SQLiteFailure) -> Result<Registration, StoreFault> {
    statements.deviceByID.bind(1, text: request.deviceID)
    var known: DeviceNumber?
    if try statements.deviceByID.row() { known = DeviceNumber(statements.deviceByID.int(0)) }
    statements.deviceByID.reset()

    if let existing = try registration(request.token) {
      guard existing.device == known, existing.sender == request.sender, existing.app == request.app else {
        return .failure(.refused(detail: "the token is taken"))
      }
      return .success(existing)
    }
    let device: DeviceNumber
    if let known {
      device = known
      statements.seeDevice.bind(1, known.value)
      statements.seeDevice.bind(2, now.ms)
      try statements.seeDevice.run()
    } else {
      statements.insertDevice.bind(1, text: request.deviceID)
      statements.insertDevice.bind(2, blob: request.secretHash)
      statements.insertDevice.bind(3, now.ms)
      try statements.insertDevice.run()
      device = DeviceNumber(connection.lastInsertedID)
    }
    let insert = statements.insertRegistration
    insert.bind(1, text: request.token)
    insert.bind(2, device.value)
    insert.bind(3, request.sender.value)
    insert.bind(4, text: request.app)
    insert.bind(5, text: request.platform.rawValue)
    insert.bind(6, text: request.user)
    insert.bind(7, now.ms)
    try insert.run()
    let made = Registration(
      token: request.token, device: device, sender: request.sender, app: request.app,
      platform: request.platform, user: request.user, registeredAt: now, lastSeen: now)
    if let previous = request.previousToken, previous != request.token {
      try alias(previous, to: made)
    }
    return .success(made)
  }

  private func alias(_ previous: String, to new: Registration) throws(SQLiteFailure) {
    statements.makeAlias.bind(1, text: previous)
    statements.makeAlias.bind(2, text: new.token)
    statements.makeAlias.bind(3, new.sender.value)
    statements.makeAlias.bind(4, text: new.app)
    try statements.makeAlias.run()
    guard connection.changes > 0 else { return }
    statements.moveAliases.bind(1, text: previous)
    statements.moveAliases.bind(2, text: new.token)
    try statements.moveAliases.run()
    try moveTargets(from: previous, to: new.token)
  }

  private func registration(_ token: String) throws(SQLiteFailure) -> Registration? {
    statements.registration.bind(1, text: token)
    defer { statements.registration.reset() }
    return try statements.registration.row() ? try statements.registration.registration() : nil
  }

  func unregister(_ token: String) throws(SQLiteFailure) -> (Bool, [WriteOutcome.Ended]) {
    guard let gone = try registration(token), gone.state == .active else { return (false, []) }
    statements.unregister.bind(1, text: token)
    try statements.unregister.run()
    try leaveTargets(token)

    let other = statements.otherActive
    other.bind(1, gone.device.value)
    other.bind(2, gone.sender.value)
    other.bind(3, text: gone.app)
    other.bind(4, text: token)
    defer { other.reset() }
    if try other.row() { return (true, []) }

    statements.takeOfApp.bind(1, gone.device.value)
    statements.takeOfApp.bind(2, gone.sender.value)
    statements.takeOfApp.bind(3, text: gone.app)
    let ended = try rowsTaken(by: statements.takeOfApp, gone.device, as: .droppedUnregistered)
    for row in ended { shelves[gone.device]?.removed(row.number) }
    return (true, ended)
  }

  func claim(
    _ device: DeviceNumber, node: Int, awaySince: WallTime?, now: WallTime
  ) throws(SQLiteFailure) -> Result<StreamGrant, StoreFault> {
    statements.device.bind(1, device.value)
    guard try statements.device.row() else {
      return .failure(.refused(detail: "there is no such device"))
    }
    let previous = statements.device.isNull(0) ? nil : Int(statements.device.int(0))
    var grant = StreamGrant(epoch: statements.device.int(1) + 1, previousNode: previous)
    let seen = WallTime(ms: statements.device.int(2))
    statements.device.reset()
    if let awaySince, seen < awaySince { grant.ended = try dropAll(of: device, now: now) }

    statements.claim.bind(1, device.value)
    statements.claim.bind(2, Int64(node))
    statements.claim.bind(3, grant.epoch)
    statements.claim.bind(4, now.ms)
    try statements.claim.run()
    try streamEnded(device, held: true)
    return .success(grant)
  }

  /// The device was away too long: all that is stored for it ends.
  private func dropAll(
    of device: DeviceNumber, now: WallTime
  ) throws(SQLiteFailure) -> [WriteOutcome.Ended] {
    statements.takeExpiredOfDevice.bind(1, device.value)
    statements.takeExpiredOfDevice.bind(2, now.ms)
    var ended = try rowsTaken(by: statements.takeExpiredOfDevice, device, as: .expired)
    statements.takeOfDevice.bind(1, device.value)
    let dropped = try rowsTaken(by: statements.takeOfDevice, device, as: .droppedOverflow)
    ended += dropped
    for row in ended { shelves[device]?.removed(row.number) }
    if !dropped.isEmpty {
      statements.addOverflow.bind(1, device.value)
      statements.addOverflow.bind(2, Int64(dropped.count))
      try statements.addOverflow.run()
    }
    return ended
  }

  func touch(_ devices: [DeviceNumber], now: WallTime) throws(SQLiteFailure) {
    for device in devices {
      statements.seeDevice.bind(1, device.value)
      statements.seeDevice.bind(2, now.ms)
      try statements.seeDevice.run()
    }
  }

  /// The second half of a sweep of idle devices: those that came back meanwhile are left alone.
  func unregisterIdle(
    _ devices: [DeviceNumber], seenBefore: WallTime
  ) throws(SQLiteFailure) -> IdleSweep {
    var sweep = IdleSweep()
    for device in devices {
      var tokens: [String] = []
      do {
        statements.idleTokens.bind(1, device.value)
        statements.idleTokens.bind(2, seenBefore.ms)
        defer { statements.idleTokens.reset() }
        while try statements.idleTokens.row() { tokens.append(statements.idleTokens.text(0)) }
      }
      for token in tokens {
        let (was, ended) = try unregister(token)
        if was { sweep.tokens.append(token) }
        sweep.ended += ended
      }
    }
    return sweep
  }

  func release(_ device: DeviceNumber, epoch: Int64, now: WallTime) throws(SQLiteFailure) {
    statements.release.bind(1, device.value)
    statements.release.bind(2, epoch)
    statements.release.bind(3, now.ms)
    try statements.release.run()
    if connection.changes > 0 { try streamEnded(device, held: false) }
  }

  /// What was in flight on the device's last stream is plainly stored again.
  private func streamEnded(_ device: DeviceNumber, held: Bool) throws(SQLiteFailure) {
    let shelf = shelves[device]
    shelf?.held = held
    if let shelf, !shelf.mayHaveLive { return }
    statements.endLive.bind(1, device.value)
    try statements.endLive.run()
    shelf?.mayHaveLive = false
  }

  // MARK: Accounts

  func createProject(_ project: Project) throws(SQLiteFailure) -> Result<Project, StoreFault> {
    for taken in [("id", "the project id is taken"), ("sender", "the sender id is taken")] {
      let clash = try connection.prepare("SELECT 1 FROM project WHERE \(taken.0) = ?")
      if taken.0 == "id" { clash.bind(1, text: project.id) } else { clash.bind(1, project.sender.value) }
      if try clash.row() { return .failure(.refused(detail: taken.1)) }
    }
    statements.insertProject.bind(1, text: project.id)
    statements.insertProject.bind(2, project.sender.value)
    statements.insertProject.bind(3, project.createdAt.ms)
    try statements.insertProject.run()
    return .success(project)
  }

  func addKey(_ key: AccountKey) throws(SQLiteFailure) -> Result<Void, StoreFault> {
    let insert = statements.insertKey
    insert.bind(1, blob: key.hash)
    insert.bind(2, text: key.purpose.rawValue)
    insert.bind(3, key.sender?.value)
    insert.bind(4, key.createdAt.ms)
    insert.bind(5, key.revoked ? 1 : 0)
    insert.bind(6, text: key.hint)
    try insert.run()
    return connection.changes > 0
      ? .success(()) : .failure(.refused(detail: "the key is there already"))
  }

  func revokeKey(hash: [UInt8]) throws(SQLiteFailure) -> Bool {
    statements.revokeKey.bind(1, blob: hash)
    try statements.revokeKey.run()
    return connection.changes > 0
  }

  func saveSetting(_ name: String, _ value: [UInt8]) throws(SQLiteFailure) {
    statements.saveSetting.bind(1, text: name)
    statements.saveSetting.bind(2, blob: value)
    try statements.saveSetting.run()
  }
}
