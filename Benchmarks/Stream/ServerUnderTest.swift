import Foundation
import Glibc
import TestKit

/// `weir serve` as a process of its own, on a fresh data directory and free ports; it ends with this program, however that
/// ends.
final class ServerUnderTest {
  let directory: String
  private let loops: Int
  private let weir: String
  private let more: [String]
  private var child: ChildProcess
  private var address: ServerAddress

  var xmpp: UInt16 { UInt16(clamping: address.xmpp) }
  var https: Int { address.https }
  var admin: UInt16 { UInt16(clamping: address.admin) }
  var senderID: String { address.senderID }
  var credentials: String { directory + "/credentials" }

  /// - Parameters:
  ///   - more: Further flags of `weir serve`.
  ///   - directory: Its data; nil for a fresh one.
  init(loops: Int, weir: String, more: [String] = [], directory: String? = nil) async throws {
    self.loops = loops
    self.weir = weir
    self.more = more
    self.directory =
      directory
      ?? FileManager.default.temporaryDirectory.appendingPathComponent(
        "weir-bench-\(getpid())-\(UInt32.random(in: 0 ... .max))"
      ).path
    (child, address) = try await Self.launch(loops, weir, more, self.directory)
  }

  /// Starts it again after ``end()``, on the same data.
  func start() async throws { (child, address) = try await Self.launch(loops, weir, more, directory) }

  private static func launch(
    _ loops: Int, _ weir: String, _ more: [String], _ directory: String
  ) async throws -> (ChildProcess, ServerAddress) {
    let child = try ChildProcess(
      weir,
      [
        "serve", "--data", directory, "--xmpp-port", "0", "--https-port", "0", "--admin-port", "0", "--loops",
        String(loops), "--log-level", "error", "--limit", "stored-per-device=1000000",
      ] + more, errors: log(directory))
    return (child, try await child.readyServer(within: .seconds(120)))
  }

  /// Beside the data, which the server makes itself.
  private static func log(_ directory: String) -> String { directory + ".log" }

  func key(_ name: String) throws -> String {
    try String(contentsOfFile: credentials + "/" + name, encoding: .utf8).trimmingCharacters(
      in: .whitespacesAndNewlines)
  }

  /// Processor time used so far, in microseconds.
  var cpuMicroseconds: Double { ProcessUse.microseconds(of: child.processID) }

  /// Resident memory in KiB.
  var residentKiB: Int { ProcessUse.residentKiB(of: child.processID) }

  /// Ends the process and keeps the data.
  ///
  /// A server that does not end is a fault, which must not hold up whoever measures: it is killed, and the program ends.
  func end() {
    if child.end(within: .seconds(60)) { return }
    print("stream-bench: weir serve did not end within 60 s of SIGTERM")
    exit(1)
  }

  func stop() {
    end()
    try? FileManager.default.removeItem(atPath: directory)
    try? FileManager.default.removeItem(atPath: Self.log(directory))
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
