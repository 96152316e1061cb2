/// A downstream message of an app server: to one device, a device group, a topic, a condition or a user.
///
/// Checked when it is sent, by the same rules as the server's: a message that the server would refuse for its
/// form throws ``SendError`` without a trip.
public struct PushMessage: Sendable, Hashable {
  /// Whom a message is for.
  public enum Target: Sendable, Hashable {
    /// One app on one device, by its registration token.
    case token(String)
    /// A device group, by its notification key.
    case group(String)
    /// All subscribers of a topic, by its name without `/topics/`.
    case topic(String)
    /// All that a condition selects: `'news' in topics && !('sport' in topics)`.
    case condition(String)
    /// All devices of a user, an extension of this server.
    case user(String)
  }

  /// How urgent a message is.
  public enum Priority: String, Sendable, Hashable {
    /// May wait for the device to wake by itself.
    case normal
    /// Wakes the device.
    case high
  }

  /// What the system shows on the device, unless the app is in the foreground.
  public struct Notification: Sendable, Hashable {
    /// The headline.
    public var title: String?
    /// The text.
    public var body: String?
    /// A second headline, on iOS.
    public var subtitle: String?
    /// Name or address of a small picture.
    public var icon: String?
    /// Address of a large picture.
    public var image: String?
    /// `#rrggbb`, on Android.
    public var color: String?
    /// `default` or the name of a sound the app has.
    public var sound: String?
    /// A newer notification with the same tag takes the place of one that is shown.
    public var tag: String?
    /// The number on the app's icon, as digits; `"0"` clears it, `"+1"` counts the user's stored one up (an
    /// extension of this server).
    public var badge: String?
    /// What a tap opens.
    public var clickAction: String?
    /// The channel, on Android.
    public var channelID: String?
    /// Key of a text in the app that takes the place of the title.
    public var titleLocKey: String?
    /// What is filled into it.
    public var titleLocArgs: [String]?
    /// Key of a text in the app that takes the place of the body.
    public var bodyLocKey: String?
    /// What is filled into it.
    public var bodyLocArgs: [String]?

    /// Makes a notification.
    public init(title: String? = nil, body: String? = nil) {
      self.title = title
      self.body = body
    }
  }

  /// Unique among the sender's messages of the last minutes: a repeat is acked and not delivered again.
  ///
  /// Left nil, the client makes one when the message is sent.
  public var id: String?
  /// Whom it is for.
  public var target: Target
  /// What the app gets, at most 4,096 bytes of names and values, with the notification's.
  public var data: [String: String]
  /// What the system shows.
  public var notification: Notification?
  /// A newer message with the same key takes the place of one that waits.
  public var collapseKey: String?
  /// Left nil: high with a notification, normal without.
  public var priority: Priority?
  /// How long it may wait for the device, in whole seconds, four weeks at most and when left nil; zero is now
  /// or never.
  public var timeToLive: Duration?
  /// Whether a receipt is sent when the device has it.
  public var wantsReceipt: Bool
  /// Whether it is checked and acked, but not delivered.
  public var isDryRun: Bool
  /// Wakes an iOS app in the background.
  public var contentAvailable: Bool
  /// Lets an iOS app change the notification before it is shown.
  public var mutableContent: Bool

  /// A whole message object in the protocol's own fields, instead of all the others here.
  var rawJSON: [UInt8]?

  /// Makes a message; what is left out has the server's default.
  public init(
    to target: Target, data: [String: String] = [:], notification: Notification? = nil, id: String? = nil,
    collapseKey: String? = nil, priority: Priority? = nil, timeToLive: Duration? = nil,
    wantsReceipt: Bool = false, isDryRun: Bool = false, contentAvailable: Bool = false,
    mutableContent: Bool = false
  ) {
    self.id = id
    self.target = target
    self.data = data
    self.notification = notification
    self.collapseKey = collapseKey
    self.priority = priority
    self.timeToLive = timeToLive
    self.wantsReceipt = wantsReceipt
    self.isDryRun = isDryRun
    self.contentAvailable = contentAvailable
    self.mutableContent = mutableContent
  }

  /// A message given as a JSON object in the fields of the protocol (`to` or `condition`, `data`,
  /// `notification`, `time_to_live` …), sent as it is.
  ///
  /// A `message_id` is added when it has none. Changing other properties of the result has no effect.
  public static func json(_ object: String) -> PushMessage {
    json(Array(object.utf8))
  }

  /// The same of UTF-8 bytes.
  public static func json(_ object: [UInt8]) -> PushMessage {
    var message = PushMessage(to: .token(""))
    message.rawJSON = object
    return message
  }
}
