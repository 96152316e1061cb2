package import Stores

/// Reads a store that no server uses, to move it elsewhere.
package final class SQLiteExport {
  private let directory: DataDirectory
  private let connection: Connection

  /// Brings the file to the newest version and holds the directory against servers until ``close()``.
  ///
  /// - Parameter file: Path of the database file in its data directory.
  /// - Throws: As ``SQLiteStore/init(directory:options:)``; ``StoreFault/refused(detail:)`` when there is no such file.
  package init(file: String) throws(StoreFault) {
    let parts = file.split(separator: "/", omittingEmptySubsequences: false)
    let name = String(parts.last ?? "")
    let folder = parts.count > 1 ? parts.dropLast().joined(separator: "/") : "."
    directory = try DataDirectory(path: folder.isEmpty ? "/" : folder)
    do throws(SQLiteFailure) {
      connection = try Connection(path: file, fileSystem: nil, readOnly: false, cacheKiB: 65_536)
      guard try connection.number("SELECT count(*) FROM sqlite_schema") > 0 else {
        throw SQLiteFailure.corrupt("\(name) holds no store")
      }
    } catch {
      directory.unlock()
      throw error.fault
    }
    do throws(StoreFault) {
      _ = try Schema.prepare(connection)
    } catch {
      directory.unlock()
      throw error
    }
  }

  package func close() { directory.unlock() }

  /// Hands the rows of a table out in the order of writing, some at a time.
  package func rows(
    of table: MovedTable, atOnce: Int, _ take: ([[MovedValue]]) throws(StoreFault) -> Void
  ) throws(StoreFault) {
    var page: [[MovedValue]] = []
    do throws(SQLiteFailure) {
      let order = ["journal", "account_key", "message"].contains(table.name) ? " ORDER BY id" : ""
      let statement = try connection.prepare("SELECT \(table.columnList) FROM \(table.name)\(order)")
      while try statement.row() {
        page.append(
          table.columns.enumerated().map { index, column in
            let place = Int32(index)
            if statement.isNull(place) { return .none }
            switch column.kind {
            case .int, .flag: return .int(statement.int(place))
            case .text, .bytes, .key: return .bytes(statement.blob(place))
            }
          })
        guard page.count >= atOnce else { continue }
        do throws(StoreFault) { try take(page) } catch { throw SQLiteFailure.elsewhere(error) }
        page = []
      }
    } catch {
      throw error.elsewhere ?? error.fault
    }
    if !page.isEmpty { try take(page) }
  }
}

extension SQLiteFailure {
  /// Carries the fault of a caller's own work through a loop of reads.
  fileprivate static func elsewhere(_ fault: StoreFault) -> SQLiteFailure {
    var failure = SQLiteFailure(code: 0, detail: "\(fault)")
    failure.elsewhere = fault
    return failure
  }
}
