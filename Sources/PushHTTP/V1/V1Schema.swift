/// A field of an HTTP v1 request, by where it stands.
///
/// Each message type occurs in one place of a request, or its places are told apart here, so that a field is known
/// by one name and its path is a constant.
/// - Source: FCM HTTP v1 reference, `projects.messages`.
enum V1Key: UInt8, CaseIterable {
  case validateOnly, message
  case name, data, notification, android, webpush, apns, options, token, topic, condition, fid, user
  case title, body, image, badge
  case androidCollapseKey, androidPriority, androidTTL, androidPackage, androidData, androidNotification
  case androidOptions, directBootOK, bandwidthOK, satelliteOK
  case androidTitle, androidBody, androidImage, icon, color, sound, tag, clickAction, bodyLocKey, bodyLocArgs
  case titleLocKey, titleLocArgs, channelID, ticker, sticky, eventTime, localOnly, notificationPriority
  case defaultSound, defaultVibrateTimings, defaultLightSettings, vibrateTimings, visibility,
    notificationCount
  case lightSettings, bypassProxy, proxy
  case lightColor, lightOn, lightOff
  case red, green, blue, alpha
  case apnsHeaders, apnsPayload, apnsOptions, liveActivityToken
  case apnsLabel, apnsImage
  case webHeaders, webData, webNotification, webOptions
  case webLink, webLabel
  case label, androidLabel
}

/// An object of the request whose members are known.
enum V1Object: UInt8 {
  case request, message, notification, android, androidNotification, lightSettings, color, apns, apnsOptions
  case webpush, webOptions, options, androidOptions

  /// As error texts name it; empty for the request itself.
  var path: String {
    switch self {
    case .request: ""
    case .message: "message"
    case .notification: "message.notification"
    case .android: "message.android"
    case .androidNotification: "message.android.notification"
    case .lightSettings: "message.android.notification.light_settings"
    case .color: "message.android.notification.light_settings.color"
    case .apns: "message.apns"
    case .apnsOptions: "message.apns.fcm_options"
    case .webpush: "message.webpush"
    case .webOptions: "message.webpush.fcm_options"
    case .options: "message.fcm_options"
    case .androidOptions: "message.android.fcm_options"
    }
  }

  var typeName: String {
    switch self {
    case .request: "google.firebase.fcm.v1.SendMessageRequest"
    case .message: "google.firebase.fcm.v1.Message"
    case .notification: "google.firebase.fcm.v1.Notification"
    case .android: "google.firebase.fcm.v1.AndroidConfig"
    case .androidNotification: "google.firebase.fcm.v1.AndroidNotification"
    case .lightSettings: "google.firebase.fcm.v1.LightSettings"
    case .color: "google.type.Color"
    case .apns: "google.firebase.fcm.v1.ApnsConfig"
    case .apnsOptions: "google.firebase.fcm.v1.ApnsFcmOptions"
    case .webpush: "google.firebase.fcm.v1.WebpushConfig"
    case .webOptions: "google.firebase.fcm.v1.WebpushFcmOptions"
    case .options: "google.firebase.fcm.v1.FcmOptions"
    case .androidOptions: "google.firebase.fcm.v1.AndroidFcmOptions"
    }
  }
}

/// What a field may hold.
enum V1Kind {
  case string, bool, integer, float, duration, timestamp, stringMap, anyObject, strings, durations
  case object(V1Object)
  case enumeration(V1Enumeration)
}

/// The values of an enumeration; the index is the number.
struct V1Enumeration {
  let typeName: StaticString
  let values: [StaticString]
  /// Lower case is taken too, as senders of the legacy API write it.
  var ignoresCase = false

  static let priority = V1Enumeration(
    typeName: "google.firebase.fcm.v1.AndroidMessagePriority", values: ["NORMAL", "HIGH"], ignoresCase: true)
  static let notificationPriority = V1Enumeration(
    typeName: "google.firebase.fcm.v1.AndroidNotification.NotificationPriority",
    values: [
      "PRIORITY_UNSPECIFIED", "PRIORITY_MIN", "PRIORITY_LOW", "PRIORITY_DEFAULT", "PRIORITY_HIGH",
      "PRIORITY_MAX",
    ])
  static let visibility = V1Enumeration(
    typeName: "google.firebase.fcm.v1.AndroidNotification.Visibility",
    values: ["VISIBILITY_UNSPECIFIED", "PRIVATE", "PUBLIC", "SECRET"])
  static let proxy = V1Enumeration(
    typeName: "google.firebase.fcm.v1.AndroidNotification.Proxy",
    values: ["PROXY_UNSPECIFIED", "ALLOW", "DENY", "IF_PRIORITY_LOWERED"])
}

/// A field's two names and what it holds.
struct V1Field {
  let key: V1Key
  /// As in the reference.
  let name: StaticString
  /// The same in lowerCamelCase, which proto3 JSON takes as well.
  let camelName: StaticString
  let kind: V1Kind

  init(_ key: V1Key, _ name: StaticString, _ camelName: StaticString? = nil, _ kind: V1Kind = .string) {
    self.key = key
    self.name = name
    self.camelName = camelName ?? name
    self.kind = kind
  }
}

enum V1Schema {
  static func fields(of object: V1Object) -> [V1Field] { tables[Int(object.rawValue)] }

  /// In the order of ``V1Object``.
  private static let tables: [[V1Field]] = [
    request, message, notification, android, androidNotification, lightSettings, color, apns, apnsOptions,
    webpush, webOptions, [V1Field(.label, "analytics_label", "analyticsLabel")],
    [V1Field(.androidLabel, "analytics_label", "analyticsLabel")],
  ]

