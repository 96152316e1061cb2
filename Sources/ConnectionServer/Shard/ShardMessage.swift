import PushModel
import Seams
import Stores

/// A bound stream, wherever its loop is.
struct StreamRef: Hashable, Sendable {
  var loop: UInt8
  var stream: UInt32
}

/// The place in a sender's window that an answer frees.
struct Origin: Hashable, Sendable {
  var stream: StreamRef
  var slot: UInt32
}

/// What the server says to a downstream message.
enum Answer: Sendable, Equatable {
  case ack
  /// To a message for a device group: how many members it was accepted for, and the tokens of the others.
  case ackCounted(success: Int, failed: [String])
  /// - Parameter retryAfter: Seconds after which the same message has a chance, 1 or more; nil when nobody knows.
  case nack(NackCode, String, retryAfter: Int? = nil)
}

extension String {
  /// The description of a refusal with the pause after which the message has a chance.
  func retry(after seconds: Int?) -> String { seconds.map { "\(self); retry after \($0) s" } ?? self }

  /// The same with the text of a `Retry-After` header.
  func retry(_ text: String?) -> String { text.map { "\(self); Retry-After: \($0)" } ?? self }
}

/// What the server says to a device's upstream message.
enum UpstreamAnswer: Sendable, Equatable {
  case ack
  case nack(UpstreamError, String)
}

/// What shards, and the store's threads, tell a shard.
///
/// Values and records; never a stream or a socket.
enum ShardMessage: Sendable {
  /// To the device's home: take this message.
  case downstream(Downstream)
  /// To the home of fan-outs: take this message for a topic or a condition.
  case fanout(FanoutSend)
  /// To the devices' home: shares of fan-outs for devices that are connected.
  case shares([StoredMessage], stored: Bool)
  /// To the shard that took it first: the same message came again.
  case repeated(MessageKey, Origin)
  /// To the sender stream's loop: answer and free the slot.
  case answer(Origin, Answer)

  /// To the sender's home: take this upstream message or receipt.
  case upstream(Upstream)
  case repeatedUpstream(MessageKey, SenderID, DeviceOrigin)
  /// To the device's home: it is refused and may come again under its id.
  case forgetUpstream(MessageKey)
  /// To the device stream's loop.
  case upstreamAnswer(DeviceOrigin, UpstreamAnswer)
  /// To the sender stream's loop: write it.
  case handUpstream(StreamRef, Upstream)
  /// To the sender's home: the app server acked it.
  case upstreamAcked(SenderID, MessageNumber, StreamRef)

  case senderOpened(SenderID, StreamRef)
  case senderDrains(SenderID, StreamRef)
  case senderClosed(SenderID, StreamRef)

  /// From the store.
  case written(Result<WriteOutcome, StoreFault>)
  case backlogRead(DeviceNumber, epoch: Int64, Result<Backlog, StoreFault>)
  case leased(SenderID, Result<[StoredUpstream], StoreFault>)
  /// Messages that the sweeper or an unregistration ended, for their devices' home.
  case ended([WriteOutcome.Ended])

  /// For the edges: administration, start and stop.
  case perform(@Sendable (Shard) -> Void)
}

/// The way to any shard from any thread.
///
/// Batches wake a loop once.
protocol ShardPost: AnyObject, Sendable {
  func post(_ message: ShardMessage, to shard: Int)
  /// Posts all and leaves the array empty, with memory to fill it again.
  func post(contentsOf messages: inout [ShardMessage], to shard: Int)
}
