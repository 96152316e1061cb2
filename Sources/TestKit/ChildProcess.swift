import CLinux
import Foundation

/// A program that runs beside the tests, with its output in files.
///
/// It is ended by its process id when the object goes, and by the system when this process ends.
package final class ChildProcess: Sendable {
  package struct Output: Sendable, CustomStringConvertible {
    package var text = ""
    package var exitCode: Int32?
    package var description: String { "\(text)\(exitCode.map { "(exit code \($0))" } ?? "(running)")" }
  }

  /// Standard output so far, and how the program ended: its exit code, or 128 and the signal's number.
  package let output = Watched(Output())
  package let processID: Int32
  private let errors: String

  /// Starts a program.
  ///
  /// - Parameters:
  ///   - environment: Added to the one of the tests.
  ///   - errors: File that gets its standard error, after what is there.
  package init(
    _ path: String, _ arguments: [String], environment: [String: String] = [:], in directory: String? = nil,
    errors: String
  ) throws {
    let started = try ProgramStart(
      path: path, arguments: arguments, environment: environment, directory: directory, errors: errors
    ).start()
    processID = started.processID
    self.errors = errors
    let output = output
    let thread = Thread { Self.follow(started, output) }
    thread.name = "program-output"
    thread.start()
  }

  /// Runs a program to its end.
  ///
  /// - Returns: Exit code and standard output.
  package static func run(
    _ path: String, _ arguments: [String], environment: [String: String] = [:], in directory: String? = nil,
    errors: String = "/dev/null", within time: Duration = .seconds(60)
  ) async throws -> (code: Int32, text: String) {
    try await ChildProcess(path, arguments, environment: environment, in: directory, errors: errors)
      .waitForExit(within: time)
  }

  /// Sends a signal; nothing when the program has ended.
  package func signal(_ number: Int32) {
    if output.current.exitCode == nil { kill(processID, number) }
  }

  /// Waits for the end.
  ///
  /// - Returns: Exit code and standard output.
  package func waitForExit(within time: Duration) async throws -> (code: Int32, text: String) {
    try await output.wait(for: "the end of process \(processID)", within: time) { output in
      output.exitCode.map { ($0, output.text) }
    }
  }

  /// What it wrote to standard error.
  package var errorText: String { (try? String(contentsOfFile: errors, encoding: .utf8)) ?? "" }

  deinit { signal(SIGKILL) }

  /// Takes what the program writes until it ends.
  ///
  /// The end of its output is not waited for: a child of its own may hold the other side.
  private static func follow(_ started: ProgramStart.Started, _ output: Watched<Output>) {
    defer {
      close(started.output)
      close(started.end)
    }
    var waited = [
      pollfd(fd: started.output, events: Int16(POLLIN), revents: 0),
      pollfd(fd: started.end, events: Int16(POLLIN), revents: 0),
    ]
    while waited[1].revents == 0 {
      poll(&waited, 2, -1)
      // A closed output is always ready: from then on only the end is of interest.
      if !drain(started.output, output) { waited[0].fd = -1 }
    }
    var status: Int32 = 0
    while waitpid(started.processID, &status, 0) < 0, errno == EINTR {}
    let ending = status & 0x7F
    output.update { $0.exitCode = ending == 0 ? (status >> 8) & 0xFF : 128 + ending }
  }

  /// - Returns: False when all was read and no more will come.
  private static func drain(_ descriptor: Int32, _ output: Watched<Output>) -> Bool {
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = read(descriptor, &buffer, buffer.count)
      guard count > 0 else { return count < 0 && (errno == EAGAIN || errno == EINTR) }
      let text = String(decoding: buffer[..<count], as: UTF8.self)
      output.update { $0.text += text }
    }
  }
}
