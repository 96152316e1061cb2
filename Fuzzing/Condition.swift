// modules: Bytes Seams JSONCore PushModel
import Bytes
import PushModel

/// Conditions over topics, against a reader that works by its grammar's rules alone.
///
/// Holds that both take the same texts and decide alike for every set of topics, that a fault's column lies in the
/// text or one behind it, and that a condition written is the condition read.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzCondition(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  let text = Array(UnsafeBufferPointer(start: start, count: start == nil ? 0 : count))
  var reader = GrammarReader(text: text)
  let tree = reader.read()
  let condition: TopicCondition
  do throws(ConditionFault) {
    condition = try parse(text)
  } catch {
    guard tree == nil else { fatalError("refused what the grammar takes: \(error)") }
    guard (1...text.count + 1).contains(error.column) else { fatalError("the column lies outside") }
    return 0
  }
  guard let tree else { fatalError("took what the grammar refuses") }
  let topics = condition.topics.map(\.text)
  for subscribed in 0..<UInt64(1) << UInt64(topics.count) {
    let names = Set(topics.indices.filter { subscribed >> UInt64($0) & 1 == 1 }.map { topics[$0] })
    guard condition.matches(subscribed) == tree.matches(names) else { fatalError("decides another way") }
  }
  guard let again = try? TopicCondition(parsing: condition.text), again.topics == condition.topics,
    (0..<UInt64(1) << UInt64(topics.count)).allSatisfy({ again.matches($0) == condition.matches($0) })
  else { fatalError("a condition written is another one when read: \(condition.text)") }
  return 0
}

private func parse(_ text: [UInt8]) throws(ConditionFault) -> TopicCondition {
  let result = text.withUnsafeBytes { bytes -> Result<TopicCondition, ConditionFault> in
    do throws(ConditionFault) { return .success(try TopicCondition(parsing: bytes)) } catch {
      return .failure(error)
    }
  }
  return try result.get()
}

private indirect enum Tree {
  case topic(String)
  case not(Tree)
  case join(Tree, isAnd: Bool, Tree)

  func matches(_ names: Set<String>) -> Bool {
    switch self {
    case .topic(let name): names.contains(name)
    case .not(let term): !term.matches(names)
    case .join(let left, let isAnd, let right):
      isAnd ? left.matches(names) && right.matches(names) : left.matches(names) || right.matches(names)
    }
  }
}

/// One function a rule; the bounds of the product are its own numbers here.
private struct GrammarReader {
  let text: [UInt8]
  var at = 0
  var mentions = 0

  mutating func read() -> Tree? {
    guard let tree = condition(depth: 0), at == text.count, mentions <= 5 else { return nil }
    return tree
  }

  private mutating func condition(depth: Int) -> Tree? {
    guard depth <= 16, var tree = term(depth: depth) else { return nil }
    while true {
      blanks()
      let isAnd = text[at...].starts(with: Array("&&".utf8))
      guard isAnd || text[at...].starts(with: Array("||".utf8)) else { return tree }
      at += 2
      guard let right = term(depth: depth) else { return nil }
      tree = .join(tree, isAnd: isAnd, right)
    }
  }

  private mutating func term(depth: Int) -> Tree? {
    blanks()
    if next("!") {
      blanks()
      guard let term = plainTerm(depth: depth) else { return nil }
      return .not(term)
    }
    return plainTerm(depth: depth)
  }

  private mutating func plainTerm(depth: Int) -> Tree? {
    if next("(") {
      guard let inner = condition(depth: depth + 1), next(")") else { return nil }
      return inner
    }
    guard next("'"), let end = text[at...].firstIndex(of: UInt8(ascii: "'")) else { return nil }
    var name = String(decoding: text[at..<end], as: UTF8.self)
    if name.hasPrefix("/topics/") { name.removeFirst("/topics/".count) }
    let letters = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~%".unicodeScalars)
    guard !name.isEmpty, name.utf8.count <= 900, name.unicodeScalars.allSatisfy(letters.contains) else {
      return nil
    }
    at = end + 1
    mentions += 1
    blanks()
    guard word("in") else { return nil }
    let before = at
    blanks()
    guard at > before, word("topics") else { return nil }
    return .topic(name)
  }

  private mutating func blanks() { while at < text.count, " \t\n\r".utf8.contains(text[at]) { at += 1 } }

  private mutating func next(_ character: Unicode.Scalar) -> Bool {
    guard at < text.count, text[at] == UInt8(ascii: character) else { return false }
    at += 1
    return true
  }

  private mutating func word(_ word: String) -> Bool {
    let end = at + word.utf8.count
    guard end <= text.count, String(decoding: text[at..<end], as: UTF8.self).lowercased() == word else {
      return false
    }
    at = end
    return true
  }
}
