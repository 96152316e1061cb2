import Bytes
import JSONCore
import PushModel
import Seams

/// Turns a request whose names and types are right into a message of the server, by FCM's rules.
///
/// What the message says is copied into a text of its own, which the draft's places point into. Common fields come
/// first; a platform's block replaces what has the same name. The base is for Android and Linux, and variants are
/// made for the platforms that differ.
struct V1Mapping {
  let reader: V1Reader
  /// The request's body.
  let source: UnsafeRawBufferPointer
  let wall: WallTime
  var arena: ByteWriter

  var limits: Limits { reader.limits }

  init(_ reader: V1Reader, _ source: UnsafeRawBufferPointer, wall: WallTime) {
    self.reader = reader
    self.source = source
    self.wall = wall
    arena = ByteWriter(capacity: source.count + 256)
  }

  mutating func send() throws(V1Fault) -> V1Send {
    let (target, from, installation) = try target()
    try checkRules()
    let reply = ReplyIDs(messageID: JSONString(start: 0, end: 0, decodedCount: 0), from: from)

    let hasAndroid = reader.member(.android) != nil
    var draft = try content(reply, target, android: hasAndroid)
    if reader.member(.apns) != nil {
      draft.variants.append(.init([.ios], try apnsContent(reply, target)))
    }
    if reader.member(.webpush) != nil {
      draft.variants.append(.init([.web], try webContent(reply, target)))
    }
    if hasAndroid {
      let others = [Platform.ios, .web].filter { platform in
        !draft.variants.contains { $0.platforms.contains(platform) }
      }
      if !others.isEmpty {
        draft.variants.append(.init(others, try content(reply, target, android: false)))
      }
    }
    return V1Send(draft: draft, text: arena.take(), installation: installation)
  }

  // MARK: Copying

  /// Copies a string's content as it stands.
  mutating func copy(_ place: JSONString) -> JSONString {
    let start = arena.count
    arena.append(place.raw(in: source))
    return JSONString(start: start, end: arena.count, decodedCount: place.decodedCount)
  }

  /// Copies a whole value.
  mutating func copy(_ range: JSONRange) -> JSONRange {
    let start = arena.count
    arena.append(range.raw(in: source))
    return JSONRange(start: start, end: arena.count)
  }

  mutating func write(_ value: JSONValue) -> JSONRange {
    let start = arena.count
    value.write(to: &arena)
    return JSONRange(start: start, end: arena.count)
  }

  mutating func write(_ text: String) -> JSONString {
    let start = arena.count
    arena.append(jsonEscaped: text)
    return JSONString(start: start, end: arena.count, decodedCount: text.utf8.count)
  }

  func text(_ key: V1Key) -> String? { reader.string(key)?.string(in: source) }
  func value(_ key: V1Key) -> JSONValue? {
    reader.member(key).flatMap { try? JSONValue(parsing: $0.value.raw(in: source)) }
  }

  // MARK: Target

  private static let targets: [(key: V1Key, name: String)] = [
    (.token, "token"), (.topic, "topic"), (.condition, "condition"), (.fid, "fid"), (.user, "user"),
  ]

