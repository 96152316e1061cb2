import HTTPCore
import PushHTTP

/// The endpoints of the HTTPS listener that are no sends.
struct HTTPRoutes: Sendable {
  private let registrations: RegistrationAPI
  private let subscriptions: TopicSubscriptionAPI
  private let tokens: TokenEndpoint
  private let instances: InstanceDoor
  private let groups: GroupDoor

  init(context: ServerContext) {
    registrations = RegistrationAPI(context: context)
    subscriptions = TopicSubscriptionAPI(context: context)
    tokens = TokenEndpoint(context: context)
    instances = InstanceDoor(context: context)
    groups = GroupDoor(context: context)
  }

  /// - Parameter values: The path's parameters, in order.
  func answer(_ route: HTTPRoute, _ values: [String], _ request: HTTPRequest) async -> HTTPResponse {
    func value(_ index: Int) -> String { values.indices.contains(index) ? values[index] : "" }
    switch route {
    case .register: return await registrations.register(project: value(0), APIRequest(request)).http
    case .unregister:
      return await registrations.unregister(project: value(0), token: value(1), APIRequest(request)).http
    case .subscribe:
      return await subscriptions.subscribe(project: value(0), token: value(1), APIRequest(request)).http
    case .unsubscribe:
      return await subscriptions.unsubscribe(
        project: value(0), token: value(1), topic: value(2), APIRequest(request)
      ).http
    case .token, .tokenOfAccounts, .tokenOfAPIs: return tokens.answer(request)
    case .topicAdd, .topicRemove, .importTokens, .joinTopic, .leaveTopic, .tokenInfo:
      return await instances.answer(route, values, request)
    case .changeGroup, .findGroup, .changeGroupGCM, .findGroupGCM: return await groups.answer(route, request)
    case .description:
      let host = request.fields["host"] ?? "localhost"
      return APIResponse.json(OpenAPIDocument.json(server: "https://\(host)")).http
    case .sendV1, .sendLegacy, .sendLegacyGCM, .batch:
      // The front door answers them on the loop.
      return APIResponse.notFound("There is nothing at this path.").http
    }
  }
}

extension APIRequest {
  init(_ request: HTTPRequest) {
    var headers: [String: String] = [:]
    for field in request.fields.all { headers[field.name.lowercased()] = field.value }
    self.init(method: request.method, target: request.target, headers: headers, body: request.body)
  }
}

extension APIResponse {
  var http: HTTPResponse {
    var fields = HTTPFields()
    for (name, value) in headers { fields.append(name, value) }
    return HTTPResponse(status: status, fields: fields, body: body)
  }
}
