/// Why a store call did not give its answer.
///
/// The caller keeps what it sent: nothing is lost by a fault.
package enum StoreFault: Error, Sendable, Equatable {
  /// The store cannot be reached or written now. With `outcomeUnknown` a write may have taken place; the
  /// same batch with the same numbers may be sent again without harm.
  case unavailable(outcomeUnknown: Bool, detail: String)
  /// What was read breaks the layout; `detail` names the table and the row, never its content.
  case corrupt(detail: String)
  /// The data directory was written by a newer version.
  case schemaTooNew(found: Int, known: Int)
  /// Another process holds the data directory.
  case locked(path: String)
  /// The request itself cannot be carried out, for instance a project id that exists.
  case refused(detail: String)
}

/// How a store answers: on a thread of its own choosing, exactly once.
package typealias Completion<Value> = @Sendable (Result<Value, StoreFault>) -> Void
