extension Device {
  /// What a registration gives: who the device is, and the token that senders address one of its apps by.
  public struct Credentials: Sendable, Hashable, Codable, CustomStringConvertible {
    /// The registration token; senders need it.
    public var token: String
    /// The device's name on its stream.
    public var deviceID: String
    /// Its password.
    ///
    /// Never logged.
    public var deviceSecret: String

    enum CodingKeys: String, CodingKey {
      case token
      case deviceID = "device_id"
      case deviceSecret = "device_secret"
    }

    /// Puts credentials together.
    public init(token: String, deviceID: String, deviceSecret: String) {
      self.token = token
      self.deviceID = deviceID
      self.deviceSecret = deviceSecret
    }

    /// Without token and secret.
    public var description: String { "device \(deviceID)" }
  }

  /// Which certificates a device believes.
  public enum Trust: Sendable, Hashable {
    /// Those of the system's certificate store.
    case system
    /// Those signed by a certificate in this PEM file.
    case file(String)
  }

  /// When a device acks a message.
  public enum AckPolicy: Sendable, Hashable {
    /// When its handler returns, or it was taken from ``Device/messages``.
    case automatic
    /// So long after that.
    case delayed(Duration)
    /// Never: the server delivers it again on the next stream, and it is shown again. For tests.
    case never
  }

  /// Where a device connects and how it behaves.
  public struct Configuration: Sendable {
    /// Name or address of the server.
    public var host: String
    /// Its XMPP port; its HTTPS port when there is a ``webSocketPath``.
    public var port: Int
    /// Speaks XMPP over a secure WebSocket (`wss`) at this path, `/xmpp` as a rule, for networks that let nothing
    /// else pass; nil for XMPP's own port.
    public var webSocketPath: String?
    /// Which certificates are believed.
    public var trust: Trust
    /// The name the certificate must carry; nil is ``host``.
    public var serverName: String?
    /// When messages are acked.
    public var acks: AckPolicy
    /// For connecting, TLS, log-in and bind together.
    public var connectTimeout: Duration
    /// How long ``Device/connect()`` goes on trying when the server cannot be reached; zero is one try.
    public var connectPatience: Duration
    /// Whether a lost stream is opened again.
    ///
    /// One that another log-in of the device replaced never is.
    public var reconnects: Bool
    /// Ceiling of the first wait after a failed attempt; doubles.
    ///
    /// The wait is drawn between 0 and the ceiling.
    public var reconnectWaitFirst: Duration
    /// Highest ceiling.
    public var reconnectWaitMax: Duration
    /// A lost stream is opened again after a moment between 0 and this, so that the devices of a server that
    /// restarts do not come all at once.
    public var reconnectSpread: Duration
    /// Ids of messages that are remembered, to hide repeats.
    public var rememberedMax: Int
    /// Upstream messages that may wait for their outcome; the server's number is 20.
    public var upstreamMax: Int
    /// From handing an upstream message over to its outcome, all tries together.
    public var upstreamTimeout: Duration
    /// Without traffic to the server for so long, a keepalive space is sent.
    public var keepaliveIdle: Duration
    /// Without any sign of the server for so long, the stream counts as dead.
    public var deadAfter: Duration

    /// Makes a configuration with the usual values.
    public init(host: String = "localhost", port: Int = 5235, trust: Trust = .system) {
      self.host = host
      self.port = port
      self.trust = trust
      acks = .automatic
      connectTimeout = .seconds(10)
      connectPatience = .zero
      reconnects = true
      reconnectWaitFirst = .seconds(1)
      reconnectWaitMax = .seconds(60)
      reconnectSpread = .seconds(1)
      rememberedMax = 1_000
      upstreamMax = 20
      upstreamTimeout = .seconds(120)
      keepaliveIdle = .seconds(30)
      deadAfter = .seconds(90)
    }
  }

  /// What an observer of a device sees.
  public enum State: Sendable, Hashable, CustomStringConvertible {
    /// Not connected yet.
    case idle
    /// A stream is being opened.
    case connecting
    /// Messages arrive.
    case connected
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
    /// Whether another log-in of the same device took the place; then this one stays away.
    public var wasReplaced: Bool
    /// The next attempt follows after this wait; none when it is nil.
    public var retryAfter: Duration?

    /// Makes one; test doubles do.
    public init(reason: String, wasRefused: Bool, wasReplaced: Bool, retryAfter: Duration?) {
      self.reason = reason
      self.wasRefused = wasRefused
      self.wasReplaced = wasReplaced
      self.retryAfter = retryAfter
    }
  }

  /// Why a device could not connect.
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
