/// What an app asks the user's leave for.
public struct AuthorizationOptions: OptionSet, Sendable, Hashable {
  /// The bits, as Apple numbers them.
  public let rawValue: Int
  /// Takes bits.
  public init(rawValue: Int) { self.rawValue = rawValue }
  /// A number on the icon.
  public static let badge = AuthorizationOptions(rawValue: 1)
  /// Sounds.
  public static let sound = AuthorizationOptions(rawValue: 2)
  /// Something to read.
  public static let alert = AuthorizationOptions(rawValue: 4)
  /// Sounds in silent mode.
  public static let criticalAlert = AuthorizationOptions(rawValue: 16)
  /// Without asking, into the list and quietly.
  public static let provisional = AuthorizationOptions(rawValue: 64)
}

/// What the user said.
public enum AuthorizationStatus: Int, Sendable, Hashable {
  /// Not asked yet.
  case notDetermined = 0
  /// No.
  case denied = 1
  /// Yes.
  case authorized = 2
  /// Not asked: quietly, until the user decides.
  case provisional = 3
}

/// One switch of the settings.
public enum NotificationSetting: Int, Sendable, Hashable {
  /// The app did not ask for it.
  case notSupported = 0
  /// Off.
  case disabled = 1
  /// On.
  case enabled = 2
}

/// What the app may do.
public struct NotificationSettings: Sendable, Hashable {
  /// What the user said.
  public var authorizationStatus: AuthorizationStatus
  /// Banners.
  public var alert: NotificationSetting
  /// Sounds.
  public var sound: NotificationSetting
  /// The number on the icon.
  public var badge: NotificationSetting
  /// The list.
  public var notificationCenter: NotificationSetting
  /// Sounds in silent mode.
  public var criticalAlert: NotificationSetting

  /// Those of an app that has not asked.
  public init() {
    authorizationStatus = .notDetermined
    alert = .notSupported
    sound = .notSupported
    badge = .notSupported
    notificationCenter = .notSupported
    criticalAlert = .notSupported
  }
}

/// How a notification is shown.
public struct PresentationOptions: OptionSet, Sendable, Hashable {
  /// The bits, as Apple numbers them.
  public let rawValue: Int
  /// Takes bits.
  public init(rawValue: Int) { self.rawValue = rawValue }
  /// Its number goes to the icon.
  public static let badge = PresentationOptions(rawValue: 1)
  /// Its sound is played.
  public static let sound = PresentationOptions(rawValue: 2)
  /// Into the list.
  public static let list = PresentationOptions(rawValue: 8)
  /// Over what the user does.
  public static let banner = PresentationOptions(rawValue: 16)
}

/// What notifications of one kind offer the user to do.
public struct NotificationCategory: Sendable, Hashable {
  /// What a category does beside its actions.
  public struct Options: OptionSet, Sendable, Hashable {
    /// The bits, as Apple numbers them.
    public let rawValue: Int
    /// Takes bits.
    public init(rawValue: Int) { self.rawValue = rawValue }
    /// The app hears when the user dismissed a notification.
    public static let customDismissAction = Options(rawValue: 1)
  }

  /// Its name, which contents and pushes give.
  public var id: String
  /// At most ten are offered.
  public var actions: [NotificationAction]
  /// What it does beside.
  public var options: Options

  /// Makes a category.
  public init(id: String, actions: [NotificationAction], options: Options = []) {
    self.id = id
    self.actions = actions
    self.options = options
  }

  /// Actions offered where there is room.
  public static let actionsMax = 10
}

/// Something to do about a notification.
public struct NotificationAction: Sendable, Hashable {
  /// How an action behaves.
  public struct Options: OptionSet, Sendable, Hashable {
    /// The bits, as Apple numbers them.
    public let rawValue: Int
    /// Takes bits.
    public init(rawValue: Int) { self.rawValue = rawValue }
    /// Only on an unlocked device.
    public static let authenticationRequired = Options(rawValue: 1)
    /// Shown as something that cannot be undone.
    public static let destructive = Options(rawValue: 2)
    /// Brings the app to the front.
    public static let foreground = Options(rawValue: 4)
  }

  /// Its name, for the app.
  public var id: String
  /// Its name, for the user.
  public var title: String
  /// How it behaves.
  public var options: Options
  /// What stands in the empty text field of an action that asks for text; nil asks for none.
  public var textInputPlaceholder: String?

  /// Makes an action.
  public init(id: String, title: String, options: Options = []) {
    self.id = id
    self.title = title
    self.options = options
  }

  /// An action with a text field.
  public static func textInput(
    id: String, title: String, placeholder: String = "", options: Options = []
  ) -> NotificationAction {
    var action = NotificationAction(id: id, title: title, options: options)
    action.textInputPlaceholder = placeholder
    return action
  }
}

/// What the user did with a notification.
public struct NotificationResponse: Sendable, Hashable {
  /// The notification.
  public var notification: DeliveredNotification
  /// ``defaultActionID``, ``dismissActionID``, or that of an action.
  public var actionID: String
  /// What the user typed.
  public var userText: String?
  /// Whether it came before the app listened: the app was opened by it.
  public var isColdStart: Bool

  /// A tap on the notification itself.
  public static let defaultActionID = "com.apple.UNNotificationDefaultActionIdentifier"
  /// The notification was dismissed.
  public static let dismissActionID = "com.apple.UNNotificationDismissActionIdentifier"

  package init(notification: DeliveredNotification, actionID: String, userText: String?) {
    self.notification = notification
    self.actionID = actionID
    self.userText = userText
    isColdStart = false
  }
}

/// Why the notification center refused.
public struct NotificationError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kind, numbered as Apple does where it has one.
  ///
  /// May grow; compare with the constants.
  public struct Code: Sendable, Hashable {
    /// The number.
    public let rawValue: Int
    /// The user said no.
    public static let notificationsNotAllowed = Code(rawValue: 1)
    /// The attachment's file is not there, or the address is none.
    public static let attachmentInvalidURL = Code(rawValue: 100)
    /// The attachment's bytes are of no type that is shown.
    public static let attachmentUnrecognizedType = Code(rawValue: 101)
    /// The attachment is too large.
    public static let attachmentInvalidFileSize = Code(rawValue: 102)
    /// The file cannot be moved to where notifications keep theirs.
    public static let attachmentMoveFailed = Code(rawValue: 104)
    /// The file ends before its time.
    public static let attachmentCorrupt = Code(rawValue: 105)
    /// The trigger never fires, or too often.
    public static let notificationInvalidNoDate = Code(rawValue: 1400)
    /// There is nothing to show.
    public static let notificationInvalidNoContent = Code(rawValue: 1401)
    /// A badge below zero.
    public static let badgeInputInvalid = Code(rawValue: 1600)
    /// The app's data cannot be written.
    public static let storeFailed = Code(rawValue: 9_001)
  }

  /// The kind.
  public var code: Code
  /// For people.
  public var description: String

  package init(_ code: Code, _ description: String) {
    self.code = code
    self.description = description
  }
}
