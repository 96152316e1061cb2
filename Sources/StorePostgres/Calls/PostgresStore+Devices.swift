package import PushModel
package import Seams
package import Stores

extension PostgresStore {
  package func register(
    _ request: RegistrationRequest, now: WallTime, _ done: @escaping Completion<Registration>
  ) {
    let slot = numbersHoldSlots ? StoreSlots.slot(of: request.deviceID) : nil
    stepwise(edits, done) { session throws(PostgresFailure) in
      try Self.register(request, in: slot, now: now, on: session)
    }
  }

  private static func register(
    _ request: RegistrationRequest, in slot: Int?, now: WallTime, on session: Session
  ) throws(PostgresFailure) -> Result<Registration, StoreFault> {
    var parameters = Parameters()
    parameters.text(request.deviceID)
    let known = try session.query(.deviceByID, parameters)
    let existing = try session.query(.registrationForUpdate, text: request.token)
    if existing.count > 0 {
      let found = try existing.registration(0)
      guard known.count > 0, found.device.value == known.int(0, 0), found.sender == request.sender,
        found.app == request.app
      else { return .failure(.refused(detail: "the token is taken")) }
      return .success(found)
    }
    let device: DeviceNumber
    parameters = Parameters()
    if known.count > 0 {
      device = DeviceNumber(known.int(0, 0))
      parameters.int(device.value)
      parameters.int(now.ms)
      _ = try session.query(.seeDevice, parameters)
    } else {
      parameters.text(request.deviceID)
      parameters.blob(request.secretHash)
      parameters.int(now.ms)
      parameters.int(slot.map { Int64($0) })
      device = DeviceNumber(try session.query(.insertDevice, parameters).int(0, 0))
    }
    parameters = Parameters()
    parameters.text(request.token)
    parameters.int(device.value)
    parameters.int(request.sender.value)
    parameters.text(request.app)
    parameters.text(request.platform.rawValue)
    parameters.blob(request.user)
    parameters.int(now.ms)
    parameters.int(slot.map { Int64($0) })
    let number = try session.query(.insertRegistration, parameters).int(0, 0)
    let made = Registration(
      token: request.token, device: device, sender: request.sender, app: request.app,
      platform: request.platform, user: request.user, registeredAt: now, lastSeen: now)
    if let previous = request.previousToken, previous != request.token {
      try alias(previous, to: made, number, on: session)
    }
    return .success(made)
  }

  private static func alias(
    _ previous: String, to new: Registration, _ number: Int64, on session: Session
  ) throws(PostgresFailure) {
    var parameters = Parameters()
    parameters.text(previous)
    parameters.text(new.token)
    parameters.int(new.sender.value)
    parameters.text(new.app)
    let old = try session.query(.makeAlias, parameters)
    guard old.count > 0 else { return }
    parameters = Parameters()
    parameters.text(previous)
    parameters.text(new.token)
    _ = try session.query(.moveAliases, parameters)
    // The registration took another's place: topics and groups go with it.
    parameters = Parameters()
    parameters.int(old.int(0, 0))
    parameters.int(number)
    _ = try session.query(.moveSubscriptions, parameters)
    _ = try session.query(.moveMemberships, parameters)
  }

  package func lookUp(_ tokens: [String], _ done: @escaping Completion<[Registration?]>) {
    guard !tokens.isEmpty else { return done(.success([])) }
    var parameters = Parameters()
    parameters.texts(tokens) { $0 }
    query(reads, .lookUp, parameters, done) { rows throws(PostgresFailure) in
      var found: [Registration?] = []
      for row in 0..<rows.count { found.append(rows.isNull(row, 0) ? nil : try rows.registration(row)) }
      return found
    }
  }

  package func credentials(of deviceID: String, _ done: @escaping Completion<DeviceCredentials?>) {
    pipelined(
      reads, done,
      send: { session throws(PostgresFailure) in
        var parameters = Parameters()
        parameters.text(deviceID)
        try session.send(.deviceByID, parameters)
        try session.send(.deviceRegistrations, parameters)
      },
      take: { session throws(PostgresFailure) in
        let device = try session.rows()
        let registrations = try session.rows().registrations()
        guard device.count > 0 else { return nil }
        return DeviceCredentials(
          number: DeviceNumber(device.int(0, 0)), secretHash: device.blob(0, 1),
          registrations: registrations)
      })
  }

  package func unregister(
    _ token: String, now: WallTime, _ done: @escaping Completion<(Bool, [WriteOutcome.Ended])>
  ) {
    stepwise(edits, done) { session throws(PostgresFailure) in
      .success(try Self.unregister(token, on: session))
    }
  }