  private static let request = [
    V1Field(.message, "message", nil, .object(.message)),
    V1Field(.validateOnly, "validate_only", "validateOnly", .bool),
  ]

  private static let message = [
    V1Field(.token, "token"), V1Field(.topic, "topic"), V1Field(.condition, "condition"),
    V1Field(.data, "data", nil, .stringMap),
    V1Field(.notification, "notification", nil, .object(.notification)),
    V1Field(.android, "android", nil, .object(.android)), V1Field(.apns, "apns", nil, .object(.apns)),
    V1Field(.webpush, "webpush", nil, .object(.webpush)),
    V1Field(.options, "fcm_options", "fcmOptions", .object(.options)), V1Field(.fid, "fid"),
    // An extension: all active registrations of a user.
    V1Field(.user, "user"),
    V1Field(.name, "name"),
  ]

  private static let notification = [
    V1Field(.title, "title"), V1Field(.body, "body"), V1Field(.image, "image"),
    // An extension: "+1" counts the user's badge up.
    V1Field(.badge, "badge"),
  ]

  private static let android = [
    V1Field(.androidCollapseKey, "collapse_key", "collapseKey"),
    V1Field(.androidPriority, "priority", nil, .enumeration(.priority)),
    V1Field(.androidTTL, "ttl", nil, .duration),
    V1Field(.androidPackage, "restricted_package_name", "restrictedPackageName"),
    V1Field(.androidData, "data", nil, .stringMap),
    V1Field(.androidNotification, "notification", nil, .object(.androidNotification)),
    V1Field(.androidOptions, "fcm_options", "fcmOptions", .object(.androidOptions)),
    V1Field(.directBootOK, "direct_boot_ok", "directBootOk", .bool),
    V1Field(.bandwidthOK, "bandwidth_constrained_ok", "bandwidthConstrainedOk", .bool),
    V1Field(.satelliteOK, "restricted_satellite_ok", "restrictedSatelliteOk", .bool),
  ]

  private static let androidNotification = [
    V1Field(.androidTitle, "title"), V1Field(.androidBody, "body"), V1Field(.icon, "icon"),
    V1Field(.color, "color"), V1Field(.sound, "sound"), V1Field(.tag, "tag"),
    V1Field(.clickAction, "click_action", "clickAction"),
    V1Field(.bodyLocKey, "body_loc_key", "bodyLocKey"),
    V1Field(.bodyLocArgs, "body_loc_args", "bodyLocArgs", .strings),
    V1Field(.titleLocKey, "title_loc_key", "titleLocKey"),
    V1Field(.titleLocArgs, "title_loc_args", "titleLocArgs", .strings),
    V1Field(.channelID, "channel_id", "channelId"), V1Field(.ticker, "ticker"),
    V1Field(.sticky, "sticky", nil, .bool), V1Field(.eventTime, "event_time", "eventTime", .timestamp),
    V1Field(.localOnly, "local_only", "localOnly", .bool),
    V1Field(
      .notificationPriority, "notification_priority", "notificationPriority",
      .enumeration(.notificationPriority)),
    V1Field(.defaultSound, "default_sound", "defaultSound", .bool),
    V1Field(.defaultVibrateTimings, "default_vibrate_timings", "defaultVibrateTimings", .bool),
    V1Field(.defaultLightSettings, "default_light_settings", "defaultLightSettings", .bool),
    V1Field(.vibrateTimings, "vibrate_timings", "vibrateTimings", .durations),
    V1Field(.visibility, "visibility", nil, .enumeration(.visibility)),
    V1Field(.notificationCount, "notification_count", "notificationCount", .integer),
    V1Field(.lightSettings, "light_settings", "lightSettings", .object(.lightSettings)),
    V1Field(.androidImage, "image"),
    V1Field(.bypassProxy, "bypass_proxy_notification", "bypassProxyNotification", .bool),
    V1Field(.proxy, "proxy", nil, .enumeration(.proxy)),
  ]

  private static let lightSettings = [
    V1Field(.lightColor, "color", nil, .object(.color)),
    V1Field(.lightOn, "light_on_duration", "lightOnDuration", .duration),
    V1Field(.lightOff, "light_off_duration", "lightOffDuration", .duration),
  ]

  private static let color = [
    V1Field(.red, "red", nil, .float), V1Field(.green, "green", nil, .float),
    V1Field(.blue, "blue", nil, .float), V1Field(.alpha, "alpha", nil, .float),
  ]

  private static let apns = [
    V1Field(.apnsHeaders, "headers", nil, .stringMap), V1Field(.apnsPayload, "payload", nil, .anyObject),
    V1Field(.apnsOptions, "fcm_options", "fcmOptions", .object(.apnsOptions)),
    V1Field(.liveActivityToken, "live_activity_token", "liveActivityToken"),
  ]

  private static let apnsOptions = [
    V1Field(.apnsLabel, "analytics_label", "analyticsLabel"), V1Field(.apnsImage, "image"),
  ]

  private static let webpush = [
    V1Field(.webHeaders, "headers", nil, .stringMap), V1Field(.webData, "data", nil, .stringMap),
    V1Field(.webNotification, "notification", nil, .anyObject),
    V1Field(.webOptions, "fcm_options", "fcmOptions", .object(.webOptions)),
  ]

  private static let webOptions = [
    V1Field(.webLink, "link"), V1Field(.webLabel, "analytics_label", "analyticsLabel"),
  ]
}
