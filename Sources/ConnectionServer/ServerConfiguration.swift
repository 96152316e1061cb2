/// What a server is started with.
///
/// Every value has a default that suits development on one machine.
public struct ServerConfiguration: Sendable {
  /// Where the embedded store and the credentials are kept; made when missing.
  public var dataDirectory = "./weir-data"
  /// URL of a PostgreSQL that any number of servers share, `postgres://…`; nil keeps everything in an embedded SQLite
  /// in the data directory.
  public var store: String? {
    get { stores.first }
    set { stores = newValue.map { [$0] } ?? [] }
  }
  /// Several of these, over which devices are spread; always the same ones in the same order.
  public var stores: [String] = []
  /// Address or name the listeners bind.
  ///
  /// `localhost` binds 127.0.0.1 and, where there is one, ::1.
  public var host = "localhost"
  /// XMPP over TLS, app servers and devices.
  ///
  /// 0 picks a free port.
  public var xmppPort = 5235
  /// HTTPS.
  ///
  /// Registration. 0 picks a free port.
  public var httpsPort = 8443
  /// Administration, health and metrics.
  ///
  /// Plain HTTP, always on loopback. 0 picks a free port.
  public var adminPort = 8080
  /// Event loops, each with a thread; 0 for one a core.
  public var loops = 0
  /// Project made at the first start.
  public var project = "demo"
  /// Sender id of that project.
  public var senderID: Int64 = 100_000_000_001
  /// How long a drain may take before the streams are closed.
  public var drainDeadline: Duration = .seconds(10)
  /// The origin whose pages may register devices from a browser: `*` for any, or nothing for none.
  public var registrationOrigin = "*"
  /// trace, debug, info, warning or error.
  public var logLevel = "info"
  /// Log lines as JSON objects.
  public var logJSON = false
  /// A certificate chain and key to serve instead of the development ones, PEM paths.
  public var certificate: (chain: String, key: String)?
  /// Origins of pages that may open WebSockets here, beside the server's own: `https://app.example.org`.
  ///
  /// `*` is any.
  public var webOrigins: Set<String> = []
  /// Where clients on WebSockets are told to go when the server drains: a `wss` URI.
  public var seeOtherURI: String?
  /// Leaves the records of TLS 1.3 to OpenSSL, as it makes every handshake; costs 10 KiB more a connection.
  public var opensslRecords = false
  /// Accepts any bearer token and opens a WebSocket at `/echo`, for tests of senders and of the protocol.
  ///
  /// Never where somebody else can connect.
  public var acceptsAnyBearer = false
  /// Which values limits have that are not set one by one.
  public enum LimitSet: String, Sendable, CaseIterable {
    /// Bounds of size and number; no rates but that of topic messages under way.
    case usual = "default"
    /// The numbers of Google's pages, rates too.
    case published
    /// No rate at all.
    case off
  }

  /// Which values limits have that ``limits`` does not name.
  public var limitSet = LimitSet.usual
  /// Settings of the protocol's limits, by name as `weir serve --help limits` lists them.
  public var limits: [String: Int] = [:]

  /// The defaults.
  public init() {}
}
