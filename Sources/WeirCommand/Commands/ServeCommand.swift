import CLinux
import ConnectionServer
import Foundation
import JSONCore
import PushModel

/// The command `weir serve`.
struct ServeCommand: Subcommand {
  static let name = "serve"
  static let summary = "Runs the server until SIGTERM or SIGINT, which drain it."
  static let flags = [
    Flag("data", "DIR", "data directory (default ./weir-data)"),
    Flag(
      "store", "URL",
      "postgres://… that any number of nodes may share; may be repeated (default: an embedded store in the data directory)"
    ),
    Flag("host", "ADDRESS", "address the XMPP and HTTPS listeners bind (default localhost)"),
    Flag("xmpp-port", "N", "XMPP over TLS (default 5235; 0 picks a free port)"),
    Flag("https-port", "N", "HTTPS (default 8443)"),
    Flag("admin-port", "N", "administration, plain HTTP on loopback (default 8080)"),
    Flag("loops", "N", "event loops (default: one a core)"),
    Flag("certificate", "FILE", "PEM chain to serve instead of the development certificate"),
    Flag("certificate-key", "FILE", "its private key, PEM"),
    Flag("project", "ID", "project made at the first start (default demo)"),
    Flag("sender-id", "N", "its sender id (default 100000000001)"),
    Flag("registration-origin", "URL", "origin whose pages may register devices (default *, any)"),
    Flag("drain-seconds", "N", "how long a drain may take (default 10)"),
    Flag("limits", "SET", "default, published (the numbers of Google's pages, rates too) or off (no rates)"),
    Flag("limit", "NAME=N", "sets a limit; may be repeated. --limit help lists them"),
    Flag("web-origin", "ORIGIN", "lets pages of that origin open WebSockets; may be repeated, * is any"),
    Flag("see-other-uri", "URI", "where WebSocket clients are told to go in a drain"),
    Flag("openssl-records", nil, "leaves TLS 1.3 records to OpenSSL, at 10 KiB more a connection"),
    Flag("test-mode", nil, "accepts any bearer token and opens a WebSocket /echo; for tests only"),
    Flag("log-level", "LEVEL", "trace, debug, info, warning, error or off (default info)"),
    Flag("log-json", nil, "log lines as JSON objects"),
    Flag("print-config", nil, "prints the settings that would be used, and exits"),
  ]
  static let examples = [
    "weir serve",
    "weir serve --data /var/lib/weir --host 0.0.0.0 --certificate fullchain.pem --certificate-key key.pem",
    "weir serve --store 'postgres://weir@db1,db2,db3/weir?sslmode=verify-full'",
    "weir serve --xmpp-port 0 --https-port 0 --admin-port 0",
  ]

  private let configuration: ServerConfiguration
  private let limits: Limits
  private let printsConfiguration: Bool

