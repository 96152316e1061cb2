import Stores

/// A call to PostgreSQL that did not succeed.
struct PostgresFailure: Error {
  enum Kind {
    /// The connection is gone or never came to be.
    case connection
    /// The server answered with an error.
    case server
    /// What was read breaks the layout.
    case corrupt
  }

  var kind: Kind
  /// SQLSTATE, five characters; empty when the server said nothing.
  var state = ""
  /// For people: the server's primary message or the table and row; never content.
  var detail: String
  /// What was written may or may not be durable.
  var outcomeUnknown = false

  static func corrupt(_ detail: String) -> PostgresFailure {
    PostgresFailure(kind: .corrupt, detail: detail)
  }

  static func connection(_ detail: String) -> PostgresFailure {
    PostgresFailure(kind: .connection, detail: detail)
  }

  /// The same transaction may go well when it is tried again: deadlock, serialization, a lock not got.
  var isTransient: Bool { ["40P01", "40001", "55P03"].contains(state) }

  /// Somebody else inserted the same key meanwhile; a second look finds it.
  var isRace: Bool { state == "23505" }

  /// The server is no place for writes any more, or is about to end the session: connect anew.
  var endsSession: Bool {
    kind == .connection || state == "25006" || state.hasPrefix("57P") || state.hasPrefix("08")
  }

  /// The same in the words of the port.
  var fault: StoreFault {
    switch kind {
    case .corrupt: .corrupt(detail: detail)
    case .connection: .unavailable(outcomeUnknown: outcomeUnknown, detail: detail)
    case .server where !outcomeUnknown && (state.hasPrefix("22") || state.hasPrefix("23")):
      .refused(detail: detail)
    case .server: .unavailable(outcomeUnknown: outcomeUnknown, detail: "\(detail) (\(state))")
    }
  }
}
