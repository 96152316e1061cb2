import CSQLite

/// Why an app's data cannot be read or written.
package struct AppStoreFault: Error, Sendable, Hashable, CustomStringConvertible {
  package var code: Int32
  package var description: String

  package init(code: Int32 = 0, _ description: String) {
    self.code = code
    self.description = description
  }
}

/// The SQLite file of one app: a single connection, which its owner guards.
final class Database {
  private let pointer: OpaquePointer
  private var statements: [String: OpaquePointer] = [:]

  /// A value of a row or for one.
  enum Value: Equatable {
    case null
    case number(Int64)
    case text(String)

    var text: String? {
      guard case .text(let text) = self else { return nil }
      return text
    }

    var number: Int64? {
      guard case .number(let number) = self else { return nil }
      return number
    }
  }

  init(path: String) throws(AppStoreFault) {
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
    let code = sqlite3_open_v2(path, &opened, flags, nil)
    guard code == SQLITE_OK, let opened else {
      sqlite3_close_v2(opened)
      throw AppStoreFault(code: code, "\(path) cannot be opened")
    }
    pointer = opened
    // Held from the first write to the end of the process: the data belongs to one process at a time.
    try run("PRAGMA locking_mode = EXCLUSIVE")
    try run("PRAGMA journal_mode = WAL")
    try run("PRAGMA synchronous = FULL")
    // A few hundred rows; the default would allow two megabytes.
    try run("PRAGMA cache_size = -128")
    try run("PRAGMA mmap_size = 0")
  }

  deinit {
    for statement in statements.values { sqlite3_finalize(statement) }
    sqlite3_close_v2(pointer)
  }

  /// Runs one statement and gives its rows.
  @discardableResult
  func run(_ sql: String, _ values: Value...) throws(AppStoreFault) -> [[Value]] {
    let statement = try prepared(sql)
    defer {
      sqlite3_reset(statement)
      sqlite3_clear_bindings(statement)
    }
    for (index, value) in values.enumerated() {
      let place = Int32(index + 1)
      switch value {
      case .null: sqlite3_bind_null(statement, place)
      case .number(let number): sqlite3_bind_int64(statement, place, number)
      case .text(let text): _ = shim_bind_text_transient(statement, place, text, Int32(text.utf8.count))
      }
    }
    var rows: [[Value]] = []
    while true {
      switch sqlite3_step(statement) {
      case SQLITE_ROW:
        rows.append(
          (0..<sqlite3_column_count(statement)).map { column in
            switch sqlite3_column_type(statement, column) {
            case SQLITE_INTEGER: .number(sqlite3_column_int64(statement, column))
            case SQLITE_NULL: .null
            default: .text(sqlite3_column_text(statement, column).map { String(cString: $0) } ?? "")
            }
          })
      case SQLITE_DONE: return rows
      case let code: throw failure(code)
      }
    }
  }

  /// Runs `body` as one unit: after a kill all of it is there, or nothing.
  func transaction<Result>(
    _ body: () throws(AppStoreFault) -> Result
  ) throws(AppStoreFault) -> Result {
    try run("BEGIN IMMEDIATE")
    do throws(AppStoreFault) {
      let result = try body()
      try run("COMMIT")
      return result
    } catch {
      _ = try? run("ROLLBACK")
      throw error
    }
  }

  private func prepared(_ sql: String) throws(AppStoreFault) -> OpaquePointer {
    if let statement = statements[sql] { return statement }
    var statement: OpaquePointer?
    let code = sqlite3_prepare_v2(pointer, sql, -1, &statement, nil)
    guard code == SQLITE_OK, let statement else { throw failure(code) }
    statements[sql] = statement
    return statement
  }

  private func failure(_ code: Int32) -> AppStoreFault {
    if code & 0xFF == SQLITE_BUSY {
      return AppStoreFault(code: code, "the app's data is used by another process")
    }
    return AppStoreFault(code: code, String(cString: sqlite3_errmsg(pointer)))
  }
}
