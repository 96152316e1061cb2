package import JSONCore
import Seams

// How requests and settings are written to the disk. Unknown members are passed over, missing ones have their default,
// so that an older version reads what a newer one wrote.

extension NotificationContent {
  package var json: JSONValue {
    var members: [JSONValue.Member] = []
    func add(_ name: String, _ value: String) {
      if !value.isEmpty { members.append(.init(name, .string(value))) }
    }
    add("title", title)
    add("subtitle", subtitle)
    add("body", body)
    if let badge { members.append(.init("badge", .number(badge))) }
    switch sound {
    case nil: break
    case .standard: members.append(.init("sound", "default"))
    case .named(let name): members.append(.init("sound", ["name": .string(name)]))
    case .critical(let name, let volume):
      members.append(
        .init("sound", ["name": .string(name), "critical": true, "volume": .number("\(volume)")]))
    }
    add("category", categoryID ?? "")
    add("thread", threadID ?? "")
    members.append(.init("level", .number(interruptionLevel.rawValue)))
    if relevance != 0 { members.append(.init("relevance", .number("\(relevance)"))) }
    add("image", imageURL ?? "")
    add("icon", icon ?? "")
    if isMutable { members.append(.init("mutable", true)) }
    if !attachments.isEmpty {
      members.append(
        .init(
          "attachments",
          .array(
            attachments.map {
              ["id": .string($0.id), "path": .string($0.path), "type": .string($0.mediaType)]
            })))
    }
    if !userInfo.isEmpty {
      let pairs = userInfo.sorted { $0.key < $1.key }
      members.append(.init("user_info", .object(pairs.map { .init($0.key, .string($0.value)) })))
    }
    return .object(members)
  }

  package init(json: JSONValue) {
    self.init(
      title: json["title"]?.string ?? "", subtitle: json["subtitle"]?.string ?? "",
      body: json["body"]?.string ?? "")
    badge = json["badge"]?.int.map { Int(clamping: $0) }
    if let sound = json["sound"] {
      let name = sound["name"]?.string ?? ""
      if sound["critical"]?.bool == true {
        self.sound = .critical(name: name, volume: sound["volume"]?.double ?? 1)
      } else {
        self.sound = sound.string == nil ? .named(name) : .standard
      }
    }
    categoryID = json["category"]?.string
    threadID = json["thread"]?.string
    interruptionLevel =
      json["level"]?.int.flatMap { InterruptionLevel(rawValue: Int(clamping: $0)) } ?? .active
    relevance = json["relevance"]?.double ?? 0
    imageURL = json["image"]?.string
    icon = json["icon"]?.string
    isMutable = json["mutable"]?.bool ?? false
    attachments = (json["attachments"]?.array ?? []).compactMap { item in
      guard let path = item["path"]?.string, let type = item["type"]?.string else { return nil }
      return Attachment(id: item["id"]?.string ?? "", path: path, mediaType: type)
    }
    for member in json["user_info"]?.members ?? [] {
      if let value = member.value.string { userInfo[member.name] = value }
    }
  }
}

extension NotificationTrigger {
  package var json: JSONValue {
    switch self {
    case .timeInterval(let interval, let repeats):
      return ["interval_ns": .number(interval.ns), "repeats": .bool(repeats)]
    case .calendar(let fields, let zone, let repeats):
      var members: [JSONValue.Member] = [.init("repeats", .bool(repeats))]
      if let zone { members.append(.init("zone", .string(zone))) }
      for (name, path) in CalendarFields.names {
        if let value = fields[keyPath: path] { members.append(.init(name, .number(value))) }
      }
      return .object(members)
    }
  }

  package init?(json: JSONValue) {
    let repeats = json["repeats"]?.bool ?? false
    if let ns = json["interval_ns"]?.int {
      self = .timeInterval(.nanoseconds(ns), repeats: repeats)
      return
    }
    var fields = CalendarFields()
    for (name, path) in CalendarFields.names {
      fields[keyPath: path] = json[name]?.int.map { Int(clamping: $0) }
    }
    guard fields.isValid else { return nil }
    self = .calendar(fields, zone: json["zone"]?.string, repeats: repeats)
  }
}

extension CalendarFields {
  /// Computed, since key paths are not `Sendable`.
  static var names: [(String, WritableKeyPath<CalendarFields, Int?>)] {
    [
      ("year", \.year), ("month", \.month), ("day", \.day), ("weekday", \.weekday),
      ("ordinal", \.weekdayOrdinal), ("hour", \.hour), ("minute", \.minute), ("second", \.second),
    ]
  }
}

extension NotificationRequest {
  package var json: JSONValue {
    var members: [JSONValue.Member] = [
      .init("id", .string(id)), .init("content", content.json), .init("origin", .string(origin.rawValue)),
    ]
    if let trigger { members.append(.init("trigger", trigger.json)) }
    if let from { members.append(.init("from", .string(from))) }
    return .object(members)
  }

  package init?(json: JSONValue) {
    guard let id = json["id"]?.string, let content = json["content"] else { return nil }
    self.init(
      id: id, content: NotificationContent(json: content),
      trigger: json["trigger"].flatMap { NotificationTrigger(json: $0) })
    from = json["from"]?.string
    origin = json["origin"]?.string.flatMap(Origin.init(rawValue:)) ?? .local
  }
}

extension NotificationMachine.Pending {
  package var json: JSONValue {
    ["request": request.json, "next": .number(next.ms), "since": .number(since.ms)]
  }

  package init?(json: JSONValue) {
    guard let request = json["request"].flatMap({ NotificationRequest(json: $0) }),
      let next = json["next"]?.int, let since = json["since"]?.int
    else { return nil }
    self.init(request: request, next: WallTime(ms: next), since: WallTime(ms: since))
  }
}

extension DeliveredNotification {
  package var json: JSONValue {
    var members: [JSONValue.Member] = [
      .init("request", request.json), .init("date", .number(dateMs)), .init("shown", .bool(isShown)),
      .init("options", .number(options.rawValue)), .init("undecided", .bool(isUndecided)),
    ]
    if let handle { members.append(.init("handle", .number(handle))) }
    return .object(members)
  }

  package init?(json: JSONValue) {
    guard let request = json["request"].flatMap({ NotificationRequest(json: $0) }),
      let date = json["date"]?.int
    else { return nil }
    self.init(request: request, dateMs: date)
    isShown = json["shown"]?.bool ?? false
    isUndecided = json["undecided"]?.bool ?? false
    options = PresentationOptions(rawValue: Int(clamping: json["options"]?.int ?? 0))
    handle = json["handle"]?.int
  }
}

extension NotificationSettings {
  package var json: JSONValue {
    [
      "status": .number(authorizationStatus.rawValue), "alert": .number(alert.rawValue),
      "sound": .number(sound.rawValue), "badge": .number(badge.rawValue),
      "center": .number(notificationCenter.rawValue), "critical": .number(criticalAlert.rawValue),
    ]
  }

  package init(json: JSONValue) {
    self.init()
    func number(_ name: String) -> Int { Int(clamping: json[name]?.int ?? 0) }
    authorizationStatus = AuthorizationStatus(rawValue: number("status")) ?? .notDetermined
    alert = NotificationSetting(rawValue: number("alert")) ?? .notSupported
    sound = NotificationSetting(rawValue: number("sound")) ?? .notSupported
    badge = NotificationSetting(rawValue: number("badge")) ?? .notSupported
    notificationCenter = NotificationSetting(rawValue: number("center")) ?? .notSupported
    criticalAlert = NotificationSetting(rawValue: number("critical")) ?? .notSupported
  }
}
