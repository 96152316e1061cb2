import Connections
import JSONCore
import PushModel

/// A message as an app on a device gets it.
public struct DeviceMessage: Sendable, Hashable {
  /// How urgent it is.
  public enum Priority: String, Sendable, Hashable {
    /// It could wait for the device to wake by itself.
    case normal
    /// It was to wake the device.
    case high
  }

  /// The server's id of the message: the same when it is delivered again.
  public var id: String
  /// The sender id, or `/topics/name`.
  public var from: String
  /// The app it is for.
  public var category: String
  /// The registration token it is for.
  public var token: String
  /// What the sender put in.
  public var data: [String: String]
  /// What the system is to show: a JSON object as it came.
  public var notificationJSON: String?
  /// Its title, for those who show no more.
  public var notificationTitle: String?
  /// Its text.
  public var notificationBody: String?
  /// Where a picture for the notification lies: `fcm_options.image`.
  public var imageURL: String?
  /// How urgent it is.
  public var priority: Priority
  /// A newer message with the same key takes the place of one that waits.
  public var collapseKey: String?
  /// How long it could wait for the device.
  public var timeToLive: Duration
  /// When the server took it, in milliseconds since 1970.
  public var sentTimeMs: Int64
  /// Whether it wakes an iOS app in the background.
  public var contentAvailable: Bool
  /// Whether an iOS app may change the notification before it is shown.
  public var mutableContent: Bool

  /// Makes a message; test doubles do.
  public init(
    id: String, from: String, category: String, token: String, data: [String: String] = [:],
    priority: Priority = .normal, timeToLive: Duration = .seconds(2_419_200), sentTimeMs: Int64 = 0
  ) {
    self.id = id
    self.from = from
    self.category = category
    self.token = token
    self.data = data
    self.priority = priority
    self.timeToLive = timeToLive
    self.sentTimeMs = sentTimeMs
    contentAvailable = false
    mutableContent = false
  }

  init(_ message: DeviceDelivery.Message) {
    self.init(
      id: message.messageID, from: message.from, category: message.category, token: message.token,
      data: message.data, priority: message.priority == .high ? .high : .normal,
      timeToLive: .seconds(message.timeToLive), sentTimeMs: message.sentTime)
    notificationJSON = message.notification?.text
    notificationTitle = message.notification?["title"]?.string
    notificationBody = message.notification?["body"]?.string
    imageURL = message.image
    collapseKey = message.collapseKey
    contentAvailable = message.contentAvailable
    mutableContent = message.mutableContent
  }
}

/// The server's word that it discarded messages which waited for too long or were too many: ask the app server for
/// what is missing.
public struct DeletedMessages: Sendable, Hashable {
  /// The sender id.
  public var from: String
  /// The app they were for.
  public var category: String
  /// How many.
  public var total: Int

  /// Makes a notice; test doubles do.
  public init(from: String, category: String, total: Int) {
    self.from = from
    self.category = category
    self.total = total
  }
}

/// The server took charge of an upstream message: it is durable, or an app server has it.
public struct UpstreamOutcome: Sendable, Hashable {
  /// The message's id.
  public var messageID: String
  /// How often it was written.
  public var attempts: Int
  /// From the hand-over to the outcome.
  public var latency: Duration

  /// Makes an outcome; test doubles do.
  public init(messageID: String, attempts: Int = 1, latency: Duration = .zero) {
    self.messageID = messageID
    self.attempts = attempts
    self.latency = latency
  }
}

/// Why an upstream message was not taken.
public struct UpstreamSendError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kind of failure.
  ///
  /// May grow; compare with the constants.
  public struct Code: Sendable, Hashable, CustomStringConvertible {
    private enum Kind: String {
      case nacked, invalidMessage, tooManyMessages, duplicateID, overdue, cancelled, closed
    }
    private let kind: Kind

    /// The server refused it; ``UpstreamSendError/nackCode`` says why.
    public static let nacked = Code(kind: .nacked)
    /// It broke a rule of the protocol and was not sent.
    public static let invalidMessage = Code(kind: .invalidMessage)
    /// ``Device/Configuration/upstreamMax`` have no outcome yet.
    public static let tooManyMessages = Code(kind: .tooManyMessages)
    /// A message with the same id has no outcome yet.
    public static let duplicateID = Code(kind: .duplicateID)
    /// No outcome in time.
    ///
    /// It may have been taken.
    public static let overdue = Code(kind: .overdue)
    /// The task was cancelled.
    ///
    /// It may have been taken.
    public static let cancelled = Code(kind: .cancelled)
    /// The device is closed, or was replaced.
    public static let closed = Code(kind: .closed)

    /// The code's name.
    public var description: String { kind.rawValue }
  }

  /// The kind of failure.
  public var code: Code
  /// The message's id.
  public var messageID: String
  /// The server's code, `TTL_EXCEEDED` for instance, as it was written.
  public var nackCode: String?
  /// For people.
  ///
  /// Holds no payload.
  public var detail: String

  /// Makes an error; test doubles do.
  public init(code: Code, messageID: String, nackCode: String? = nil, detail: String = "") {
    self.code = code
    self.messageID = messageID
    self.nackCode = nackCode
    self.detail = detail
  }

  /// One line for logs.
  public var description: String {
    var text = code.description
    if let nackCode { text += " \(nackCode)" }
    if !detail.isEmpty { text += ": \(detail)" }
    return text
  }
}
