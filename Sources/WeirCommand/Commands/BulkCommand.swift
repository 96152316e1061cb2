import Foundation
import Glibc
import JSONCore
import PushModel
import StreamClient
import Synchronization

/// The command `weir bulk`.
struct BulkCommand: Subcommand {
  static let name = "bulk"
  static let operands = "FILE"
  static let summary = "Sends every message of a file: NDJSON, or CSV with a template (- for standard input)."
  static let flags =
    StreamSettings.flags + [
      Flag("connections", "C", "streams, or connections over HTTP (default 1)"),
      Flag("window", "W", "unacked messages a stream (default 100; more is asked of the server)"),
      Flag(
        "mode", "MODE",
        "stream (default), http (v1, one at a time a connection), http2 (v1, many at a time) or legacy"),
      Flag("template", "JSON", "a message with {{column}} places, or @FILE with one; FILE is CSV then"),
      Flag("rate", "R", "messages a second at most"),
      Flag("retry", "N", "how often one message is tried (default: until its time is up)"),
      Flag("timeout", "SECONDS", "for each message, retries included (default 300)"),
      Flag("ordered", nil, "messages to one target in the order of the file"),
      Flag("checkpoint", "FILE", "remembers what is finished, so that an interrupted job goes on"),
      Flag("job", "NAME", "part of ids made for messages without one (default: from name, size and date)"),
      Flag("dead-letter", "FILE", "appends messages that failed, with the reason, as NDJSON"),
      Flag("unregistered", "FILE", "appends tokens that are of no use any more"),
      Flag("canonical", "FILE", "appends OLD,NEW for tokens that another one replaces"),
      Flag("report", "FILE", "FILE.html with plots or FILE.json; may stand twice"),
      Flag("dry-run", nil, "checks every message and sends nothing"),
    ]
  static let examples = [
    "weir bulk messages.ndjson",
    "weir bulk messages.ndjson --mode http2 --server localhost:8443",
    "weir bulk messages.ndjson --connections 4 --checkpoint job.checkpoint --report report.html",
    "weir bulk people.csv --template '{\"to\":\"{{token}}\",\"data\":{\"name\":\"{{name}}\"}}' --rate 500",
    "weir bulk people.csv --template @message.json --dry-run",
    "weir bulk messages.ndjson --dead-letter failed.ndjson --unregistered gone.txt --canonical new.csv",
    "generate | weir bulk - --json",
  ]
  static let positionalMax = 1

  /// How messages are sent.
  enum Mode: String, CaseIterable {
    case stream, http, http2, legacy
  }

  private let mode: Mode
  private let settings: StreamSettings
  private let path: String
  private let connections: Int
  private let window: Int
  private let template: String?
  private let rate: Double?
  private let retry: Int
  private let timeout: Duration
  private let isOrdered: Bool
  private let checkpoint: String?
  private let job: String?
  private let deadLetter: String?
  private let unregistered: String?
  private let canonical: String?
  private let reports: [String]
  private let isDryRun: Bool

  init(_ arguments: Arguments) throws(UsageFault) {
    let name = arguments.text("mode", default: "stream")
    guard let mode = Mode(rawValue: name) else {
      let known = Mode.allCases.map(\.rawValue).joined(separator: ", ")
      throw UsageFault(message: "--mode \(name) is not known: use one of \(known).")
    }
    self.mode = mode
    settings = try StreamSettings(arguments, defaultPort: mode == .stream ? 5235 : 8443)
    path = try arguments.positional(0, "The file")
    connections = try arguments.number("connections", default: 1, in: 1...1000)
    window = try arguments.number("window", default: 100, in: 1...10_000)
    template = arguments.text("template")
    if let text = arguments.text("rate") {
      guard let value = Double(text), value > 0, value <= 10_000_000 else {
        throw UsageFault(message: "--rate must be a number above 0, not \"\(text)\".")
      }
      rate = value
    } else {
      rate = nil
    }
    retry = try arguments.number("retry", default: 1_000, in: 1...1_000_000)
    timeout = .seconds(try arguments.number("timeout", default: 300, in: 1...86_400))
    isOrdered = arguments.has("ordered")
    guard mode == .stream || !isOrdered else {
      throw UsageFault(message: "--ordered needs --mode stream.")
    }
    checkpoint = arguments.text("checkpoint")
    job = arguments.text("job")
    deadLetter = arguments.text("dead-letter")
    unregistered = arguments.text("unregistered")
    canonical = arguments.text("canonical")
    reports = arguments.all("report")
    isDryRun = arguments.has("dry-run")
    if let job, job.isEmpty || job.count > 64 || !job.allSatisfy({ $0.isASCII && !$0.isWhitespace }) {
      throw UsageFault(message: "--job must be 1 to 64 characters of ASCII without spaces.")
    }
  }