  private mutating func target() throws(V1Fault) -> (DraftTarget, JSONString, installation: String?) {
    let given = Self.targets.filter { reader.string($0.key) != nil }
    guard let key = given.first?.key, let place = reader.string(key), !place.isEmpty else { throw .noTarget }
    guard given.count == 1 else {
      throw .invalid(
        "Invalid value at 'message' (oneof), oneof field 'target' is already set. Cannot set '\(given[1].name)'",
        field: "message")
    }
    switch key {
    case .token, .fid:
      let kind = place.lend(in: source) { Target.Kind($0, limits: limits) }
      if kind == .token {
        let copied = copy(place)
        return (.token(copied), copied, nil)
      }
      if kind == .group, key == .token {
        let copied = copy(place)
        return (.group(copied), copied, nil)
      }
      if key == .fid, place.lend(in: source, { $0.count == 22 && $0.allSatisfy(Base64URL.isDigit) }) {
        let copied = copy(place)
        return (.token(copied), copied, place.string(in: source))
      }
      throw .malformedToken(field: key == .token ? "message.token" : "message.fid")
    case .topic:
      let text = place.string(in: source)
      let name = text.hasPrefix("/topics/") ? String(text.dropFirst(8)) : text
      guard name.utf8.count <= limits.topicNameBytesMax, TopicName(name) != nil else { throw .malformedTopic }
      let copied = write("/topics/\(name)")
      return (.topic(copied), copied, nil)
    case .condition:
      let parsed = place.lend(in: source) { bytes in
        try? TopicCondition(
          parsing: bytes, topicsMax: limits.conditionTopicsMax, depthMax: limits.conditionDepthMax)
      }
      guard let parsed else { throw .malformedCondition }
      return (.condition(parsed), copy(place), nil)
    default:
      guard place.decodedCount <= limits.userIDBytesMax else {
        throw .invalid("A user id has at most \(limits.userIDBytesMax) bytes.", field: "message.user")
      }
      let start = arena.count
      arena.append("/users/")
      arena.append(place.raw(in: source))
      let copied = JSONString(start: start, end: arena.count, decodedCount: place.decodedCount + 7)
      return (.user(copied), copied, nil)
    }
  }

  // MARK: Common and Android

  /// What Android and Linux get, or, without the block, every platform.
  private mutating func content(
    _ reply: ReplyIDs, _ target: DraftTarget, android: Bool
  ) throws(V1Fault) -> DownstreamDraft {
    let notification = notification(android: android)
    let dataKey: V1Key = android && reader.member(.androidData) != nil ? .androidData : .data
    let data = data(dataKey)
    var draft = DownstreamDraft(
      reply: reply, target: target, data: data.range, notification: notification.range,
      timeToLive: limits.timeToLiveSecondsMax, priority: notification.range == nil ? .normal : .high,
      options: options, payloadBytes: notification.bytes + data.bytes, badgeStep: badgeStep)
    if android {
      if let key = reader.string(.androidCollapseKey), !key.isEmpty { draft.collapseKey = copy(key) }
      if let name = reader.string(.androidPackage), !name.isEmpty { draft.restrictedPackageName = copy(name) }
      draft.timeToLive = try androidTimeToLive()
      if let member = reader.member(.androidPriority),
        let value = V1Reader.value(of: member, in: .priority, source)
      {
        draft.priority = value == 1 ? .high : .normal
      }
    }
    draft.extras = extras(android: android)
    try checkSize(draft.payloadBytes, target)
    return draft
  }

  var options: DownstreamDraft.Options { reader.member(.validateOnly)?.kind == .true ? [.dryRun] : [] }

  var badgeStep: Int {
    reader.string(.badge).map { $0.lend(in: source) { NotificationBadge.step($0) } } ?? 0
  }

  mutating func data(_ key: V1Key) -> (range: JSONRange?, bytes: Int) {
    guard let member = reader.member(key), reader.hasMembers(key) else { return (nil, 0) }
    return (copy(member.value), PayloadRules.bytes(reader.children(key), of: reader.document))
  }

  func checkSize(_ bytes: Int, _ target: DraftTarget) throws(V1Fault) {
    let limit: Int
    switch target {
    case .topic, .condition: limit = limits.topicPayloadBytesMax
    case .token, .user, .group, .tokens: limit = limits.payloadBytesMax
    }
    guard bytes <= limit else { throw .tooLarge(limit: limit) }
  }

  private func androidTimeToLive() throws(V1Fault) -> Int {
    guard let place = reader.string(.androidTTL), let ttl = place.lend(in: source, { DurationText($0) })
    else { return limits.timeToLiveSecondsMax }
    let isZero = ttl.seconds == 0 && ttl.nanoseconds == 0
    let max = Int64(limits.timeToLiveSecondsMax)
    guard !ttl.isNegative || isZero, ttl.seconds < max || (ttl.seconds == max && ttl.nanoseconds == 0) else {
      throw .invalid("TTL must be between 0 and \(max) seconds.", field: "message.android.ttl")
    }
    return Int(ttl.seconds)
  }