  private static func unregister(
    _ token: String, on session: Session
  ) throws(PostgresFailure) -> (Bool, [WriteOutcome.Ended]) {
    let found = try session.query(.registrationForUpdate, text: token)
    guard found.count > 0 else { return (false, []) }
    let gone = try found.registration(0)
    guard gone.state == .active else { return (false, []) }
    _ = try session.query(.unregister, text: token)
    try leaveTargets(found.int(0, 10), on: session)
    var parameters = Parameters()
    parameters.int(gone.device.value)
    parameters.int(gone.sender.value)
    parameters.text(gone.app)
    let rows = try session.query(.takeOfApp, parameters)
    var ended: [WriteOutcome.Ended] = []
    for row in 0..<rows.count {
      ended.append(try rows.ended(row, of: gone.device, as: .droppedUnregistered))
    }
    return (true, ended)
  }

  /// A registration went away.
  private static func leaveTargets(_ number: Int64, on session: Session) throws(PostgresFailure) {
    var parameters = Parameters()
    parameters.int(number)
    _ = try session.query(.leaveTopics, parameters)
    let groups = try session.query(.leaveGroups, parameters)
    for row in 0..<groups.count {
      parameters = Parameters()
      parameters.int(groups.int(row, 0))
      _ = try session.query(.deleteGroup, parameters)
    }
  }

  package func claim(
    _ device: DeviceNumber, node: Int, awaySince: WallTime?, now: WallTime,
    _ done: @escaping Completion<StreamGrant>
  ) {
    let refusable: Completion<StreamGrant?> = { result in
      done(
        result.flatMap { grant in
          grant.map { .success($0) } ?? .failure(.refused(detail: "there is no such device"))
        })
    }
    pipelined(
      claims, refusable,
      send: { session throws(PostgresFailure) in
        if let awaySince {
          var parameters = Parameters()
          parameters.int(device.value)
          parameters.int(awaySince.ms)
          parameters.int(now.ms)
          try session.send(.dropAway, parameters)
        }
        var parameters = Parameters()
        parameters.int(device.value)
        parameters.int4(node)
        parameters.int(now.ms)
        try session.send(.claim, parameters)
      },
      take: { session throws(PostgresFailure) in
        var ended: [WriteOutcome.Ended] = []
        if awaySince != nil {
          let rows = try session.rows()
          for row in 0..<rows.count {
            guard let state = MessageState(rawValue: UInt8(truncatingIfNeeded: rows.int(row, 4))) else {
              throw .corrupt("table message: an unknown state")
            }
            ended.append(try rows.ended(row, of: device, as: state))
          }
        }
        let rows = try session.rows()
        guard rows.count > 0 else { return nil }
        return StreamGrant(
          epoch: rows.int(0, 0), previousNode: rows.optionalInt(0, 1).map { Int($0) }, ended: ended)
      })
  }

  package func touch(_ devices: [DeviceNumber], now: WallTime, _ done: @escaping Completion<Void>) {
    var parameters = Parameters()
    parameters.ints(devices.sorted()) { $0.value }
    parameters.int(now.ms)
    query(claims, .touch, parameters, done) { _ throws(PostgresFailure) in }
  }

  package func sweepIdle(
    seenBefore: WallTime, budget: Int, now: WallTime, _ done: @escaping Completion<IdleSweep>
  ) {
    guard budget > 0 else { return done(.success(IdleSweep())) }
    let place = idlePlace
    stepwise(edits, done) { session throws(PostgresFailure) in
      var parameters = Parameters()
      parameters.int(place.withLock { $0 })
      parameters.int(seenBefore.ms)
      parameters.int(Self.idleSlice)
      let devices = try session.query(.idleDevices, parameters)
      var sweep = IdleSweep()
      var ended = 0
      var next = devices.count < Int(Self.idleSlice) ? 0 : devices.int(devices.count - 1, 0)
      for row in 0..<devices.count where devices.bool(row, 1) {
        try Self.unregisterIdle(devices.int(row, 0), seenBefore: seenBefore, into: &sweep, on: session)
        ended += 1
        if ended == budget {
          next = devices.int(row, 0)
          break
        }
      }
      place.withLock { $0 = next }
      return .success(sweep)
    }
  }

  /// Those that came back meanwhile are left alone.
  private static func unregisterIdle(
    _ device: Int64, seenBefore: WallTime, into sweep: inout IdleSweep, on session: Session
  ) throws(PostgresFailure) {
    var parameters = Parameters()
    parameters.int(device)
    parameters.int(seenBefore.ms)
    let tokens = try session.query(.idleTokens, parameters)
    for row in 0..<tokens.count {
      let token = tokens.text(row, 0)
      let (was, ended) = try unregister(token, on: session)
      if was { sweep.tokens.append(token) }
      sweep.ended += ended
    }
  }

  package func epochs(of devices: [DeviceNumber], _ done: @escaping Completion<[DeviceNumber: Int64]>) {
    var parameters = Parameters()
    parameters.ints(devices) { $0.value }
    query(reads, .epochs, parameters, done) { rows throws(PostgresFailure) in
      (0..<rows.count).reduce(into: [:]) { $0[DeviceNumber(rows.int($1, 0))] = rows.int($1, 1) }
    }
  }

