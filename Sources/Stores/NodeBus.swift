package import PushModel
package import Seams

/// What nodes that share a store tell each other: best effort, after the store has made durable what it is about.
package enum BusEvent: Sendable, Hashable {
  /// The store holds messages for these devices that their node has not seen.
  case wake([DeviceNumber])
  /// Another node has claimed the device with this epoch: its stream here is over.
  case kick(DeviceNumber, epoch: Int64)
  /// The store holds upstream messages of these senders that no node holds.
  case upstream([SenderID])
  /// Registrations were replaced or went away: what a node remembers of tokens may be wrong.
  case tokens
  /// Projects or keys changed.
  case accounts
  /// Something may have been missed: look at everything again.
  case gap
}

/// A node that shares the store.
package struct NodeSummary: Sendable, Hashable {
  package var number: Int
  package var name: String
  package var started: WallTime
  /// Its lease has not run out.
  package var isAlive: Bool
  /// It is the one that was asked.
  package var isSelf: Bool
  /// Devices whose stream it holds.
  package var devices: Int

  package init(
    number: Int, name: String, started: WallTime, isAlive: Bool, isSelf: Bool, devices: Int
  ) {
    self.number = number
    self.name = name
    self.started = started
    self.isAlive = isAlive
    self.isSelf = isSelf
    self.devices = devices
  }
}

/// The way to the other nodes, for stores that are shared.
///
/// Events may be lost; then each node that may have missed one gets ``BusEvent/gap``. Wakes after a write are sent by
/// the store itself.
package protocol NodeBus: AnyObject, Sendable {
  /// This node, 1 to 1023: no other living node has the number.
  var node: Int { get }

  /// How far the clock that all nodes go by was ahead of this machine's when the node joined.
  var clockAhead: Duration { get }

  /// Who is told of events, on a thread of the bus; set once.
  func listen(_ handler: @escaping @Sendable ([BusEvent]) -> Void)

  /// Sends to one node, or to all others.
  func send(_ event: BusEvent, to node: Int?)

  /// Lets the other nodes have the upstream messages that this one leased, and tells them.
  func handOver(upstreamOf sender: SenderID)

  /// The nodes that share the store, in the order of their numbers.
  func nodes(_ done: @escaping Completion<[NodeSummary]>)
}
