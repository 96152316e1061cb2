import Bytes
package import PushModel
package import Seams

/// A message to a topic or a condition, from its acceptance until all receivers have been visited.
package struct FanoutJob: Sendable, Equatable {
  package enum Audience: Sendable, Hashable {
    case topic(TopicName)
    case condition(TopicCondition)

    /// As it is shown and kept: `/topics/name`, or the condition.
    package var text: String {
      switch self {
      case .topic(let name): name.path
      case .condition(let condition): condition.text
      }
    }

    /// Reads ``text``; nil when it is none.
    package init?(text: String) {
      if text.hasPrefix("/topics/") {
        guard let name = TopicName(String(text.dropFirst(8))) else { return nil }
        self = .topic(name)
      } else {
        // The bounds were held when the condition was accepted.
        guard let condition = try? TopicCondition(parsing: text, topicsMax: 64, depthMax: 60) else {
          return nil
        }
        self = .condition(condition)
      }
    }
  }

  /// Also the number of the rows it makes, so that a newer message of the same collapse key stays the newer one.
  package var number: MessageNumber
  /// Of (sender, message id); receivers see ``MessageKey/share(of:)`` of it.
  package var key: MessageKey
  package var sender: SenderID
  package var audience: Audience
  /// Registrations of other apps are passed over.
  package var onlyApp: String?
  /// The sender's own; rows get it behind the app.
  package var collapseKey: String?
  package var begun: WallTime
  /// From this time on nobody else is visited and what waits is expired.
  package var expires: WallTime
  /// False: time to live 0, for those who are connected when their turn comes.
  package var isStored: Bool
  package var highPriority: Bool
  /// The end of the JSON object that each device receives, from a comma to the closing brace.
  package var tail: [UInt8]

  package init(
    number: MessageNumber, key: MessageKey, sender: SenderID, audience: Audience, onlyApp: String? = nil,
    collapseKey: String? = nil, begun: WallTime, expires: WallTime, isStored: Bool = true,
    highPriority: Bool = false, tail: [UInt8]
  ) {
    self.number = number
    self.key = key
    self.sender = sender
    self.audience = audience
    self.onlyApp = onlyApp
    self.collapseKey = collapseKey
    self.begun = begun
    self.expires = expires
    self.isStored = isStored
    self.highPriority = highPriority
    self.tail = tail
  }
}

/// The part of a message that all receivers of a fan-out share.
package final class SharedTail: Sendable, Equatable {
  package let job: MessageNumber
  package let bytes: [UInt8]

  package init(job: MessageNumber, bytes: [UInt8]) {
    self.job = job
    self.bytes = bytes
  }

  package static func == (left: SharedTail, right: SharedTail) -> Bool {
    left === right || (left.job == right.job && left.bytes == right.bytes)
  }

  /// The beginning of the JSON object that one receiver gets: everything before ``bytes``.
  /// - Parameter key: The receiver's own.
  package static func head(
    _ audience: FanoutJob.Audience, sender: SenderID, key: MessageKey, app: String, token: String
  ) -> [UInt8] {
    var writer = ByteWriter(capacity: 256)
    let origin: DeviceMessageWriter.Origin =
      switch audience {
      case .topic(let name): .topic(name)
      case .condition: .sender(sender)
      }
    DeviceMessageWriter.appendHead(
      messageID: key.hash, origin: origin, category: app, token: token, to: &writer)
    return writer.take()
  }
}

/// How many receivers a fan-out found and how their messages ended.
package struct FanoutCounts: Sendable, Hashable {
  /// Registrations that the message is for, as far as they were visited.
  package var matched = 0
  package var delivered = 0
  package var expired = 0
  package var collapsed = 0
  package var droppedOverflow = 0
  package var droppedUnregistered = 0
  package var droppedOffline = 0

  package init() {}

  /// Those whose message waits or is in flight.
  package var waiting: Int {
    matched - delivered - expired - collapsed - droppedOverflow - droppedUnregistered - droppedOffline
  }

  /// Counts an end; other states are none.
  package mutating func add(_ state: MessageState, _ count: Int = 1) {
    switch state {
    case .delivered: delivered += count
    case .expired: expired += count
    case .collapsed: collapsed += count
    case .droppedOverflow: droppedOverflow += count
    case .droppedUnregistered: droppedUnregistered += count
    case .droppedOffline: droppedOffline += count
    case .received, .nacked, .accepted, .stored, .inFlight, .dryRun: break
    }
  }

  /// The ends by state, those that did not occur left out.
  package var ends: [(state: MessageState, count: Int)] {
    [
      (.delivered, delivered), (.expired, expired), (.collapsed, collapsed),
      (.droppedOverflow, droppedOverflow), (.droppedUnregistered, droppedUnregistered),
      (.droppedOffline, droppedOffline),
    ].filter { $0.1 > 0 }
  }
}

/// Where a fan-out stands.
package struct FanoutProgress: Sendable, Equatable {
  package var number: MessageNumber
  package var key: MessageKey
  package var sender: SenderID
  package var audience: FanoutJob.Audience
  package var begun: WallTime
  package var expires: WallTime
  /// The last registration that was visited.
  package var cursor: RegistrationNumber?
  /// Everybody was visited.
  package var isDone: Bool
  package var counts: FanoutCounts

  package init(
    number: MessageNumber, key: MessageKey, sender: SenderID, audience: FanoutJob.Audience, begun: WallTime,
    expires: WallTime, cursor: RegistrationNumber?, isDone: Bool, counts: FanoutCounts
  ) {
    self.number = number
    self.key = key
    self.sender = sender
    self.audience = audience
    self.begun = begun
    self.expires = expires
    self.cursor = cursor
    self.isDone = isDone
    self.counts = counts
  }
}

/// What one step of a fan-out did; durable when it is handed out.
package struct FanoutSlice: Sendable, Equatable {
  package var job: MessageNumber
  /// False: nothing in `rows` was stored.
  package var isStored = true
  /// The messages of registrations whose device's stream somebody holds, in the order of registration.
  ///
  /// Others wait in the store, or were dropped when nothing is stored.
  package var rows: [StoredMessage] = []
  /// What the rows brought to an end, and rows that ended at once.
  package var ended: [WriteOutcome.Ended] = []
  /// Registrations found in this slice.
  package var matched = 0
  /// Of those, how many were dropped for want of a stream.
  package var droppedOffline = 0
  /// Nobody is left to visit; also for a job that is not known.
  package var isDone = false

  package init(job: MessageNumber) { self.job = job }
}
