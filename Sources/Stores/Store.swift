package import PushModel
package import Seams

/// Downstream and upstream messages in motion: the calls of the hot path.
package protocol MessageStore: AnyObject, Sendable {
  /// Applies a batch atomically and answers when it is durable. Batches of one caller are applied in order.
  func write(_ batch: WriteBatch, now: WallTime, _ done: @escaping Completion<WriteOutcome>)

  /// A page of a device's stored messages with numbers above `after`, in number order, none expired at `now`.
  func backlog(
    of device: DeviceNumber, after: MessageNumber?, max: Int, now: WallTime,
    _ done: @escaping Completion<Backlog>)

  /// The first page of each of several devices: ``backlog(of:after:max:now:_:)`` in fewer round trips.
  ///
  /// - Parameter each: Called once for each device, in any order.
  func backlogs(
    of devices: [DeviceNumber], max: Int, now: WallTime,
    _ each: @escaping @Sendable (DeviceNumber, Result<Backlog, StoreFault>) -> Void)

  /// A page of a sender's upstream messages and receipts, in number order, none expired at `now`, that no
  /// other node holds. They are leased to `node` until `until`. A lease is given back by time alone, and ends
  /// when the store restarts; a node that asks again gets its own rows again.
  func lease(
    for sender: SenderID, after: MessageNumber?, max: Int, node: Int, until: WallTime, now: WallTime,
    _ done: @escaping Completion<[StoredUpstream]>)

  /// Senders that have upstream messages stored. Asked at start.
  func sendersWithUpstream(_ done: @escaping Completion<[SenderID]>)

  /// Removes up to `budget` expired messages of both kinds and returns the downstream ones, as ended.
  ///
  /// A call looks at a slice of the store, so it may find nothing although something is expired; calls in a
  /// row get round to every row.
  func sweep(now: WallTime, budget: Int, _ done: @escaping Completion<[WriteOutcome.Ended]>)

  /// Journal entries not older than `since`, last written first, at most `max`. Asked at start.
  func journal(since: WallTime, max: Int, _ done: @escaping Completion<[JournalEntry]>)

  /// Forgets the journal of batches whose entries are all older than `before`.
  func pruneJournal(before: WallTime, _ done: @escaping Completion<Void>)

  /// The stored rows of a message, for inspection; may scan.
  func find(_ key: MessageKey, _ done: @escaping Completion<[StoredMessage]>)
}

extension MessageStore {
  package func backlogs(
    of devices: [DeviceNumber], max: Int, now: WallTime,
    _ each: @escaping @Sendable (DeviceNumber, Result<Backlog, StoreFault>) -> Void
  ) {
    for device in devices { backlog(of: device, after: nil, max: max, now: now) { each(device, $0) } }
  }
}

/// A page of a device's backlog.
package struct Backlog: Sendable, Equatable {
  package var messages: [StoredMessage]
  /// More rows follow the last one here.
  package var hasMore: Bool
  /// How many messages overflow discarded since the device was last told; 0 for none.
  package var overflowed: Int

  package init(messages: [StoredMessage], hasMore: Bool, overflowed: Int) {
    self.messages = messages
    self.hasMore = hasMore
    self.overflowed = overflowed
  }
}

/// Devices and their registrations.
package protocol DeviceStore: AnyObject, Sendable {
  /// Makes a device (`credentials` new) or adds an app to one. With `previousToken` the old registration of
  /// the same sender and app becomes an alias of the new one, and so do the aliases that pointed at it; a
  /// previous token that is unknown, unregistered or of another sender or app is passed over. The same
  /// request again gives the same answer; a token that another registration has is refused.
  func register(_ request: RegistrationRequest, now: WallTime, _ done: @escaping Completion<Registration>)

  /// One answer for each token, in order; nil where none was ever made. An alias names the newest token, so
  /// one further look-up ends the chain.
  func lookUp(_ tokens: [String], _ done: @escaping Completion<[Registration?]>)

  /// What a device needs to log in; nil when the device id is unknown.
  func credentials(of deviceID: String, _ done: @escaping Completion<DeviceCredentials?>)

  /// Marks a token's registration as gone and drops its stored messages, returned as ended. False inside the
  /// pair when there was no such active registration. Messages are known by device, sender and app: they stay
  /// while another active registration has the same three.
  func unregister(
    _ token: String, now: WallTime, _ done: @escaping Completion<(Bool, [WriteOutcome.Ended])>)

  /// Takes the device's stream for `node`. Durable on return; the epoch rises with each claim. A device that
  /// does not exist is refused.
  ///
  /// - Parameter awaySince: A device last seen before this was away too long: what is stored for it ends as dropped, in
  ///   the grant, and its overflow count rises by as much. What has expired ends as that.
  func claim(
    _ device: DeviceNumber, node: Int, awaySince: WallTime?, now: WallTime,
    _ done: @escaping Completion<StreamGrant>)

  /// Gives the stream up; no effect when the epoch has moved on.
  func release(_ device: DeviceNumber, epoch: Int64, now: WallTime, _ done: @escaping Completion<Void>)

  /// The devices are connected: they were last seen at `now`.
  func touch(_ devices: [DeviceNumber], now: WallTime, _ done: @escaping Completion<Void>)

  /// Unregisters the registrations of devices last seen before `seenBefore`, and drops their stored messages.
  ///
  /// As ``MessageStore/sweep(now:budget:_:)``, a call looks at a slice of the store; calls in a row get round to every
  /// device.
  /// - Parameter budget: Devices that one call ends at most.
  func sweepIdle(
    seenBefore: WallTime, budget: Int, now: WallTime, _ done: @escaping Completion<IdleSweep>)

  /// Registrations in token order, for administration.
  func registrations(
    sender: SenderID?, after: String?, max: Int, _ done: @escaping Completion<[Registration]>)
}

