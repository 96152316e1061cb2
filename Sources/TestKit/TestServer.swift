public import ConnectionServer
import Glibc

/// A real server inside the test process, on free ports and with a data directory of its own.
///
/// ```swift
/// let server = try await TestServer.start()
/// let device = try await server.address.registerDevice()
/// …
/// await server.stop()
/// ```
///
/// Stop it at the end: that drains it and removes the directory.
public final class TestServer: Sendable {
  /// The server itself.
  public let server: ConnectionServer
  /// Where it listens, and its keys.
  public let address: ServerAddress
  private let directory: TemporaryDirectory

  private init(_ server: ConnectionServer, _ directory: TemporaryDirectory) {
    self.server = server
    self.directory = directory
    let found = server.addresses
    address = ServerAddress(
      xmpp: found.xmpp, https: found.https, admin: found.admin, projectID: found.projectID,
      senderID: String(found.senderID), credentials: found.credentials)
  }

  /// Starts a server, with its log off.
  ///
  /// - Parameter change: Sets what the defaults for tests leave out.
  /// - Throws: `ServerFault` when it does not start.
  public static func start(
    _ change: (inout ServerConfiguration) -> Void = { _ in }
  ) async throws -> TestServer {
    signal(SIGPIPE, SIG_IGN)
    let directory = try TemporaryDirectory()
    var configuration = ServerConfiguration()
    configuration.dataDirectory = directory.path
    configuration.xmppPort = 0
    configuration.httpsPort = 0
    configuration.adminPort = 0
    configuration.logLevel = "off"
    configuration.drainDeadline = .seconds(2)
    change(&configuration)
    return TestServer(try await ConnectionServer.start(configuration), directory)
  }

  /// Starts a server, runs `body` with its address, and stops it.
  public static func run<Result>(
    _ change: (inout ServerConfiguration) -> Void = { _ in },
    _ body: (ServerAddress) async throws -> Result
  ) async throws -> Result {
    let server = try await start(change)
    do {
      let result = try await body(server.address)
      await server.stop()
      return result
    } catch {
      await server.stop()
      throw error
    }
  }

  /// Drains the server and waits for its end.
  public func stop() async { await server.stop() }
}
