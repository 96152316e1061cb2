/// A generator that gives the same numbers for the same seed (SplitMix64).
///
/// Not for secrets.
package struct SeededChance: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}

/// Makes ordered 63-bit numbers for messages: 41 bits of milliseconds, 10 bits of node, 12 bits of counter.
///
/// A node makes at most 4,096 a millisecond; beyond that the millisecond part runs ahead of the clock. The
/// numbers of one maker always rise, also when the wall clock steps back. Several makers of one node (one a
/// loop) take distinct `node` values.
package struct NumberMaker: Sendable {
  /// What stands below the time, the counter left out.
  private let node: UInt64
  private let counterBits: UInt64
  private let ahead: Duration
  private var last: UInt64 = 0

  /// - Parameters:
  ///   - node: 0 to 1023.
  ///   - ahead: How far the time in the numbers is ahead of the clock's.
  package init(node: Int, ahead: Duration = .zero) {
    precondition((0..<1024).contains(node), "node numbers have 10 bits")
    self.node = UInt64(node) << 12
    counterBits = 12
    self.ahead = ahead
  }

  /// Numbers of one part of a node that shares its store with others: 64 a millisecond; who makes more runs ahead of
  /// the clock.
  ///
  /// - Parameters:
  ///   - node: 0 to 1023.
  ///   - part: 0 to 63.
  ///   - ahead: How far the time in the numbers is ahead of the clock's.
  package init(node: Int, part: Int, ahead: Duration = .zero) {
    precondition((0..<1024).contains(node), "node numbers have 10 bits")
    precondition((0..<64).contains(part), "part numbers have 6 bits")
    self.node = UInt64(node) << 12 | UInt64(part) << 6
    counterBits = 6
    self.ahead = ahead
  }

  package mutating func next(_ now: WallTime) -> UInt64 {
    last = max(last &+ 1, Self.milliseconds(now + ahead) << counterBits)
    let ms = last >> counterBits
    return (ms << 22 | node | last & (1 << counterBits - 1)) & 0x7FFF_FFFF_FFFF_FFFF
  }

  /// Milliseconds since 2020-01-01, good until 2089.
  private static func milliseconds(_ time: WallTime) -> UInt64 {
    UInt64(max(0, time.ms &- 1_577_836_800_000))
  }
}
