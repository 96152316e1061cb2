/// Seeds that once failed, with what they found.
enum RegressionSeeds {
  /// A seed and its nodes, which belong to what it means.
  struct OfNodes: Sendable {
    var seed: UInt64
    var nodes: Int
  }

  static let ofNodes: [OfNodes] = [
    // A log-in that had timed out was granted after the one that followed it on another node, and given up without a word.
    OfNodes(seed: 5, nodes: 4)
  ]

  static let all: [UInt64] = [
    // A message that its device had acked came to a second end when a rule of the store met its row.
    10, 36, 62, 85, 135, 218, 239, 294,
    // The backlog of a device could not be read and was not read again.
    241, 262,
    // A device's stream was taken to be behind for ever after rows it waited for ended by a rule.
    77,
    // A message sent again after a refused batch was in flight twice and acked once.
    141,
    // An upstream message beyond those kept in memory was written after the pass over the store that was to find it.
    28,
    // An upstream message that was refused and came again was acked as a repeat, and never stored.
    382,
    // After a restart with the wall clock stepped back, a newer message had the lower number and was collapsed.
    548,
    // The share of a second app on a device had the number of the first, and went with a settlement sent twice.
    562,
    // A slice of a fan-out that the store was slow to answer was handed out after its time to live.
    853,
  ]
}
