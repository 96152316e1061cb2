/// What became of each message of one sender, by its number.
///
/// Blocks of 4,096 numbers. A block in which all is settled holds nothing; an old one in which little is open
/// holds only that. So memory follows what is open, not what was sent. The times of old blocks are dropped:
/// ends that come so late are counted and not timed.
package struct SendLedger: Sendable {
  private static let blockSize = 4_096
  /// Newest blocks that are kept whole.
  private static let wholeMax = 64

  struct Marks: OptionSet, Sendable {
    let rawValue: UInt8
    static let written = Marks(rawValue: 1)
    static let acked = Marks(rawValue: 2)
    static let nacked = Marks(rawValue: 4)
    /// By the device, or by all that a topic message is for.
    static let delivered = Marks(rawValue: 8)
    /// Nacked with a code that does not say whether the message was taken.
    static let unsure = Marks(rawValue: 16)
    static let answered: Marks = [.acked, .nacked]
  }

  private struct Block: Sendable {
    /// Empty in a block that was reduced.
    var marks: [UInt8]
    var intended: [Int64]
    var open: [UInt16: UInt8] = [:]
    var settled = 0
    var isReduced = false
  }

  /// Whether deliveries are counted; if not, a message is settled with its answer.
  package let countsDeliveries: Bool
  private var blocks: [Block] = []
  private var firstBlock = 0
  /// Deliveries that topic messages still await.
  private var awaited: [Int: Int] = [:]
  /// Numbers given.
  package private(set) var due = 0
  /// Numbers below were written at least once.
  package private(set) var written = 0
  package private(set) var acked = 0
  package private(set) var nacked = 0
  /// Messages that all they are for have shown.
  package private(set) var delivered = 0
  /// Nacked and delivered all the same.
  package private(set) var contradicted = 0
  /// Delivered, and nacked with a code that does not say whether the message was taken: no contradiction.
  package private(set) var deliveredUnsure = 0

  package init(countsDeliveries: Bool) { self.countsDeliveries = countsDeliveries }

  /// Blocks that hold something, for tests of the bound.
  package var openBlockCount: Int { blocks.count { $0.isReduced ? !$0.open.isEmpty : true } }
  /// Written, neither acked nor nacked.
  package var unanswered: Int { written - acked - nacked }
  /// Acked and not delivered to all.
  package var undelivered: Int { countsDeliveries ? acked - delivered + contradicted + deliveredUnsure : 0 }

  // MARK: Events

  /// The next number, for a message that is meant to leave at `intended`.
  package mutating func take(intended: Int64) -> Int {
    let number = due
    due += 1
    if number / Self.blockSize - firstBlock == blocks.count { addBlock() }
    let (block, offset) = place(number)
    blocks[block].intended[offset] = intended
    return number
  }

  /// A message is written for the first time: always the next in order.
  ///
  /// - Parameter deliveries: How many devices it is for.
  package mutating func write(_ number: Int, deliveries: Int = 1) {
    guard number == written, number < due else { return }
    written += 1
    mark(number, .written)
    if deliveries != 1 { awaited[number] = deliveries }
    if deliveries == 0 { finishDelivery(number) }
  }

  /// The first answer to a message.
  ///
  /// - Parameter isUnsure: Of a nack: it does not say whether the message was taken.
  /// - Returns: When it was meant to leave (nil for an old one), or nil when this is no first answer.
  package mutating func answer(
    _ number: Int, isAck: Bool, isUnsure: Bool = false
  ) -> (isFirst: Bool, intended: Int64?) {
    guard let marks = marks(number), marks.contains(.written), marks.isDisjoint(with: .answered) else {
      return (false, nil)
    }
    let intended = intended(number)
    if isAck { acked += 1 } else { nacked += 1 }
    if !isAck, marks.contains(.delivered) { noteContradiction(isUnsure: isUnsure) }
    mark(number, isAck ? .acked : isUnsure ? [.nacked, .unsure] : .nacked)
    return (true, intended)
  }

  package enum Delivery: Sendable, Equatable {
    /// One of those that are expected; when it was meant to leave, nil for an old one.
    case expected(intended: Int64?)
    /// More than there should be.
    case surplus
  }

  /// A device has shown a message that it had not shown before.
  package mutating func deliver(_ number: Int) -> Delivery {
    guard let marks = marks(number), marks.contains(.written), !marks.contains(.delivered) else {
      return .surplus
    }
    let intended = intended(number)
    if let rest = awaited[number], rest > 1 {
      awaited[number] = rest - 1
    } else {
      finishDelivery(number)
    }
    return .expected(intended: intended)
  }

  private mutating func finishDelivery(_ number: Int) {
    awaited[number] = nil
    delivered += 1
    if let marks = marks(number), marks.contains(.nacked) {
      noteContradiction(isUnsure: marks.contains(.unsure))
    }
    mark(number, .delivered)
  }

  private mutating func noteContradiction(isUnsure: Bool) {
    if isUnsure { deliveredUnsure += 1 } else { contradicted += 1 }
  }

  // MARK: What is left

  /// Written numbers without an answer, rising.
  package func unansweredNumbers() -> [Int] { numbers { $0.isDisjoint(with: .answered) } }

  /// Acked numbers that were not delivered to all, rising.
  package func undeliveredNumbers() -> [Int] {
    numbers { $0.contains(.acked) && !$0.contains(.delivered) }
  }

  /// Deliveries that a message still awaits.
  package func awaitedDeliveries(_ number: Int) -> Int { awaited[number] ?? 1 }

  private func numbers(_ isMeant: (Marks) -> Bool) -> [Int] {
    var found: [Int] = []
    for (index, block) in blocks.enumerated() {
      let base = (firstBlock + index) * Self.blockSize
      if block.isReduced {
        for offset in block.open.keys.sorted() {
          let marks = Marks(rawValue: block.open[offset] ?? 0)
          if marks.contains(.written), isMeant(marks) { found.append(base + Int(offset)) }
        }
      } else if block.settled < Self.blockSize {
        for (offset, raw) in block.marks.enumerated() {
          let marks = Marks(rawValue: raw)
          if marks.contains(.written), isMeant(marks) { found.append(base + offset) }
        }
      }
    }
    return found
  }

  // MARK: Blocks

  private func place(_ number: Int) -> (block: Int, offset: Int) {
    (number / Self.blockSize - firstBlock, number % Self.blockSize)
  }

  /// - Returns: nil for a number that was never given, or is settled and forgotten.
  private func marks(_ number: Int) -> Marks? {
    guard number >= 0, number < due else { return nil }
    let (block, offset) = place(number)
    guard block >= 0 else { return nil }
    if blocks[block].isReduced { return blocks[block].open[UInt16(offset)].map { Marks(rawValue: $0) } }
    return Marks(rawValue: blocks[block].marks[offset])
  }

  private func intended(_ number: Int) -> Int64? {
    let (block, offset) = place(number)
    return blocks[block].isReduced ? nil : blocks[block].intended[offset]
  }

  private func isSettled(_ marks: Marks) -> Bool {
    marks.contains(.nacked) || marks.contains(.acked) && (!countsDeliveries || marks.contains(.delivered))
  }

  private mutating func mark(_ number: Int, _ new: Marks) {
    let (block, offset) = place(number)
    guard block >= 0, let old = marks(number) else { return }
    let now = old.union(new)
    let settles = !isSettled(old) && isSettled(now)
    if blocks[block].isReduced {
      blocks[block].open[UInt16(offset)] = settles ? nil : now.rawValue
    } else {
      blocks[block].marks[offset] = now.rawValue
    }
    guard settles else { return }
    blocks[block].settled += 1
    if blocks[block].settled == Self.blockSize { dropSettled(block) }
  }

  private mutating func dropSettled(_ block: Int) {
    blocks[block] = Block(marks: [], intended: [], settled: Self.blockSize, isReduced: true)
    var count = 0
    while count < blocks.count, blocks[count].settled == Self.blockSize { count += 1 }
    blocks.removeFirst(count)
    firstBlock += count
  }

  private mutating func addBlock() {
    blocks.append(
      Block(
        marks: [UInt8](repeating: 0, count: Self.blockSize),
        intended: [Int64](repeating: 0, count: Self.blockSize)))
    for index in 0..<max(0, blocks.count - Self.wholeMax) where !blocks[index].isReduced {
      // A block of which much is open is better whole.
      if blocks[index].settled * 4 >= Self.blockSize * 3 { reduce(index) }
    }
  }

  private mutating func reduce(_ index: Int) {
    var open: [UInt16: UInt8] = [:]
    for (offset, raw) in blocks[index].marks.enumerated() where !isSettled(Marks(rawValue: raw)) {
      open[UInt16(offset)] = raw
    }
    blocks[index] = Block(
      marks: [], intended: [], open: open, settled: blocks[index].settled, isReduced: true)
  }
}
