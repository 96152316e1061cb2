import Seams

/// What a stream was told of messages that were discarded, from the telling to the end of its row in the store.
///
/// The store is told that the device knows only when that is so: the notice itself has no ack, and what is written to a
/// connection that then breaks has reached nobody. So a device may be told twice, but never not at all.
struct DeletedNotice {
  /// Written to the stream, and nothing has shown yet that it arrived.
  private(set) var unproven = 0
  private var since = Moment(ns: 0)
  /// Has arrived, but the store may still count it.
  private var beingTaken = 0
  /// Of these, what the store has taken in while a page was being read that may have been read before.
  private var takenDuringRead = 0

  /// Takes in what the store counts.
  /// - Returns: How many of them the stream was not told of yet.
  mutating func untold(of stored: Int, now: Moment) -> Int {
    let new = max(0, stored - unproven - beingTaken)
    if new > 0 {
      unproven += new
      since = now
    }
    return new
  }

  /// The device acked a message that was handed out at `moment`.
  /// - Returns: How many it knows of now; what comes after the notice on a stream is read after it.
  mutating func proved(byAckOf moment: Moment) -> Int {
    guard unproven > 0, moment >= since else { return 0 }
    return arrived()
  }

  /// Nothing was acked since, but the connection has taken everything and stands.
  mutating func outlived(_ pause: Duration, now: Moment) -> Int {
    guard unproven > 0, since + pause <= now else { return 0 }
    return arrived()
  }

  private mutating func arrived() -> Int {
    defer { unproven = 0 }
    beingTaken += unproven
    return unproven
  }

  /// The store counts so many less.
  mutating func taken(_ count: Int, duringRead: Bool) {
    if duringRead { takenDuringRead += count } else { beingTaken = max(0, beingTaken - count) }
  }

  mutating func readEnded() {
    beingTaken = max(0, beingTaken - takenDuringRead)
    takenDuringRead = 0
  }
}
