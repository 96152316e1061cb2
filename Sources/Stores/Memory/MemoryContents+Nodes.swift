import PushModel
import Seams
import Synchronization

/// The tables behind one or several ``MemoryStore``.
final class MemoryTables: Sendable {
  let contents: Mutex<MemoryContents>
  init(_ contents: MemoryContents) { self.contents = Mutex(contents) }
}

extension MemoryContents {
  struct NodeRow: Sendable {
    var name: String
    var incarnation: Int64
    var started: WallTime
    /// Its lease, by the store's clock.
    var until: WallTime
  }

  private var now: WallTime { clock?() ?? WallTime(ms: 0) }

  /// The lease of the incarnation has not run out.
  func lives(_ incarnation: Int64) -> Bool {
    nodes.values.contains { $0.incarnation == incarnation && $0.until > now }
  }

  var living: Set<Int64> { Set(nodes.values.lazy.filter { $0.until > now }.map(\.incarnation)) }

  mutating func join(_ name: String, lease: Duration) -> MemoryNode {
    let known = nodes.first { $0.value.name == name }?.key
    let number = known ?? (1...1_023).first { nodes[$0] == nil } ?? 1
    lastIncarnation += 1
    nodes[number] = NodeRow(name: name, incarnation: lastIncarnation, started: now, until: now + lease)
    return MemoryNode(number: number, incarnation: lastIncarnation)
  }

  mutating func beat(_ node: MemoryNode, lease: Duration) -> Set<Int64> {
    let until = now + lease
    if nodes[node.number]?.incarnation == node.incarnation { nodes[node.number]?.until = until }
    return living
  }

  mutating func takeWritten() -> [DeviceNumber] {
    defer { written = [] }
    return written.sorted()
  }

  /// By node, without those of `node` itself.
  func owners(of devices: [DeviceNumber], otherThan node: Int) -> [Int: [DeviceNumber]] {
    var owners: [Int: [DeviceNumber]] = [:]
    for device in devices {
      if let owner = self.devices[device]?.node, owner != node { owners[owner, default: []].append(device) }
    }
    return owners
  }

  mutating func handOver(upstreamOf sender: SenderID) {
    for index in (upstream[sender] ?? []).indices
    where upstream[sender]?[index].lease?.by == caller?.incarnation {
      upstream[sender]?[index].lease = nil
    }
  }

  /// One row by the rules for stores that nodes share: a living node's stream of the device raises the cap, and has the
  /// row whichever node wrote it.
  mutating func enqueue(
    _ row: StoredMessage, for device: Device, by caller: MemoryNode, now: WallTime,
    ended: inout [WriteOutcome.Ended]
  ) -> WriteOutcome.Enqueue {
    written.insert(row.device)
    let owner = device.node.flatMap { nodes[$0] }
    let holder = owner.flatMap {
      $0.incarnation != caller.incarnation && $0.until > self.now ? $0.incarnation : nil
    }
    var limits = limits
    if holder != nil { limits.storedPerDeviceMax = limits.storedPerConnectedDeviceMax }
    var overflowed = 0
    var shelf = shelves.removeValue(forKey: row.device) ?? MemoryShelf()
    shelf.living = living
    let outcome = shelf.enqueue(row, limits: limits, now: now, ended: &ended, overflowed: &overflowed)
    if outcome == .stored {
      let isHeld = device.node != nil && (row.live || holder != nil)
      shelf.setHolder(isHeld ? (row.live ? caller.incarnation : holder) : nil, of: row.number)
    }
    shelf.living = nil
    if !shelf.isEmpty { shelves[row.device] = shelf }
    if overflowed > 0 { devices[row.device]?.overflowed += overflowed }
    return outcome
  }
}
