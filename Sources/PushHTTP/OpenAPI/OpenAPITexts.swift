/// What the description says of a route beside its method and path.
struct OpenAPITexts {
  typealias Body = (type: String, schema: String)

  var summary: String
  /// Name, place, and whether it is required.
  var parameters: [(String, String, Bool)] = []
  var bodies: [Body] = []
  var needsBody = true
  var answer: Body = ("application/json", "Empty")
  var failures = [400, 401, 413, 503]
  var security: [String] = []

  private static let messageID = ("X-Weir-Message-Id", "header", false)
  private static let bearerMark = ("access_token_auth", "header", false)
  private static let json = "application/json"
  private static let form = "application/x-www-form-urlencoded"

  static func of(_ route: HTTPRoute) -> OpenAPITexts {
    switch route {
    case .sendV1:
      OpenAPITexts(
        summary: "Sends a message (HTTP v1).", parameters: [messageID, ("prettyPrint", "query", false)],
        bodies: [(json, "SendMessageRequest")], answer: (json, "MessageName"),
        failures: [400, 401, 403, 404, 413, 429, 500, 503], security: ["bearer"])
    case .sendLegacy, .sendLegacyGCM:
      OpenAPITexts(
        summary: "Sends a message (legacy HTTP).", parameters: [messageID, bearerMark],
        bodies: [(json, "LegacyMessage"), (form, "LegacyForm")], answer: (json, "LegacyAnswer"),
        failures: [400, 401, 413, 500, 503], security: ["serverKey", "bearer"])
    case .batch:
      OpenAPITexts(
        summary: "Sends up to 500 messages (HTTP v1) in one multipart request.",
        bodies: [("multipart/mixed", "Text")], answer: ("multipart/mixed", "Text"),
        failures: [400, 401, 403, 413, 503], security: ["bearer"])
    case .token, .tokenOfAccounts, .tokenOfAPIs:
      OpenAPITexts(
        summary: "Gives an access token for a service account's signed assertion.",
        bodies: [(form, "TokenRequest")], answer: (json, "AccessToken"), failures: [400, 401, 413, 500])
    case .topicAdd:
      OpenAPITexts(
        summary: "Subscribes up to 1,000 registrations to a topic.", parameters: [bearerMark],
        bodies: [(json, "TopicBatch")], answer: (json, "Results"), failures: [400, 401, 413, 429, 503],
        security: ["serverKey", "bearer"])
    case .topicRemove:
      OpenAPITexts(
        summary: "Takes up to 1,000 registrations out of a topic.", parameters: [bearerMark],
        bodies: [(json, "TopicBatch")], answer: (json, "Results"), failures: [400, 401, 413, 429, 503],
        security: ["serverKey", "bearer"])
    case .importTokens:
      OpenAPITexts(
        summary: "Makes registrations of up to 100 APNs tokens.", parameters: [bearerMark],
        bodies: [(json, "TokenImport")], answer: (json, "Results"), security: ["serverKey", "bearer"])
    case .joinTopic, .leaveTopic:
      OpenAPITexts(
        summary: route == .joinTopic
          ? "Subscribes a registration to a topic." : "Takes a registration out of a topic.",
        parameters: [bearerMark], bodies: route == .joinTopic ? [(json, "Empty")] : [], needsBody: false,
        failures: [400, 401, 403, 404, 413, 429, 503], security: ["serverKey", "bearer"])
    case .tokenInfo:
      OpenAPITexts(
        summary: "Tells about a registration.", parameters: [bearerMark, ("details", "query", false)],
        answer: (json, "TokenInfo"), failures: [400, 401, 403, 404, 503], security: ["serverKey", "bearer"])
    case .changeGroup, .changeGroupGCM:
      OpenAPITexts(
        summary: "Makes a device group, or changes its members.",
        parameters: [bearerMark, ("project_id", "header", true)], bodies: [(json, "GroupCall")],
        answer: (json, "GroupKey"), security: ["serverKey", "bearer"])
    case .findGroup, .findGroupGCM:
      OpenAPITexts(
        summary: "Finds a device group by its name.",
        parameters: [
          bearerMark, ("project_id", "header", true), ("notification_key_name", "query", true),
        ], answer: (json, "GroupKey"), failures: [400, 401, 503], security: ["serverKey", "bearer"])
    case .register:
      OpenAPITexts(
        summary: "Registers an app on a device.", bodies: [(json, "Registration")],
        answer: (json, "Registered"), failures: [400, 401, 404, 409, 413, 500, 503], security: ["apiKey"])
    case .unregister:
      OpenAPITexts(
        summary: "Unregisters an app on a device.", failures: [401, 404, 500, 503], security: ["device"])
    case .subscribe:
      OpenAPITexts(
        summary: "Subscribes a registration to a topic.", parameters: [("topic_name", "query", false)],
        bodies: [(json, "Empty")], needsBody: false, answer: (json, "Name"),
        failures: [400, 401, 403, 404, 413, 429, 500, 503],
        security: ["bearer", "serverKey", "apiKey", "device"])
    case .unsubscribe:
      OpenAPITexts(
        summary: "Takes a registration out of a topic.", parameters: [("allow_missing", "query", false)],
        failures: [400, 401, 403, 404, 500, 503], security: ["bearer", "serverKey", "apiKey", "device"])
    case .description:
      OpenAPITexts(summary: "This description.", answer: (json, "Any"), failures: [])
    }
  }
}
