package import JSONCore

/// The texts of an app, for messages that name a text instead of holding one.
public struct Localizer: Sendable {
  private let text: @Sendable (String) -> String?

  /// - Parameter text: The text of a key, with `%@` or `%1$@` for arguments; nil when there is none.
  public init(_ text: @escaping @Sendable (String) -> String?) { self.text = text }

  /// Of an app without texts.
  public static let none = Localizer { _ in nil }

  /// The text of a key with its arguments filled in; nil when there is none.
  public func string(_ key: String, _ arguments: [String] = []) -> String? {
    text(key).map { Self.fill($0, arguments) }
  }

  /// Puts arguments for `%@` and `%s` in turn, for `%2$@` and `%2$s` by number, and `%` for `%%`.
  ///
  /// What has no argument stays as it is.
  static func fill(_ format: String, _ arguments: [String]) -> String {
    let scalars = Array(format.unicodeScalars)
    var result = String.UnicodeScalarView()
    var next = 0
    var index = 0
    while index < scalars.count {
      guard scalars[index] == "%" else {
        result.append(scalars[index])
        index += 1
        continue
      }
      var end = index + 1
      var number = 0
      while end < scalars.count, end - index < 4, (48...57).contains(scalars[end].value) {
        number = number * 10 + Int(scalars[end].value - 48)
        end += 1
      }
      let isNumbered = end > index + 1 && end < scalars.count && scalars[end] == "$"
      if isNumbered { end += 1 } else { end = index + 1 }
      if end < scalars.count, !isNumbered, scalars[end] == "%" {
        result.append("%")
        index = end + 1
        continue
      }
      let place = isNumbered ? number - 1 : next
      if end < scalars.count, scalars[end] == "@" || scalars[end] == "s", arguments.indices.contains(place) {
        result.append(contentsOf: arguments[place].unicodeScalars)
        if !isNumbered { next += 1 }
        index = end + 1
      } else {
        result.append("%")
        index += 1
      }
    }
    return String(result)
  }
}

extension NotificationContent {
  /// What the `notification` of a push says, in the keys of all platforms.
  ///
  /// - Parameters:
  ///   - notification: A JSON object; what has another form than it should is passed over.
  ///   - image: The address that stood in `fcm_options.image`; it goes before `notification.image`.
  ///   - isMutable: The message's `mutable_content`.
  package init(
    push notification: JSONValue, data: [String: String], image: String? = nil, isMutable: Bool,
    localizer: Localizer = .none
  ) {
    func text(_ names: String...) -> String? {
      for name in names { if let value = notification[name]?.string { return value } }
      return nil
    }
    func localized(_ name: String) -> String? {
      guard let key = text(name + "_loc_key", name + "-loc-key") else { return nil }
      let arguments = notification[name + "_loc_args"] ?? notification[name + "-loc-args"]
      return localizer.string(key, Self.arguments(arguments))
    }
    self.init(
      title: localized("title") ?? text("title") ?? "",
      subtitle: localized("subtitle") ?? text("subtitle") ?? "",
      body: localized("body") ?? text("body") ?? "")
    switch notification["badge"] ?? notification["notification_count"] {
    case .string(let digits): badge = Int(digits).flatMap { $0 >= 0 ? $0 : nil }
    case .number(let digits): badge = Int(digits).flatMap { $0 >= 0 ? $0 : nil }
    default: break
    }
    sound = Self.sound(notification["sound"])
    if sound == nil, notification["default_sound"]?.bool == true { sound = .standard }
    categoryID = text("category", "click_action")
    threadID = text("thread_id", "thread-id")
    switch text("interruption_level", "interruption-level") ?? text("notification_priority") {
    case "passive", "PRIORITY_MIN", "PRIORITY_LOW": interruptionLevel = .passive
    case "time-sensitive", "PRIORITY_MAX": interruptionLevel = .timeSensitive
    case "critical": interruptionLevel = .critical
    default: break
    }
    if let score = notification["relevance_score"]?.double { relevance = min(1, max(0, score)) }
    imageURL = image ?? notification["fcm_options"]?["image"]?.string ?? text("image")
    icon = text("icon")
    userInfo = data
    // A picture is work for the extension by itself: only iOS wants the flag beside it.
    self.isMutable = (isMutable || imageURL != nil) && hasAlert
  }

  /// A JSON array, or a string that holds one.
  private static func arguments(_ value: JSONValue?) -> [String] {
    var value = value
    if let text = value?.string { value = try? JSONValue(parsing: text, depthMax: 4) }
    return (value?.array ?? []).map { $0.string ?? $0.text }
  }

  private static func sound(_ value: JSONValue?) -> Sound? {
    guard let value else { return nil }
    if let name = value.string { return name.isEmpty ? nil : name == "default" ? .standard : .named(name) }
    guard let name = value["name"]?.string else { return nil }
    let isCritical = value["critical"]?.bool == true || value["critical"]?.int == 1
    let volume = min(1, max(0, value["volume"]?.double ?? 1))
    if isCritical { return .critical(name: name, volume: volume) }
    return name == "default" ? .standard : .named(name)
  }
}
