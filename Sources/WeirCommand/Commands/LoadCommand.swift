import EventLoops
import Foundation
import Glibc
import JSONCore
import LoadGenerator
import TLSCore

/// The command `weir load`.
struct LoadCommand: Subcommand {
  static let name = "load"
  static let operands = "[SCENARIO.json5]"
  static let summary = "Load test: devices and senders, percentiles, and a verdict on every message."
  static let flags =
    StreamSettings.flags + [
      Flag("https", "HOST:PORT", "where devices are registered (default: the server's host, port 8443)"),
      Flag("admin", "HOST:PORT", "where faults are armed (default: the server's host, port 8080)"),
      Flag("websocket", nil, "streams over WebSocket, at the host and port of --https"),
      Flag("project", "ID", "project of the devices (default: that of the credentials)"),
      Flag("ca", "FILE", "certificates to believe, or system (default: ca.pem of the credentials)"),
      Flag("duration", "TIME", "how long, as 10, 30s or 2m (default 10)"),
      Flag("settle", "TIME", "longest wait for what is under way at the end (default 30)"),
      Flag("devices", "N", "devices (default 100)"),
      Flag("connect-rate", "R", "connections begun a second (default 500)"),
      Flag("senders", "N", "app server streams (default 1)"),
      Flag("window", "W", "unanswered messages of a sender (default 100)"),
      Flag("rate", "R", "messages a second, evenly (default: as fast as the windows allow)"),
      Flag("poisson", "R", "messages a second, at random"),
      Flag("bytes", "N", "payload of a message (default 600)"),
      Flag("upstream", "R", "upstream messages a second, of all devices together"),
      Flag("churn", "R", "devices a second that cut their stream and come back"),
      Flag("slow-readers", "N", "devices that read slowly"),
      Flag("half-open", "N", "devices that neither read nor answer"),
      Flag("seed", "N", "of everything random (default 1)"),
      Flag("devices-from", "FILE", "devices as weir register prints them, instead of new ones"),
      Flag("keep-devices", "FILE", "writes the new devices there instead of unregistering them"),
      Flag("tokens", "FILE", "only send, to these tokens; for any server of the FCM stream protocol"),
      Flag("report", "FILE", "FILE.html with plots or FILE.json; may stand twice"),
      Flag("canary", nil, "leaves one device uncounted: the verdict must then be a failure"),
    ]
  static let examples = [
    "weir load",
    "weir load --devices 1000 --senders 10 --duration 30s --report load.html",
    "weir load --poisson 2000 --churn 20 --slow-readers 5 --upstream 50",
    "weir load Examples/scenarios/rush-hour.json5 --report rush-hour.html --report rush-hour.json",
    "weir load --tokens tokens.txt --server push.example.org:5235 --ca system --rate 100",
  ]
  static let positionalMax = 1

  private let settings: StreamSettings
  private let https: Endpoint
  private let admin: Endpoint
  private let isWebSocket: Bool
  private let project: String?
  private let trust: String?
  private let scenario: LoadScenario
  private let devicesFrom: String?
  private let keepDevices: String?
  private let tokens: String?
  private let reports: [String]

  init(_ arguments: Arguments) throws(UsageFault) {
    settings = try StreamSettings(arguments)
    https = try Endpoint(
      arguments.text("https", default: settings.endpoint.host), defaultPort: 8443, flag: "https")
    admin = try Endpoint(
      arguments.text("admin", default: settings.endpoint.host), defaultPort: 8080, flag: "admin")
    isWebSocket = arguments.has("websocket")
    project = arguments.text("project")
    trust = arguments.text("ca")
    scenario = try Self.scenario(arguments)
    devicesFrom = arguments.text("devices-from")
    keepDevices = arguments.text("keep-devices")
    tokens = arguments.text("tokens")
    reports = arguments.all("report")
    guard tokens == nil || devicesFrom == nil else {
      throw UsageFault(message: "--tokens and --devices-from exclude each other.")
    }
    for report in reports where !report.hasSuffix(".html") && !report.hasSuffix(".json") {
      throw UsageFault(message: "--report must end in .html or .json, not \"\(report)\".")
    }
  }

  /// The scenario file when there is one, and the flags over it.
  private static func scenario(_ arguments: Arguments) throws(UsageFault) -> LoadScenario {
    var scenario = LoadScenario()
    if let path = arguments.positional.first { scenario = try LoadScenario(file: path) }
    func whole(_ name: String, _ value: inout Int, _ range: ClosedRange<Int>) throws(UsageFault) {
      value = try arguments.number(name, default: value, in: range)
    }
    func rate(_ name: String) throws(UsageFault) -> Double? {
      guard let text = arguments.text(name) else { return nil }
      guard let value = Double(text), (0...10_000_000).contains(value) else {
        throw UsageFault(message: "--\(name) must be a number from 0 to 10000000, not \"\(text)\".")
      }
      return value
    }
    func time(_ name: String, _ value: inout Duration) throws(UsageFault) {
      guard let text = arguments.text(name) else { return }
      guard let time = ScenarioFields.duration(text), time >= .zero, time <= LoadScenario.durationMax else {
        throw UsageFault(message: "--\(name) must be a time as 10, 30s or 2m, not \"\(text)\".")
      }
      value = time
    }
    try time("duration", &scenario.duration)
    try time("settle", &scenario.settle)
    try whole("devices", &scenario.devices.count, 1...1_000_000)
    scenario.devices.connectRate = max(1, try rate("connect-rate") ?? scenario.devices.connectRate)
    try whole("senders", &scenario.senders.count, 1...1_000)
    try whole("window", &scenario.senders.window, 1...10_000)
    if let rate = try rate("rate") { scenario.arrivals = .constant(rate) }
    if let rate = try rate("poisson") { scenario.arrivals = .poisson(rate) }
    if arguments.text("bytes") != nil {
      scenario.sizes = .fixed(
        try arguments.number("bytes", default: 600, in: PayloadSizes.bytesMin...PayloadSizes.bytesMax))
    }
    scenario.upstreamRate = try rate("upstream") ?? scenario.upstreamRate
    scenario.devices.churn = try rate("churn") ?? scenario.devices.churn
    try whole("slow-readers", &scenario.devices.slowReaders, 0...1_000_000)
    try whole("half-open", &scenario.devices.halfOpen, 0...1_000_000)
    if arguments.text("seed") != nil {
      scenario.seed = UInt64(try arguments.number("seed", default: 1, in: 0...Int.max))
    }
    scenario.isCanary = arguments.has("canary")
    try scenario.check()
    return scenario
  }

