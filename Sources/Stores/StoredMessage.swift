package import PushModel
package import Seams

/// A downstream message as it is stored: what must be known to deliver it after a restart.
package struct StoredMessage: Sendable, Equatable {
  package var number: MessageNumber
  package var device: DeviceNumber
  package var sender: SenderID
  /// The app of the registration it is for: what is dropped when that registration goes away.
  package var app: String
  package var key: MessageKey
  /// App and collapse key, joined by the caller; the row of the device with the highest number among those of
  /// the same value stays, the others end as collapsed.
  ///
  /// Nil: not collapsible, counts towards the cap.
  package var collapse: String?
  /// From this time on the message is expired.
  package var expires: WallTime
  package var highPriority: Bool
  /// Handed to the device's open stream at the same time.
  ///
  /// Such a row never triggers the cap, yet counts towards it, and overflow does not discard it. The flag
  /// falls when the stream is released or claimed again and when the store restarts; it is not set for a
  /// device whose stream nobody holds.
  package var live: Bool
  /// The JSON object that the device receives, UTF-8, complete; with `shared` its beginning.
  package var body: [UInt8]
  /// The JSON of the receipt to send when the device acks; empty when none was asked for.
  package var receipt: [UInt8]
  /// What follows `body` in a message of a fan-out.
  ///
  /// The store sets it; rows given to it have none.
  package var shared: SharedTail?

  package init(
    number: MessageNumber, device: DeviceNumber, sender: SenderID, app: String, key: MessageKey,
    collapse: String? = nil, expires: WallTime, highPriority: Bool = true, live: Bool = false,
    body: [UInt8], receipt: [UInt8] = []
  ) {
    self.number = number
    self.device = device
    self.sender = sender
    self.app = app
    self.key = key
    self.collapse = collapse
    self.expires = expires
    self.highPriority = highPriority
    self.live = live
    self.body = body
    self.receipt = receipt
  }

  /// The whole JSON object.
  package var wholeBody: [UInt8] { shared.map { body + $0.bytes } ?? body }
}

extension StoredMessage {
  /// This message as one that came to an end.
  package func ended(as state: MessageState) -> WriteOutcome.Ended {
    WriteOutcome.Ended(
      number: number, device: device, sender: sender, key: key, state: state, job: shared?.job)
  }
}

/// An upstream message or receipt held until an app server acks it.
package struct StoredUpstream: Sendable, Equatable {
  package var number: MessageNumber
  package var sender: SenderID
  /// Of (device, message id) for upstream, of (sender, "dr2:…") for a receipt.
  package var key: MessageKey
  /// Nil for a receipt.
  package var device: DeviceNumber?
  package var expires: WallTime
  /// The JSON object that the app server receives, UTF-8, complete.
  package var body: [UInt8]
  /// The message id inside `body`, decoded: what the app server's ack names.
  package var messageID: String
  /// The `from` inside `body`, decoded: what the app server's ack has as `to`.
  package var from: String
  /// A stream of this node has it, or will: a store that nodes share leases it to this node as it is written.
  ///
  /// It is not read back.
  package var isHeld = false

  package init(
    number: MessageNumber, sender: SenderID, key: MessageKey, device: DeviceNumber?,
    expires: WallTime, body: [UInt8], messageID: String, from: String
  ) {
    self.number = number
    self.sender = sender
    self.key = key
    self.device = device
    self.expires = expires
    self.body = body
    self.messageID = messageID
    self.from = from
  }
}

/// One step in the life of a message, kept for the dedupe horizon: written many to a row.
package struct JournalEntry: Sendable, Equatable {
  package var key: MessageKey
  package var sender: SenderID
  package var device: DeviceNumber
  package var state: MessageState
  package var at: WallTime

  package init(
    key: MessageKey, sender: SenderID, device: DeviceNumber, state: MessageState, at: WallTime
  ) {
    self.key = key
    self.sender = sender
    self.device = device
    self.state = state
    self.at = at
  }
}