  // MARK: Running

  func run(_ console: Console) async throws -> ExitCode {
    let input = try BulkInput(path: path, template: try templateText())
    if isDryRun { return checkAll(input, console) }
    let finished = try BulkCheckpoint(path: checkpoint)
    let skipped = finished.finishedCount
    if skipped > 0 { console.say("\(skipped) lines were finished by an earlier run.") }
    let lists = try BulkLists(deadLetters: deadLetter, unregistered: unregistered, canonical: canonical)
    let tally = BulkTally()
    let source = LineSource(
      input, job: job ?? Self.jobName(path), finished: finished, pacer: rate.map { Pacer(perSecond: $0) },
      keepsMessages: lists.needsMessages
    ) { line, why, message in
      tally.countRefusedLine()
      let error = SendError(code: .invalidMessage, detail: why)
      lists.bury(error, line: line, message: message)
      Self.tell(error, line, console)
    }
    let sender = try await makeSender()
    let size = path == "-" ? nil : try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
    let signals = Signals([SIGINT, SIGTERM]) { _ in
      console.say("Stopping: what is under way is finished first.")
      source.stop()
    }
    let ticking = Task {
      var ticks = 0
      // Where this run began: what an earlier one finished is read over in no time.
      var from: Double?
      while !Task.isCancelled {
        try? await Task.sleep(for: .milliseconds(500))
        ticks += 1
        if ticks.isMultiple(of: 2) { tally.tick() }
        let share = size.map { Double(source.bytesRead) / Double(max(1, $0)) }
        if from == nil, tally.done > 0 { from = share }
        console.progress(BulkReport.progress(tally, share: share, from: from ?? 0))
        try? Self.save(lists, finished)
      }
    }
    do {
      try await sender.send(source) { batch in
        for outcome in batch { Self.end(outcome, source, finished, tally, lists, console) }
      }
    } catch {
      ticking.cancel()
      await ticking.value
      try? Self.save(lists, finished)
      throw error
    }
    // A save of its own that came later would put the checkpoint back.
    ticking.cancel()
    await ticking.value
    signals.stop()
    try Self.save(lists, finished)
    await sender.close()
    return try report(tally, source, skipped, console)
  }

  private func makeSender() async throws -> any BulkSender {
    guard mode == .stream else { return HTTPBulkSender(sender: try await makeHTTPSender()) }
    var configuration = try settings.configuration()
    configuration.streams = connections
    configuration.window = window
    configuration.ordersByTarget = isOrdered
    configuration.retry.totalTimeout = timeout
    configuration.retry.triesMax = retry
    return StreamBulkSender(client: try await settings.connect(configuration))
  }

  private func makeHTTPSender() async throws -> HTTPSender {
    let access: HTTPSender.Configuration.Access
    var way = HTTPSender.Configuration.Mode.connections(connections)
    if connections == 1 { way = .oneAtATime }
    do {
      if mode == .legacy {
        access = .legacy(serverKey: try settings.httpServerKey())
      } else {
        let file = try settings.credentials.key("service-account.json")
        access = .serviceAccount(try ServiceAccount(json: Array(file.utf8)))
        if mode == .http2 { way = .streams(window, connections: connections) }
      }
      var configuration = HTTPSender.Configuration(
        host: settings.endpoint.host, port: Int(settings.endpoint.port), access: access,
        trust: .file(settings.credentials.caFile), mode: way)
      configuration.retry.totalTimeout = timeout
      configuration.retry.triesMax = retry
      let sender = try HTTPSender(configuration)
      try await sender.connect()
      return sender
    } catch let fault as StreamClient.ConnectError {
      throw CommandFault(.cannotConnect, "\(settings.endpoint): \(fault)")
    }
  }

