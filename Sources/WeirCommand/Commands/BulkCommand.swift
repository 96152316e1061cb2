import Foundation
import Glibc
import JSONCore
import StreamClient
import Synchronization

/// The command `weir bulk`.
struct BulkCommand: Subcommand {
  static let name = "bulk"
  static let operands = "FILE.ndjson"
  static let summary = "Sends every message of a file, one JSON object a line (- for standard input)."
  static let flags =
    StreamSettings.flags + [
      Flag("connections", "C", "connections (default 1)"),
      Flag("window", "W", "unacked messages a stream, or streams of an http2 connection (default 100)"),
      Flag(
        "mode", "MODE",
        "stream (default), http (v1, one at a time a connection), http2 (v1, many at a time) or legacy"),
      Flag("checkpoint", "FILE", "remembers what is finished, so that an interrupted job goes on"),
      Flag("report", "FILE", "writes the report as JSON"),
      Flag("timeout", "SECONDS", "for each message, retries included (default 300)"),
    ]
  static let examples = [
    "weir bulk messages.ndjson",
    "weir bulk messages.ndjson --mode http2 --server localhost:8443",
    "weir bulk messages.ndjson --connections 4 --checkpoint job.checkpoint --report report.json",
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
  private let checkpoint: String?
  private let report: String?
  private let timeout: Duration

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
    checkpoint = arguments.text("checkpoint")
    report = arguments.text("report")
    timeout = .seconds(try arguments.number("timeout", default: 300, in: 1...86_400))
  }

  func run(_ console: Console) async throws -> ExitCode {
    let finished = try BulkCheckpoint(path: checkpoint)
    let skipped = finished.finishedCount
    if skipped > 0 { console.say("\(skipped) lines were finished by an earlier run.") }
    let tally = BulkTally()
    let source = try LineSource(path: path, job: Self.jobName(path), finished: finished) { line, why in
      tally.countRefusedLine()
      Self.tell(SendError(code: .invalidMessage, detail: why), line, console)
    }
    let clients = try await connect()

    let size = Self.size(of: path)
    let signals = Signals([SIGINT, SIGTERM]) { _ in
      console.say("Stopping: what is under way is finished first.")
      source.stop()
    }
    let ticking = Task {
      while !Task.isCancelled {
        try? await Task.sleep(for: .milliseconds(500))
        Self.showProgress(tally, source, size, console)
        try? finished.save()
      }
    }
    do {
      try await withThrowingTaskGroup(of: Void.self) { group in
        for client in clients {
          group.addTask { try await Self.pump(client, source, tally, console) }
        }
        try await group.waitForAll()
      }
    } catch {
      ticking.cancel()
      try? finished.save()
      throw error
    }
    ticking.cancel()
    signals.stop()
    try finished.save()
    for client in clients { await client.close() }
    return try finish(tally, source, skipped, console)
  }

  /// A stream, or a sender over HTTP.
  private enum Client: Sendable {
    case stream(StreamClient)
    case http(HTTPSender)

    func send(contentsOf source: LineSource) -> BulkSend<LineSource> {
      switch self {
      case .stream(let client): client.send(contentsOf: source)
      case .http(let sender): sender.send(contentsOf: source)
      }
    }

    func close() async {
      switch self {
      case .stream(let client): await client.close()
      case .http(let sender): await sender.close()
      }
    }
  }

  private func connect() async throws -> [Client] {
    guard mode == .stream else { return [.http(try makeSender())] }
    var configuration = try settings.configuration()
    configuration.window = window
    configuration.retry.totalTimeout = timeout
    configuration.retry.triesMax = 1_000
    var clients: [Client] = []
    for _ in 0..<connections { clients.append(.stream(try await settings.connect(configuration))) }
    return clients
  }

  private func makeSender() throws -> HTTPSender {
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
      configuration.retry.triesMax = 1_000
      return try HTTPSender(configuration)
    } catch let fault as StreamClient.ConnectError {
      throw CommandFault(.cannotConnect, "\(settings.endpoint): \(fault)")
    }
  }

  private static func pump(
    _ client: Client, _ source: LineSource, _ tally: BulkTally, _ console: Console
  ) async throws {
    var outcomes = client.send(contentsOf: source).makeAsyncIterator()
    while let batch = try await outcomes.nextBatch() {
      for outcome in batch {
        tally.count(outcome)
        let line = source.finish(outcome.messageID)
        if case .failure(let error) = outcome.result { tell(error, line, console) }
      }
    }
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

  private func finish(
    _ tally: BulkTally, _ source: LineSource, _ skipped: Int, _ console: Console
  ) throws(CommandFault) -> ExitCode {
    let value = tally.report(lines: source.linesRead, skipped: skipped)
    if let report {
      do { try Data(value.bytes).write(to: URL(fileURLWithPath: report), options: .atomic) } catch {
        throw CommandFault(
          .someFailed, "The report \(report) cannot be written: \(error.localizedDescription)")
      }
    }
    console.progress("")
    if console.isJSON {
      console.result(value)
    } else {
      func milliseconds(_ fraction: Double) -> String {
        tally.quantile(fraction).map { String(format: "%.2f ms", $0) } ?? "–"
      }
      let seconds = max(0.001, tally.elapsed.milliseconds / 1000)
      console.result(
        "\(tally.done) messages in \(String(format: "%.2f", seconds)) s, \(Int(Double(tally.done) / seconds)) a second"
      )
      let rows = tally.byOutcome.sorted { $0.value > $1.value }.map { [$0.key, String($0.value)] }
      console.result(Table.text([["outcome", "messages"]] + rows))
      console.result(
        "ack latency: p50 \(milliseconds(0.5)), p90 \(milliseconds(0.9)), p99 \(milliseconds(0.99)), p99.9 \(milliseconds(0.999))"
      )
    }
    return tally.done == tally.acked ? .done : .someFailed
  }

  private static func showProgress(
    _ tally: BulkTally, _ source: LineSource, _ size: (bytes: Int, lineBytes: Int)?, _ console: Console
  ) {
    guard console.isTerminal else { return }
    let seconds = max(0.001, tally.elapsed.milliseconds / 1000)
    let rate = Double(tally.done) / seconds
    var text = "\(tally.done) sent, \(Int(rate))/s, \(tally.done - tally.acked) without ack"
    if let size, size.lineBytes > 0 {
      let total = max(1, size.bytes / size.lineBytes)
      let share = min(1, Double(source.linesRead) / Double(total))
      let width = 30
      let full = Int(share * Double(width))
      let bar = String(repeating: "█", count: full) + String(repeating: "░", count: width - full)
      let left = rate > 0 ? Int(Double(max(0, total - source.linesRead)) / rate) : 0
      text = "\(bar) \(Int(share * 100)) %  \(text), about \(left) s left"
    }
    console.progress(text)
  }

  /// The file's size and that of its first line; nil for what is no file.
  private static func size(of path: String) -> (bytes: Int, lineBytes: Int)? {
    guard path != "-", let bytes = try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int,
      var reader = try? LineReader(path: path), let line = reader.next()
    else { return nil }
    return (bytes, line.count + 1)
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
