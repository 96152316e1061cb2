extension HTTPSender {
  /// Where a sender posts to, as whom, and how it behaves.
  public struct Configuration: Sendable, CustomStringConvertible {
    /// Which form of the protocol, and with which credentials; never logged.
    public enum Access: Sendable {
      /// The legacy endpoint `/fcm/send`, with a server key.
      case legacy(serverKey: String)
      /// HTTP v1, with access tokens that a service account is given.
      case serviceAccount(ServiceAccount)
      /// HTTP v1, with an access token that somebody else keeps fresh.
      case accessToken(String, project: String)
    }

    /// How many requests are on the way.
    public enum Mode: Sendable, Hashable {
      /// One after the other, each on the connection of the one before: the way of simple clients.
      case oneAtATime
      /// Over HTTP/1.1, one on each connection.
      case connections(Int)
      /// Over HTTP/2, so many streams on each of so many connections.
      case streams(Int, connections: Int)

      /// Requests on the way at a time.
      var requestsMax: Int {
        switch self {
        case .oneAtATime: 1
        case .connections(let count): min(max(count, 1), 1_000)
        case .streams(let streams, let connections): min(max(streams, 1) * max(connections, 1), 10_000)
        }
      }
    }

    /// Name or address of the server.
    public var host: String
    /// Its HTTPS port.
    public var port: Int
    /// How it is allowed to send.
    public var access: Access
    /// Which certificates are believed.
    public var trust: StreamClient.Trust
    /// How many requests are on the way.
    public var mode: Mode
    /// What happens to messages that were refused or not answered; the same rules as on a stream.
    public var retry: StreamClient.RetryPolicy
    /// For one request and its answer; FCM asks senders for ten seconds at least.
    public var requestTimeout: Duration
    /// For connecting and TLS.
    public var connectTimeout: Duration
    /// Whether each request carries the message's id in `X-Weir-Message-Id`, so that a repeated one is not
    /// delivered again; an extension of this server, which others ignore.
    public var sendsMessageID: Bool

    /// Makes a configuration with the defaults.
    public init(
      host: String = "localhost", port: Int = 8443, access: Access, trust: StreamClient.Trust = .system,
      mode: Mode = .streams(100, connections: 1)
    ) {
      self.host = host
      self.port = port
      self.access = access
      self.trust = trust
      self.mode = mode
      retry = StreamClient.RetryPolicy()
      requestTimeout = .seconds(15)
      connectTimeout = .seconds(10)
      sendsMessageID = true
    }

    /// Without the credentials.
    public var description: String { "https://\(host):\(port)" }
  }
}
