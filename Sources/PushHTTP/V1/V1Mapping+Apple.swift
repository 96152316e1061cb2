import Bytes
import JSONCore
import PushModel
import Seams

extension V1Mapping {
  /// What an iOS registration gets when the message has an `apns` block.
  ///
  /// `apns.payload` is the whole payload that APNs would carry: `aps` with the common notification underneath,
  /// custom keys, and `data` beside it. `notification` and `data` say the same in the names of every platform.
  mutating func apnsContent(
    _ reply: ReplyIDs, _ target: DraftTarget
  ) throws(V1Fault) -> DownstreamDraft {
    let payload = value(.apnsPayload) ?? .object([])
    let path = "message.apns.payload.aps"
    let given = payload["aps"]
    if let given, given.members == nil {
      throw .invalid("aps must be a dictionary.", field: path)
    }
    var aps = Dictionary(
      (given?.members ?? []).map { ($0.name, $0.value) }, uniquingKeysWith: { _, last in last })
    var order = (given?.members ?? []).map(\.name)
    func set(_ name: String, _ value: JSONValue) {
      if aps.updateValue(value, forKey: name) == nil { order.append(name) }
    }
    if let alert = try alert(aps["alert"], path) { set("alert", alert) }
    try checkAps(aps, path)
    for flag in ["content-available", "mutable-content"] where aps[flag]?.bool == true { set(flag, 1) }
    let image = text(.apnsImage) ?? text(.image)
    if image != nil { set("mutable-content", 1) }

    let isVisible = aps["alert"] != nil || aps["sound"] != nil || aps["badge"] != nil
    let isSilent = Self.isSet(aps["content-available"])
    if isSilent, !isVisible, header("apns-priority", of: .apnsHeaders) == "10" {
      throw .invalid(
        "apns-priority must be 5 for a background notification.",
        field: "message.apns.headers.apns-priority")
    }

    var members: [JSONValue.Member] = [
      .init("aps", .object(order.compactMap { name in aps[name].map { .init(name, $0) } }))
    ]
    for member in payload.members ?? [] where member.name != "aps" { members.append(member) }
    let dataBytes = data(.data)
    if let common = value(.data)?.members {
      for member in common where !members.contains(where: { $0.name == member.name }) {
        members.append(member)
      }
    }
    if let image { members.append(.init("fcm_options", ["image": .string(image)])) }
    let whole = JSONValue.object(members)
    let size = whole.bytes.count
    try checkSize(size, target)

    let notification = appleNotification(aps, image)
    var draft = DownstreamDraft(
      reply: reply, target: target, data: dataBytes.range,
      notification: notification.members?.isEmpty == false ? write(notification) : nil,
      timeToLive: appleTimeToLive(), priority: applePriority(isSilent: isSilent && !isVisible),
      options: options, payloadBytes: size, badgeStep: badgeStep)
    if isSilent { draft.options.insert(.contentAvailable) }
    if Self.isSet(aps["mutable-content"]) { draft.options.insert(.mutableContent) }
    if let key = header("apns-collapse-id", of: .apnsHeaders), !key.isEmpty { draft.collapseKey = write(key) }
    draft.extras = appleExtras(whole)
    return draft
  }

  private static func isSet(_ value: JSONValue?) -> Bool { value?.int == 1 || value?.bool == true }

  /// The block's own alert with the common title and body underneath; nil when neither is there.
  private func alert(_ given: JSONValue?, _ path: String) throws(V1Fault) -> JSONValue? {
    var common: [JSONValue.Member] = []
    for (key, name) in [(V1Key.title, "title"), (.body, "body")] {
      if let text = text(key) { common.append(.init(name, .string(text))) }
    }
    switch given {
    case nil, .null?: return common.isEmpty ? nil : .object(common)
    case .string?: return given
    case .object(let members)?:
      for member in members {
        let isList = member.name.hasSuffix("loc-args")
        guard isList ? member.value.array != nil : member.value.string != nil else {
          throw .invalid(
            "\(member.name) must be \(isList ? "an array" : "a string").",
            field: "\(path).alert.\(member.name)")
        }
      }
      for name in ["", "title-", "subtitle-"] where given?["\(name)loc-args"]?.array?.isEmpty == false {
        guard given?["\(name)loc-key"]?.string?.isEmpty == false else {
          throw .invalid(
            "\(name)loc-key is required when \(name)loc-args is specified.",
            field: "\(path).alert.\(name)loc-key")
        }
      }
      return .object(members + common.filter { part in !members.contains { $0.name == part.name } })
    default: throw .invalid("alert must be a string or a dictionary.", field: "\(path).alert")
    }
  }

