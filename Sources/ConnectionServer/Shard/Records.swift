import PushModel
import Seams
import Stores

/// A downstream message between its acceptance and its end.
///
/// `@unchecked Sendable`: the constants are set before the record leaves the loop that read the stanza, the
/// variables are touched only by the shard of the message's device, which gets it through a mailbox.
final class Downstream: @unchecked Sendable {
  /// Where the record stands with the store.
  enum Write {
    /// Never to be stored: time to live 0.
    case never
    /// In the shard's next batch.
    case queued
    /// Taken out of the batch again: its device acked before the batch was handed over.
    case withdrawn
    /// Handed to the store, not yet answered.
    case submitted
    case durable
    /// The store refused; the record lives in memory only, with the device's stream.
    case failed
  }

  let number: MessageNumber
  let key: MessageKey
  let device: DeviceNumber
  let sender: SenderID
  let app: String
  let collapse: String?
  private(set) var expires: WallTime
  let highPriority: Bool
  let body: [UInt8]
  let receipt: [UInt8]
  /// What follows `body` when this is one receiver's share of a fan-out.
  let shared: SharedTail?

  /// Whom to answer; nil once that is done.
  var origin: Origin?
  /// Places where the same message came again before it was answered.
  var repeats: [Origin] = []
  var write: Write
  /// It is with the device's open stream.
  var handed = false
  /// When it was last handed to a stream.
  var handedAt = Moment(ns: 0)
  /// The device is connected and will be handed it when it has read what is before it: the cap on what is stored
  /// for a device that is away does not apply.
  var isAwaited = false
  /// Held back for a while although its device is connected, see ``DeviceSlot/held``.
  var isHeld = false
  /// It came to its end while the store was writing it: settle when the store answers.
  var ended: MessageState?

  init(
    number: MessageNumber, key: MessageKey, device: DeviceNumber, sender: SenderID, app: String,
    collapse: String?, expires: WallTime, highPriority: Bool, body: [UInt8], receipt: [UInt8],
    origin: Origin?, write: Write, shared: SharedTail? = nil
  ) {
    self.number = number
    self.key = key
    self.device = device
    self.sender = sender
    self.app = app
    self.collapse = collapse
    self.expires = expires
    self.highPriority = highPriority
    self.body = body
    self.receipt = receipt
    self.origin = origin
    self.write = write
    self.shared = shared
  }

  /// From the store: durable, and its sender was answered long ago.
  /// - Parameter isStored: False for a share of a fan-out that stores nothing.
  convenience init(_ row: StoredMessage, isStored: Bool = true) {
    self.init(
      number: row.number, key: row.key, device: row.device, sender: row.sender, app: row.app,
      collapse: row.collapse, expires: row.expires, highPriority: row.highPriority, body: row.body,
      receipt: row.receipt,
      origin: nil, write: isStored ? .durable : .never, shared: row.shared)
  }

  /// Its time to live is 0 and its device may be connected to another node: the store carries it there.
  func carryOver(until time: WallTime) {
    expires = time
    write = .queued
  }

  /// Its time to live is 0.
  var isNowOrNever: Bool { if case .never = write { true } else { false } }
  /// It waits for a batch.
  var isQueued: Bool { if case .queued = write { true } else { false } }

  var stored: StoredMessage {
    StoredMessage(
      number: number, device: device, sender: sender, app: app, key: key, collapse: collapse,
      expires: expires,
      highPriority: highPriority, live: handed || isAwaited, body: body, receipt: receipt)
  }
}

/// The device stream, and the id it used, that an upstream answer goes to.
struct DeviceOrigin: Sendable {
  var stream: StreamRef
  /// As it stood in the device's JSON, quotes left out, escapes kept.
  var rawMessageID: [UInt8]
  /// The message's, which is forgotten when it is refused; nil where it was not noted.
  var key: MessageKey?
}

/// An upstream message or receipt between its acceptance and the app server's ack.
///
/// `@unchecked Sendable`: as ``Downstream``, with the sender's home shard as the one that touches variables.
final class Upstream: @unchecked Sendable {
  enum Write {
    /// Time to live 0: for an app server that is connected now, or nobody.
    case never
    case queued, withdrawn, submitted, durable
  }

  let row: StoredUpstream
  var origin: DeviceOrigin?
  var write: Write
  var acked = false
  /// A stream of this node has it or will have it, so no other node is to take it from the store.
  var isHeld = false
  /// A batch with it was given up, and may have been written all the same.
  var mayBeStored = false

  init(_ row: StoredUpstream, origin: DeviceOrigin?, write: Write) {
    self.row = row
    self.origin = origin
    self.write = write
  }
}
