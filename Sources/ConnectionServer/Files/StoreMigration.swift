import StorePostgres
import StoreSQLite
import Stores

/// Moves everything from an embedded store into an empty PostgreSQL, and compares both ends before it counts.
package struct StoreMigration: Sendable {
  /// One table's line.
  package struct Line: Sendable {
    package var table: String
    package var rows: Int
    /// A sum over all rows, the same on both sides.
    package var sum: UInt64
  }

  /// Rows that go over together.
  private static let rowsAtOnce = 1_000

  private let file: String
  private let url: String

  package init(from file: String, to url: String) {
    self.file = file
    self.url = url
  }

  /// Runs to the end or leaves the target as it was.
  ///
  /// - Parameter told: Called for each table that has arrived and was compared.
  /// - Throws: ``ServerFault`` saying what to do.
  package func run(_ told: (Line) -> Void) throws -> [Line] {
    var configuration = ServerConfiguration()
    configuration.dataDirectory = file
    let source: SQLiteExport
    do { source = try SQLiteExport(file: file) } catch { throw ServerFault(error, configuration) }
    defer { source.close() }
    configuration.store = url
    do {
      let target = try PostgresImport(try PostgresAddress(url))
      var lines: [Line] = []
      var renumbering = MovedRenumbering()
      for table in MovedTable.all {
        var sent = MovedLedger()
        try source.rows(of: table, atOnce: Self.rowsAtOnce) { rows throws(StoreFault) in
          let rows = try rows.map { row throws(StoreFault) in try renumbering.renumbered(row, of: table) }
          for row in rows { sent.add(row) }
          try target.add(rows, to: table)
        }
        let arrived = try target.ledger(of: table)
        guard arrived == sent else {
          throw ServerFault(
            "The table \(table.name) arrived with \(arrived.rows) rows (sum \(arrived.sum)) instead of \(sent.rows) (sum \(sent.sum)). Nothing was kept."
          )
        }
        let line = Line(table: table.name, rows: sent.rows, sum: sent.sum)
        told(line)
        lines.append(line)
      }
      try target.finish()
      return lines
    } catch { throw ServerFault(error, configuration) }
  }
}
