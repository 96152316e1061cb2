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
  /// Done, but their rows may still be in a store that nodes share, where every notice leads to another look.
  var settling: Set<MessageNumber> = []
  /// Removed for good while a lease was under way, which may have seen them.
  var settledDuringLease: [MessageNumber] = []
  /// The shard will look whether something is to be handed out again.
  var isScheduled = false

  init(sender: SenderID, limits: Limits) {
    self.sender = sender
    board = UpstreamBoard(
      windowMax: limits.pendingPerStreamMax, retryFirst: limits.upstreamRetryFirst,
      retryLongest: limits.upstreamRetryLongest)
  }

  /// The rows are gone from the store.
  func removed(_ numbers: [MessageNumber]) {
    if leasing { settledDuringLease += numbers } else { settling.subtract(numbers) }
  }

  func endLease() {
    settling.subtract(settledDuringLease)
    settledDuringLease = []
  }

  func drop(_ record: Upstream) {
    records[record.row.number] = nil
    board.withdraw(record.row.number)
  }
}
