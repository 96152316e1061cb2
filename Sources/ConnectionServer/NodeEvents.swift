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
    case .kick(let device, let epoch):
      post.post(.perform { $0.kicked(device, epoch: epoch) }, to: home(of: device))
    case .upstream(let senders): upstreamLeft(senders)
    case .tokens: onEveryShard { $0.tokens.removeAll() }
    case .accounts: Task { await reloadAccounts() }
    case .gap:
      log.debug("Notices of other nodes may have been missed; looking at everything again")
      onEveryShard { shard in
        shard.tokens.removeAll()
        shard.rescanDevices()
      }
      Task {
        await reloadAccounts()
        // When the store was away, the other nodes need a moment to say that they live.
        try? await time.sleep(for: .seconds(2))
        await lookForWork()
      }
    }
  }

  private func upstreamLeft(_ senders: [SenderID]) {
    for sender in senders {
      let home = Int(sender.value.magnitude % UInt64(shardCount))
      post.post(.perform { $0.upstreamLeft(sender) }, to: home)
    }
  }

  /// Upstream messages and fan-outs that a node left which is gone.
  private func lookForWork() async {
    do throws(StoreFault) {
      upstreamLeft(try await store.sendersWithUpstream())
      let open = try await store.fanouts(since: time.wall).filter { !$0.isDone }
      let runs = open.map { FanoutDesk.Run(number: $0.number, sender: $0.sender) }
      post.post(.perform { $0.resumeUnknownFanouts(runs) }, to: 0)
    } catch {
      log.warning("The store could not be asked what other nodes left", ["fault": .init("\(error)")])
    }
  }

  private func reloadAccounts() async {
    do throws(StoreFault) {
      let keys = try await store.keys()
      accounts.load(projects: try await store.projects(), keys: keys)
      for key in keys where key.revoked { accounts.removeKey(hash: key.hash) }
    } catch {
      log.warning("Projects and keys could not be read anew", ["fault": .init("\(error)")])
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
    guard let slot = devices[device], slot.epoch < epoch else { return }
    deviceClosed(slot)
    slot.stream.replaced()
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
      guard !desk.board.hasOpenStream, desk.records[record.row.number] != nil else { continue }
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
    guard let bus, !desk.board.hasOpenStream else { return }
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
