import ConnectionServer
import Glibc
import StreamClient
import Testing

@testable import DeviceRuntime

/// A real server of this process with a data directory of its own, and clients for it.
final class ServerFixture: Sendable {
  let server: ConnectionServer
  private let directory: String
  let serverKey: String
  let apiKey: String

  var caFile: String { server.addresses.credentials + "/ca.pem" }

  init(_ change: (inout ServerConfiguration) -> Void = { _ in }) async throws {
    directory = "/tmp/weir-device-\(getpid())-\(UInt64.random(in: 0 ... .max))"
    var configuration = ServerConfiguration()
    configuration.dataDirectory = directory
    configuration.host = "127.0.0.1"
    configuration.xmppPort = 0
    configuration.httpsPort = 0
    configuration.adminPort = 0
    configuration.loops = 2
    configuration.logLevel = "error"
    configuration.drainDeadline = .seconds(2)
    change(&configuration)
    server = try await ConnectionServer.start(configuration)
    serverKey = try Self.text(server.addresses.credentials + "/server-key")
    apiKey = try Self.text(server.addresses.credentials + "/api-key")
  }

  /// Ends the server and removes its files.
  func stop() async {
    await server.stop()
    Self.remove(directory)
  }

  func registrar(
    apiKey: String? = nil, project: String? = nil, caFile: String? = nil
  ) throws -> DeviceRegistrar {
    try DeviceRegistrar(
      host: "127.0.0.1", port: server.addresses.https, project: project ?? server.addresses.projectID,
      apiKey: apiKey ?? self.apiKey, trust: .file(caFile ?? self.caFile))
  }

  func register(_ app: String = "org.example.app", user: String? = nil) async throws -> Device.Credentials {
    try await registrar().register(app: app, user: user)
  }

  func device(
    _ credentials: Device.Credentials, _ change: (inout Device.Configuration) -> Void = { _ in }
  ) throws -> Device {
    var configuration = Device.Configuration(
      host: "127.0.0.1", port: server.addresses.xmpp, trust: .file(caFile))
    configuration.reconnectSpread = .zero
    change(&configuration)
    return try Device(credentials, configuration)
  }

  func client(
    _ change: (inout StreamClient.Configuration) -> Void = { _ in }
  ) throws -> StreamClient {
    var configuration = StreamClient.Configuration(
      host: "127.0.0.1", port: server.addresses.xmpp, senderID: senderID, serverKey: serverKey,
      trust: .file(caFile))
    change(&configuration)
    return try StreamClient(configuration)
  }

  var senderID: String { String(server.addresses.senderID) }

  private static func text(_ path: String) throws -> String {
    let file = try #require(fopen(path, "r"), "no file \(path)")
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 4_096)
    let count = fread(&bytes, 1, bytes.count, file)
    let text = String(decoding: bytes[..<count], as: UTF8.self)
    return String(text.prefix { !$0.isWhitespace })
  }

  private static func remove(_ path: String) {
    if let handle = opendir(path) {
      while let entry = readdir(handle) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
          String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        if name != ".", name != ".." { remove(path + "/" + name) }
      }
      closedir(handle)
      rmdir(path)
    } else {
      unlink(path)
    }
  }
}
