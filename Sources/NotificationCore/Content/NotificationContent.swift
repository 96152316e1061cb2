/// What a notification says and how it behaves.
public struct NotificationContent: Sendable, Hashable {
  /// What is heard.
  public enum Sound: Sendable, Hashable {
    /// The system's sound for notifications.
    case standard
    /// A sound file of the app.
    case named(String)
    /// One that is heard in silent mode too; volume 0 to 1.
    case critical(name: String, volume: Double)
  }

  /// How much a notification may disturb.
  public enum InterruptionLevel: Int, Sendable, Hashable, CaseIterable {
    /// To the list, without light and sound.
    case passive = 0
    /// The usual.
    case active = 1
    /// Breaks through quiet hours.
    case timeSensitive = 2
    /// Breaks through everything.
    case critical = 3
  }

  /// A file shown with a notification.
  public struct Attachment: Sendable, Hashable {
    /// Unique in the notification; may be empty.
    public var id: String
    /// Where the file lies.
    public var path: String
    /// Of the file's content, `image/png` for instance.
    public var mediaType: String

    /// Describes a file that is there.
    public init(id: String = "", path: String, mediaType: String) {
      self.id = id
      self.path = path
      self.mediaType = mediaType
    }
  }

  /// The headline.
  public var title: String
  /// A second headline.
  public var subtitle: String
  /// The text.
  public var body: String
  /// The number on the app's icon; nil leaves it, 0 clears it.
  public var badge: Int?
  /// What is heard; nil is silence.
  public var sound: Sound?
  /// Which category, and so which actions, it has.
  public var categoryID: String?
  /// Notifications with the same are shown together.
  public var threadID: String?
  /// How much it may disturb.
  public var interruptionLevel: InterruptionLevel
  /// 0 to 1, to sort a summary.
  public var relevance: Double
  /// Where a picture for it lies.
  public var imageURL: String?
  /// Name or address of a small picture.
  public var icon: String?
  /// Files shown with it.
  public var attachments: [Attachment]
  /// What the sender gave beside it.
  public var userInfo: [String: String]
  /// Whether a service extension may change it before it is shown; false once one had it.
  public var isMutable: Bool

  /// Makes content.
  public init(title: String = "", subtitle: String = "", body: String = "") {
    self.title = title
    self.subtitle = subtitle
    self.body = body
    interruptionLevel = .active
    relevance = 0
    attachments = []
    userInfo = [:]
    isMutable = false
  }

  /// Whether there is something to read.
  public var hasAlert: Bool { !title.isEmpty || !subtitle.isEmpty || !body.isEmpty }
}

/// A notification that is to be shown, and when.
public struct NotificationRequest: Sendable, Hashable {
  /// Who asked for it.
  public enum Origin: String, Sendable, Hashable {
    /// The app.
    case local
    /// A push.
    case remote
  }

  /// A newer request with the same id takes the place of this one.
  public var id: String
  /// What is shown.
  public var content: NotificationContent
  /// When; nil is now.
  public var trigger: NotificationTrigger?
  /// Who asked for it.
  public internal(set) var origin: Origin
  /// Of a push: its sender id, or `/topics/name`.
  public internal(set) var from: String?

  /// Makes a request of the app.
  public init(id: String, content: NotificationContent, trigger: NotificationTrigger? = nil) {
    self.id = id
    self.content = content
    self.trigger = trigger
    origin = .local
  }

  /// A request that a push made.
  package init(remote id: String, content: NotificationContent, from: String? = nil) {
    self.init(id: id, content: content)
    self.from = from
    origin = .remote
  }
}

/// When a notification is shown.
public enum NotificationTrigger: Sendable, Hashable {
  /// After a while of more than nothing; repeating, of a minute at least.
  case timeInterval(Duration, repeats: Bool)
  /// When clocks show these parts.
  ///
  /// `zone` is a name of the zone database; nil is the device's own zone, whichever it is then.
  case calendar(CalendarFields, zone: String?, repeats: Bool)

  /// In the device's own zone.
  public static func calendar(_ fields: CalendarFields, repeats: Bool) -> NotificationTrigger {
    .calendar(fields, zone: nil, repeats: repeats)
  }

  /// Whether it stays after it fired.
  public var repeats: Bool {
    switch self {
    case .timeInterval(_, let repeats), .calendar(_, _, let repeats): repeats
    }
  }
}

/// A notification that was shown and is still in the list.
public struct DeliveredNotification: Sendable, Hashable {
  /// What asked for it.
  public var request: NotificationRequest
  /// When it was shown, in milliseconds since 1970.
  public var dateMs: Int64
  /// What the presenter calls it; it outlives the process.
  package var handle: Int64?
  /// Whether the presenter has it.
  package var isShown = false
  /// What is to be done to show it, while it is not shown.
  package var options: PresentationOptions = []
  /// Whether the app in the foreground is still to be asked.
  package var isUndecided = false

  package init(request: NotificationRequest, dateMs: Int64) {
    self.request = request
    self.dateMs = dateMs
  }
}
