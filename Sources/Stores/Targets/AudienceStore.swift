package import PushModel
package import Seams

/// Registrations that are addressed together under one name.
package struct DeviceGroup: Sendable, Hashable {
  /// The notification key that senders address.
  package var key: String
  package var sender: SenderID
  /// Unique for the sender.
  package var name: String
  package var createdAt: WallTime
  /// In the order of their numbers.
  package var members: [NumberedRegistration]

  package init(
    key: String, sender: SenderID, name: String, createdAt: WallTime, members: [NumberedRegistration]
  ) {
    self.key = key
    self.sender = sender
    self.name = name
    self.createdAt = createdAt
    self.members = members
  }
}

/// What became of a change to a device group.
package enum GroupOutcome: Sendable, Hashable {
  case done(DeviceGroup)
  /// The last member left, and the group with it.
  case deleted
  case nameTaken
  /// The sender has no group of this key.
  case notFound
  /// The name is not the one of the group of this key.
  case nameMismatch
  /// None of the tokens belongs to an active registration of the sender.
  case noValidTokens
  case tooManyMembers
}

/// A user's registrations at one sender.
package struct UserDevices: Sendable, Hashable {
  /// Active ones, in the order of their numbers.
  package var registrations: [NumberedRegistration]
  package var badge: Int64

  package init(registrations: [NumberedRegistration], badge: Int64) {
    self.registrations = registrations
    self.badge = badge
  }
}

package struct UserSummary: Sendable, Hashable {
  package var user: String
  /// Active registrations.
  package var registrations: Int
  package var badge: Int64

  package init(user: String, registrations: Int, badge: Int64) {
    self.user = user
    self.registrations = registrations
    self.badge = badge
  }
}

/// Device groups and users: a few registrations under one name.
///
/// A registration that goes away leaves its groups; one that takes another's place takes over its groups.
package protocol AudienceStore: AnyObject, Sendable {
  /// Makes a group of those tokens that belong to active registrations of the sender; the others are passed over.
  ///
  /// A group has at most ``StoreLimits/groupMembersMax`` members.
  /// - Parameter key: New, a ``NotificationKey``.
  func createGroup(
    key: String, name: String, sender: SenderID, tokens: [String], now: WallTime,
    _ done: @escaping Completion<GroupOutcome>)

  /// Adds members, or removes them.
  ///
  /// A token that is a member already, or is none, changes nothing.
  /// - Parameter name: When given, it must be the group's.
  func changeGroup(
    key: String, name: String?, sender: SenderID, adding: [String], removing: [String],
    _ done: @escaping Completion<GroupOutcome>)

  func group(key: String, _ done: @escaping Completion<DeviceGroup?>)
  func group(named: String, sender: SenderID, _ done: @escaping Completion<DeviceGroup?>)

  /// A sender's groups in the order of their names, a page at a time.
  func groups(
    sender: SenderID, after name: String?, max: Int, _ done: @escaping Completion<[DeviceGroup]>)

  /// A user's active registrations, at most `max`, and the stored badge.
  func devices(
    ofUser user: String, sender: SenderID, max: Int, _ done: @escaping Completion<UserDevices>)

  /// A sender's users with an active registration, in the order of their ids, a page at a time.
  func users(
    sender: SenderID, after: String?, max: Int, _ done: @escaping Completion<[UserSummary]>)

  /// Adds `step` to each user's badge and returns the sums in order; a user named twice counts twice.
  func countBadges(
    _ users: [String], sender: SenderID, step: Int, _ done: @escaping Completion<[Int64]>)

  /// Sets a user's badge; nothing below 0.
  func setBadge(_ badge: Int64, ofUser user: String, sender: SenderID, _ done: @escaping Completion<Void>)
}
