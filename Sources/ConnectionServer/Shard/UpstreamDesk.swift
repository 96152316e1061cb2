import DeliveryCore
import PushModel
import Stores

/// A sender at its home shard: what waits for its app servers.
final class UpstreamDesk {
  let sender: SenderID
  var board: UpstreamBoard<StreamRef>
  var records: [MessageNumber: Upstream] = [:]
  /// The store holds messages that are not in `records`: from an earlier run, or left out for want of room.
  var behind = false
  var leasing = false
  /// The highest number seen in this pass over the store; rows are leased in number order.
  var leasedUpTo: MessageNumber?
  /// Rows came while a pass was under way.
  var anotherPass = false
  /// Done while behind: a lease under way may have seen their rows.
  var settledWhileBehind: Set<MessageNumber> = []
  /// The shard will look whether something is to be handed out again.
  var isScheduled = false

  init(sender: SenderID, limits: Limits) {
    self.sender = sender
    board = UpstreamBoard(
      windowMax: limits.pendingPerStreamMax, retryFirst: limits.upstreamRetryFirst,
      retryLongest: limits.upstreamRetryLongest)
  }

  func drop(_ record: Upstream) {
    records[record.row.number] = nil
    board.withdraw(record.row.number)
  }
}
