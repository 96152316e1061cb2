import PushModel

/// What a shard asks of an app server's stream on its loop.
protocol SenderStream: AnyObject {
  func answered(_ slot: UInt32, _ answer: Answer)
  func write(_ upstream: Upstream)
  /// The store said what a token means: the message that waited for it in this slot goes on.
  func resolved(_ slot: UInt32, _ text: [UInt8], _ meaning: TokenMeaning?)
  /// No new messages from here on; acks go on both ways.
  func announceDraining()
  /// Messages of this stream that are not answered.
  var pendingCount: Int { get }
}

/// What a shard asks of a device's stream on its loop.
protocol DeviceStream: AnyObject {
  var reference: StreamRef { get }
  /// Active registrations of the device.
  var registrations: [Registration] { get set }
  /// Bytes not yet taken by the device's socket.
  var backlogBytes: Int { get }
  func deliver(_ record: Downstream)
  func tellDeleted(count: Int)
  func upstreamAnswered(_ rawMessageID: [UInt8], _ answer: UpstreamAnswer)
  /// Another login of the same device took over.
  func replaced()
}
