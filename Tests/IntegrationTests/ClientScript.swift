import Foundation
import TestKit
import Testing

/// A client in Python that is run against a live server: a script of cases in Tests/Clients.
struct ClientScript: Sendable, CustomTestStringConvertible {
  let name: String
  /// Name of the virtual environment; nil for the system's Python, whose standard library is enough.
  let environment: String?

  static let handshake = ClientScript(name: "handshake", environment: nil)
  static let badInput = ClientScript(name: "bad_input", environment: nil)
  static let gnutls = ClientScript(name: "gnutls_client", environment: nil)
  static let silence = ClientScript(name: "silence", environment: nil)
  static let aiofcm = ClientScript(name: "aiofcm_client", environment: "aiofcm")
  static let sdk = ClientScript(name: "sdk_client", environment: "sdk")
  static let pyfcm1 = ClientScript(name: "pyfcm1_client", environment: "pyfcm1")
  static let schemathesis = ClientScript(name: "schemathesis_client", environment: "schemathesis")
  static let curl = ClientScript(name: "curl_client", environment: nil)
  static let slixmpp = ClientScript(name: "slixmpp_client", environment: "slixmpp")
  static let webSocket = ClientScript(name: "websocket_client", environment: "websockets")
  static let webSocketOverHTTP2 = ClientScript(name: "websocket_h2_client", environment: "websockets")
  static let strophe = ClientScript(name: "strophe_client", environment: "websockets")
  static let autobahn = ClientScript(name: "autobahn_suite", environment: "autobahn")
  static let browser = ClientScript(name: "browser", environment: "websockets")
  static let consolePage = ClientScript(name: "console_page", environment: "websockets")

  var testDescription: String { name }

  /// Folder of the package.
  static let package = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path

  /// Runs cases, all but those that want a server of their own when none is named; records each that fails.
  func run(
    _ cases: [String] = [], against server: ServerAddress, within time: Duration = .seconds(120)
  ) async throws {
    let directory = try TemporaryDirectory()
    let child = try start(cases, against: server, errors: directory.path + "/errors")
    let (code, output) = try await child.waitForExit(within: time)
    let failed = output.split(separator: "\n").count { $0.hasPrefix("FAIL ") }
    if failed > 0 || code != 0 {
      Issue.record("\(name).py ended with \(code):\n\(output)\(child.errorText.suffix(4_000))")
    }
    let done = output.split(separator: "\n").count { $0.hasPrefix("ok ") }
    #expect(done >= max(1, cases.count), "\(name).py ran \(done) cases")
  }

  /// Starts it with these arguments; for what is more than a list of cases.
  func start(
    _ arguments: [String], against server: ServerAddress?, environment: [String: String] = [:], errors: String
  ) throws -> ChildProcess {
    let folder = Self.package + "/Tests/Clients"
    var variables = environment
    if let server {
      variables["WEIR_READY"] = server.json
      variables["SSL_CERT_FILE"] = server.certificateAuthority
    }
    return try ChildProcess(
      try interpreter(), ["-B", "-W", "ignore", folder + "/\(name).py"] + arguments, environment: variables,
      in: folder, errors: errors)
  }

  private func interpreter() throws -> String {
    guard let environment else { return try Self.systemPython() }
    let path = Self.package + "/.venv-\(environment)/bin/python"
    let stamp = Self.package + "/.venv-\(environment)/stamp"
    guard FileManager.default.fileExists(atPath: stamp) else {
      throw MissingEnvironment(
        description:
          "The Python environment .venv-\(environment) is missing: run dev/python-env.sh, or make test.")
    }
    return path
  }

  private static func systemPython() throws -> String {
    let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":")
    for folder in folders {
      let path = "\(folder)/python3"
      if FileManager.default.isExecutableFile(atPath: path) { return path }
    }
    throw MissingEnvironment(description: "There is no python3 in PATH: run dev/deps.sh test.")
  }
}

struct MissingEnvironment: Error, CustomStringConvertible {
  let description: String
}
