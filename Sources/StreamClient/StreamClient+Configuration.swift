extension StreamClient {
  /// Where a client connects, as whom, and how it behaves.
  public struct Configuration: Sendable, CustomStringConvertible {
    /// Name or address of the server.
    public var host: String
    /// Its XMPP port; its HTTPS port when there is a ``webSocketPath``.
    public var port: Int
    /// Speaks XMPP over a secure WebSocket (`wss`) at this path, `/xmpp` as a rule, for networks that let nothing
    /// else pass; nil for XMPP's own port.
    public var webSocketPath: String?
    /// The sender id: the numeric project number.
    public var senderID: String
    /// The server key of that sender.
    ///
    /// Never logged.
    public var serverKey: String
    /// Which certificates are believed.
    public var trust: Trust
    /// The name the certificate must carry; nil is ``host``.
    public var serverName: String?
    /// Streams that share the messages: 1 to 1,000.
    ///
    /// A message goes to the one with the fewest unanswered; when one is lost, what it had goes to the others.
    public var streams: Int
    /// Messages written on one stream and not answered.
    ///
    /// 100 is the protocol's number. More is asked of the server; one that does not know of it, or allows less,
    /// gets that.
    public var window: Int
    /// Whether messages to the same target are sent in the order of their hand-over, each when the one before has
    /// ended.
    public var ordersByTarget: Bool
    /// Messages in the client's hands at a time, those waiting for a window or a retry included; further
    /// ones wait with their callers.
    ///
    /// Raised to what the windows of all streams hold.
    public var messagesMax: Int
    /// From writing a message to its ack or nack.
    public var ackTimeout: Duration
    /// For connecting, TLS, log-in and bind together.
    public var connectTimeout: Duration
    /// How long ``StreamClient/connect()`` goes on trying when the server cannot be reached; zero is one try.
    public var connectPatience: Duration
    /// How long ``StreamClient/close(within:)`` waits for acks unless it is told otherwise.
    public var closeTimeout: Duration
    /// What happens to messages that were nacked or not answered.
    public var retry: RetryPolicy
    /// What happens when a stream is lost.
    public var reconnect: ReconnectPolicy
    /// Without traffic to the server for so long, a keepalive space is sent.
    public var keepaliveIdle: Duration
    /// Without any sign of the server for so long, the stream counts as dead.
    public var deadAfter: Duration

    /// Makes a configuration with the protocol's defaults.
    public init(
      host: String = "localhost", port: Int = 5235, senderID: String, serverKey: String,
      trust: Trust = .system
    ) {
      self.host = host
      self.port = port
      self.senderID = senderID
      self.serverKey = serverKey
      self.trust = trust
      streams = 1
      window = 100
      ordersByTarget = false
      messagesMax = 1_000
      ackTimeout = .seconds(60)
      connectTimeout = .seconds(10)
      connectPatience = .zero
      closeTimeout = .seconds(10)
      retry = RetryPolicy()
      reconnect = ReconnectPolicy()
      keepaliveIdle = .seconds(30)
      deadAfter = .seconds(90)
    }

    /// Without the key.
    public var description: String { "\(senderID)@\(host):\(port)" }
  }

  /// Which certificates a client believes.
  public enum Trust: Sendable, Hashable {
    /// Those of the system's certificate store.
    case system
    /// Those signed by a certificate in this PEM file.
    case file(String)
  }

  /// When a message is written again.
  ///
  /// Always under its id, so that a server that took it recognises it.
  public struct RetryPolicy: Sendable, Hashable {
    /// How often a message may be written because of nacks or overdue acks; 1 switches retries off.
    public var triesMax: Int
    /// Least wait after  and ; a second at least.
    ///
    /// `INTERNAL_SERVER_ERROR`; a second at least. Doubles.
    public var waitMin: Duration
    /// Longest of these waits.
    public var waitMax: Duration
    /// Least wait after a target had too many messages.
    ///
    /// Doubles.
    public var rateLimitedWaitMin: Duration
    /// Longest of these waits.
    public var rateLimitedWaitMax: Duration
    /// From the hand-over to the end of a message, all tries together.
    public var totalTimeout: Duration
    /// Whether a message without an answer is written again after ``Configuration/ackTimeout``.
    public var repeatsOverdue: Bool
    /// Whether messages without an answer on a lost stream are written on the next one.
    public var resendsAfterLoss: Bool

    /// Makes a policy.
    public init(
      triesMax: Int = 5, waitMin: Duration = .seconds(1), waitMax: Duration = .seconds(60),
      rateLimitedWaitMin: Duration = .seconds(10), rateLimitedWaitMax: Duration = .seconds(300),
      totalTimeout: Duration = .seconds(600), repeatsOverdue: Bool = true, resendsAfterLoss: Bool = true
    ) {
      self.triesMax = triesMax
      self.waitMin = waitMin
      self.waitMax = waitMax
      self.rateLimitedWaitMin = rateLimitedWaitMin
      self.rateLimitedWaitMax = rateLimitedWaitMax
      self.totalTimeout = totalTimeout
      self.repeatsOverdue = repeatsOverdue
      self.resendsAfterLoss = resendsAfterLoss
    }

    /// Every message is written once: a nack, an overdue ack or a lost stream is its end.
    public static var never: RetryPolicy {
      RetryPolicy(triesMax: 1, repeatsOverdue: false, resendsAfterLoss: false)
    }
  }

  /// What happens when a stream is lost: a working one is opened again at once, a failed attempt waits.
  public struct ReconnectPolicy: Sendable, Hashable {
    /// Whether a lost stream is opened again at all.
    public var isEnabled: Bool
    /// Ceiling of the first wait after a failed attempt; doubles.
    ///
    /// The wait is drawn between 0 and the ceiling.
    public var waitFirst: Duration
    /// Highest ceiling.
    public var waitMax: Duration
    /// Whether refused credentials close the client; if not they are tried again later.
    public var stopsWhenRefused: Bool

    /// Makes a policy.
    public init(
      isEnabled: Bool = true, waitFirst: Duration = .seconds(1), waitMax: Duration = .seconds(60),
      stopsWhenRefused: Bool = false
    ) {
      self.isEnabled = isEnabled
      self.waitFirst = waitFirst
      self.waitMax = waitMax
      self.stopsWhenRefused = stopsWhenRefused
    }
  }

  /// What an observer of a client sees.
  public enum State: Sendable, Hashable, CustomStringConvertible {
    /// Not connected yet.
    case idle
    /// A stream is being opened.
    case connecting
    /// Messages are being written.
    case connected
    /// The server is about to end the stream; another one is being opened, the old one is read on.
    case draining
    /// No stream.
    case disconnected(Disconnection)
    /// For good.
    case closed

    /// One word, and the reason.
    public var description: String {
      switch self {
      case .idle: "idle"
      case .connecting: "connecting"
      case .connected: "connected"
      case .draining: "draining"
      case .disconnected(let disconnection): "disconnected (\(disconnection.reason))"
      case .closed: "closed"
      }
    }
  }

  /// Why there is no stream, and what comes next.
  public struct Disconnection: Sendable, Hashable {
    /// For people.
    public var reason: String
    /// Whether the server refused the credentials.
    public var wasRefused: Bool
    /// The next attempt follows after this wait; none when it is nil.
    public var retryAfter: Duration?

    /// Makes one; test doubles do.
    public init(reason: String, wasRefused: Bool, retryAfter: Duration?) {
      self.reason = reason
      self.wasRefused = wasRefused
      self.retryAfter = retryAfter
    }
  }

  /// Why a client could not connect.
  public struct ConnectError: Error, Sendable, Hashable, CustomStringConvertible {
    /// Whether the server refused the credentials, rather than being out of reach.
    public var wasRefused: Bool
    /// For people.
    public var detail: String

    /// Makes an error; test doubles do.
    public init(wasRefused: Bool, detail: String) {
      self.wasRefused = wasRefused
      self.detail = detail
    }

    /// One line for logs.
    public var description: String { wasRefused ? "log-in refused: \(detail)" : "cannot connect: \(detail)" }
  }
}
