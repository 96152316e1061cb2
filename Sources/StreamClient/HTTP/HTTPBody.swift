import JSONCore

/// Request bodies made of a message in the stream protocol's own fields.
enum HTTPBody {
  /// The legacy form: the same fields, without those that only streams have.
  ///
  /// - Parameter keepsID: An extension of this server; others refuse no unknown field here.
  static func legacy(_ message: JSONValue, keepsID: Bool) -> [UInt8] {
    let left = (message.members ?? []).filter { member in
      switch member.name {
      case "message_id": keepsID
      case "delivery_receipt_requested", "delivery_receipt_requested_id": false
      default: true
      }
    }
    return JSONValue.object(left).bytes
  }

  /// The form of HTTP v1.
  ///
  /// What the platforms have in common stands once; the rest is said to each in its own words, so that a message
  /// means the same whatever way it goes.
  ///
  /// - Parameter now: Seconds since 1970: APNs wants to know when a message expires.
  static func v1(_ message: JSONValue, now: Int64) -> [UInt8] {
    var fields = target(message)
    if let data = message["data"] { fields.append(.init("data", data)) }
    let notification = message["notification"]
    if let notification {
      fields.append(
        .init("notification", select(notification, ["title": "title", "body": "body", "image": "image"])))
    }
    append("android", android(message, notification), to: &fields)
    append("apns", apple(message, notification, now), to: &fields)
    append("webpush", web(message), to: &fields)
    var body: [JSONValue.Member] = [.init("message", .object(fields))]
    if message["dry_run"]?.bool == true { body.append(.init("validate_only", true)) }
    return JSONValue.object(body).bytes
  }

  private static func target(_ message: JSONValue) -> [JSONValue.Member] {
    if let condition = message["condition"] { return [.init("condition", condition)] }
    let to = message["to"]?.string ?? ""
    if to.hasPrefix("/topics/") { return [.init("topic", .string(String(to.dropFirst(8))))] }
    if to.hasPrefix("/users/") { return [.init("user", .string(String(to.dropFirst(7))))] }
    return [.init("token", .string(to))]
  }

  private static func append(
    _ name: String, _ members: [JSONValue.Member], to fields: inout [JSONValue.Member]
  ) {
    if !members.isEmpty { fields.append(.init(name, .object(members))) }
  }

  private static func select(_ value: JSONValue, _ names: KeyValuePairs<String, String>) -> JSONValue {
    .object(names.compactMap { old, new in value[old].map { .init(new, $0) } })
  }

  private static func android(_ message: JSONValue, _ notification: JSONValue?) -> [JSONValue.Member] {
    var members: [JSONValue.Member] = []
    if let key = message["collapse_key"] { members.append(.init("collapse_key", key)) }
    if let priority = message["priority"]?.string {
      members.append(.init("priority", .string(priority.uppercased())))
    }
    if let seconds = message["time_to_live"]?.int { members.append(.init("ttl", .string("\(seconds)s"))) }
    if let package = message["restricted_package_name"] {
      members.append(.init("restricted_package_name", package))
    }
    guard let notification else { return members }
    var shown =
      select(
        notification,
        [
          "icon": "icon", "color": "color", "sound": "sound", "tag": "tag", "click_action": "click_action",
          "android_channel_id": "channel_id", "title_loc_key": "title_loc_key",
          "body_loc_key": "body_loc_key",
        ]
      ).members ?? []
    for name in ["title_loc_args", "body_loc_args"] {
      if let list = arguments(notification[name]) { shown.append(.init(name, list)) }
    }
    append("notification", shown, to: &members)
    return members
  }

  /// The stream protocol has an array inside a string here.
  private static func arguments(_ value: JSONValue?) -> JSONValue? {
    guard let text = value?.string, let list = try? JSONValue(parsing: text), list.array != nil else {
      return value
    }
    return list
  }

  private static func apple(
    _ message: JSONValue, _ notification: JSONValue?, _ now: Int64
  ) -> [JSONValue.Member] {
    var headers: [JSONValue.Member] = []
    if let priority = message["priority"]?.string {
      headers.append(.init("apns-priority", priority == "high" ? "10" : "5"))
    }
    if let seconds = message["time_to_live"]?.int {
      headers.append(.init("apns-expiration", .string(seconds == 0 ? "0" : String(now + seconds))))
    }
    if let key = message["collapse_key"]?.string, key.utf8.count <= 64 {
      headers.append(.init("apns-collapse-id", .string(key)))
    }
    var system: [JSONValue.Member] = []
    if message["content_available"]?.bool == true { system.append(.init("content-available", 1)) }
    if message["mutable_content"]?.bool == true { system.append(.init("mutable-content", 1)) }
    if let notification {
      if let number = notification["badge"]?.string.flatMap({ Int64($0) }), number >= 0 {
        system.append(.init("badge", .number(number)))
      }
      if let sound = notification["sound"] { system.append(.init("sound", sound)) }
      if let category = notification["click_action"] { system.append(.init("category", category)) }
      if let subtitle = notification["subtitle"] {
        system.append(.init("alert", alert(notification, subtitle)))
      }
    }
    var members: [JSONValue.Member] = []
    append("headers", headers, to: &members)
    if !system.isEmpty { members.append(.init("payload", ["aps": .object(system)])) }
    return members
  }

  private static func alert(_ notification: JSONValue, _ subtitle: JSONValue) -> JSONValue {
    var members = select(notification, ["title": "title", "body": "body"]).members ?? []
    members.append(.init("subtitle", subtitle))
    return .object(members)
  }

  private static func web(_ message: JSONValue) -> [JSONValue.Member] {
    var headers: [JSONValue.Member] = []
    if let seconds = message["time_to_live"]?.int { headers.append(.init("TTL", .string(String(seconds)))) }
    if let priority = message["priority"]?.string {
      headers.append(.init("Urgency", .string(priority)))
    }
    var members: [JSONValue.Member] = []
    append("headers", headers, to: &members)
    return members
  }
}
