import EventLoops
import Seams
import Telemetry

/// Runs a shard on its loop: mailbox in, end of round out, one timer for what is due without other cause.
///
/// A plain class of the loop's thread. It decides nothing.
final class ShardDriver {
  let loop: any Loop
  let shard: Shard
  private var timer: LoopTimer?

  init(loop: any Loop, shard: Shard, mailbox: Mailbox<ShardMessage>) {
    self.loop = loop
    self.shard = shard
    mailbox.receive { [shard] batch in
      shard.now = loop.now
      shard.wall = loop.wall
      for message in batch { shard.handle(message) }
    }
    loop.onRoundEnd { [unowned self] in endRound() }
  }

  private func endRound() {
    shard.now = loop.now
    shard.wall = loop.wall
    shard.load = loop.load
    guard let due = shard.endRound() else { return }
    if let timer, timer.isActive, timer.deadline <= due { return }
    timer?.cancel()
    // The timer only ends the wait: the round's end looks at what is due.
    timer = loop.after(max(.zero, due - loop.now)) {}
  }
}

/// Mailboxes of all shards.
final class ShardMailboxes: ShardPost {
  private let mailboxes: [Mailbox<ShardMessage>]

  init(_ loops: [any Loop]) { mailboxes = loops.map { Mailbox(on: $0) } }

  subscript(shard: Int) -> Mailbox<ShardMessage> { mailboxes[shard] }

  func post(_ message: ShardMessage, to shard: Int) { mailboxes[shard].post(message) }

  func post(contentsOf messages: inout [ShardMessage], to shard: Int) {
    mailboxes[shard].post(contentsOf: &messages)
  }
}
