package import Stores

/// Fills an empty database with what another store held, in one transaction.
package final class PostgresImport {
  private let session: Session

  /// Brings the tables to the newest version and begins.
  ///
  /// - Throws: ``StoreFault/refused(detail:)`` when something is stored there already.
  package init(_ address: PostgresAddress) throws(StoreFault) {
    _ = try Opening.open(address, name: "migration", lease: .zero, place: StorePlace(index: 0, count: 1))
    do throws(PostgresFailure) {
      session = try Session(address, Session.Role(name: "migrate", isPipelined: false))
      try session.execute("DELETE FROM node WHERE name = 'migration'")
      try session.execute("BEGIN")
      // What opening it has put there.
      try session.execute("DELETE FROM setting WHERE name IN ('store-place', 'message-hash-key')")
      for table in MovedTable.all {
        let rows = try session.ask("SELECT EXISTS (SELECT 1 FROM \(table.name))")
        guard !rows.bool(0, 0) else {
          throw PostgresFailure(
            kind: .server, state: "22023",
            detail: "the table \(table.name) is not empty; a store is moved into an empty database")
        }
      }
    } catch { throw error.fault }
  }

  package func add(_ rows: [[MovedValue]], to table: MovedTable) throws(StoreFault) {
    var parameters = Parameters()
    var arrays: [String] = []
    for (index, column) in table.columns.enumerated() {
      switch column.kind {
      case .int: parameters.ints(rows) { $0[index].int }
      case .flag: parameters.bools(rows) { $0[index].int == 1 }
      case .text: parameters.optionalTexts(rows) { $0[index].bytes }
      case .bytes: parameters.optionalBlobs(rows) { $0[index].bytes }
      case .key: parameters.keyBytes(rows) { $0[index].bytes ?? [] }
      }
      arrays.append("$\(index + 1)::\(column.kind.type)[]")
    }
    // What is moved is with no stream.
    let (more, values) = table.name == "message" ? (", live, writer", ", 0, 0") : ("", "")
    do throws(PostgresFailure) {
      _ = try session.ask(
        """
        INSERT INTO \(table.name)(\(table.columnList)\(more)) OVERRIDING SYSTEM VALUE
        SELECT u.*\(values) FROM unnest(\(arrays.joined(separator: ", "))) AS u
        """, parameters)
    } catch { throw error.fault }
  }

  /// Reads a table again, so that what arrived can be compared with what was sent.
  package func ledger(of table: MovedTable) throws(StoreFault) -> MovedLedger {
    var ledger = MovedLedger()
    do throws(PostgresFailure) {
      _ = try session.ask(
        "DECLARE moved BINARY NO SCROLL CURSOR FOR SELECT \(table.columnList) FROM \(table.name)")
      while true {
        let rows = try session.ask("FETCH 2000 FROM moved")
        if rows.count == 0 { break }
        for row in 0..<rows.count {
          ledger.add(
            table.columns.enumerated().map { index, column in
              let place = Int32(index)
              if rows.isNull(row, place) { return .none }
              switch column.kind {
              case .int, .flag: return .int(rows.int(row, place))
              case .text, .bytes, .key: return .bytes(rows.blob(row, place))
              }
            })
        }
      }
      try session.execute("CLOSE moved")
    } catch { throw error.fault }
    return ledger
  }

  /// Makes all of it durable; without this nothing stays.
  package func finish() throws(StoreFault) {
    do throws(PostgresFailure) {
      for table in MovedTable.all {
        guard let identity = table.identity else { continue }
        // Numbers with a slot count above it.
        let (sequence, shift) =
          ["device", "registration"].contains(table.name)
          ? ("'\(table.name)_number'", 10) : ("pg_get_serial_sequence('\(table.name)', '\(identity)')", 0)
        _ = try session.ask(
          """
          SELECT setval(\(sequence), (SELECT coalesce(max(\(identity)) >> \(shift), 0) + 1 FROM \(table.name)), false)
          """)
      }
      try session.execute("COMMIT")
      try session.execute("ANALYZE")
    } catch { throw error.fault }
  }
}

extension MovedValue {
  fileprivate var int: Int64? { if case .int(let number) = self { number } else { nil } }
  fileprivate var bytes: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }
}

extension MovedTable.Kind {
  fileprivate var type: String {
    switch self {
    case .int: "int8"
    case .flag: "bool"
    case .text: "text"
    case .bytes: "bytea"
    case .key: "uuid"
    }
  }
}
