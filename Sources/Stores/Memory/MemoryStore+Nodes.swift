package import PushModel
package import Seams
import Synchronization

/// A process among those that share a ``MemoryStore``.
package struct MemoryNode: Sendable, Hashable {
  /// 1 to 1023; kept over restarts under one name.
  package var number: Int
  /// Rises with every start, over all nodes.
  package var incarnation: Int64
}

/// What stands in a ``MemoryStore``, for a simulator's verdict.
package struct MemoryView: Sendable {
  package var messages: [StoredMessage] = []
  package var upstream: [StoredUpstream] = []
  /// Fan-outs that are not done.
  package var fanouts: [MessageNumber] = []
  /// By device id.
  package var devices: [String: DeviceNumber] = [:]
  /// Which node holds each device's stream.
  package var owners: [DeviceNumber: Int] = [:]
}

// A store that several processes share, as the one in PostgreSQL is: the bus between them is the caller's.
extension MemoryStore {
  /// Sets the clock by which the leases of nodes run out.
  package func setClock(_ clock: @escaping @Sendable () -> WallTime) {
    tables.contents.withLock { $0.clock = clock }
  }

  /// A process becomes a node: an earlier one under its name counts as dead from now on.
  package func join(name: String, lease: Duration) -> MemoryNode {
    tables.contents.withLock { $0.join(name, lease: lease) }
  }

  /// The way of one node to the same tables.
  ///
  /// - Parameter wrote: Called with the devices that a call wrote messages for, when its work is done: what a store that
  ///   nodes share asks ``owners(of:otherThan:)`` about.
  package func joined(
    as node: MemoryNode, arrive: Arrive? = nil, deliver: @escaping Deliver = { $0() }, wrote: @escaping Wrote
  ) -> MemoryStore {
    MemoryStore(tables, arrive: arrive, deliver: deliver, node: node, wrote: wrote)
  }

  /// Renews the lease of a node.
  ///
  /// - Returns: The incarnations that live.
  package func beat(_ node: MemoryNode, lease: Duration) -> Set<Int64> {
    tables.contents.withLock { $0.beat(node, lease: lease) }
  }

  /// Which other nodes hold the streams of these devices now.
  package func owners(of devices: [DeviceNumber], otherThan node: Int) -> [Int: [DeviceNumber]] {
    tables.contents.withLock { $0.owners(of: devices, otherThan: node) }
  }

  /// Gives the leases of the asking node on a sender's upstream messages back.
  package func handOver(upstreamOf sender: SenderID, _ done: @escaping Completion<Void>) {
    run(.handOver, done) { .success($0.handOver(upstreamOf: sender)) }
  }

  /// The nodes, in the order of their numbers.
  package func nodes(_ done: @escaping Completion<[NodeSummary]>) {
    let node = node
    run(.counts, done) { contents in
      let living = contents.living
      return .success(
        contents.nodes.keys.sorted().compactMap { number in
          contents.nodes[number].map { row in
            NodeSummary(
              number: number, name: row.name, started: row.started,
              isAlive: living.contains(row.incarnation), isSelf: row.incarnation == node?.incarnation,
              devices: contents.devices.values.count { $0.node == number })
          }
        })
    }
  }

  /// All that stands in it now.
  package func view() -> MemoryView {
    tables.contents.withLock { contents in
      var view = MemoryView()
      for device in contents.shelves.keys.sorted() { view.messages += contents.shelves[device]?.rows ?? [] }
      for sender in contents.upstream.keys.sorted() {
        view.upstream += (contents.upstream[sender] ?? []).map(\.row)
      }
      view.fanouts = contents.fanouts.values.filter { !$0.isDone }.map(\.job.number).sorted()
      view.devices = contents.deviceNumbers
      view.owners = contents.devices.compactMapValues(\.node)
      return view
    }
  }
}
