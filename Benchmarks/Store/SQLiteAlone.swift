import CSQLite
import Glibc
import Seams

/// What SQLite itself takes on this machine: rows of the size of a message with the same index, and nothing around it.
///
/// A reference for the store's figures: one connection, prepared statements, each batch one transaction that is synced
/// (`synchronous=FULL`, write-ahead log).
struct SQLiteAlone {
  /// Rows a transaction.
  var batch: Int
  var hasIndex: Bool
  var devices: Int64 = 2_000
  var seconds = 3

  struct Fault: Error, CustomStringConvertible {
    let description: String
  }

  /// - Parameter path: Of a database that is not there yet.
  /// - Returns: Rows a second.
  func run(at path: String) throws -> Double {
    var opened: OpaquePointer?
    guard
      sqlite3_open_v2(path, &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nil)
        == SQLITE_OK, let database = opened
    else { throw Fault(description: "opening \(path)") }
    defer { sqlite3_close_v2(database) }
    try execute(
      """
      PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -65536;
      CREATE TABLE message(id INTEGER PRIMARY KEY, device INTEGER NOT NULL, number INTEGER NOT NULL,
        expires INTEGER NOT NULL, app TEXT NOT NULL, body BLOB NOT NULL) STRICT;
      """, database)
    if hasIndex { try execute("CREATE UNIQUE INDEX message_place ON message(device, number)", database) }
    var prepared: OpaquePointer?
    let sql = "INSERT INTO message(device, number, expires, app, body) VALUES (?, ?, 0, 'org.example.app', ?)"
    sqlite3_prepare_v2(database, sql, -1, &prepared, nil)
    guard let insert = prepared else { throw Fault(description: String(cString: sqlite3_errmsg(database))) }
    defer { sqlite3_finalize(insert) }

    var chance = SeededChance(seed: 1)
    let body = [UInt8](repeating: 120, count: 600)
    let time = SystemTime()
    let start = time.moment
    let end = start + .seconds(seconds)
    var rows: Int64 = 0
    while time.moment < end {
      try execute("BEGIN IMMEDIATE", database)
      for _ in 0..<batch {
        rows += 1
        sqlite3_bind_int64(insert, 1, Int64.random(in: 1...devices, using: &chance))
        sqlite3_bind_int64(insert, 2, rows)
        let code = body.withUnsafeBytes { bytes in
          _ = shim_bind_blob_static(insert, 3, bytes.baseAddress, Int32(bytes.count))
          return sqlite3_step(insert)
        }
        sqlite3_reset(insert)
        guard code == SQLITE_DONE else { throw Fault(description: String(cString: sqlite3_errmsg(database))) }
      }
      try execute("COMMIT", database)
    }
    return Double(rows) / (Double((time.moment - start).ns) / 1e9)
  }

  private func execute(_ sql: String, _ database: OpaquePointer) throws {
    guard sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK else {
      throw Fault(description: String(cString: sqlite3_errmsg(database)))
    }
  }
}
