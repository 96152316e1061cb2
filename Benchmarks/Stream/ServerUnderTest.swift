import Foundation
import Glibc
import JSONCore

/// `weir serve` as a process of its own, on a fresh data directory and free ports.
final class ServerUnderTest {
  private(set) var process = Process()
  let directory: String
  private let loops: Int
  private let weir: String
  private let more: [String]
  private(set) var xmpp: UInt16 = 0
  private(set) var https = 0
  private(set) var admin: UInt16 = 0
  private(set) var senderID = ""
  var credentials: String { directory + "/credentials" }

  /// - Parameters:
  ///   - more: Further flags of `weir serve`.
  ///   - directory: Its data; nil for a fresh one.
  init(loops: Int, weir: String, more: [String] = [], directory: String? = nil) throws {
    self.loops = loops
    self.weir = weir
    self.more = more
    self.directory =
      directory
      ?? FileManager.default.temporaryDirectory.appendingPathComponent(
        "weir-bench-\(getpid())-\(UInt32.random(in: 0 ... .max))"
      ).path
    try start()
  }

  /// Starts it again after ``end()``, on the same data.
  func start() throws {
    process = Process()
    process.executableURL = URL(fileURLWithPath: weir)
    process.arguments =
      [
        "serve", "--data", directory, "--xmpp-port", "0", "--https-port", "0", "--admin-port", "0", "--loops",
        String(loops), "--log-level", "error", "--limit", "stored-per-device=1000000",
      ] + more
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    var text = ""
    while !text.contains("\n") {
      let piece = output.fileHandleForReading.availableData
      guard !piece.isEmpty else { throw BenchFault("weir serve ended before it was ready") }
      text += String(decoding: piece, as: UTF8.self)
    }
    guard let start = text.firstIndex(of: "{"),
      let value = try? JSONValue(parsing: String(text[start...].prefix { $0 != "\n" })),
      let xmpp = value["xmpp"]?.int, let https = value["https"]?.int,
      let admin = value["admin"]?.int, let sender = value["sender_id"]?.string
    else { throw BenchFault("the ready line cannot be read: \(text)") }
    self.xmpp = UInt16(xmpp)
    self.https = Int(https)
    self.admin = UInt16(admin)
    senderID = sender
  }

  func key(_ name: String) throws -> String {
    try String(contentsOfFile: credentials + "/" + name, encoding: .utf8).trimmingCharacters(
      in: .whitespacesAndNewlines)
  }

  /// Processor time used so far, in microseconds.
  var cpuMicroseconds: Double { Self.cpuMicroseconds(of: process.processIdentifier) }

  static func cpuMicroseconds(of process: Int32) -> Double {
    guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
      let end = text.lastIndex(of: ")")
    else { return 0 }
    let fields = text[text.index(after: end)...].split(separator: " ")
    let ticks = (Double(fields[11]) ?? 0) + (Double(fields[12]) ?? 0)
    return ticks * 1_000_000 / Double(sysconf(Int32(_SC_CLK_TCK)))
  }

  /// Resident memory in KiB.
  var residentKiB: Int {
    guard let text = try? String(contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)
    else { return 0 }
    let line = text.split(separator: "\n").first { $0.hasPrefix("VmRSS:") } ?? ""
    return line.split(separator: " ").compactMap { Int($0) }.first ?? 0
  }

  /// Ends the process and keeps the data.
  ///
  /// A server that does not end is a fault, which must not hold up whoever measures: it is killed, and the program ends.
  func end() {
    process.terminate()
    let deadline = ContinuousClock.now + .seconds(60)
    while process.isRunning, ContinuousClock.now < deadline { usleep(5_000) }
    guard process.isRunning else { return }
    kill(process.processIdentifier, SIGKILL)
    print("stream-bench: weir serve did not end within 60 s of SIGTERM")
    exit(1)
  }

  func stop() {
    end()
    try? FileManager.default.removeItem(atPath: directory)
  }
}

struct BenchFault: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

extension ServerUnderTest {
  /// Waits until the server has nothing more to do, at most 20 seconds.
  func becomeQuiet() async throws {
    var last = -1.0
    for _ in 0..<100 {
      let now = cpuMicroseconds
      if now == last { return }
      last = now
      try await Task.sleep(for: .milliseconds(200))
    }
  }
}
