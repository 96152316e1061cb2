import Foundation
import Synchronization

/// `weir serve` as a process of its own, which can be killed and started again on its data and ports.
///
/// ```swift
/// let server = try await ServerProcess.start(flags: ["--limit", "login-seconds=1"])
/// try await server.kill()
/// try await server.restart()
/// let code = try await server.terminate()
/// ```
public final class ServerProcess: Sendable {
  /// The data directory.
  public let directory: TemporaryDirectory
  private let executable: String
  private let flags: [String]
  private struct State {
    var child: ChildProcess
    var address: ServerAddress
  }
  private let state: Mutex<State>

  private init(
    _ directory: TemporaryDirectory, _ executable: String, _ flags: [String], _ child: ChildProcess,
    _ address: ServerAddress
  ) {
    self.directory = directory
    self.executable = executable
    self.flags = flags
    state = Mutex(State(child: child, address: address))
  }

  /// Starts the server on free ports and waits until it is ready.
  ///
  /// - Parameters:
  ///   - flags: Further flags of `weir serve`.
  ///   - directory: Holds the data; nil makes a temporary one.
  ///   - executable: The `weir` command; by default the one built beside the tests.
  public static func start(
    flags: [String] = [], in directory: TemporaryDirectory? = nil, executable: String? = nil
  ) async throws -> ServerProcess {
    let directory = try directory ?? TemporaryDirectory()
    let executable = try executable ?? findExecutable()
    let (child, address) = try await launch(
      executable, directory, ["--xmpp-port", "0", "--https-port", "0", "--admin-port", "0"] + flags)
    return ServerProcess(directory, executable, flags, child, address)
  }

  /// Where it listens, and its keys.
  public var address: ServerAddress { state.withLock { $0.address } }

  /// Its process id.
  public var processID: Int32 { state.withLock { $0.child.processID } }

  /// What it has logged since its first start.
  public var log: String { state.withLock { $0.child }.errorText }

  /// Sends it a signal.
  public func signal(_ number: Int32) { state.withLock { $0.child }.signal(number) }

  /// Ends it at once with SIGKILL and waits until it is gone.
  public func kill() async throws {
    let child = state.withLock { $0.child }
    child.signal(SIGKILL)
    _ = try await child.waitForExit(within: .seconds(15))
  }

  /// Starts it again, after it ended, with the same data directory, ports and flags.
  public func restart() async throws {
    let old = address
    let ports = [
      "--xmpp-port", "\(old.xmpp)", "--https-port", "\(old.https)", "--admin-port", "\(old.admin)",
    ]
    let (child, address) = try await Self.launch(executable, directory, ports + flags)
    state.withLock { $0 = State(child: child, address: address) }
  }

  /// Drains it with SIGTERM.
  ///
  /// - Returns: Its exit code.
  public func terminate(within time: Duration = .seconds(20)) async throws -> Int32 {
    let child = state.withLock { $0.child }
    child.signal(SIGTERM)
    return try await child.waitForExit(within: time).code
  }

  /// Waits for an end that something else caused.
  public func waitForExit(within time: Duration = .seconds(20)) async throws -> Int32 {
    try await state.withLock { $0.child }.waitForExit(within: time).code
  }

  private static func launch(
    _ executable: String, _ directory: TemporaryDirectory, _ flags: [String]
  ) async throws -> (ChildProcess, ServerAddress) {
    let data = directory.path + "/data"
    let child = try ChildProcess(
      executable, ["serve", "--data", data] + flags, in: directory.path, errors: directory.path + "/log")
    return (child, try await child.readyServer())
  }

  /// The `weir` command: `WEIR_EXECUTABLE`, or the one that lies beside the program that runs.
  package static func findExecutable(_ name: String = "weir") throws -> String {
    if name == "weir", let path = ProcessInfo.processInfo.environment["WEIR_EXECUTABLE"] { return path }
    let programs = [CommandLine.arguments.first ?? "", Bundle.main.executablePath ?? ""]
    for program in programs where !program.isEmpty {
      var folder = URL(fileURLWithPath: program).deletingLastPathComponent()
      // A test bundle may be some folders deep.
      for _ in 0..<4 {
        let path = folder.appendingPathComponent(name).path
        var isFolder: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), !isFolder.boolValue {
          return path
        }
        folder.deleteLastPathComponent()
      }
    }
    throw ServerProcessFailure(
      description: "There is no \(name) command beside the tests: run swift build, or set WEIR_EXECUTABLE.")
  }
}

/// The server process did not do what it should.
public struct ServerProcessFailure: Error, Sendable, CustomStringConvertible {
  /// For people.
  public let description: String
}
