import Bytes
import PushModel
import Seams
import Testing

/// A condition as a tree, evaluated by its definition: the measure for the flat program.
private indirect enum Tree {
  case topic(Int)
  case not(Tree)
  /// Terms joined strictly left to right; the first joint is not used.
  case chain([(isAnd: Bool, term: Tree)])

  func text(_ chance: inout SeededChance) -> String {
    func blank() -> String { Bool.random(using: &chance) ? " " : "" }
    switch self {
    case .topic(let index):
      let word = ["in topics", "IN topics", "In  Topics"][Int.random(in: 0..<3, using: &chance)]
      return "\(blank())'\(Bool.random(using: &chance) ? "/topics/" : "")t\(index)' \(word)\(blank())"
    case .not(let term):
      return "\(blank())!\(blank())\(term.text(&chance))"
    case .chain(let terms):
      var text = ""
      for (index, (isAnd, term)) in terms.enumerated() {
        if index > 0 { text += isAnd ? "&&" : "||" }
        let inner = term.text(&chance)
        if case .chain = term { text += "(\(inner))" } else { text += inner }
      }
      return text
    }
  }

  func matches(_ subscribed: (Int) -> Bool) -> Bool {
    switch self {
    case .topic(let index): return subscribed(index)
    case .not(let term): return !term.matches(subscribed)
    case .chain(let terms):
      var result = false
      for (index, (isAnd, term)) in terms.enumerated() {
        let value = term.matches(subscribed)
        result = index == 0 ? value : isAnd ? result && value : result || value
      }
      return result
    }
  }

  static func random(_ mentions: inout Int, depth: Int, _ chance: inout SeededChance) -> Tree {
    var terms: [(isAnd: Bool, term: Tree)] = []
    repeat {
      var term: Tree
      if depth > 0, mentions > 1, Int.random(in: 0..<3, using: &chance) == 0 {
        var inner = Int.random(in: 1...mentions, using: &chance)
        mentions -= inner
        let chain = random(&inner, depth: depth - 1, &chance)
        mentions += inner
        // Parentheses stand around a chain even of one term.
        term = .chain([(true, chain)])
      } else {
        mentions -= 1
        term = .topic(Int.random(in: 0..<5, using: &chance))
      }
      if Int.random(in: 0..<4, using: &chance) == 0, case .topic = term { term = .not(term) }
      terms.append((Bool.random(using: &chance), term))
    } while mentions > 0 && Int.random(in: 0..<4, using: &chance) > 0
    return .chain(terms)
  }
}

@Suite struct TopicConditionTests {
  private func matches(_ text: String, _ topics: Set<String>) throws -> Bool {
    try TopicCondition(parsing: text).matches { topics.contains($0.text) }
  }

  private func fault(_ text: String) -> ConditionFault? {
    do throws(ConditionFault) {
      _ = try TopicCondition(parsing: text)
      return nil
    } catch {
      return error
    }
  }

  @Test(arguments: [
    "'news' in topics", "('news' in topics)", "  ( ( 'news'  in\ttopics ) )  ", "'news' IN TOPICS",
    "'news'in topics", "'/topics/news' in topics",
  ])
  func oneTopicIsACondition(_ text: String) throws {
    #expect(try matches(text, ["news"]))
    #expect(try !matches(text, ["News"]))
  }

  @Test func parenthesesGoFirst() throws {
    let text = "'a' in topics&&('b' in topics||'c' in topics)"
    #expect(try matches(text, ["a", "c"]))
    #expect(try !matches(text, ["b", "c"]))
  }