package struct RegistrationRequest: Sendable {
  package var token: String
  /// The public device id, 22 characters.
  package var deviceID: String
  /// SHA-256 of the device secret; stored for a new device, ignored for a known one.
  package var secretHash: [UInt8]
  package var sender: SenderID
  package var app: String
  package var platform: Platform
  package var user: String?
  package var previousToken: String?

  package init(
    token: String, deviceID: String, secretHash: [UInt8], sender: SenderID, app: String,
    platform: Platform, user: String?, previousToken: String?
  ) {
    self.token = token
    self.deviceID = deviceID
    self.secretHash = secretHash
    self.sender = sender
    self.app = app
    self.platform = platform
    self.user = user
    self.previousToken = previousToken
  }
}

package struct DeviceCredentials: Sendable, Equatable {
  package var number: DeviceNumber
  package var secretHash: [UInt8]
  /// Active registrations of the device.
  package var registrations: [Registration]

  package init(number: DeviceNumber, secretHash: [UInt8], registrations: [Registration]) {
    self.number = number
    self.secretHash = secretHash
    self.registrations = registrations
  }
}

package struct StreamGrant: Sendable, Equatable {
  package var epoch: Int64
  /// The node that held the stream before and has not released it.
  package var previousNode: Int?
  /// What ended because the device was away too long.
  package var ended: [WriteOutcome.Ended]

  package init(epoch: Int64, previousNode: Int?, ended: [WriteOutcome.Ended] = []) {
    self.epoch = epoch
    self.previousNode = previousNode
    self.ended = ended
  }
}

/// What a sweep of devices that nobody uses any more unregistered.
package struct IdleSweep: Sendable, Equatable {
  package var tokens: [String]
  /// Their messages.
  package var ended: [WriteOutcome.Ended]

  package init(tokens: [String] = [], ended: [WriteOutcome.Ended] = []) {
    self.tokens = tokens
    self.ended = ended
  }
}

/// Projects, their keys, and the node's own settings.
package protocol AccountStore: AnyObject, Sendable {
  /// Refused when the id or the sender id is taken.
  func createProject(_ project: Project, _ done: @escaping Completion<Project>)
  func projects(_ done: @escaping Completion<[Project]>)

  /// Adds a key; only its hash is kept. Refused when the hash is there already.
  func addKey(_ key: AccountKey, _ done: @escaping Completion<Void>)
  func keys(_ done: @escaping Completion<[AccountKey]>)
  /// False when no such key was active.
  func revokeKey(hash: [UInt8], _ done: @escaping Completion<Bool>)

  /// A setting that must outlive the process, such as the key of the message hash.
  func setting(_ name: String, _ done: @escaping Completion<[UInt8]?>)
  func saveSetting(_ name: String, _ value: [UInt8], _ done: @escaping Completion<Void>)

  /// Row counts by ``StoreTable`` name, for metrics and the console.
  func counts(_ done: @escaping Completion<[String: Int]>)
}

package struct Project: Sendable, Hashable {
  /// 1 to 63 of `a-z`, digits, `-`.
  package var id: String
  package var sender: SenderID
  package var createdAt: WallTime
  package init(id: String, sender: SenderID, createdAt: WallTime) {
    self.id = id
    self.sender = sender
    self.createdAt = createdAt
  }
}

package struct AccountKey: Sendable, Hashable {
  package enum Purpose: String, Sendable {
    /// The legacy server key of app servers.
    case server
    /// Device registration.
    case api
    /// The admin surface.
    case admin
  }
  /// SHA-256 of the key text.
  package var hash: [UInt8]
  package var purpose: Purpose
  /// Nil for an admin key.
  package var sender: SenderID?
  package var createdAt: WallTime
  package var revoked: Bool
  /// First characters of the key, to recognise it by; never more than 6.
  package var hint: String

  package init(
    hash: [UInt8], purpose: Purpose, sender: SenderID?, createdAt: WallTime, revoked: Bool = false,
    hint: String
  ) {
    self.hash = hash
    self.purpose = purpose
    self.sender = sender
    self.createdAt = createdAt
    self.revoked = revoked
    self.hint = hint
  }
}

/// A whole store.
package protocol Store: MessageStore, DeviceStore, TopicStore, AudienceStore, AccountStore {
  /// Completes what was submitted, then closes. Calls after it answer ``StoreFault/unavailable``.
  func close(_ done: @escaping @Sendable () -> Void)
}