  /// Lists first: what the checkpoint calls finished must have been noted.
  private static func save(_ lists: BulkLists, _ finished: BulkCheckpoint) throws(CommandFault) {
    let snapshot = finished.snapshot()
    try lists.flush()
    try finished.save(snapshot)
  }

  private static func end(
    _ outcome: BulkOutcome, _ source: LineSource, _ finished: BulkCheckpoint, _ tally: BulkTally,
    _ lists: BulkLists, _ console: Console
  ) {
    tally.count(outcome)
    let started = source.finish(outcome.messageID)
    lists.note(outcome, line: started?.line, message: started?.message)
    if let started { finished.mark(started.line) }
    if case .failure(let error) = outcome.result { tell(error, started?.line, console) }
  }

  private static func tell(_ error: SendError, _ line: Int?, _ console: Console) {
    let place = line.map { "line \($0 + 1)" } ?? "a line"
    if console.isJSON {
      console.result([
        "line": line.map { .number($0 + 1) } ?? .null,
        "message_id": error.messageID.map { .string($0) } ?? .null,
        "error": .string(error.nackCode ?? error.code.description),
        "error_description": .string(error.detail),
      ])
    } else {
      console.say("\(place): \(error)")
    }
  }

  private func report(
    _ tally: BulkTally, _ source: LineSource, _ skipped: Int, _ console: Console
  ) throws(CommandFault) -> ExitCode {
    let value = BulkReport.json(tally, lines: source.linesRead, skipped: skipped)
    for report in reports {
      let name = path == "-" ? "standard input" : URL(fileURLWithPath: path).lastPathComponent
      let text = report.hasSuffix(".html") ? BulkReport.html(tally, name: name, skipped: skipped) : value.text
      do { try Data(text.utf8).write(to: URL(fileURLWithPath: report), options: .atomic) } catch {
        throw CommandFault(
          .someFailed, "The report \(report) cannot be written: \(error.localizedDescription)")
      }
    }
    console.progress("")
    if console.isJSON {
      console.result(value)
    } else {
      console.result(BulkReport.text(tally, skipped: skipped))
    }
    return tally.done == tally.acked ? .done : .someFailed
  }

  // MARK: Input

  private func templateText() throws(CommandFault) -> String? {
    guard let template else { return nil }
    guard template.hasPrefix("@") else { return template }
    guard let data = FileManager.default.contents(atPath: String(template.dropFirst())) else {
      throw CommandFault(.wrongUsage, "The template \(template.dropFirst()) cannot be read.")
    }
    return String(decoding: data, as: UTF8.self)
  }

  /// Checks every message by the server's own rules.
  private func checkAll(_ input: BulkInput, _ console: Console) -> ExitCode {
    var input = input
    var check = BulkCheck()
    var line = 0
    while let record = input.next() {
      defer { line += 1 }
      if let fault = check.fault(in: record) {
        Self.tell(SendError(code: .invalidMessage, detail: fault), line, console)
      }
    }
    if console.isJSON {
      console.result([
        "dry_run": true, "valid": .number(check.valid), "invalid": .number(check.invalid),
        "first": check.first.map { .string($0) } ?? .null,
      ])
    } else {
      console.result("\(check.valid) messages are valid, \(check.invalid) are not; nothing was sent.")
      if let first = check.first { console.result("The first: \(first)") }
    }
    return check.invalid == 0 ? .done : .someFailed
  }

  /// A name that is the same for the same file: part of the ids of its messages.
  private static func jobName(_ path: String) -> String {
    guard path != "-", let attributes = try? FileManager.default.attributesOfItem(atPath: path) else {
      return "b\(getpid())-\(Int(Date().timeIntervalSince1970))"
    }
    let bytes = attributes[.size] as? Int ?? 0
    let changed = (attributes[.modificationDate] as? Date)?.timeIntervalSince1970 ?? 0
    let name = URL(fileURLWithPath: path).lastPathComponent.filter {
      $0.isASCII && ($0.isLetter || $0.isNumber)
    }
    return "\(name.prefix(24))-\(String(bytes, radix: 36))-\(String(Int(changed), radix: 36))"
  }
}
