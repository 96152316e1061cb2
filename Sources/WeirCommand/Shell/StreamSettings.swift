import StreamClient

/// What send, bulk and listen share: where the server is and who logs in.
struct StreamSettings: Sendable {
  let endpoint: Endpoint
  let credentials: CredentialFolder
  private let senderID: String?
  private let serverKey: String?

  static let flags = [
    CommonFlags.server, CommonFlags.credentials,
    Flag("sender-id", "N", "sender id to log in with (default: that of the credentials)"),
    Flag("server-key", "KEY", "server key (default: the text of credentials/server-key)"),
  ]

  /// - Parameter defaultPort: Of the listener that is meant, when none is given.
  init(_ arguments: Arguments, defaultPort: Int = 5235) throws(UsageFault) {
    endpoint = try Endpoint(
      arguments.text("server", default: "localhost:\(defaultPort)"), defaultPort: defaultPort, flag: "server")
    credentials = CredentialFolder(arguments)
    senderID = arguments.text("sender-id")
    serverKey = arguments.text("server-key")
  }

  func configuration() throws -> StreamClient.Configuration {
    let identity = try identity()
    return StreamClient.Configuration(
      host: endpoint.host, port: Int(endpoint.port), senderID: identity.senderID,
      serverKey: identity.serverKey, trust: .file(credentials.caFile))
  }

  /// Who logs in.
  func identity() throws -> (senderID: String, serverKey: String) {
    (try senderID ?? credentials.senderID(), try serverKey ?? credentials.key("server-key"))
  }

  /// The key for the legacy endpoint.
  func httpServerKey() throws -> String { try serverKey ?? credentials.key("server-key") }

  /// Connects, or fails with exit code 3.
  func connect(_ configuration: StreamClient.Configuration) async throws -> StreamClient {
    do {
      let client = try StreamClient(configuration)
      try await client.connect()
      return client
    } catch {
      throw CommandFault(.cannotConnect, "\(endpoint): \(error)")
    }
  }
}
