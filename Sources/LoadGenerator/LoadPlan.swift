/// Which device or topic a message is for and how large it is: a function of seed, sender and number.
///
/// So a message can be written again after a lost stream, and an arrival be checked, without being remembered.
package struct LoadPlan: Sendable {
  package enum Target: Sendable, Equatable {
    case device(Int)
    case topic(Int)
  }

  package let deviceCount: Int
  private let seed: UInt64
  private let sizes: PayloadSizes
  private let topics: LoadScenario.Topics

  /// - Parameter deviceCount: At least 1.
  package init(_ scenario: LoadScenario, deviceCount: Int) {
    self.deviceCount = max(1, deviceCount)
    seed = scenario.seed
    sizes = scenario.sizes
    topics = scenario.topics
  }

  package func target(sender: Int, number: Int) -> Target {
    if topics.count > 0 {
      let draw = draw(sender, number, 1)
      if Double(draw >> 11) / Double(1 << 53) < topics.share {
        return .topic(Int(self.draw(sender, number, 2) % UInt64(topics.count)))
      }
    }
    return .device(Int(draw(sender, number, 3) % UInt64(deviceCount)))
  }

  package func bytes(sender: Int, number: Int) -> Int { sizes.bytes(draw(sender, number, 4)) }

  /// Devices that have subscribed to each topic.
  package var subscriberCount: Int { min(topics.subscribers, deviceCount) }

  package func isSubscriber(_ device: Int, of topic: Int) -> Bool {
    // Each topic's subscribers stand in a row that begins somewhere else.
    let first = topic &* 7_919 % deviceCount
    return (device - first + deviceCount) % deviceCount < subscriberCount
  }

  /// The subscribers of a topic.
  package func subscribers(of topic: Int) -> [Int] {
    let first = topic &* 7_919 % deviceCount
    return (0..<subscriberCount).map { (first + $0) % deviceCount }
  }

  /// 64 bits that look random (the finishing step of SplitMix64).
  private func draw(_ sender: Int, _ number: Int, _ purpose: UInt64) -> UInt64 {
    var mixed =
      seed &+ UInt64(truncatingIfNeeded: sender) &* 0x9e37_79b9_7f4a_7c15
      &+ UInt64(truncatingIfNeeded: number) &* 0xd1b5_4a32_d192_ed03 &+ purpose &* 0x8cb9_2ba7_2f3d_8dd7
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}
