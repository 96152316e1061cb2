import JSONCore

/// The schemas of the description; those of HTTP v1 are made of the tables that requests are read with.
enum OpenAPISchemas {
  static func reference(_ name: String) -> JSONValue {
    ["$ref": .string("#/components/schemas/\(name)")]
  }

  static let all: [JSONValue.Member] = simple + v1

  private static let text: JSONValue = ["type": "string"]
  private static let flag: JSONValue = ["type": "boolean"]
  private static let strings: JSONValue = ["type": "array", "items": ["type": "string"]]
  private static let stringMap: JSONValue = ["type": "object", "additionalProperties": ["type": "string"]]

  private static func object(
    _ members: [(String, JSONValue)], required: [String] = []
  ) -> JSONValue {
    var object: [JSONValue.Member] = [
      .init("type", "object"), .init("properties", .object(members.map { .init($0.0, $0.1) })),
    ]
    if !required.isEmpty { object.append(.init("required", .array(required.map { .string($0) }))) }
    return .object(object)
  }

  private static func list(_ count: Int) -> JSONValue {
    ["type": "array", "items": ["type": "string"], "minItems": 1, "maxItems": .number(count)]
  }

  private static let simple: [JSONValue.Member] = [
    .init("Any", [:]), .init("Empty", ["type": "object"]), .init("Text", text),
    .init("Name", object([("name", text)])),
    .init("MessageName", object([("name", text)], required: ["name"])),
    .init("LegacyMessage", legacyMessage),
    .init(
      "LegacyForm",
      object(
        [
          ("registration_id", text), ("collapse_key", text), ("time_to_live", text),
          ("restricted_package_name", text), ("dry_run", text), ("delay_while_idle", text),
        ])),
    .init(
      "LegacyAnswer",
      object([
        ("multicast_id", ["type": "integer"]), ("success", ["type": "integer"]),
        ("failure", ["type": "integer"]), ("canonical_ids", ["type": "integer"]),
        ("results", ["type": "array", "items": ["type": "object"]]),
        ("failed_registration_ids", strings), ("message_id", ["type": "integer"]), ("error", text),
      ])),
    .init("TokenRequest", object([("grant_type", text), ("assertion", text)], required: ["grant_type"])),
    .init(
      "AccessToken",
      object(
        [("access_token", text), ("expires_in", ["type": "integer"]), ("token_type", text)],
        required: ["access_token", "expires_in"])),
    .init(
      "TopicBatch",
      object([("to", text), ("registration_tokens", list(1_000))], required: ["to", "registration_tokens"])),
    .init("Results", object([("results", ["type": "array", "items": ["type": "object"]])])),
    .init(
      "TokenImport",
      object(
        [("application", text), ("sandbox", flag), ("apns_tokens", list(100))],
        required: ["application", "apns_tokens"])),
    .init(
      "TokenInfo",
      object([
        ("application", text), ("authorizedEntity", text), ("platform", text), ("scope", text),
        ("rel", ["type": "object"]),
      ])),
    .init(
      "GroupCall",
      object(
        [
          ("operation", ["type": "string", "enum": ["create", "add", "remove"]]),
          ("notification_key_name", text), ("notification_key", text), ("registration_ids", strings),
        ], required: ["operation", "registration_ids"])),
    .init("GroupKey", object([("notification_key", text)], required: ["notification_key"])),
    .init(
      "Registration",
      object(
        [
          ("app", text), ("platform", ["type": "string", "enum": ["linux", "android", "ios", "web"]]),
          ("user", text), ("previous_token", text), ("device_id", text), ("device_secret", text),
        ], required: ["app"])),
    .init(
      "Registered",
      object(
        [("token", text), ("device_id", text), ("device_secret", text)],
        required: ["token", "device_id", "device_secret"])),
  ]

  private static let legacyMessage = object([
    ("to", text), ("registration_ids", list(1_000)), ("condition", text), ("notification_key", text),
    ("collapse_key", text), ("priority", ["type": "string", "enum": ["normal", "high"]]),
    ("content_available", flag), ("mutable_content", flag),
    ("time_to_live", ["type": "integer", "minimum": 0, "maximum": 2_419_200]),
    ("restricted_package_name", text), ("dry_run", flag), ("message_id", text),
    ("data", ["type": "object"]), ("notification", ["type": "object"]),
  ])

  // MARK: HTTP v1

  private static let v1: [JSONValue.Member] = [
    V1Object.request, .message, .notification, .android, .androidNotification, .lightSettings, .color, .apns,
    .apnsOptions, .webpush, .webOptions, .options, .androidOptions,
  ].map { kind in
    var schema = object(V1Schema.fields(of: kind).map { ("\($0.name)", property($0.kind)) })
    if case .object(let members) = schema {
      schema = .object(members + [.init("additionalProperties", false)])
    }
    return .init(name(of: kind), schema)
  }

  private static func name(of kind: V1Object) -> String {
    kind.typeName.split(separator: ".").last.map(String.init) ?? kind.typeName
  }

  private static func property(_ kind: V1Kind) -> JSONValue {
    switch kind {
    case .string: text
    case .bool: flag
    case .integer: ["type": "integer", "format": "int32"]
    case .float: ["type": "number", "format": "float"]
    case .duration: ["type": "string", "pattern": "^-?[0-9]{1,12}(\\.[0-9]{1,9})?s$"]
    case .timestamp: ["type": "string", "format": "date-time"]
    case .stringMap: stringMap
    case .anyObject: ["type": "object"]
    case .strings: strings
    case .durations: ["type": "array", "items": property(.duration)]
    case .object(let inner): reference(name(of: inner))
    case .enumeration(let values):
      ["type": "string", "enum": .array(values.values.map { .string("\($0)") })]
    }
  }
}
