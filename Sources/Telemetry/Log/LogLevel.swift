/// How much a log line matters, and to whom.
///
/// The threshold is one of these; lines below it cost one load.
package enum LogLevel: UInt8, Sendable, CaseIterable, Comparable {
  /// Every step of one stream or message, for someone with a debugger's question. Never on in production.
  case trace = 0
  /// What a developer of the server wants when a test fails: state changes, refused input, retries.
  case debug = 1
  /// What an operator wants in the file a week later: start, stop, listeners, drains, keys made or revoked.
  case info = 2
  /// Something was given up or held back, and the server went on: a peer broke the protocol, a queue was full.
  case warning = 3
  /// A person must look: durability, a listener or a setting failed.
  case error = 4

  package static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }

  /// The name in settings and in both output forms.
  package var name: String {
    switch self {
    case .trace: "trace"
    case .debug: "debug"
    case .info: "info"
    case .warning: "warning"
    case .error: "error"
    }
  }

  /// Reads a setting; exactly the names above, in any case.
  package init?(name: String) {
    let wanted = name.lowercased()
    guard let level = Self.allCases.first(where: { $0.name == wanted }) else { return nil }
    self = level
  }
}