  package func release(
    _ device: DeviceNumber, epoch: Int64, now: WallTime, _ done: @escaping Completion<Void>
  ) {
    var parameters = Parameters()
    parameters.int(device.value)
    parameters.int(epoch)
    parameters.int(now.ms)
    query(claims, .release, parameters, done) { _ throws(PostgresFailure) in }
  }

  package func registrations(
    sender: SenderID?, after: String?, max: Int, _ done: @escaping Completion<[Registration]>
  ) {
    var parameters = Parameters()
    parameters.text(after ?? "")
    parameters.int(pageMax(max))
    if let sender { parameters.int(sender.value) }
    let page: SQL = sender == nil ? .registrationPage : .senderRegistrationPage
    query(scans, page, parameters, done) { rows throws(PostgresFailure) in
      try rows.registrations()
    }
  }
}

extension PostgresStore {
  package func createProject(_ project: Project, _ done: @escaping Completion<Project>) {
    stepwise(edits, done) { session throws(PostgresFailure) in
      let known = try session.query(.projects, Parameters())
      for row in 0..<known.count {
        if known.text(row, 0) == project.id { return .failure(.refused(detail: "the project id is taken")) }
        if known.int(row, 1) == project.sender.value {
          return .failure(.refused(detail: "the sender id is taken"))
        }
      }
      var parameters = Parameters()
      parameters.text(project.id)
      parameters.int(project.sender.value)
      parameters.int(project.createdAt.ms)
      _ = try session.query(.insertProject, parameters)
      return .success(project)
    }
  }

  package func projects(_ done: @escaping Completion<[Project]>) {
    query(reads, .projects, Parameters(), done) { rows throws(PostgresFailure) in
      (0..<rows.count).map {
        Project(
          id: rows.text($0, 0), sender: SenderID(rows.int($0, 1)), createdAt: WallTime(ms: rows.int($0, 2)))
      }
    }
  }

  package func addKey(_ key: AccountKey, _ done: @escaping Completion<Void>) {
    stepwise(edits, done) { session throws(PostgresFailure) in
      var parameters = Parameters()
      parameters.blob(key.hash)
      parameters.text(key.purpose.rawValue)
      parameters.int(key.sender?.value)
      parameters.int(key.createdAt.ms)
      parameters.bool(key.revoked)
      parameters.blob(Optional(key.hint))
      return try session.query(.insertKey, parameters).changed > 0
        ? .success(()) : .failure(.refused(detail: "the key is there already"))
    }
  }

  package func keys(_ done: @escaping Completion<[AccountKey]>) {
    query(reads, .keys, Parameters(), done) { rows throws(PostgresFailure) in
      var keys: [AccountKey] = []
      for row in 0..<rows.count {
        guard let purpose = AccountKey.Purpose(rawValue: rows.text(row, 1)) else {
          throw .corrupt("table account_key: unknown purpose")
        }
        keys.append(
          AccountKey(
            hash: rows.blob(row, 0), purpose: purpose,
            sender: rows.optionalInt(row, 2).map { SenderID($0) }, createdAt: WallTime(ms: rows.int(row, 3)),
            revoked: rows.bool(row, 4), hint: rows.text(row, 5)))
      }
      return keys
    }
  }

  package func revokeKey(hash: [UInt8], _ done: @escaping Completion<Bool>) {
    stepwise(edits, done) { session throws(PostgresFailure) in
      var parameters = Parameters()
      parameters.blob(hash)
      return .success(try session.query(.revokeKey, parameters).changed > 0)
    }
  }

  package func setting(_ name: String, _ done: @escaping Completion<[UInt8]?>) {
    var parameters = Parameters()
    parameters.text(name)
    query(reads, .setting, parameters, done) { rows throws(PostgresFailure) in
      rows.count > 0 ? rows.blob(0, 0) : nil
    }
  }

  package func saveSetting(_ name: String, _ value: [UInt8], _ done: @escaping Completion<Void>) {
    stepwise(edits, done) { session throws(PostgresFailure) in
      var parameters = Parameters()
      parameters.text(name)
      parameters.blob(value)
      _ = try session.query(.saveSetting, parameters)
      return .success(())
    }
  }

  package func counts(_ done: @escaping Completion<[String: Int]>) {
    query(scans, .counts, Parameters(), done) { rows throws(PostgresFailure) in
      var counts: [String: Int] = [:]
      for table in StoreTable.allCases {
        let column: Int32 =
          switch table {
          case .devices: 0
          case .registrations: 1
          case .messages: 2
          case .upstream: 3
          case .projects: 4
          case .keys: 5
          case .topics: 6
          case .subscriptions: 7
          case .fanouts: 8
          case .groups: 9
          case .journal: 10
          }
        counts[table.rawValue] = Int(rows.int(0, column))
      }
      return counts
    }
  }
}
