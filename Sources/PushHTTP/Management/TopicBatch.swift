package import HTTPCore
import JSONCore
package import PushModel

/// `batchAdd` and `batchRemove`: many registrations, one topic.
package struct TopicBatch: Hashable, Sendable {
  package var topic: TopicName
  package var tokens: [String]

  package init(_ body: [UInt8], limits: Limits) throws(ManagementFault) {
    guard let value = try? JSONValue(parsing: body, depthMax: 8), value.members != nil else {
      throw ManagementFault("InvalidJson")
    }
    topic = try Self.topic(value["to"]?.string ?? "", limits)
    guard let list = value["registration_tokens"]?.array, !list.isEmpty else {
      throw ManagementFault("MissingIIdToken")
    }
    guard list.count <= limits.topicBatchTokensMax else {
      throw ManagementFault(
        "TooManyIIdTokens: at most \(limits.topicBatchTokensMax) registration tokens are allowed")
    }
    tokens = list.compactMap(\.string)
    guard tokens.count == list.count else { throw ManagementFault("InvalidIIdToken") }
  }

  /// A topic's name, with `/topics/` before it or without.
  package static func topic(_ text: String, _ limits: Limits) throws(ManagementFault) -> TopicName {
    let name = text.hasPrefix("/topics/") ? String(text.dropFirst(8)) : text
    guard name.utf8.count <= limits.topicNameBytesMax, let topic = TopicName(name) else {
      throw .malformedTopic
    }
    return topic
  }

  /// What became of one token.
  package enum Result: Hashable, Sendable {
    case done
    case error(String)

    var json: JSONValue {
      switch self {
      case .done: [:]
      case .error(let text): ["error": .string(text)]
      }
    }
  }

  package static func answer(_ results: [Result]) -> HTTPResponse {
    ManagementAnswer.json(["results": .array(results.map(\.json))])
  }
}
