package import PushModel
import Seams

/// The buses of several stores as one: this node has a number at each.
package final class SplitBus: NodeBus {
  let parts: [any NodeBus]

  /// - Parameter parts: In the order of the stores; at least one.
  package init(_ parts: [any NodeBus]) { self.parts = parts }

  package var node: Int { parts[0].node }
  package var clockAhead: Duration { parts[0].clockAhead }

  package func listen(_ handler: @escaping @Sendable ([BusEvent]) -> Void) {
    for part in parts { part.listen(handler) }
  }

  package func send(_ event: BusEvent, to node: Int?) {
    switch event {
    case .kick(let device, _):
      let place = StoreSlots.store(of: StoreSlots.slot(of: device), among: parts.count)
      parts[place].send(event, to: node.map { Self.own($0, at: place) })
    case .upstream(let senders):
      for sender in senders { part(of: sender).send(.upstream([sender]), to: node) }
    case .wake, .tokens, .accounts, .gap: parts[0].send(event, to: node)
    }
  }

  package func handOver(upstreamOf sender: SenderID) { part(of: sender).handOver(upstreamOf: sender) }

  package func nodes(_ done: @escaping Completion<[NodeSummary]>) { parts[0].nodes(done) }

  private func part(of sender: SenderID) -> any NodeBus {
    parts[StoreSlots.store(of: StoreSlots.slot(of: sender), among: parts.count)]
  }

  // A node's number at one store, so that it is told from the same number at another.

  static func shown(_ node: Int, at place: Int) -> Int { (place + 1) << 16 | node }
  private static func own(_ node: Int, at place: Int) -> Int {
    node >> 16 == place + 1 ? node & 0xFFFF : node
  }
}
