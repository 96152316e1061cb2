import CSQLite

/// A connection for reading, on its own thread; reads of one group see one moment of the database.
final class ReadConnection {
  let connection: Connection
  private let begin: Statement
  private let commit: Statement

  init(path: String, _ options: SQLiteStore.Options) throws(SQLiteFailure) {
    connection = try Connection(
      path: path, fileSystem: options.fileSystem, readOnly: true, cacheKiB: min(8_192, options.cacheKiB))
    begin = try connection.prepare("BEGIN")
    commit = try connection.prepare("COMMIT")
  }

  func start() throws(SQLiteFailure) { try begin.run() }

  /// Lets the moment go, also after a read that failed and ended the transaction by itself.
  func end() {
    guard sqlite3_get_autocommit(connection.pointer) == 0 else { return }
    do throws(SQLiteFailure) {
      try commit.run()
    } catch {
      try? connection.execute("ROLLBACK")
    }
  }
}

/// What lives on a reading thread.
protocol Reader: SendableMetatype {
  var link: ReadConnection { get }
}

/// Runs a group of reads; a failure is one job's own.
func serveReads<Context: Reader>(_ reader: Context, _ jobs: ArraySlice<Job<Context>>) {
  do throws(SQLiteFailure) {
    try reader.link.start()
  } catch {
    for job in jobs { job.fail(error.fault) }
    return
  }
  var answers: [@Sendable () -> Void] = []
  answers.reserveCapacity(jobs.count)
  for job in jobs {
    do throws(SQLiteFailure) {
      answers.append(try job.run(reader))
    } catch {
      let fault = error.fault
      answers.append { job.fail(fault) }
    }
  }
  reader.link.end()
  for answer in answers { answer() }
}
