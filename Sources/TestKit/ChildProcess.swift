import Foundation
import Synchronization

/// A program that runs beside the tests, with its output in files.
///
/// It is ended by its process id when the object goes.
package final class ChildProcess: Sendable {
  package struct Output: Sendable, CustomStringConvertible {
    package var text = ""
    package var exitCode: Int32?
    package var description: String { "\(text)\(exitCode.map { "(exit code \($0))" } ?? "(running)")" }
  }

  private let process: Mutex<Process>
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
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    if let directory { process.currentDirectoryURL = URL(fileURLWithPath: directory) }
    process.standardInput = FileHandle.nullDevice
    if !FileManager.default.fileExists(atPath: errors) {
      _ = FileManager.default.createFile(atPath: errors, contents: nil)
    }
    let errorFile = try FileHandle(forWritingTo: URL(fileURLWithPath: errors))
    try errorFile.seekToEnd()
    process.standardError = errorFile
    let pipe = Pipe()
    process.standardOutput = pipe
    let source = OutputSource(pipe.fileHandleForReading, output)
    pipe.fileHandleForReading.readabilityHandler = { _ in source.drain() }
    process.terminationHandler = { process in
      // The end of the pipe is not waited for: another child may have inherited its other side.
      source.drain()
      let code = process.terminationStatus
      source.exited(process.terminationReason == .uncaughtSignal ? 128 + code : code)
    }
    try process.run()
    try errorFile.close()
    processID = process.processIdentifier
    self.errors = errors
    self.process = Mutex(process)
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

  /// Takes what the program wrote.
  private final class OutputSource: Sendable {
    private let handle: FileHandle
    private let output: Watched<Output>
    private let lock = Mutex(())

    init(_ handle: FileHandle, _ output: Watched<Output>) {
      self.handle = handle
      self.output = output
      let descriptor = handle.fileDescriptor
      _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }

    /// Reads until nothing is left.
    func drain() {
      lock.withLock { _ in
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
          let count = read(handle.fileDescriptor, &buffer, buffer.count)
          guard count > 0 else {
            if count == 0 { handle.readabilityHandler = nil }
            return
          }
          let text = String(decoding: buffer[..<count], as: UTF8.self)
          output.update { $0.text += text }
        }
      }
    }

    func exited(_ code: Int32) { output.update { $0.exitCode = code } }
  }
}
