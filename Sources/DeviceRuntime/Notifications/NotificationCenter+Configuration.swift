import Seams

extension NotificationCenter {
  /// Where an app keeps its data, and how it shows and asks.
  public struct Configuration: Sendable {
    /// The app's data folder; made when it is not there, used by one process at a time.
    public var dataFolder: String
    /// Shows notifications.
    public var presenter: any NotificationPresenter
    /// Changes pushes before they are shown.
    public var serviceExtension: (any NotificationServiceExtension)?
    /// What a service extension may take.
    public var extensionTimeLimit: Duration
    /// Where taps lead.
    public var router: NotificationRouter
    /// The app's texts, for pushes that name one.
    public var localizer: Localizer
    /// What is shown in the foreground while there is no delegate.
    public var undecidedInForeground: PresentationOptions
    /// Asks the user for leave, once.
    ///
    /// The default says yes: on a desktop the user's settings are those of the desktop.
    public var askUser: @Sendable (AuthorizationOptions) async -> Bool
    /// The wall clock, in milliseconds since 1970.
    public var nowMs: @Sendable () -> Int64
    /// Whether due requests are shown by themselves; without it ``NotificationCenter/tick()`` does.
    public var runsTimers: Bool

    package var zones: any ZoneSource & Sendable = SystemZones()

    /// Makes a configuration with the usual values.
    public init(dataFolder: String, presenter: any NotificationPresenter) {
      self.dataFolder = dataFolder
      self.presenter = presenter
      extensionTimeLimit = .seconds(30)
      router = NotificationRouter()
      localizer = .none
      undecidedInForeground = []
      askUser = { _ in true }
      nowMs = { SystemTime().wall.ms }
      runsTimers = true
    }
  }
}

/// What an app decides about its notifications.
public protocol NotificationCenterDelegate: Sendable {
  /// How a notification is shown that comes while the app is in the foreground; empty is not at all.
  func willPresent(_ notification: DeliveredNotification) async -> PresentationOptions
  /// The user did something with a notification; `link` is where ``NotificationCenter/Configuration/router`` leads.
  func didReceive(_ response: NotificationResponse, link: DeepLink?) async
}

extension NotificationCenterDelegate {
  /// Not at all.
  public func willPresent(_ notification: DeliveredNotification) async -> PresentationOptions { [] }
  /// Nothing.
  public func didReceive(_ response: NotificationResponse, link: DeepLink?) async {}
}
