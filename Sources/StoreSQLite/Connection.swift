import CSQLite
import Glibc

/// One SQLite connection.
///
/// It is opened, used and closed on one thread, hence without SQLite's own mutex and not `Sendable`.
final class Connection {
  let pointer: OpaquePointer

  /// - Parameters:
  ///   - fileSystem: A registered one in place of the default.
  ///   - readOnly: Refuses changes by statements; checkpoints are still allowed.
  ///   - cacheKiB: Bound of the page cache.
  init(
    path: String, fileSystem: String?, readOnly: Bool, cacheKiB: Int
  ) throws(SQLiteFailure) {
    var opened: OpaquePointer?
    let flags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    let code = sqlite3_open_v2(path, &opened, flags, fileSystem)
    guard code == SQLITE_OK, let opened else {
      let detail = opened.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory"
      sqlite3_close_v2(opened)
      throw SQLiteFailure(code: code, detail: "opening: \(detail)")
    }
    pointer = opened
    // Another connection of this process holds a lock for moments only (WAL restart, recovery at open).
    sqlite3_busy_timeout(pointer, 5_000)
    try execute("PRAGMA cache_size = \(-cacheKiB)")
    try execute("PRAGMA temp_store = MEMORY")
    // No mmap: an unreadable page then is an error code, where a mapped one would be SIGBUS.
    try execute("PRAGMA mmap_size = 0")
    // FULL: in WAL mode each commit is synced before it returns.
    try execute("PRAGMA synchronous = FULL")
    if readOnly { try execute("PRAGMA query_only = 1") }
  }

  deinit { sqlite3_close_v2(pointer) }

  /// Runs statements that give no rows.
  func execute(_ sql: String) throws(SQLiteFailure) {
    let code = sqlite3_exec(pointer, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw failure(code) }
  }

  /// A statement for the connection's whole life.
  func prepare(_ sql: String) throws(SQLiteFailure) -> Statement {
    var statement: OpaquePointer?
    let code = sqlite3_prepare_v3(
      pointer, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
    guard code == SQLITE_OK, let statement else { throw failure(code) }
    return Statement(statement, of: self)
  }

  /// The first column of the only row.
  func number(_ sql: String) throws(SQLiteFailure) -> Int64 {
    let statement = try prepare(sql)
    defer { statement.reset() }
    return try statement.row() ? statement.int(0) : 0
  }

  /// Rows that the last finished INSERT, UPDATE or DELETE touched.
  var changes: Int { Int(sqlite3_changes(pointer)) }

  var lastInsertedID: Int64 { sqlite3_last_insert_rowid(pointer) }

  func failure(_ code: Int32) -> SQLiteFailure {
    SQLiteFailure(code: code, detail: String(cString: sqlite3_errmsg(pointer)))
  }
}

/// A prepared statement; belongs to its connection's thread.
final class Statement {
  let pointer: OpaquePointer
  private let connection: Connection

  init(_ pointer: OpaquePointer, of connection: Connection) {
    self.pointer = pointer
    self.connection = connection
  }

  deinit { sqlite3_finalize(pointer) }

  // Binding fails for a wrong index or type alone, which every test of the statement would show.

  func bind(_ index: Int32, _ value: Int64) { sqlite3_bind_int64(pointer, index, value) }

  func bind(_ index: Int32, _ value: Int64?) {
    if let value { bind(index, value) } else { sqlite3_bind_null(pointer, index) }
  }

  /// Copies the text.
  func bind(_ index: Int32, text: String?) {
    guard var text else {
      sqlite3_bind_null(pointer, index)
      return
    }
    text.withUTF8 { utf8 in
      withBytes(UnsafeRawBufferPointer(utf8)) { start, count in
        _ = shim_bind_text_transient(pointer, index, start.assumingMemoryBound(to: CChar.self), count)
      }
    }
  }

  /// Copies the bytes.
  func bind(_ index: Int32, blob: [UInt8]) {
    blob.withUnsafeBytes { bytes in
      withBytes(bytes) { start, count in _ = shim_bind_blob_transient(pointer, index, start, count) }
    }
  }

  /// Points SQLite at text that stays in place until the statement has been stepped.
  func bindInPlace(_ index: Int32, text: UnsafeBufferPointer<UInt8>?) {
    guard let text else {
      sqlite3_bind_null(pointer, index)
      return
    }
    withBytes(UnsafeRawBufferPointer(text)) { start, count in
      _ = shim_bind_text_static(pointer, index, start.assumingMemoryBound(to: CChar.self), count)
    }
  }

  /// Points SQLite at bytes that stay in place until the statement has been stepped.
  func bindInPlace(_ index: Int32, blob: UnsafeRawBufferPointer) {
    withBytes(blob) { start, count in _ = shim_bind_blob_static(pointer, index, start, count) }
  }

  /// SQLite takes a null pointer for NULL, so empty bytes get an address too.
  private func withBytes(_ bytes: UnsafeRawBufferPointer, _ use: (UnsafeRawPointer, Int32) -> Void) {
    if let start = bytes.baseAddress {
      use(start, Int32(clamping: bytes.count))
    } else {
      withUnsafeBytes(of: UInt8(0)) { zero in
        if let start = zero.baseAddress { use(start, 0) }
      }
    }
  }

  /// Steps once.
  ///
  /// True: a row is there to be read. False: done, and reset.
  func row() throws(SQLiteFailure) -> Bool {
    try check(sqlite3_step(pointer))
  }

  /// As ``row()`` for a step that was taken already.
  func check(_ code: Int32) throws(SQLiteFailure) -> Bool {
    if code == SQLITE_ROW { return true }
    let failure = code == SQLITE_DONE ? nil : connection.failure(code)
    sqlite3_reset(pointer)
    if let failure { throw failure }
    return false
  }

  /// Steps a statement that gives no rows.
  func run() throws(SQLiteFailure) {
    while try row() {}
  }

  func reset() { sqlite3_reset(pointer) }

  func int(_ column: Int32) -> Int64 { sqlite3_column_int64(pointer, column) }

  func isNull(_ column: Int32) -> Bool { sqlite3_column_type(pointer, column) == SQLITE_NULL }

  /// NULL reads as empty.
  func text(_ column: Int32) -> String {
    String(decoding: blob(column), as: UTF8.self)
  }

  func optionalText(_ column: Int32) -> String? { isNull(column) ? nil : text(column) }

  /// NULL reads as empty.
  func blob(_ column: Int32) -> [UInt8] {
    guard let start = sqlite3_column_blob(pointer, column) else { return [] }
    return [UInt8](UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(pointer, column))))
  }

  /// Looks at a blob without copying it; `use` must not keep it.
  func withBlob<Value>(_ column: Int32, _ use: (UnsafeRawBufferPointer) -> Value) -> Value {
    let start = sqlite3_column_blob(pointer, column)
    return use(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(pointer, column))))
  }
}
