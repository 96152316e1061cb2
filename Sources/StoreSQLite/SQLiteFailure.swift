import CSQLite
import Stores

/// A call into SQLite that did not succeed.
struct SQLiteFailure: Error {
  /// SQLite's extended result code.
  var code: Int32
  /// For people: SQLite's own words or the table and row; never content.
  var detail: String
  /// It came while committing, so what was written may or may not be durable.
  var committing = false
  /// What went wrong was not SQLite.
  var elsewhere: StoreFault?

  /// What was read breaks the layout.
  static func corrupt(_ detail: String) -> SQLiteFailure {
    SQLiteFailure(code: SQLITE_CORRUPT, detail: detail)
  }

  /// The same in the words of the port.
  var fault: StoreFault {
    switch code & 0xFF {
    case SQLITE_CORRUPT, SQLITE_NOTADB:
      .corrupt(detail: detail)
    case SQLITE_CONSTRAINT, SQLITE_TOOBIG, SQLITE_MISMATCH:
      .refused(detail: detail)
    default:
      .unavailable(outcomeUnknown: committing, detail: detail)
    }
  }
}