  /// The notification in the names that devices and legacy senders know.
  private mutating func notification(android: Bool) -> (range: JSONRange?, bytes: Int) {
    let start = arena.count
    var bytes = 0
    var isFirst = true
    func put(_ name: StaticString, _ member: JSONMember, _ enumeration: V1Enumeration?) {
      arena.append(isFirst ? "{\"" : ",\"")
      isFirst = false
      arena.append(name)
      arena.append("\":")
      if name.utf8CodeUnitCount == 14, member.kind == .object {
        appendLightSettings()
      } else if let enumeration, member.kind == .number,
        let value = V1Reader.value(of: member, in: enumeration, source)
      {
        arena.append(byte: UInt8(ascii: "\""))
        arena.append(enumeration.values[value])
        arena.append(byte: UInt8(ascii: "\""))
      } else {
        arena.append(member.value.raw(in: source))
      }
      bytes += name.utf8CodeUnitCount + member.decodedCount
    }
    for (name, common, own) in Self.sharedKeys {
      if let member = (android ? own.flatMap(reader.member) : nil) ?? reader.member(common) {
        put(name, member, nil)
      }
    }
    if android {
      for (name, key, enumeration) in Self.androidKeys {
        if let member = reader.member(key) { put(name, member, enumeration) }
      }
    }
    guard !isFirst else { return (nil, 0) }
    arena.append("}")
    return (JSONRange(start: start, end: arena.count), bytes)
  }

  private static let sharedKeys: [(StaticString, V1Key, V1Key?)] = [
    ("title", .title, .androidTitle), ("body", .body, .androidBody), ("image", .image, .androidImage),
    ("badge", .badge, nil),
  ]

  private static let androidKeys: [(StaticString, V1Key, V1Enumeration?)] = [
    ("icon", .icon, nil), ("color", .color, nil), ("sound", .sound, nil), ("tag", .tag, nil),
    ("click_action", .clickAction, nil), ("body_loc_key", .bodyLocKey, nil),
    ("body_loc_args", .bodyLocArgs, nil), ("title_loc_key", .titleLocKey, nil),
    ("title_loc_args", .titleLocArgs, nil), ("android_channel_id", .channelID, nil),
    ("ticker", .ticker, nil), ("sticky", .sticky, nil), ("event_time", .eventTime, nil),
    ("local_only", .localOnly, nil),
    ("notification_priority", .notificationPriority, .notificationPriority),
    ("default_sound", .defaultSound, nil), ("default_vibrate_timings", .defaultVibrateTimings, nil),
    ("default_light_settings", .defaultLightSettings, nil), ("vibrate_timings", .vibrateTimings, nil),
    ("visibility", .visibility, .visibility), ("notification_count", .notificationCount, nil),
    ("light_settings", .lightSettings, nil), ("bypass_proxy_notification", .bypassProxy, nil),
    ("proxy", .proxy, .proxy),
  ]

  /// In the names of the reference, whichever the sender used.
  private mutating func appendLightSettings() {
    var isFirst = true
    for (key, name) in Self.lightKeys {
      guard let member = reader.member(key) else { continue }
      arena.append(isFirst ? "{" : ",")
      isFirst = false
      arena.append(name)
      arena.append(member.value.raw(in: source))
    }
    arena.append(isFirst ? "{}" : "}")
  }

  private static let lightKeys: [(V1Key, StaticString)] = [
    (.lightColor, "\"color\":"), (.lightOn, "\"light_on_duration\":"),
    (.lightOff, "\"light_off_duration\":"),
  ]

  /// Members beside `notification` and `data`, each with a comma before it.
  private mutating func extras(android: Bool) -> JSONRange? {
    let start = arena.count
    if let label = (android ? reader.string(.androidLabel) : nil) ?? reader.string(.label) {
      arena.append(",\"fcm_options\":{\"analytics_label\":\"")
      arena.append(label.raw(in: source))
      arena.append("\"}")
    }
    if android {
      for (key, name) in Self.androidFlags where reader.member(key)?.kind == .true {
        arena.append(name)
      }
    }
    return arena.count == start ? nil : JSONRange(start: start, end: arena.count)
  }

  private static let androidFlags: [(V1Key, StaticString)] = [
    (.directBootOK, ",\"direct_boot_ok\":true"), (.bandwidthOK, ",\"bandwidth_constrained_ok\":true"),
    (.satelliteOK, ",\"restricted_satellite_ok\":true"),
  ]
}
