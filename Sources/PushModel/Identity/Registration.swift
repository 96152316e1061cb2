package import Seams

/// What kind of app instance a registration is; decides how a notification is rendered for it.
package enum Platform: String, Sendable, CaseIterable {
  case linux, android, ios, web
}

/// One app on one device, as the store knows it.
///
/// Senders address it by its token.
package struct Registration: Sendable, Hashable {
  /// Active, replaced by a newer token of the same app instance, or gone.
  package enum State: Sendable, Hashable {
    case active
    /// Sends to the old token reach the new one and the ack names it (canonical token).
    case alias(of: String)
    case unregistered
  }

  /// The registration token, as ``RegistrationToken`` checks it.
  package var token: String
  package var device: DeviceNumber
  package var sender: SenderID
  /// Package name or bundle id; the `category` of protocol messages.
  package var app: String
  package var platform: Platform
  package var user: String?
  package var state: State
  package var registeredAt: WallTime
  package var lastSeen: WallTime

  package init(
    token: String, device: DeviceNumber, sender: SenderID, app: String, platform: Platform,
    user: String? = nil, state: State = .active, registeredAt: WallTime, lastSeen: WallTime
  ) {
    self.token = token
    self.device = device
    self.sender = sender
    self.app = app
    self.platform = platform
    self.user = user
    self.state = state
    self.registeredAt = registeredAt
    self.lastSeen = lastSeen
  }
}
