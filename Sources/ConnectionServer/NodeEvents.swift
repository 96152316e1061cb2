import DeliveryCore
import PushModel
import Seams
import Stores
import Telemetry

extension ServerContext {
  /// Takes what the other nodes say to the shards that it is about.
  func listenToNodes() {
    bus?.listen { [weak self] events in
      guard let self else { return }
      for event in events { take(event) }
    }
  }

  private func home(of device: DeviceNumber) -> Int { Int(device.value.magnitude % UInt64(shardCount)) }

  private func take(_ event: BusEvent) {
    switch event {
    case .wake(let devices):
      let homes = Dictionary(grouping: devices, by: home(of:))
      for (home, devices) in homes { post.post(.perform { $0.woken(devices) }, to: home) }
    case .kick(let device, .max):
      post.post(.perform { $0.lookWhoHas([device]) }, to: home(of: device))
    case .kick(let device, let epoch):
      post.post(.perform { $0.kicked(device, epoch: epoch) }, to: home(of: device))
    case .upstream(let senders): upstreamLeft(senders)
    case .tokens: onEveryShard { $0.tokens.removeAll() }
    case .accounts: Task(executorPreference: executor) { await self.reloadAccounts() }
    case .gap:
      log.debug("Notices of other nodes may have been missed; looking at everything again")
      onEveryShard { shard in
        shard.tokens.removeAll()
        shard.rescanDevices()
        // The word that another node has the device may be among what was missed.
        shard.lookWhoHas(shard.devices.keys.sorted())
      }
      guard
        looksForWork.withLock({ looks in
          looks += 1
          return looks == 1
        })
      else { return }
      Task(executorPreference: executor) { await self.lookUntilSeen() }
    }
  }

  private func upstreamLeft(_ senders: [SenderID]) {
    for sender in senders {
      let home = Int(sender.value.magnitude % UInt64(shardCount))
      post.post(.perform { $0.upstreamLeft(sender) }, to: home)
    }
  }

  /// Looks, and once more for the gaps that came meanwhile.
  private func lookUntilSeen() async {
    var seen = 0
    while looksForWork.withLock({ looks in
      if looks == seen { looks = 0 }
      seen = looks
      return looks > 0
    }) {
      await lookAgain()
    }
  }

  /// Looks until the store has answered: nothing else may ever lead to what is there.
  private func lookAgain() async {
    var knowsAccounts = await reloadAccounts()
    // When the store was away, the other nodes need a moment to say that they live.
    var pause = Duration.seconds(2)
    for _ in 0..<Self.looksMax {
      do { try await time.sleep(for: pause) } catch { return }
      if isDraining { return }
      pause = .seconds(1)
      if !knowsAccounts { knowsAccounts = await reloadAccounts() }
      if knowsAccounts, await lookForWork() { return }
    }
  }

  /// How often the store is asked in vain before it is left at that.
  private static let looksMax = 600

  /// Upstream messages and fan-outs that a node left which is gone.
  /// - Returns: False when the store did not answer.
  private func lookForWork() async -> Bool {
    do throws(StoreFault) {
      upstreamLeft(try await store.sendersWithUpstream())
      let open = try await store.fanouts(since: time.wall).filter { !$0.isDone }
      let runs = open.map { FanoutDesk.Run(number: $0.number, sender: $0.sender) }
      post.post(.perform { $0.resumeUnknownFanouts(runs) }, to: 0)
      return true
    } catch {
      log.warning("The store could not be asked what other nodes left", ["fault": .init("\(error)")])
      return false
    }
  }

  /// - Returns: False when the store did not answer.
  @discardableResult
  private func reloadAccounts() async -> Bool {
    do throws(StoreFault) {
      let keys = try await store.keys()
      accounts.load(projects: try await store.projects(), keys: keys)
      for key in keys where key.revoked { accounts.removeKey(hash: key.hash) }
      return true
    } catch {
      log.warning("Projects and keys could not be read anew", ["fault": .init("\(error)")])
      return false
    }
  }
}

extension Shard {
  /// Another node stored messages for devices that were connected here.
  func woken(_ devices: [DeviceNumber]) {
    var found: [DeviceSlot] = []
    for device in devices { if let slot = self.devices[device] { found.append(slot) } }
    fellBehind(found)
  }

  /// Another node has the device's stream now.
  func kicked(_ device: DeviceNumber, epoch: Int64) {
    // A claim of ours may be older, with its answer on the way.
    if let pending = claims[device] { claims[device]?.kickedBelow = max(pending.kickedBelow, epoch) }
    guard let slot = devices[device], slot.epoch < epoch else { return }
    deviceClosed(slot)
    slot.stream.replaced()
  }

  /// Ends the streams of those devices that another node has claimed since.
  func lookWhoHas(_ devices: [DeviceNumber]) {
    var rest = devices.filter { self.devices[$0] != nil }[...]
    let (post, index) = (post, index)
    while !rest.isEmpty {
      let part = Array(rest.prefix(tuning.backlogsAtOnce))
      rest.removeFirst(part.count)
      store.epochs(of: part) { result in post.post(.perform { $0.learned(result, of: part) }, to: index) }
    }
  }

  private func learned(_ result: Result<[DeviceNumber: Int64], StoreFault>, of asked: [DeviceNumber]) {
    switch result {
    case .success(let epochs):
      for device in asked { if let epoch = epochs[device] { kicked(device, epoch: epoch) } }
    case .failure:
      counters.storeFaults.add(1)
      after(tuning.lookAgainPause) { $0.lookWhoHas(asked) }
    }
  }

  /// Rows that may have been written all the same, of messages whose senders were refused: a node that has one of their
  /// devices was told by nobody.
  func tellOthers(ofDevices records: [Downstream]) {
    guard let bus, !records.isEmpty else { return }
    bus.send(.wake(Set(records.map(\.device)).sorted()), to: nil)
  }

  /// Fan-outs that stand in the store and may have lost the node that advanced them.
  ///
  /// Two nodes that advance one job take turns at its cursor, so nobody gets a message twice.
  func resumeUnknownFanouts(_ runs: [FanoutDesk.Run]) {
    for run in runs where !fanouts.knows(run.number) { fanouts.resume(run) }
  }

  /// What this node stored upstream and has no stream for is for any node.
  func leaveToOthers(_ records: [Upstream]) {
    guard let bus else { return }
    var senders: Set<SenderID> = []
    for record in records {
      let desk = desk(record.row.sender)
      // Also what was left out of memory for want of room.
      guard !desk.board.hasOpenStream, !record.acked else { continue }
      desk.drop(record)
      desk.behind = true
      desk.leasedUpTo = nil
      if record.isHeld { bus.handOver(upstreamOf: record.row.sender) }
      senders.insert(record.row.sender)
    }
    if !senders.isEmpty { bus.send(.upstream(senders.sorted()), to: nil) }
  }

  /// The last stream of a sender here is gone: others may have what waits for it.
  func leaveToOthers(_ desk: UpstreamDesk) {
    // What a draining stream has goes on waiting for its acks.
    guard let bus, desk.board.streamCount == 0 else { return }
    var hasLeft = desk.behind
    for record in desk.records.values {
      if case .durable = record.write {
        desk.drop(record)
        hasLeft = true
      }
    }
    guard hasLeft else { return }
    desk.behind = true
    desk.leasedUpTo = nil
    bus.handOver(upstreamOf: desk.sender)
  }
}
