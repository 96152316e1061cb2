/// Every limit of the product in one value: what it bounds, in which unit, and why so.
///
/// The server, the client library and the device runtime read the same value. A nil rate means no limit.
/// Names end in their unit and in `Max` or `Min` where they bound.
package struct Limits: Sendable, Equatable {
  package init() {}

  // MARK: Streams

  /// Bytes of one stanza on the wire after login.
  ///
  /// A payload of 4,090 quotes takes about 29 KB on the wire, so this is far above the payload limit. Over
  /// it: `policy-violation`, stream closed.
  package var stanzaBytesMax = 65_536
  /// Bytes of one stanza before login: SASL and a stream header need a fraction of it.
  package var stanzaBeforeLoginBytesMax = 8_192
  /// Elements inside each other, the stream element not counted.
  ///
  /// Known clients use 3.
  package var xmlDepthMax = 8
  /// Attributes of one element, namespace declarations counted.
  package var xmlAttributesMax = 32
  /// From the accepted connection to the bound resource; then the connection is closed.
  package var loginDeadline = Duration.seconds(10)
  /// Connections of one listener and loop that are accepted and not through their log-in, on HTTPS through TLS.
  ///
  /// Further ones wait in the system's queue: a loop shakes hands with some 1,000 peers a second, and with all at once
  /// none would be done by ``loginDeadline``. Silent for a quarter of that, a connection does not count.
  package var loginsUnderWayMax = 1_000
  /// Failed logins on one stream before it is closed.
  package var loginFailuresPerStreamMax = 3
  /// Failed logins of one address in a minute before further ones wait.
  package var loginFailuresPerAddressPerMinuteMax = 30
  /// Messages of one stream, each way, that are neither acked nor nacked.
  ///
  /// The protocol's own number.
  package var pendingPerStreamMax = 100
  /// The most that an app server of this product's own client may have instead, when it asks for it.
  ///
  /// Less than ``pendingPerStreamMax`` offers nothing.
  package var negotiatedWindowMax = 1_000
  /// What is offered; nil for nothing.
  package var negotiatedWindow: Int? {
    negotiatedWindowMax > pendingPerStreamMax ? negotiatedWindowMax : nil
  }
  /// Messages beyond the window that a stream's owner may hold back before new ones are nacked
  /// `SERVICE_UNAVAILABLE`.
  ///
  /// Acks share the stream with data, so reading never stops for this.
  package var heldPerStreamMax = 100
  /// Bound streams of one sender; one more gets `policy-violation`.
  ///
  /// The number of GCM's published list.
  package var streamsPerSenderMax = 1_000
  /// Bytes waiting to be written on one connection; over it the stream is closed, its messages go back.
  package var writeBacklogBytesMax = 1_048_576
  /// Without traffic to the peer for so long, a keepalive space is sent.
  ///
  /// Clients drop at 30 to 150 s.
  package var keepaliveIdle = Duration.seconds(30)
  /// Without any sign of the peer for so long, the connection counts as dead.
  package var deadAfter = Duration.seconds(90)
  /// From the announcement of a drain to the close of what is still open.
  package var drainDeadline = Duration.seconds(30)

  // MARK: Payload

  /// UTF-8 bytes of decoded names and values of `data` and `notification` together.
  ///
  /// Exactly so many pass.
  package var payloadBytesMax = 4_096
  /// The same for messages to a topic or a condition.
  ///
  /// Google's page says 2,048, its service takes 4,096.
  package var topicPayloadBytesMax = 4_096
  /// Objects and arrays inside each other in one JSON text.
  ///
  /// Known messages use 4.
  package var jsonDepthMax = 16
  /// Characters of a sender's own text that an error description repeats.
  package var echoCharactersMax = 64
  /// Takes `"time_to_live":"600"`; the documented error text asks for a number, so it is off.
  package var coerceNumericStrings = false

  // MARK: Storage

  /// Seconds a message may wait for its device: 0 to 4 weeks, and 4 weeks when the sender names none.
  package var timeToLiveSecondsMax = 2_419_200
  /// Seconds an upstream message waits when the device names no time: what the iOS SDK sends.
  package var upstreamTimeToLiveSecondsDefault = 86_400
  /// Upstream waits no longer than this for an app server, whatever its time to live says.
  package var upstreamHeldSecondsMax = 86_400
  /// Stored non-collapsible messages of one device; one more discards all of them and is told as overflow.
  package var storedPerDeviceMax = 100
  /// Distinct collapse keys stored for one device; with one more the oldest goes.
  package var collapseKeysPerDeviceMax = 4
  /// How long a message of normal priority for a connected device may wait for others to go along with; zero sends it
  /// at once.
  ///
  /// One of high priority takes along what waits.
  package var normalPriorityDelay = Duration.zero
  /// Upstream messages of one device that no app server has acked; one more is `TOO_MANY_MESSAGES`.
  package var upstreamPendingPerDeviceMax = 20
  /// Without the app server's ack for so long, an upstream message or receipt is written to its stream again; then after
  /// twice as long, and so on.
  ///
  /// Zero: only when the stream closes.
  package var upstreamRetryFirst = Duration.seconds(30)
  /// The longest pause between two of these.
  package var upstreamRetryLongest = Duration.seconds(600)
  /// How long the same message id of a sender is known as a repeat.
  package var dedupeHorizon = Duration.seconds(600)
  /// How many message ids of one sender are known as repeats.
  package var dedupeIDsPerSenderMax = 1_000_000
  /// A device that was away longer gets the overflow notice instead of its messages.
  package var deviceAwaySecondsMax = 2_592_000
  /// A registration unused for so long is unregistered: 270 days, as Android's.
  package var tokenIdleSecondsMax = 23_328_000

  // MARK: Targets

  /// Tokens in one `registration_ids`.
  package var registrationIDsMax = 1_000
  /// Tokens in one topic management batch.
  package var topicBatchTokensMax = 1_000
  /// Members of one device group.
  package var groupMembersMax = 20
  /// Topics of one registration.
  package var topicsPerTokenMax = 2_000
  /// Topics named in one condition, each mention counted.
  ///
  /// At most 64.
  package var conditionTopicsMax = 5
  /// Parentheses inside each other in a condition.
  package var conditionDepthMax = 16
  /// Bytes of a topic name; 900 at most.
  package var topicNameBytesMax = 900
  /// Bytes of a user id.
  package var userIDBytesMax = 256

  // MARK: HTTP and WebSocket

  /// Bytes of a request's first line and headers; over it 431.
  package var httpHeadBytesMax = 16_384
  /// Bytes of a request's body; over it 413.
  package var httpBodyBytesMax = 1_048_576
  /// Seconds that the clocks of a service account and of the server may lie apart.
  package var assertionLeewaySeconds = 300
  /// Bytes of a WebSocket message, its fragments together; over it close 1009.
  ///
  /// Compression is not accepted.
  package var webSocketMessageBytesMax = 65_536
  /// Requests in one `/batch` body; the Admin SDKs send no more.
  package var batchRequestsMax = 500

  // MARK: Rates, off unless set: the owner of a server knows what it bears

  /// HTTP v1 messages of one project in a minute; over it 429.
  ///
  /// Google: 600,000.
  package var projectMessagesPerMinuteMax: Int?
  /// Messages to one device in a minute.
  ///
  /// Google: 240.
  package var deviceMessagesPerMinuteMax: Int?
  /// Messages to one device in an hour.
  ///
  /// Google: 5,000.
  package var deviceMessagesPerHourMax: Int?
  /// Collapsible messages to one app on a device at once.
  ///
  /// Google: 20.
  package var collapsibleBurstMax: Int?
  /// How often the burst grows again by one.
  ///
  /// Google: 3 minutes.
  package var collapsibleRefill = Duration.seconds(180)
  /// Topic subscriptions and removals of one project in a second.
  ///
  /// Google: 3,000.
  package var topicChangesPerSecondMax: Int?
  /// Fan-outs of one project that run at once.
  ///
  /// Google: 1,000.
  package var fanoutsPerProjectMax: Int? = 1_000
  /// Upstream messages of one device in a minute.
  package var upstreamPerDevicePerMinuteMax: Int?
  /// Upstream messages of one project in a minute.
  package var upstreamPerProjectPerMinuteMax: Int?

  /// The limits as Google's pages state them, for tests of senders against the real numbers.
  package static var asPublished: Limits {
    var limits = Limits()
    limits.topicPayloadBytesMax = 2_048
    limits.projectMessagesPerMinuteMax = 600_000
    limits.deviceMessagesPerMinuteMax = 240
    limits.deviceMessagesPerHourMax = 5_000
    limits.collapsibleBurstMax = 20
    limits.topicChangesPerSecondMax = 3_000
    return limits
  }

  /// The defaults without any rate.
  package static var withoutRates: Limits {
    var limits = Limits()
    limits.fanoutsPerProjectMax = nil
    return limits
  }
}
