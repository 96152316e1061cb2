import Foundation

/// How a command ended.
package enum ExitCode: Int32, Sendable {
  case done = 0
  /// Some messages did not succeed.
  case someFailed = 1
  case wrongUsage = 2
  /// Cannot connect or log in.
  case cannotConnect = 3
}

/// A command of `weir`.
protocol Subcommand: Sendable {
  static var name: String { get }
  /// What stands behind the name in usage: `FILE.ndjson`, or nothing.
  static var operands: String { get }
  static var summary: String { get }
  static var flags: [Flag] { get }
  static var examples: [String] { get }
  static var positionalMax: Int { get }
  init(_ arguments: Arguments) throws(UsageFault)
  func run(_ console: Console) async throws -> ExitCode
}

extension Subcommand {
  static var operands: String { "" }
  static var positionalMax: Int { 0 }
}

/// A failure that has its exit code and its sentence.
struct CommandFault: Error, CustomStringConvertible {
  let code: ExitCode
  let description: String

  init(_ code: ExitCode, _ description: String) {
    self.code = code
    self.description = description
  }
}

/// Flags of every command.
enum CommonFlags {
  static let json = Flag("json", nil, "one JSON object a line on stdout, for machines")
  static let config = Flag("config", "FILE", "settings file, JSON5 (default weir.json, if it is there)")
  static let help = Flag("help", nil, "this text")
  static let all = [json, config, help]

  static let server = Flag("server", "HOST:PORT", "the server's XMPP port (default localhost:5235)")
  static let httpsServer = Flag("server", "HOST:PORT", "the server's HTTPS port (default localhost:8443)")
  static let admin = Flag("admin", "HOST:PORT", "the server's admin port (default localhost:8080)")
  static let credentials = Flag(
    "credentials", "DIR", "folder with keys and ca.pem (default ./weir-data/credentials)")
}
