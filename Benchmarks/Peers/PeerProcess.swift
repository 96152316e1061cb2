import Foundation
import Glibc

/// A server as a process of its own in a folder of its own, so that it can be measured, killed and started again.
final class PeerProcess {
  let directory: String
  private let executable: String
  private let arguments: [String]
  private let environment: [String: String]
  private var process = Process()

  init(_ executable: String, _ arguments: [String], environment: [String: String] = [:], in directory: String)
  {
    self.executable = executable
    self.arguments = arguments
    self.environment = environment
    self.directory = directory
  }

  /// - Returns: What it prints, for those that tell something.
  @discardableResult
  func start() throws -> Pipe {
    process = Process()
    process.executableURL = URL(fileURLWithPath: executable)
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.currentDirectoryURL = URL(fileURLWithPath: directory)
    process.standardInput = FileHandle.nullDevice
    let output = Pipe()
    process.standardOutput = output
    let log = directory + "/output"
    _ = FileManager.default.createFile(atPath: log, contents: nil)
    process.standardError = FileHandle(forWritingAtPath: log)
    try process.run()
    return output
  }

  func kill9() {
    kill(process.processIdentifier, SIGKILL)
    process.waitUntilExit()
  }

  func stop() {
    guard process.isRunning else { return }
    process.terminate()
    let deadline = ContinuousClock.now + .seconds(15)
    while process.isRunning, ContinuousClock.now < deadline { usleep(10_000) }
    if process.isRunning { kill9() }
  }

  var isRunning: Bool { process.isRunning }

  /// Processor time used so far, of all threads, in microseconds.
  var cpuMicroseconds: Double {
    guard let text = try? String(contentsOfFile: "/proc/\(process.processIdentifier)/stat", encoding: .utf8),
      let end = text.lastIndex(of: ")")
    else { return 0 }
    let fields = text[text.index(after: end)...].split(separator: " ")
    let ticks = (Double(fields[11]) ?? 0) + (Double(fields[12]) ?? 0)
    return ticks * 1_000_000 / Double(sysconf(Int32(_SC_CLK_TCK)))
  }

  /// Resident memory in KiB.
  var residentKiB: Double {
    let text =
      (try? String(contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)) ?? ""
    let line = text.split(separator: "\n").first { $0.hasPrefix("VmRSS:") } ?? ""
    return line.split(separator: " ").compactMap { Double($0) }.first ?? 0
  }

  /// Waits until the port takes connections.
  func wait(forPort port: UInt16) throws {
    let deadline = ContinuousClock.now + .seconds(180)
    while ContinuousClock.now < deadline {
      guard isRunning else { throw PeerFault("\(executable) ended: \(tail)") }
      if Self.takesConnections(port) { return }
      usleep(20_000)
    }
    throw PeerFault("\(executable) does not listen on port \(port) after 180 s: \(tail)")
  }

  /// What it last said, for the message.
  private var tail: String {
    String((try? String(contentsOfFile: directory + "/output", encoding: .utf8))?.suffix(500) ?? "")
  }

  private static func takesConnections(_ port: UInt16) -> Bool {
    let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }

  /// A port that nobody uses now.
  static func freePort() -> UInt16 {
    let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    return withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        _ = bind(descriptor, $0, size)
        _ = getsockname(descriptor, $0, &size)
      }
      return UInt16(bigEndian: pointer.pointee.sin_port)
    }
  }
}
