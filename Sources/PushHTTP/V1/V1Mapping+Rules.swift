import JSONCore
import PushModel

extension V1Mapping {
  /// FCM's rules for values whose types are right already; the first fault is told.
  func checkRules() throws(V1Fault) {
    try checkDataKeys()
    try checkLabels()
    try checkNotification()
    try checkAndroidNotification()
    try checkHeaders()
  }

  private func checkDataKeys() throws(V1Fault) {
    for (key, path) in [
      (V1Key.data, "message.data"), (.androidData, "message.android.data"),
      (.webData, "message.webpush.data"),
    ] {
      let facts = PayloadRules.data(
        reader.children(key), of: reader.document, in: source, reserved: .v1)
      guard let name = facts.reservedName else { continue }
      let shown = name.lend(in: source) { Echo.bounded($0, limits.echoCharactersMax) }
      throw .invalid("Invalid data payload key: \(shown)", field: path)
    }
  }

  private func checkLabels() throws(V1Fault) {
    for (key, path) in [
      (V1Key.label, "message.fcm_options"), (.androidLabel, "message.android.fcm_options"),
      (.apnsLabel, "message.apns.fcm_options"), (.webLabel, "message.webpush.fcm_options"),
    ] {
      guard let place = reader.string(key), !place.isEmpty else { continue }
      let isFine = place.lend(in: source) { $0.count <= 50 && $0.allSatisfy(TopicName.isLetter) }
      guard isFine else {
        throw .invalid(
          "Analytics label must be 1 to 50 characters of [a-zA-Z0-9-_.~%].", field: "\(path).analytics_label")
      }
    }
  }

  private func checkNotification() throws(V1Fault) {
    for (key, path) in [
      (V1Key.image, "message.notification.image"), (.androidImage, "message.android.notification.image"),
      (.apnsImage, "message.apns.fcm_options.image"),
    ] {
      guard let text = text(key), !text.isEmpty else { continue }
      guard Self.isURL(text, schemes: ["https://", "http://"]) else {
        throw .invalid("Image must be a valid URL.", field: path)
      }
    }
  }

  /// An absolute URL of one of the schemes, with a host and without blanks.
  static func isURL(_ text: String, schemes: [String]) -> Bool {
    let lowered = text.lowercased()
    guard let scheme = schemes.first(where: { lowered.hasPrefix($0) }) else { return false }
    let host = text.dropFirst(scheme.count).prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    return !host.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7F }
  }

  private func checkAndroidNotification() throws(V1Fault) {
    let path = "message.android.notification"
    if let text = text(.color), !text.isEmpty {
      let isFine =
        text.utf8.count == 7 && text.hasPrefix("#")
        && text.utf8.dropFirst().allSatisfy {
          ($0 >= 48 && $0 <= 57) || ($0 | 0x20 >= 97 && $0 | 0x20 <= 102)
        }
      guard isFine else { throw .invalid("Color must be in the form #RRGGBB.", field: "\(path).color") }
    }
    for (arguments, key, name) in [
      (V1Key.bodyLocArgs, V1Key.bodyLocKey, "body"), (.titleLocArgs, .titleLocKey, "title"),
    ] {
      guard let list = value(arguments)?.array, !list.isEmpty else { continue }
      guard reader.string(key)?.isEmpty == false else {
        throw .invalid(
          "\(name)_loc_key is required when \(name)_loc_args is specified.", field: "\(path).\(name)_loc_key")
      }
    }
    if let count = value(.notificationCount), let number = Int64(count.string ?? count.text), number < 0 {
      throw .invalid("notification_count must not be negative.", field: "\(path).notification_count")
    }
    for timing in value(.vibrateTimings)?.array ?? [] where timing.string?.hasPrefix("-") == true {
      throw .invalid("vibrate_timings must not be negative.", field: "\(path).vibrate_timings")
    }
    try checkLights("\(path).light_settings")
  }

  private func checkLights(_ path: String) throws(V1Fault) {
    guard reader.hasMembers(.lightSettings) else { return }
    for (key, name) in [
      (V1Key.lightColor, "color"), (.lightOn, "light_on_duration"), (.lightOff, "light_off_duration"),
    ] where reader.member(key) == nil {
      throw .invalid("light_settings needs \(name).", field: "\(path).\(name)")
    }
    for key in [V1Key.red, .green, .blue, .alpha] {
      guard let part = value(key)?.double else { continue }
      guard (0...1).contains(part) else {
        throw .invalid("The parts of a color are between 0 and 1.", field: "\(path).color")
      }
    }
  }

  private func checkHeaders() throws(V1Fault) {
    if let text = header("ttl", of: .webHeaders) {
      guard !text.isEmpty, text.utf8.count <= 18, text.utf8.allSatisfy({ $0 >= 48 && $0 <= 57 }) else {
        throw .invalid("TTL must be a non-negative integer.", field: "message.webpush.headers.TTL")
      }
    }
    if let link = text(.webLink), !link.isEmpty {
      guard Self.isURL(link, schemes: ["https://"]) else {
        throw .invalid("Link must be an HTTPS URL.", field: "message.webpush.fcm_options.link")
      }
    }
    if let text = header("apns-expiration", of: .apnsHeaders) {
      guard Int64(text).map({ $0 >= 0 }) == true else {
        throw .invalid(
          "apns-expiration must be a time in seconds since the epoch.",
          field: "message.apns.headers.apns-expiration")
      }
    }
    if let text = header("apns-priority", of: .apnsHeaders), !["1", "5", "10"].contains(text) {
      throw .invalid("apns-priority must be 1, 5 or 10.", field: "message.apns.headers.apns-priority")
    }
    if let text = header("apns-collapse-id", of: .apnsHeaders), text.utf8.count > 64 {
      throw .invalid(
        "apns-collapse-id has at most 64 bytes.", field: "message.apns.headers.apns-collapse-id")
    }
  }

  /// A header of a block, its name compared without case.
  func header(_ name: String, of key: V1Key) -> String? {
    let children = reader.children(key)
    var at = children.lowerBound
    var found: String?
    while at < children.upperBound {
      let member = reader.document.members[at]
      if member.name.decodedCount == name.utf8.count,
        member.name.string(in: source).lowercased() == name
      {
        found = member.string?.string(in: source)
      }
      at = member.next
    }
    return found
  }
}