  init(_ arguments: Arguments) throws(UsageFault) {
    var configuration = ServerConfiguration()
    configuration.dataDirectory = arguments.text("data", default: configuration.dataDirectory)
    // In the environment or the file, where a name stands once, spaces part them.
    let stores = arguments.all("store").isEmpty ? [arguments.text("store") ?? ""] : arguments.all("store")
    configuration.stores = stores.flatMap { $0.split(separator: " ").map(String.init) }
    if let problem = configuration.storeProblem { throw UsageFault(message: "--store: \(problem).") }
    configuration.host = arguments.text("host", default: configuration.host)
    let ports = 0...65535
    configuration.xmppPort = try arguments.number("xmpp-port", default: configuration.xmppPort, in: ports)
    configuration.httpsPort = try arguments.number("https-port", default: configuration.httpsPort, in: ports)
    configuration.adminPort = try arguments.number("admin-port", default: configuration.adminPort, in: ports)
    configuration.loops = try arguments.number("loops", default: 0, in: 0...64)
    configuration.project = arguments.text("project", default: configuration.project)
    configuration.senderID = Int64(
      try arguments.number(
        "sender-id", default: Int(configuration.senderID), in: 1...999_999_999_999_999_999))
    configuration.registrationOrigin = arguments.text("registration-origin", default: "*")
    configuration.drainDeadline = .seconds(
      try arguments.number("drain-seconds", default: 10, in: 1...3600))
    configuration.webOrigins = Set(arguments.all("web-origin"))
    configuration.seeOtherURI = arguments.text("see-other-uri")
    configuration.opensslRecords = arguments.has("openssl-records")
    configuration.acceptsAnyBearer = arguments.has("test-mode")
    configuration.logLevel = arguments.text("log-level", default: configuration.logLevel)
    configuration.logJSON = arguments.has("log-json")
    switch (arguments.text("certificate"), arguments.text("certificate-key")) {
    case (let chain?, let key?): configuration.certificate = (chain, key)
    case (nil, nil): break
    default: throw UsageFault(message: "--certificate and --certificate-key come together.")
    }
    if let name = arguments.text("limits") {
      guard let set = ServerConfiguration.LimitSet(rawValue: name) else {
        throw UsageFault(message: "--limits takes default, published or off, not \"\(name)\".")
      }
      configuration.limitSet = set
    }
    for entry in LimitSettings.all {
      // In the settings file or the environment, where a name stands once.
      guard let text = arguments.text("limit.\(entry.name)") ?? arguments.text("limit-\(entry.name)") else {
        continue
      }
      guard let value = Int(text) else {
        throw UsageFault(message: "The limit \"\(entry.name)\" must be a number, not \"\(text)\".")
      }
      configuration.limits[entry.name] = value
    }
    for setting in arguments.all("limit") {
      let parts = setting.split(separator: "=", maxSplits: 1)
      guard parts.count == 2, let value = Int(parts[1]) else {
        let list = LimitSettings.all.map { "\n  \($0.name): \($0.help)" }.joined()
        throw UsageFault(message: "--limit takes NAME=N. Limits:\(list)\n")
      }
      configuration.limits[String(parts[0])] = value
    }
    do { limits = try Limits(configuration.limitSet, settings: configuration.limits) } catch {
      throw UsageFault(message: error.description)
    }
    self.configuration = configuration
    printsConfiguration = arguments.has("print-config")
  }

  func run(_ console: Console) async throws -> ExitCode {
    if printsConfiguration {
      console.result(shown)
      return .done
    }
    signal(SIGPIPE, SIG_IGN)
    Descriptors.raiseLimit()
    let server: ConnectionServer
    do { server = try await ConnectionServer.start(configuration) } catch {
      throw CommandFault(.cannotConnect, "\(error)")
    }
    let signals = Signals([SIGTERM, SIGINT, SIGHUP]) { signal in
      if signal == SIGHUP {
        do { try server.reloadCertificates() } catch {
          console.say("weir serve: the certificates were not reloaded: \(error)")
        }
      } else {
        Task { await server.stop() }
      }
    }
    if configuration.acceptsAnyBearer {
      console.say(
        "weir serve: TEST MODE: any bearer token is accepted. Whoever can connect can send in every project's name."
      )
    }
    console.result(server.readyLine)
    await server.waitUntilStopped()
    signals.stop()
    return .done
  }

  private var shown: JSONValue {
    var members: [JSONValue.Member] = [
      .init("data", .string(configuration.dataDirectory)), .init("host", .string(configuration.host)),
      .init("xmpp-port", .number(configuration.xmppPort)),
      .init("https-port", .number(configuration.httpsPort)),
      .init("admin-port", .number(configuration.adminPort)), .init("loops", .number(configuration.loops)),
      .init("project", .string(configuration.project)),
      .init("sender-id", .string(String(configuration.senderID))),
      .init("registration-origin", .string(configuration.registrationOrigin)),
      .init("drain-seconds", .number(configuration.drainDeadline.components.seconds)),
      .init("web-origin", .array(configuration.webOrigins.sorted().map { .string($0) })),
      .init("openssl-records", .bool(configuration.opensslRecords)),
      .init("test-mode", .bool(configuration.acceptsAnyBearer)),
      .init("log-level", .string(configuration.logLevel)), .init("log-json", .bool(configuration.logJSON)),
    ]
    if let store = configuration.shownStore { members.insert(.init("store", .string(store)), at: 1) }
    if let certificate = configuration.certificate {
      members.append(.init("certificate", .string(certificate.chain)))
      members.append(.init("certificate-key", .string(certificate.key)))
    }
    members.append(.init("limits", .string(configuration.limitSet.rawValue)))
    for entry in LimitSettings.all {
      members.append(.init("limit.\(entry.name)", .number(entry.value(in: limits))))
    }
    return .object(members)
  }
}

/// The process's limit of open files; each connection takes one.
enum Descriptors {
  /// Raises the soft limit to the hard one.
  static func raiseLimit() {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }
}
