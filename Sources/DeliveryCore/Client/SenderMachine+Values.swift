extension SenderMachine {
  package struct Settings: Sendable, Equatable {
    /// Streams that are kept open at a time.
    package var streams: Int
    /// Messages written on one stream and not answered.
    ///
    /// 100 is what the protocol allows; more is asked of the server, see ``opened(_:window:now:_:)``.
    package var windowMax: Int
    /// Messages that have not ended, those held included; ``submit(id:now:_:)`` refuses more.
    package var messagesMax: Int
    /// From writing a message to its ack or nack.
    package var ackTimeout: Duration
    /// How long a draining stream is kept for its outstanding acks; the server is expected to close first.
    package var drainTimeout: Duration
    /// Draining streams kept at a time, for each of ``streams``; the oldest is ended when there are more.
    package var drainingMax: Int
    package var retry: RetryRules
    package var backoff: Backoff.Settings
    /// Whether a lost or failed stream is opened again; if not, the first loss closes the sender.
    package var reconnects: Bool
    /// Whether refused credentials close the sender instead of being tried again later.
    package var stopsWhenRefused: Bool

    /// The protocol's own window.
    package static let windowOfProtocol = 100

    package init(
      streams: Int = 1, windowMax: Int = 100, messagesMax: Int = 1_000, ackTimeout: Duration = .seconds(60),
      drainTimeout: Duration = .seconds(120), drainingMax: Int = 4, retry: RetryRules = RetryRules(),
      backoff: Backoff.Settings = Backoff.Settings(), reconnects: Bool = true,
      stopsWhenRefused: Bool = false
    ) {
      self.streams = min(max(1, streams), 1_000)
      self.windowMax = max(1, windowMax)
      self.messagesMax = max(1, messagesMax)
      self.ackTimeout = ackTimeout
      self.drainTimeout = drainTimeout
      self.drainingMax = max(1, drainingMax)
      self.retry = retry
      self.backoff = backoff
      self.reconnects = reconnects
      self.stopsWhenRefused = stopsWhenRefused
    }
  }

  /// What the driver is to do, in order.
  package enum Action: Equatable, Sendable {
    /// Connect, log in and bind; report ``opened(_:now:_:)`` or ``closed(_:_:now:_:)``.
    case openStream(StreamNumber)
    /// Write the slot's stanza.
    case write(SendSlot, StreamNumber)
    /// Tell the caller; the slot may be used again by the next submission.
    case finish(SendSlot, SendOutcome)
    /// End the stream in order, then report ``closed(_:_:now:_:)``.
    case endStream(StreamNumber)
    /// Tell whoever watches.
    case changed(Status)
  }

  /// What an observer of the sender sees.
  package enum Status: Equatable, Sendable {
    /// The first of the streams is being opened.
    case connecting(StreamNumber)
    case connected(StreamNumber)
    /// The server announced the end of this stream, the only one; another one is being opened.
    case draining(StreamNumber)
    /// The last open stream is gone; nil when no other will be opened.
    case disconnected(StreamClosure, retryAfter: Duration?)
    /// Final.
    case closed
  }

  package enum Submission: Equatable, Sendable {
    case accepted(SendSlot)
    /// ``Settings/messagesMax`` have not ended; try again after a `finish`.
    case full
    /// A message of this id has not ended.
    case duplicateID
    /// ``close(now:deadline:_:)`` was called, or the sender gave up.
    case closed
  }
}
