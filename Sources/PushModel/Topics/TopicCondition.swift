/// A condition over topics, such as `'a' in topics && !('b' in topics)`.
///
/// Parentheses go first, then strictly left to right: `&&` binds no tighter than `||`. It is kept as a flat
/// program over a stack of bits, so neither reading nor evaluating it goes deeper than its bound.
/// - Source: FCM, sending to topics by condition.
package struct TopicCondition: Hashable, Sendable {
  enum Step: Hashable, Sendable {
    /// Pushes whether the topic of that index is subscribed.
    case topic(UInt8)
    case not
    case and
    case or
  }

  /// The topics it names, each once, in the order of their first mention.
  package let topics: [TopicName]
  let steps: [Step]

  init(topics: [TopicName], steps: [Step]) {
    self.topics = topics
    self.steps = steps
  }

  /// Decides for one app instance.
  /// - Parameter subscribed: Bit i tells whether it is subscribed to `topics[i]`.
  package func matches(_ subscribed: UInt64) -> Bool {
    var stack: UInt64 = 0
    for step in steps {
      switch step {
      case .topic(let index): stack = stack << 1 | (subscribed >> UInt64(index) & 1)
      case .not: stack ^= 1
      case .and: stack = stack >> 1 & (stack | ~1)
      case .or: stack = stack >> 1 | (stack & 1)
      }
    }
    return stack & 1 == 1
  }

  package func matches(where isSubscribed: (TopicName) -> Bool) -> Bool {
    var subscribed: UInt64 = 0
    for (index, topic) in topics.enumerated() where isSubscribed(topic) {
      subscribed |= 1 << UInt64(index)
    }
    return matches(subscribed)
  }

  /// The condition as text that reads back as the same condition, with single blanks and no parentheses more than
  /// needed.
  package var text: String {
    // A term of the text, and whether it needs parentheses where one term is expected.
    var stack: [(text: String, isCompound: Bool)] = []
    func closed(_ part: (text: String, isCompound: Bool)) -> String {
      part.isCompound ? "(\(part.text))" : part.text
    }
    for step in steps {
      switch step {
      case .topic(let index): stack.append(("'\(topics[Int(index)].text)' in topics", false))
      case .not:
        guard let part = stack.popLast() else { continue }
        stack.append(("!(\(part.text))", false))
      case .and, .or:
        guard let right = stack.popLast(), let left = stack.popLast() else { continue }
        // Strictly left to right: what stands left needs no parentheses.
        stack.append(("\(left.text) \(step == .and ? "&&" : "||") \(closed(right))", true))
      }
    }
    return stack.last?.text ?? ""
  }

  /// An instance without any of the topics matches: a search must look at all instances.
  package var matchesWithoutAny: Bool { matches(0) }
}

/// Where a condition stops being one.
package struct ConditionFault: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Reason: Sendable, Hashable {
    case topicExpected, operatorExpected, inTopicsExpected, invalidTopicName, unclosedQuote,
      unclosedParenthesis
    case strayParenthesis, tooManyTopics, tooDeep
  }

  package var reason: Reason
  /// From 1; one behind the last for a missing end.
  package var column: Int

  package init(_ reason: Reason, column: Int) {
    self.reason = reason
    self.column = column
  }

  package var description: String {
    let what =
      switch reason {
      case .topicExpected: "expected 'topic' in topics, ! or ("
      case .operatorExpected: "expected && or ||"
      case .inTopicsExpected: "expected in topics"
      case .invalidTopicName: "invalid topic name"
      case .unclosedQuote: "no closing quote"
      case .unclosedParenthesis: "no closing parenthesis"
      case .strayParenthesis: "no opening parenthesis"
      case .tooManyTopics: "too many topics"
      case .tooDeep: "too many parentheses"
      }
    return "\(what) at column \(column)"
  }
}
