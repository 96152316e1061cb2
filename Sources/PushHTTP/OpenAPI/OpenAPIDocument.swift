package import JSONCore

/// The OpenAPI 3 description of the HTTPS listener, made of the route table and the schema that requests are read
/// with, so that it cannot say anything else than they do.
/// - Source: OpenAPI Specification 3.0.3.
package enum OpenAPIDocument {
  /// - Parameter server: Scheme, host and port of the listener.
  package static func json(server: String) -> JSONValue {
    var paths: [String: [JSONValue.Member]] = [:]
    var order: [String] = []
    for route in HTTPRoute.allCases {
      if paths[route.template] == nil { order.append(route.template) }
      paths[route.template, default: []].append(.init(route.method.lowercased(), operation(route)))
    }
    return [
      "openapi": "3.0.3",
      "info": [
        "title": "Weir", "version": "1",
        "description":
          "The HTTPS surface: HTTP v1, legacy HTTP, topics, device groups, tokens, registration.",
      ],
      "servers": [["url": .string(server)]],
      "paths": .object(order.map { .init($0, .object(paths[$0] ?? [])) }),
      "components": ["securitySchemes": securitySchemes, "schemas": .object(OpenAPISchemas.all)],
    ]
  }

  private static let securitySchemes: JSONValue = [
    "bearer": ["type": "http", "scheme": "bearer"],
    "serverKey": [
      "type": "apiKey", "in": "header", "name": "Authorization", "description": "key=SERVER_KEY",
    ],
    "apiKey": ["type": "apiKey", "in": "header", "name": "x-goog-api-key"],
    "device": ["type": "http", "scheme": "basic", "description": "device_id and device_secret"],
  ]

  private static func operation(_ route: HTTPRoute) -> JSONValue {
    let text = OpenAPITexts.of(route)
    var members: [JSONValue.Member] = [
      .init("operationId", .string(route.rawValue)), .init("summary", .string(text.summary)),
    ]
    let parameters = parameters(of: route)
    if !parameters.isEmpty { members.append(.init("parameters", .array(parameters))) }
    if !text.bodies.isEmpty {
      let content = text.bodies.map { body in
        JSONValue.Member(body.type, ["schema": OpenAPISchemas.reference(body.schema)])
      }
      members.append(
        .init("requestBody", ["required": .bool(text.needsBody), "content": .object(content)]))
    }
    members.append(.init("responses", .object(responses(text))))
    members.append(
      .init("security", .array(text.security.map { .object([.init($0, [])]) })))
    return .object(members)
  }

  private static func parameters(of route: HTTPRoute) -> [JSONValue] {
    var list: [JSONValue] = route.parameters.map { name in
      parameter(name, in: "path", isRequired: true)
    }
    for (name, place, isRequired) in OpenAPITexts.of(route).parameters {
      list.append(parameter(name, in: place, isRequired: isRequired))
    }
    return list
  }

  private static func parameter(_ name: String, in place: String, isRequired: Bool) -> JSONValue {
    [
      "name": .string(name), "in": .string(place), "required": .bool(isRequired),
      "schema": ["type": "string"],
    ]
  }

  private static func responses(_ text: OpenAPITexts) -> [JSONValue.Member] {
    var list: [JSONValue.Member] = []
    func content(_ type: String, _ schema: String) -> JSONValue {
      .object([.init(type, ["schema": OpenAPISchemas.reference(schema)])])
    }
    list.append(
      .init("200", ["description": "Done", "content": content(text.answer.type, text.answer.schema)]))
    for status in text.failures {
      list.append(.init(String(status), ["description": .string(Self.reason(status))]))
    }
    return list
  }

  private static func reason(_ status: Int) -> String {
    switch status {
    case 400: "The request is at fault"
    case 401: "No credential, or a wrong one"
    case 403: "The credential is not for this"
    case 404: "There is no such thing"
    case 409: "It is there already"
    case 413: "The body is too large"
    case 429: "Too much at once; see Retry-After"
    case 503: "Try again; see Retry-After"
    default: "A fault of the server"
    }
  }
}
