import CUV

/// Why a socket operation did not succeed.
package struct NetworkFault: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Operation: String, Hashable, Sendable {
    case startLoop, resolve, connect, listen, accept, adopt, read, write
  }

  /// What was tried.
  package var operation: Operation
  /// The system's error number, negative as libuv gives it; 0 if there is none.
  package var code: CInt

  package init(_ operation: Operation, code: CInt) {
    self.operation = operation
    self.code = code
  }

  /// A connection that took too long.
  package static var timeout: NetworkFault { NetworkFault(.connect, code: UV_ETIMEDOUT.rawValue) }

  /// A job for a loop that has stopped.
  package static var loopStopped: NetworkFault { NetworkFault(.startLoop, code: UV_ECANCELED.rawValue) }
  /// The connection was cut by the other side.
  package static var reset: NetworkFault { NetworkFault(.read, code: UV_ECONNRESET.rawValue) }
  /// Nobody listens there.
  package static var refused: NetworkFault { NetworkFault(.connect, code: UV_ECONNREFUSED.rawValue) }
  /// The owner gave up.
  package static var cancelled: NetworkFault { NetworkFault(.connect, code: UV_ECANCELED.rawValue) }
  /// A loop without sockets was asked for one.
  package static func notSupported(_ operation: Operation) -> NetworkFault {
    NetworkFault(operation, code: UV_ENOTSUP.rawValue)
  }

  /// The time given for the operation was over.
  package var isTimeout: Bool { code == UV_ETIMEDOUT.rawValue }
  /// The loop stopped, or the owner gave up.
  package var isCancelled: Bool { code == UV_ECANCELED.rawValue }
  /// Nobody listens there.
  package var isRefused: Bool { code == UV_ECONNREFUSED.rawValue }

  /// For people: `connect: connection refused`.
  package var description: String { "\(operation.rawValue): \(Self.text(code))" }

  /// The system's words for an error number.
  package static func text(_ code: CInt) -> String {
    guard code != 0, let text = uv_strerror(code) else { return "no error" }
    return String(cString: text)
  }
}
