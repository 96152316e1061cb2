/// After how long a round of a loop ends although more is to be read.
///
/// Answers leave at its end, so rounds are short. While what is written to many connections joins with more for the same
/// ones, longer ones are worth it: whatever is joined spares a record and a system call here, and a read at the peer. Where
/// it does not, short ones are better, since the peers work meanwhile.
struct RoundLength {
  /// Of a round that joins nothing, and of one that joins much, in nanoseconds.
  static let shortest: Int64 = 10_000_000
  static let longest: Int64 = 40_000_000
  /// The share of connections with joined writes from which on rounds become longer, and where they are longest.
  private static let joinedFrom = 0.15
  private static let joinedTo = 0.5

  private(set) var ns = Self.shortest

  /// Tells how many connections a round wrote to, and to how many of them more than one thing.
  mutating func wrote(to connections: Int, joined: Int) {
    guard connections > 0 else { return }
    let share = Double(joined) / Double(connections)
    let place = (share - Self.joinedFrom) / (Self.joinedTo - Self.joinedFrom)
    ns = Self.shortest + Int64(min(1, max(0, place)) * Double(Self.longest - Self.shortest))
  }
}
