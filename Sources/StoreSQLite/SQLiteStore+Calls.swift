package import PushModel
package import Seams
package import Stores

extension SQLiteStore {
  package func write(_ batch: WriteBatch, now: WallTime, _ done: @escaping Completion<WriteOutcome>) {
    onWriter(done) { writer throws(SQLiteFailure) in .success(try writer.apply(batch, now: now)) }
  }

  package func backlog(
    of device: DeviceNumber, after: MessageNumber?, max: Int, now: WallTime,
    _ done: @escaping Completion<Backlog>
  ) {
    onQuick(done) { reader throws(SQLiteFailure) in
      try reader.backlog(of: device, after: after, max: max, now: now)
    }
  }

  package func lease(
    for sender: SenderID, after: MessageNumber?, max: Int, node: Int, until: WallTime, now: WallTime,
    _ done: @escaping Completion<[StoredUpstream]>
  ) {
    onWriter(done) { writer throws(SQLiteFailure) in
      .success(try writer.lease(for: sender, after: after, max: max, node: node, until: until, now: now))
    }
  }

  package func sendersWithUpstream(_ done: @escaping Completion<[SenderID]>) {
    onSlow(done) { reader throws(SQLiteFailure) in try reader.sendersWithUpstream() }
  }

  package func sweep(now: WallTime, budget: Int, _ done: @escaping Completion<[WriteOutcome.Ended]>) {
    let found: Completion<SweepFinding> = { [self] result in
      switch result {
      case .failure(let fault):
        done(.failure(fault))
      case .success(let finding) where finding.isEmpty:
        done(.success([]))
      case .success(let finding):
        onWriter(isFollowUp: true, done) { writer throws(SQLiteFailure) in
          .success(try writer.removeExpired(finding, now: now))
        }
      }
    }
    onSlow(found) { reader throws(SQLiteFailure) in try reader.expired(now: now, budget: budget) }
  }

  package func journal(since: WallTime, max: Int, _ done: @escaping Completion<[JournalEntry]>) {
    onSlow(done) { reader throws(SQLiteFailure) in try reader.journal(since: since, max: max) }
  }

  package func pruneJournal(before: WallTime, _ done: @escaping Completion<Void>) {
    pruneJournal(before: before, isFollowUp: false, done)
  }

  /// Deletes a slice and submits itself again, so that writes come in between.
  private func pruneJournal(before: WallTime, isFollowUp: Bool, _ done: @escaping Completion<Void>) {
    let slice = 256
    let next: Completion<Int> = { [self] result in
      switch result {
      case .success(slice): pruneJournal(before: before, isFollowUp: true, done)
      case .success: done(.success(()))
      case .failure(let fault): done(.failure(fault))
      }
    }
    onWriter(isFollowUp: isFollowUp, next) { writer throws(SQLiteFailure) in
      .success(try writer.pruneJournal(before: before, max: slice))
    }
  }

  package func find(_ key: MessageKey, _ done: @escaping Completion<[StoredMessage]>) {
    onSlow(done) { reader throws(SQLiteFailure) in try reader.find(key) }
  }
}

extension SQLiteStore {
  package func register(
    _ request: RegistrationRequest, now: WallTime, _ done: @escaping Completion<Registration>
  ) {
    onWriter(done) { writer throws(SQLiteFailure) in try writer.register(request, now: now) }
  }

  package func lookUp(_ tokens: [String], _ done: @escaping Completion<[Registration?]>) {
    onQuick(done) { reader throws(SQLiteFailure) in try reader.lookUp(tokens) }
  }

  package func credentials(of deviceID: String, _ done: @escaping Completion<DeviceCredentials?>) {
    onQuick(done) { reader throws(SQLiteFailure) in try reader.credentials(of: deviceID) }
  }

  package func unregister(
    _ token: String, now: WallTime, _ done: @escaping Completion<(Bool, [WriteOutcome.Ended])>
  ) {
    onWriter(done) { writer throws(SQLiteFailure) in .success(try writer.unregister(token)) }
  }

  package func claim(
    _ device: DeviceNumber, node: Int, awaySince: WallTime?, now: WallTime,
    _ done: @escaping Completion<StreamGrant>
  ) {
    onWriter(isPatient: true, done) { writer throws(SQLiteFailure) in
      try writer.claim(device, node: node, awaySince: awaySince, now: now)
    }
  }

  package func touch(_ devices: [DeviceNumber], now: WallTime, _ done: @escaping Completion<Void>) {
    onWriter(isPatient: true, done) { writer throws(SQLiteFailure) in
      .success(try writer.touch(devices, now: now))
    }
  }

  package func sweepIdle(
    seenBefore: WallTime, budget: Int, now: WallTime, _ done: @escaping Completion<IdleSweep>
  ) {
    let found: Completion<[DeviceNumber]> = { [self] result in
      switch result {
      case .failure(let fault):
        done(.failure(fault))
      case .success(let devices) where devices.isEmpty:
        done(.success(IdleSweep()))
      case .success(let devices):
        onWriter(isFollowUp: true, done) { writer throws(SQLiteFailure) in
          .success(try writer.unregisterIdle(devices, seenBefore: seenBefore))
        }
      }
    }
    onSlow(found) { reader throws(SQLiteFailure) in
      try reader.idleDevices(seenBefore: seenBefore, budget: budget)
    }
  }

  package func release(
    _ device: DeviceNumber, epoch: Int64, now: WallTime, _ done: @escaping Completion<Void>
  ) {
    onWriter(isPatient: true, done) { writer throws(SQLiteFailure) in
      .success(try writer.release(device, epoch: epoch, now: now))
    }
  }

  package func registrations(
    sender: SenderID?, after: String?, max: Int, _ done: @escaping Completion<[Registration]>
  ) {
    onSlow(done) { reader throws(SQLiteFailure) in
      try reader.registrations(sender: sender, after: after, max: max)
    }
  }
}

extension SQLiteStore {
  package func createProject(_ project: Project, _ done: @escaping Completion<Project>) {
    onWriter(done) { writer throws(SQLiteFailure) in try writer.createProject(project) }
  }

  package func projects(_ done: @escaping Completion<[Project]>) {
    onQuick(done) { reader throws(SQLiteFailure) in try reader.projects() }
  }

  package func addKey(_ key: AccountKey, _ done: @escaping Completion<Void>) {
    onWriter(done) { writer throws(SQLiteFailure) in try writer.addKey(key) }
  }

  package func keys(_ done: @escaping Completion<[AccountKey]>) {
    onQuick(done) { reader throws(SQLiteFailure) in try reader.keys() }
  }

  package func revokeKey(hash: [UInt8], _ done: @escaping Completion<Bool>) {
    onWriter(done) { writer throws(SQLiteFailure) in .success(try writer.revokeKey(hash: hash)) }
  }

  package func setting(_ name: String, _ done: @escaping Completion<[UInt8]?>) {
    onQuick(done) { reader throws(SQLiteFailure) in try reader.setting(name) }
  }

  package func saveSetting(_ name: String, _ value: [UInt8], _ done: @escaping Completion<Void>) {
    onWriter(done) { writer throws(SQLiteFailure) in .success(try writer.saveSetting(name, value)) }
  }

  package func counts(_ done: @escaping Completion<[String: Int]>) {
    onSlow(done) { reader throws(SQLiteFailure) in try reader.counts() }
  }
}