  @Test func withoutParenthesesItGoesLeftToRight() throws {
    // Were && to bind tighter, the first of each pair would match.
    let text = "'a' in topics || 'b' in topics && 'c' in topics"
    #expect(try !matches(text, ["a"]))
    #expect(try matches(text, ["a", "c"]))
    #expect(try matches("'a' in topics && 'b' in topics || 'c' in topics", ["c"]))
    #expect(
      try !matches(
        "'a' in topics || 'b' in topics && 'c' in topics || 'd' in topics && 'e' in topics", ["a", "c"]))
  }

  @Test func notMatchesThoseWithoutAnyTopic() throws {
    let text = "!('a' in topics)"
    #expect(try matches(text, []))
    #expect(try !matches(text, ["a"]))
    #expect(try TopicCondition(parsing: text).matchesWithoutAny)
    #expect(try !TopicCondition(parsing: "'a' in topics").matchesWithoutAny)
    #expect(try matches("!'a' in topics && 'b' in topics", ["b"]))
    #expect(try matches("'b' in topics && !('a' in topics || 'c' in topics)", ["b"]))
  }

  @Test func topicsAreNamedOnce() throws {
    let condition = try TopicCondition(parsing: "'b' in topics || 'a' in topics || 'b' in topics")
    #expect(condition.topics.map(\.text) == ["b", "a"])
    #expect(condition.matches(0b01) && condition.matches(0b10) && !condition.matches(0))
  }

  @Test func fiveMentionsPassAndSixDoNot() {
    let term = "'a' in topics"
    #expect(fault(Array(repeating: term, count: 5).joined(separator: "||")) == nil)
    #expect(
      fault(Array(repeating: term, count: 6).joined(separator: "||"))
        == ConditionFault(.tooManyTopics, column: 5 * 15 + 1))
  }

  @Test func oneParenthesisMoreThanTheDepthIsRefused() {
    func nested(_ depth: Int) -> String {
      String(repeating: "(", count: depth) + "'a' in topics" + String(repeating: ")", count: depth)
    }
    #expect(fault(nested(16)) == nil)
    #expect(fault(nested(17)) == ConditionFault(.tooDeep, column: 17))
    #expect(fault(String(repeating: "(", count: 100_000))?.reason == .tooDeep)
  }

  @Test(arguments: [
    ("", ConditionFault.Reason.topicExpected, 1), ("   ", .topicExpected, 4),
    ("\"news\" in topics", .topicExpected, 1),
    ("news in topics", .topicExpected, 1), ("'news", .unclosedQuote, 1), ("'news'", .inTopicsExpected, 7),
    ("'news' in", .inTopicsExpected, 10), ("'news' intopics", .inTopicsExpected, 10),
    ("'news' of topics", .inTopicsExpected, 8),
    ("'a' in topics &", .operatorExpected, 15), ("'a' in topics &&", .topicExpected, 17),
    ("'a' in topics & 'b' in topics", .operatorExpected, 15),
    ("'a' in topics 'b' in topics", .operatorExpected, 15),
    ("'a' in topicsx", .operatorExpected, 14), ("('a' in topics", .unclosedParenthesis, 15),
    ("'a' in topics)", .strayParenthesis, 14),
    ("()", .topicExpected, 2), ("'' in topics", .invalidTopicName, 2),
    ("'a b' in topics", .invalidTopicName, 3),
    ("'é' in topics", .invalidTopicName, 2), ("!!'a' in topics", .topicExpected, 2),
    ("'a' in topics || || 'b' in topics", .topicExpected, 18),
    ("&& 'a' in topics", .topicExpected, 1), ("'a' in topics and 'b' in topics", .operatorExpected, 15),
    ("'/topics/' in topics", .invalidTopicName, 10),
  ])
  func faultsNameTheirColumn(_ text: String, _ reason: ConditionFault.Reason, _ column: Int) {
    #expect(fault(text) == ConditionFault(reason, column: column))
  }

  @Test func theFlatProgramAgreesWithTheDefinition() throws {
    var chance = SeededChance(seed: 8)
    for _ in 0..<800 {
      var mentions = 5
      let tree = Tree.random(&mentions, depth: 3, &chance)
      let text = tree.text(&chance)
      let condition = try TopicCondition(parsing: text)
      for mask in 0..<32 {
        let expected = tree.matches { mask >> $0 & 1 == 1 }
        let got = condition.matches { name in Int(name.text.dropFirst()).map { mask >> $0 & 1 == 1 } ?? false
        }
        #expect(got == expected, "\(text) with \(mask)")
      }
    }
  }

  @Test func anyBytesAreReadWithoutATrap() {
    var chance = SeededChance(seed: 9)
    let pieces = [
      "'", "a", "(", ")", "!", "&&", "||", "&", "|", " in topics", " ", "'b' in topics", "\u{0}", "é",
      "/topics/",
    ]
    for _ in 0..<5_000 {
      let text = (0..<Int.random(in: 0...12, using: &chance)).map { _ in
        pieces[Int.random(in: pieces.indices, using: &chance)]
      }.joined()
      if let fault = fault(text) { #expect((1...text.utf8.count + 1).contains(fault.column)) }
    }
  }

  @Test func conditionsAreReadFromMessages() {
    func target(_ text: String) -> Target? {
      taken("{\"message_id\":\"m-1\",\"condition\":\"\(text)\"}")?.target
    }
    #expect(
      target("'news' in topics") == (try? TopicCondition(parsing: "'news' in topics")).map(Target.condition))
    #expect(target("'a' in topics&&('b' in topics||'c' in topics)") != nil)
    #expect(
      nack(#"{"message_id":"m-1","condition":"\"news\" in topics"}"#)
        == "InvalidJson: Invalid condition: expected 'topic' in topics, ! or ( at column 1")
  }

  @Test(arguments: [
    "'a' in topics", "'a' in topics && 'b' in topics || 'c' in topics",
    "'a' in topics && ('b' in topics || 'c' in topics)", "!('a' in topics)",
    "!('a' in topics || 'b' in topics) && 'c' in topics", "!(!('a' in topics))",
    "'a' in topics || (('b' in topics && 'c' in topics) || !('d' in topics))",
  ])
  func theTextOfAConditionReadsBackAsTheSame(_ text: String) throws {
    let condition = try TopicCondition(parsing: text)
    let again = try TopicCondition(parsing: condition.text, topicsMax: 64, depthMax: 60)
    #expect(again == condition)
    #expect(again.text == condition.text)
  }

  @Test func theTextOfAConditionIsTheShortForm() throws {
    let condition = try TopicCondition(parsing: "( ('/topics/a'  IN  topics)&&!'b' in topics )")
    #expect(condition.text == "'a' in topics && !('b' in topics)")
  }

  @Test func eachReceiverOfAMessageHasAKeyOfItsOwn() {
    let key = MessageKey(Hash128(high: 1, low: 2))
    let keys = (1...1_000).map { key.share(of: RegistrationNumber($0)) }
    #expect(Set(keys).count == 1_000)
    #expect(key.share(of: RegistrationNumber(7)) == keys[6])
    #expect(MessageKey(Hash128(high: 1, low: 3)).share(of: RegistrationNumber(7)) != keys[6])
  }
}
