import Foundation
import Glibc
import TestKit

/// A server as a process of its own in a folder of its own, so that it can be measured, killed and started again; it ends
/// with this program.
final class PeerProcess {
  let directory: String
  private let executable: String
  private let arguments: [String]
  private let environment: [String: String]
  private var child: ChildProcess?

  init(_ executable: String, _ arguments: [String], environment: [String: String] = [:], in directory: String)
  {
    self.executable = executable
    self.arguments = arguments
    self.environment = environment
    self.directory = directory
  }

  /// - Returns: The program, for those that tell something.
  @discardableResult
  func start() throws -> ChildProcess {
    let started = try ChildProcess(
      executable, arguments, environment: environment, in: directory, errors: directory + "/output")
    child = started
    return started
  }

  func kill9() {
    child?.signal(SIGKILL)
    _ = child?.blockUntilEnd(within: .seconds(15))
  }

  func stop() { child?.end(within: .seconds(15)) }

  var isRunning: Bool { child?.isRunning ?? false }

  /// Processor time used so far, of all threads, in microseconds.
  var cpuMicroseconds: Double { child.map { ProcessUse.microseconds(of: $0.processID) } ?? 0 }

  /// Resident memory in KiB.
  var residentKiB: Double { child.map { Double(ProcessUse.residentKiB(of: $0.processID)) } ?? 0 }

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
