import DeviceRuntime
import JSONCore

/// The command `weir register`.
struct RegisterCommand: Subcommand {
  static let name = "register"
  static let summary = "Registers devices; prints one JSON line each: token, device_id, device_secret."
  static let flags = [
    CommonFlags.httpsServer, CommonFlags.credentials,
    Flag("project", "ID", "project (default: that of the credentials)"),
    Flag("count", "N", "how many devices (default 1)"),
    Flag("app", "ID", "package name or bundle id (default org.example.app)"),
    Flag("platform", "P", "linux, android, ios or web (default linux)"),
    Flag("user", "U", "whose devices they are"),
    Flag("previous-token", "TOKEN", "a token that the new one replaces"),
  ]
  static let examples = [
    "weir register", "weir register --count 1000 > devices.ndjson",
    "weir register --platform ios --user ann",
  ]

  private let endpoint: Endpoint
  private let credentials: CredentialFolder
  private let project: String?
  private let count: Int
  private let app: String
  private let platform: DeviceRegistrar.Platform
  private let user: String?
  private let previousToken: String?

  init(_ arguments: Arguments) throws(UsageFault) {
    endpoint = try Endpoint(
      arguments.text("server", default: "localhost:8443"), defaultPort: 8443, flag: "server")
    credentials = CredentialFolder(arguments)
    project = arguments.text("project")
    count = try arguments.number("count", default: 1, in: 1...1_000_000)
    app = arguments.text("app", default: "org.example.app")
    let platformText = arguments.text("platform", default: "linux")
    guard let platform = DeviceRegistrar.Platform(rawValue: platformText) else {
      throw UsageFault(message: "--platform must be linux, android, ios or web.")
    }
    self.platform = platform
    user = arguments.text("user")
    previousToken = arguments.text("previous-token")
  }

  func run(_ console: Console) async throws -> ExitCode {
    do {
      let registrar = try DeviceRegistrar(
        host: endpoint.host, port: Int(endpoint.port), project: try project ?? credentials.projectID(),
        apiKey: try credentials.key("api-key"), trust: .file(credentials.caFile))
      for number in 1...count {
        let device = try await registrar.register(
          app: app, platform: platform, user: user, previousToken: previousToken)
        console.result([
          "token": .string(device.token), "device_id": .string(device.deviceID),
          "device_secret": .string(device.deviceSecret),
        ])
        if count > 1, number.isMultiple(of: 100) { console.progress("\(number) of \(count)") }
      }
      console.progress("")
      return .done
    } catch let failure as DeviceRegistrar.Failure {
      throw CommandFault(failure.status == nil ? .cannotConnect : .someFailed, "\(endpoint): \(failure)")
    }
  }
}
