/// The operations of the HTTPS listener, each with a method and a path.
///
/// The one table: the server routes by it, and the OpenAPI description is made of it.
package enum HTTPRoute: String, CaseIterable, Sendable {
  case sendV1, sendLegacy, sendLegacyGCM, batch
  case token, tokenOfAccounts, tokenOfAPIs
  case topicAdd, topicRemove, importTokens, joinTopic, leaveTopic, tokenInfo
  case changeGroup, findGroup, changeGroupGCM, findGroupGCM
  case register, unregister, subscribe, unsubscribe
  case description

  package var method: String {
    switch self {
    case .leaveTopic, .unregister, .unsubscribe: "DELETE"
    case .tokenInfo, .findGroup, .findGroupGCM, .description: "GET"
    default: "POST"
    }
  }

  /// Path with its parameters in braces.
  package var template: String {
    switch self {
    case .sendV1: "/v1/projects/{project}/messages:send"
    case .sendLegacy: "/fcm/send"
    case .sendLegacyGCM: "/gcm/send"
    case .batch: "/batch"
    case .token: "/token"
    case .tokenOfAccounts: "/o/oauth2/token"
    case .tokenOfAPIs: "/oauth2/v4/token"
    case .topicAdd: "/iid/v1:batchAdd"
    case .topicRemove: "/iid/v1:batchRemove"
    case .importTokens: "/iid/v1:batchImport"
    case .joinTopic, .leaveTopic: "/iid/v1/{token}/rel/topics/{topic}"
    case .tokenInfo: "/iid/info/{token}"
    case .changeGroup, .findGroup: "/fcm/notification"
    case .changeGroupGCM, .findGroupGCM: "/gcm/notification"
    case .register: "/v1/projects/{project}/registrations"
    case .unregister: "/v1/projects/{project}/registrations/{token}"
    case .subscribe: "/v1/projects/{project}/registrations/{token}/topicSubscriptions"
    case .unsubscribe: "/v1/projects/{project}/registrations/{token}/topicSubscriptions/{topic}"
    case .description: "/openapi.json"
    }
  }

  /// The names of the path's parameters, in order.
  package var parameters: [String] {
    template.split(separator: "/").compactMap { segment in
      segment.hasPrefix("{") && segment.hasSuffix("}") ? String(segment.dropFirst().dropLast()) : nil
    }
  }
}

/// What a method and a path come to.
package enum RouteMatch: Sendable, Equatable {
  /// The values of the path's parameters, in order.
  case found(HTTPRoute, [String])
  /// The path is known with these methods.
  case otherMethods([String])
  case unknown
}

/// Finds routes.
package struct RouteTable: Sendable {
  private enum Segment: Sendable { case literal(String), parameter }
  private let entries: [(route: HTTPRoute, method: String, segments: [Segment])]

  package init() {
    entries = HTTPRoute.allCases.map { route in
      (
        route, route.method,
        route.template.split(separator: "/").map { $0.hasPrefix("{") ? .parameter : .literal(String($0)) }
      )
    }
  }

  /// - Parameter path: Decoded segments. A GET route answers HEAD too.
  package func match(_ method: String, _ path: [String]) -> RouteMatch {
    let wanted = method == "HEAD" ? "GET" : method
    var methods: [String] = []
    for entry in entries where entry.segments.count == path.count {
      var values: [String] = []
      var isMatch = true
      for (segment, text) in zip(entry.segments, path) {
        switch segment {
        case .literal(let literal): isMatch = isMatch && literal == text
        case .parameter: values.append(text)
        }
      }
      guard isMatch else { continue }
      if entry.method == wanted { return .found(entry.route, values) }
      methods.append(entry.method)
    }
    return methods.isEmpty ? .unknown : .otherMethods(methods)
  }
}
