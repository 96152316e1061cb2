import HTTPCore

/// Which endpoint a request of the HTTPS listener goes to.
struct HTTPRoutes: Sendable {
  let registrations: RegistrationAPI
  let subscriptions: TopicSubscriptionAPI

  func answer(_ request: APIRequest) async -> APIResponse {
    let path = request.path
    guard path.count >= 4, path[0] == "v1", path[1] == "projects", path[3] == "registrations" else {
      return .notFound("There is nothing at this path.")
    }
    switch (path.count, request.method) {
    case (4, "POST"): return await registrations.register(project: path[2], request)
    case (4, _): return .methodNotAllowed("POST")
    case (5, "DELETE"): return await registrations.unregister(project: path[2], token: path[4], request)
    case (5, _): return .methodNotAllowed("DELETE")
    case (6, "POST") where path[5] == "topicSubscriptions":
      return await subscriptions.subscribe(project: path[2], token: path[4], request)
    case (7, "DELETE") where path[5] == "topicSubscriptions":
      return await subscriptions.unsubscribe(project: path[2], token: path[4], topic: path[6], request)
    case (6, _) where path[5] == "topicSubscriptions": return .methodNotAllowed("POST")
    case (7, _) where path[5] == "topicSubscriptions": return .methodNotAllowed("DELETE")
    default: return .notFound("There is nothing at this path.")
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