  private func checkAps(_ aps: [String: JSONValue], _ path: String) throws(V1Fault) {
    if let badge = aps["badge"], badge.int.map({ $0 >= 0 }) != true {
      throw .invalid("Value type for APS key [badge] is a number.", field: "\(path).badge")
    }
    for name in ["category", "thread-id", "target-content-id", "interruption-level"] {
      if let value = aps[name], value.string == nil {
        throw .invalid("Value type for APS key [\(name)] is a string.", field: "\(path).\(name)")
      }
    }
    for name in ["content-available", "mutable-content"] {
      if let value = aps[name], value.int != 1, value.int != 0, value.bool == nil {
        throw .invalid("\(name) must be 0 or 1.", field: "\(path).\(name)")
      }
    }
    switch aps["sound"] {
    case nil, .string?: break
    case .object?:
      let sound = aps["sound"] ?? .null
      guard sound["name"]?.string?.isEmpty == false else {
        throw .invalid("A critical sound needs a name.", field: "\(path).sound.name")
      }
      if let volume = sound["volume"], volume.double.map({ (0...1).contains($0) }) != true {
        throw .invalid("volume must be between 0 and 1.", field: "\(path).sound.volume")
      }
    default: throw .invalid("sound must be a string or a dictionary.", field: "\(path).sound")
    }
  }

  /// `aps` in the names that all platforms share.
  private func appleNotification(_ aps: [String: JSONValue], _ image: String?) -> JSONValue {
    var members: [JSONValue.Member] = []
    func put(_ name: String, _ value: JSONValue?) {
      if let value { members.append(.init(name, value)) }
    }
    if let text = aps["alert"]?.string {
      put("body", .string(text))
    } else {
      for (name, key) in [
        ("title", "title"), ("subtitle", "subtitle"), ("body", "body"), ("body_loc_key", "loc-key"),
        ("body_loc_args", "loc-args"), ("title_loc_key", "title-loc-key"),
        ("title_loc_args", "title-loc-args"),
      ] {
        put(name, aps["alert"]?[key])
      }
    }
    if badgeStep > 0 {
      put("badge", text(.badge).map { .string($0) })
    } else {
      put("badge", aps["badge"]?.int.map { .string(String($0)) } ?? text(.badge).map { .string($0) })
    }
    put("sound", aps["sound"])
    put("click_action", aps["category"])
    put("image", image.map { .string($0) })
    return .object(members)
  }

  /// From `apns-expiration`; four weeks without it, and 0 is one attempt.
  private func appleTimeToLive() -> Int {
    let max = limits.timeToLiveSecondsMax
    guard let text = header("apns-expiration", of: .apnsHeaders), let until = Int64(text) else { return max }
    let (left, isTooMuch) = until.subtractingReportingOverflow(wall.ms / 1_000)
    if isTooMuch || left > Int64(max) { return max }
    return left < 0 ? 0 : Int(left)
  }

  private func applePriority(isSilent: Bool) -> Priority {
    switch header("apns-priority", of: .apnsHeaders) {
    case "10": .high
    case "1", "5": .normal
    default: isSilent ? .normal : .high
    }
  }

  private mutating func appleExtras(_ payload: JSONValue) -> JSONRange {
    let start = arena.count
    var members: [JSONValue.Member] = []
    if let headers = value(.apnsHeaders) { members.append(.init("headers", headers)) }
    members.append(.init("payload", payload))
    if let token = text(.liveActivityToken) { members.append(.init("live_activity_token", .string(token))) }
    arena.append(",\"apns\":")
    JSONValue.object(members).write(to: &arena)
    if let label = text(.apnsLabel) ?? text(.label) {
      arena.append(",\"fcm_options\":{\"analytics_label\":")
      JSONValue.string(label).write(to: &arena)
      arena.append("}")
    }
    return JSONRange(start: start, end: arena.count)
  }
}
