import AppStorage

extension Messaging {
  /// Which server, which app.
  public struct Configuration: Sendable {
    /// Where the device's stream goes, and how it behaves.
    public var device: Device.Configuration
    /// The server's HTTPS port, for registering.
    public var httpsPort: Int
    /// The project's id.
    public var project: String
    /// The project's key for registrations.
    public var apiKey: String
    /// The app: package name or bundle id.
    public var app: String
    /// Of the app; another one than the last time gets another token.
    public var appVersion: String
    /// What kind of device it is.
    public var platform: DeviceRegistrar.Platform
    /// Whose device it is, for messages to users.
    public var user: String?
    /// After so long without a connection the token is given up for a new one.
    public var tokenLifetime: Duration
    /// Upstream messages that may wait; one more fails.
    public var outgoingMax: Int

    /// Makes a configuration with the usual values.
    public init(
      device: Device.Configuration, httpsPort: Int = 8443, project: String, apiKey: String, app: String
    ) {
      self.device = device
      self.httpsPort = httpsPort
      self.project = project
      self.apiKey = apiKey
      self.app = app
      appVersion = "1"
      platform = .linux
      tokenLifetime = .seconds(270 * 86_400)
      outgoingMax = 20
    }
  }

  /// Why there is another token.
  public enum TokenReason: String, Sendable, Hashable {
    /// The app has no data: its first start, installed anew, or cleared.
    case firstStart
    /// The device was away for too long.
    case expired
    /// The server does not know the device any more.
    case refused
    /// The app is of another version.
    case appUpdated
    /// ``Messaging/deleteToken()``, and somebody asked for one again.
    case deleted
  }

  /// What an app hears of its messaging.
  public enum Event: Sendable, Hashable {
    /// There is a token that the app server does not have yet.
    case token(String, TokenReason)
    /// The server took charge of an upstream message.
    case sent(id: String)
    /// An upstream message will not be sent.
    case sendFailed(id: String, SendFailure)
    /// The server discarded messages: ask the app server for what is missing.
    case deletedMessages(DeletedMessages)
    /// The connection.
    case connection(Device.State)
  }

  /// Why an upstream message was not sent, numbered as Android does.
  public struct SendFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure.
    public enum Code: Int, Sendable, Hashable {
      /// Something else.
      case unknown = 0
      /// The receiver is missing or none, or the message breaks a rule.
      case invalidParameters = 1
      /// More than 4,096 bytes.
      case tooLarge = 2
      /// Its time ran out, or it had none and there is no connection.
      case notAvailable = 3
      /// Too many wait already.
      case tooMany = 4
    }

    /// The kind.
    public var code: Code
    /// For people.
    public var description: String

    /// Makes a failure; test doubles do.
    public init(_ code: Code, _ description: String) {
      self.code = code
      self.description = description
    }
  }

  /// Why messaging does not start or an order was not carried out.
  public struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
    /// The HTTP status of the server, if it answered.
    public var status: Int?
    /// For people.
    public var description: String

    /// Makes a failure; test doubles do.
    public init(status: Int? = nil, _ description: String) {
      self.status = status
      self.description = description
    }
  }
}

extension Messaging.SendFailure {
  /// Of a failed send; nil when it is to be tried again.
  init?(_ error: UpstreamSendError) {
    switch error.code {
    case .overdue, .closed, .cancelled, .tooManyMessages, .duplicateID: return nil
    case .nacked:
      let code: Code =
        switch error.nackCode {
        case "MESSAGE_TOO_BIG": .tooLarge
        case "TOO_MANY_MESSAGES": .tooMany
        case "TTL_EXCEEDED", "SERVICE_UNAVAILABLE": .notAvailable
        case "INVALID_JSON", "SENDER_ID_MISMATCH": .invalidParameters
        default: .unknown
        }
      self.init(code, error.description)
    case .invalidMessage:
      self.init(
        error.detail.hasPrefix("MessageTooBig") ? .tooLarge : .invalidParameters,
        error.detail)
    default: self.init(.unknown, error.description)
    }
  }
}