  // MARK: Running

  func run(_ console: Console) async throws -> ExitCode {
    let targets = try tokens.map { path throws(CommandFault) in try LoadDevices.tokens(path) } ?? []
    var identities = try devicesFrom.map { path throws(CommandFault) in try LoadDevices.read(path) } ?? []
    if !identities.isEmpty { identities = Array(identities.prefix(scenario.devices.count)) }
    var scenario = scenario
    if !targets.isEmpty {
      scenario.devices.count = 0
    } else if !identities.isEmpty {
      scenario.devices.count = identities.count
    }
    if let limit = FileLimit.raise(),
      let complaint = FileLimit.complaint(streams: scenario.streamCount, limit: limit)
    {
      throw CommandFault(.wrongUsage, complaint)
    }
    let identity = try settings.identity()
    let context = try makeContext()
    let endpoint = isWebSocket ? https : settings.endpoint
    let server = LeanServer(
      host: loopbackAddress(of: endpoint.host) ?? endpoint.host, port: endpoint.port, name: endpoint.host,
      context: context, webSocketPath: isWebSocket ? "/xmpp" : nil, timeout: .seconds(30))
    var armer: FaultArmer?
    if scenario.needsAdministration {
      armer = try await FaultArmer(admin, key: try settings.credentials.key("admin-key"))
    }
    let registers = targets.isEmpty && identities.isEmpty
    let book = targets.isEmpty ? try makeBook() : nil
    if registers, let book { identities = try await book.register(scenario.devices.count, console) }
    var setup = LoadRun.Setup(
      server: server, senderID: identity.senderID, serverKey: identity.serverKey, devices: identities,
      tokens: targets)
    if let armer { setup.arm = { armer.arm($0) } }
    let run = LoadRun(scenario, setup)
    do {
      if let book { try await subscribe(run, identities, book, console) }
      console.say(Self.opening(scenario, endpoint))
      let signals = Signals([SIGINT, SIGTERM]) { _ in
        console.say("Stopping: what is under way is awaited.")
        run.stop()
      }
      var result = try await run.run { LoadReport.tell($0, console) }
      signals.stop()
      if let armer { result.missed += await armer.end() }
      try await finish(result, console)
      try await leave(identities, registers ? book : nil, console)
      return result.isPassed ? .done : .someFailed
    } catch {
      _ = await armer?.end()
      try? await leave(identities, registers ? book : nil, console)
      if let fault = error as? LoadFault {
        throw CommandFault(.cannotConnect, "\(endpoint): \(fault.description)")
      }
      throw error
    }
  }

  private func makeContext() throws(CommandFault) -> TLSContext {
    let path = trust ?? settings.credentials.caFile
    do {
      var options = TLSClientOptions(trust: path == "system" ? .system : .files([path]))
      options.protocols = [isWebSocket ? "http/1.1" : "xmpp-client"]
      return try TLSContext(client: options)
    } catch {
      throw CommandFault(.cannotConnect, "\(path): \(error)")
    }
  }

  private func makeBook() throws -> LoadDevices {
    LoadDevices(
      endpoint: https, project: try project ?? settings.credentials.projectID(),
      apiKey: try settings.credentials.key("api-key"),
      caFile: trust ?? settings.credentials.caFile)
  }

  private func subscribe(
    _ run: LoadRun, _ identities: [LoadIdentity], _ book: LoadDevices, _ console: Console
  ) async throws {
    var pairs: [(token: String, topic: String)] = []
    for topic in 0..<run.scenario.topics.count {
      for device in run.plan.subscribers(of: topic) {
        pairs.append((identities[device].token, run.topicName(topic)))
      }
    }
    try await book.subscribe(pairs, console)
  }

  private func leave(_ identities: [LoadIdentity], _ book: LoadDevices?, _ console: Console) async throws {
    guard let book else { return }
    if let keepDevices {
      try LoadDevices.write(identities, to: keepDevices)
    } else {
      await book.unregister(identities, console)
    }
    console.progress("")
  }

  private func finish(_ result: LoadResult, _ console: Console) async throws {
    console.progress("")
    if console.isJSON {
      console.result(LoadReport.summary(result))
    } else {
      console.result(LoadReport.text(result))
    }
    for path in reports {
      let text = path.hasSuffix(".html") ? LoadReport.html(result) : LoadReport.json(result).text + "\n"
      do {
        try text.write(toFile: path, atomically: true, encoding: .utf8)
      } catch {
        throw CommandFault(.someFailed, "The report \(path) cannot be written: \(error.localizedDescription)")
      }
    }
  }

  private static func opening(_ scenario: LoadScenario, _ endpoint: Endpoint) -> String {
    "\(scenario.name): \(scenario.senders.count) sender(s) × window \(scenario.senders.window), "
      + "\(scenario.devices.count) device(s), \(LoadReport.text(of: scenario.arrivals)), at \(endpoint)"
  }
}
