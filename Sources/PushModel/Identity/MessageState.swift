/// Where a message is in its life.
///
/// The one list: metrics, inspection and the ledger use these names.
///
/// Can go: `received` → `nacked` or `accepted`; `accepted` → `stored`, `inFlight` or an end; `stored` ↔
/// `inFlight`; either → an end. An end is final: each accepted message has exactly one.
package enum MessageState: UInt8, Sendable, CaseIterable {
  case received = 0
  /// Refused with a code; the sender was told.
  case nacked = 1
  /// Valid and taken; not yet durable.
  case accepted = 2
  /// Durable, waiting for its device.
  case stored = 3
  /// Handed to the device's stream, not acked by it.
  case inFlight = 4
  /// The device acked it.
  case delivered = 5
  /// Its time to live ran out first.
  case expired = 6
  /// A newer message with the same collapse key took its place.
  case collapsed = 7
  /// Discarded with all others when the device's store overflowed.
  case droppedOverflow = 8
  /// Its registration went away.
  case droppedUnregistered = 9
  /// Time to live 0 and the device was away.
  case droppedOffline = 10
  /// Validated only, at the sender's wish.
  case dryRun = 11

  /// No state follows this one.
  package var isEnd: Bool {
    switch self {
    case .received, .accepted, .stored, .inFlight: false
    case .nacked, .delivered, .expired, .collapsed, .droppedOverflow, .droppedUnregistered,
      .droppedOffline, .dryRun:
      true
    }
  }

  /// The name in metrics, inspection and reports.
  package var name: String {
    switch self {
    case .received: "received"
    case .nacked: "nacked"
    case .accepted: "accepted"
    case .stored: "stored"
    case .inFlight: "in_flight"
    case .delivered: "delivered"
    case .expired: "expired"
    case .collapsed: "collapsed"
    case .droppedOverflow: "dropped_overflow"
    case .droppedUnregistered: "dropped_unregistered"
    case .droppedOffline: "dropped_offline"
    case .dryRun: "dry_run"
    }
  }
}
