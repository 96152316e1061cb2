import Bytes
import Connections
import PushModel

/// What devices send to an app server, and what the server tells about deliveries.
public enum UpstreamEvent: Sendable, Hashable {
  /// A message that an app on a device sent.
  case message(UpstreamMessage)
  /// A device got a downstream message that asked for a receipt.
  case receipt(DeliveryReceipt)
}

/// A message that an app on a device sent to its app server.
public struct UpstreamMessage: Sendable, Hashable {
  /// Chosen by the device; with ``from`` it names the message.
  public var id: String
  /// The registration token it comes from.
  public var from: String
  /// The app.
  public var category: String
  /// How long it may wait; nil when the server does not say.
  public var timeToLive: Duration?
  /// What the app sent.
  public var data: [String: String]

  /// Makes a message; test doubles do.
  public init(id: String, from: String, category: String, timeToLive: Duration? = nil, data: [String: String])
  {
    self.id = id
    self.from = from
    self.category = category
    self.timeToLive = timeToLive
    self.data = data
  }
}

/// The server's word that a device got a message.
public struct DeliveryReceipt: Sendable, Hashable {
  /// The downstream message's id.
  public var originalMessageID: String
  /// The registration token that got it.
  public var token: String
  /// The app.
  public var category: String
  /// `MESSAGE_SENT_TO_DEVICE`, the only one there is.
  public var status: String
  /// When the server took the message, in milliseconds since 1970.
  public var sentTimestampMs: Int64?

  /// Makes a receipt; test doubles do.
  public init(
    originalMessageID: String, token: String, category: String, status: String = "MESSAGE_SENT_TO_DEVICE",
    sentTimestampMs: Int64? = nil
  ) {
    self.originalMessageID = originalMessageID
    self.token = token
    self.category = category
    self.status = status
    self.sentTimestampMs = sentTimestampMs
  }
}

/// An event that waits for its ack.
///
/// Call ``ack()`` once it is dealt with. One that goes away without it counts as failed: it is not acked, and the
/// server delivers it again later.
public final class UpstreamDelivery: Sendable {
  /// What arrived.
  public let event: UpstreamEvent
  private let client: StreamClient
  private let key: Hash128

  init(_ inbound: InboundUpstream, of client: StreamClient) {
    event = UpstreamEvent(inbound.content)
    key = inbound.key
    self.client = client
  }

  /// Tells the server that the event was dealt with.
  ///
  /// Further calls change nothing.
  public func ack() { client.handled(key, success: true) }

  // After an ack this changes nothing: the key is no longer being handled.
  deinit { client.handled(key, success: false) }
}

/// Events that wait for their ack, as they arrive.
///
/// Several iterators share them.
public struct UpstreamDeliveries: AsyncSequence, Sendable {
  let channel: BatchChannel<UpstreamDelivery>

  /// Starts to take events.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(channel: channel) }

  /// Takes events one by one.
  public struct AsyncIterator: AsyncIteratorProtocol {
    // Holds no batch: a delivery that its taker drops is to end at once.
    let channel: BatchChannel<UpstreamDelivery>

    /// The next event; nil when the client is closed or the task was cancelled.
    public mutating func next() async -> UpstreamDelivery? { await channel.receive(1).first }
  }
}

extension UpstreamEvent {
  init(_ content: InboundUpstream.Content) {
    switch content {
    case .message(let message):
      self = .message(
        UpstreamMessage(
          id: message.messageID, from: message.from, category: message.category,
          timeToLive: message.timeToLive.map { .seconds($0) }, data: message.data))
    case .receipt(let receipt):
      self = .receipt(
        DeliveryReceipt(
          originalMessageID: receipt.originalMessageID, token: receipt.token, category: receipt.category,
          status: receipt.status, sentTimestampMs: receipt.sentTimestamp))
    }
  }
}
