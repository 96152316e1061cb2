extension TopicCondition {
  /// Reads a condition.
  ///
  ///     condition := term { ("&&" | "||") term }
  ///     term      := [ "!" ] ( "(" condition ")" | "'" topic "'" "in" "topics" )
  ///
  /// Blanks may stand between all of these. `in topics` may be written in any case, a topic with its
  /// `/topics/`. Quotes are single quotes.
  /// - Throws: ``ConditionFault`` with the column of the first byte that does not fit.
  package init(
    parsing text: UnsafeRawBufferPointer, topicsMax: Int = Limits().conditionTopicsMax,
    depthMax: Int = Limits().conditionDepthMax
  ) throws(ConditionFault) {
    var parser = Parser(text: text, topicsMax: min(topicsMax, 64), depthMax: min(depthMax, 60))
    try parser.parse()
    self.init(topics: parser.topics, steps: parser.steps)
  }

  package init(
    parsing text: String, topicsMax: Int = Limits().conditionTopicsMax,
    depthMax: Int = Limits().conditionDepthMax
  ) throws(ConditionFault) {
    let bytes = Array(text.utf8)
    let parsed = bytes.withUnsafeBytes { bytes -> Result<TopicCondition, ConditionFault> in
      do throws(ConditionFault) {
        return .success(try TopicCondition(parsing: bytes, topicsMax: topicsMax, depthMax: depthMax))
      } catch {
        return .failure(error)
      }
    }
    self = try parsed.get()
  }
}

/// One pass with a stack of levels instead of recursion.
private struct Parser {
  /// What waits for the next term inside one pair of parentheses.
  struct Level {
    var negated = false
    var joint: TopicCondition.Step?
    var openedAt = 0
  }

  let text: UnsafeRawBufferPointer
  let topicsMax: Int
  let depthMax: Int
  var at = 0
  var topics: [TopicName] = []
  var steps: [TopicCondition.Step] = []
  var mentions = 0

  mutating func parse() throws(ConditionFault) {
    var outer: [Level] = []
    var level = Level()
    var termIsNext = true
    while true {
      skipBlanks()
      if termIsNext {
        switch at < text.count ? text[at] : 0 {
        case UInt8(ascii: "!") where !level.negated:
          at += 1
          level.negated = true
        case UInt8(ascii: "("):
          guard outer.count < depthMax else { throw fault(.tooDeep) }
          outer.append(level)
          level = Level(openedAt: at)
          at += 1
        case UInt8(ascii: "'"):
          steps.append(.topic(try topic()))
          close(&level)
          termIsNext = false
        default:
          throw fault(.topicExpected)
        }
      } else {
        guard at < text.count else { break }
        switch text[at] {
        case UInt8(ascii: ")"):
          guard let around = outer.popLast() else { throw fault(.strayParenthesis) }
          at += 1
          level = around
          close(&level)
        case UInt8(ascii: "&") where take("&&"):
          level.joint = .and
          termIsNext = true
        case UInt8(ascii: "|") where take("||"):
          level.joint = .or
          termIsNext = true
        default:
          throw fault(.operatorExpected)
        }
      }
    }
    guard outer.isEmpty else { throw fault(.unclosedParenthesis) }
  }

  /// A term is complete: negate it, then join it with what stands left of it.
  private mutating func close(_ level: inout Level) {
    if level.negated { steps.append(.not) }
    if let joint = level.joint { steps.append(joint) }
    level.negated = false
    level.joint = nil
  }

  private mutating func topic() throws(ConditionFault) -> UInt8 {
    let quote = at
    at += 1
    var start = at
    while at < text.count, text[at] != UInt8(ascii: "'") { at += 1 }
    guard at < text.count else {
      at = quote
      throw fault(.unclosedQuote)
    }
    let end = at
    at = start
    if takeUpTo(end, "/topics/") { start = at }
    guard let name = TopicName(UnsafeRawBufferPointer(rebasing: text[start..<end])) else {
      while at < end, TopicName.isLetter(text[at]) { at += 1 }
      throw fault(.invalidTopicName)
    }
    at = end + 1
    skipBlanks()
    guard takeWord("in") else { throw fault(.inTopicsExpected) }
    let blank = at
    skipBlanks()
    guard at > blank, takeWord("topics") else { throw fault(.inTopicsExpected) }
    mentions += 1
    guard mentions <= topicsMax else {
      at = quote
      throw fault(.tooManyTopics)
    }
    let index = topics.firstIndex(of: name) ?? topics.count
    if index == topics.count { topics.append(name) }
    return UInt8(truncatingIfNeeded: index)
  }

  private func fault(_ reason: ConditionFault.Reason) -> ConditionFault {
    ConditionFault(reason, column: at + 1)
  }

  private mutating func skipBlanks() {
    while at < text.count, [0x20, 0x09, 0x0A, 0x0D].contains(text[at]) { at += 1 }
  }

  private mutating func take(_ word: StaticString) -> Bool { takeUpTo(text.count, word) }

  private mutating func takeUpTo(_ end: Int, _ word: StaticString) -> Bool {
    guard end - at >= word.utf8CodeUnitCount else { return false }
    for offset in 0..<word.utf8CodeUnitCount where text[at + offset] != word.utf8Start[offset] {
      return false
    }
    at += word.utf8CodeUnitCount
    return true
  }

  /// Takes letters in any case.
  private mutating func takeWord(_ word: StaticString) -> Bool {
    guard text.count - at >= word.utf8CodeUnitCount else { return false }
    for offset in 0..<word.utf8CodeUnitCount where text[at + offset] | 0x20 != word.utf8Start[offset] {
      return false
    }
    at += word.utf8CodeUnitCount
    return true
  }
}
