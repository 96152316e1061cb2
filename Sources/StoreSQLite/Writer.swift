import CSQLite
import PushModel
import Seams
import Stores

/// The one connection that changes the database, on its own thread.
///
/// Jobs come in groups; a group is one transaction, and is answered when that is durable (group commit).
final class Writer {
  struct Lease {
    var node: Int
    var until: WallTime
  }

  let connection: Connection
  let limits: StoreLimits
  let incarnation: Int64
  let statements: WriterStatements
  var shelves: ShelfCache

  /// In memory alone: a lease ends with the process, and so granting one costs no write.
  var leases: [WriteBatch.UpstreamSettlement: Lease] = [:]
  /// Leases whose rows go with the transaction that is open.
  var endedLeases: [WriteBatch.UpstreamSettlement] = []
  /// Ends of fan-out messages in the transaction that is open, to be added to their jobs.
  var shareEnds: [MessageNumber: FanoutCounts] = [:]
  let targets: TargetStatements
  /// What the writer reads of its own tables.
  let targetReads: TargetReads

  private let checkpoints: CheckpointPlan
  /// Pages in the write-ahead log after the last commit; SQLite's hook writes it during a commit.
  private let logPages: UnsafeMutablePointer<Int32>
  /// Log size from which the writer copies the rest of the log itself.
  private var ownCheckpointAt: Int

  init(
    path: String, options: SQLiteStore.Options, checkpoints: CheckpointPlan,
    opened: (Int64) -> Void
  ) throws(StoreFault) {
    do throws(SQLiteFailure) {
      connection = try Connection(
        path: path, fileSystem: options.fileSystem, readOnly: false, cacheKiB: options.cacheKiB)
    } catch { throw error.fault }
    incarnation = try Schema.prepare(connection)
    do throws(SQLiteFailure) {
      statements = try WriterStatements(connection)
      targets = try TargetStatements(connection)
      targetReads = try TargetReads(connection)
      try connection.execute("PRAGMA journal_size_limit = \(64 << 20)")
    } catch { throw error.fault }
    limits = options.limits
    shelves = ShelfCache(max: options.cachedDevicesMax)
    self.checkpoints = checkpoints
    ownCheckpointAt = checkpoints.ownFromPages
    logPages = .allocate(capacity: 1)
    logPages.initialize(to: 0)
    // Takes the place of SQLite's automatic checkpoint.
    sqlite3_wal_hook(connection.pointer, noteLogPages, logPages)
    opened(incarnation)
  }

  deinit {
    sqlite3_wal_hook(connection.pointer, nil, nil)
    logPages.deallocate()
  }

  // MARK: Groups

  func serve(_ jobs: ArraySlice<Job<Writer>>) {
    do throws(SQLiteFailure) {
      let answers = try transaction(jobs)
      for answer in answers { answer() }
    } catch {
      if jobs.count > 1, !error.committing {
        // One of them brought the group down (a full disk, a bad value): it must not take the others along.
        for job in jobs { serve([job]) }
      } else {
        for job in jobs { job.fail(error.fault) }
      }
    }
    checkpoint()
  }

  private func transaction(
    _ jobs: ArraySlice<Job<Writer>>
  ) throws(SQLiteFailure) -> [@Sendable () -> Void] {
    do throws(SQLiteFailure) {
      try statements.begin.run()
      var answers: [@Sendable () -> Void] = []
      answers.reserveCapacity(jobs.count)
      for job in jobs { answers.append(try job.run(self)) }
      if !shareEnds.isEmpty { try saveShareEnds() }
      do throws(SQLiteFailure) {
        try statements.commit.run()
      } catch {
        throw SQLiteFailure(code: error.code, detail: error.detail, committing: true)
      }
      for lease in endedLeases { leases[lease] = nil }
      endedLeases.removeAll(keepingCapacity: true)
      return answers
    } catch {
      rollBack()
      throw error
    }
  }

  /// Back to what the last commit left.
  ///
  /// What was remembered may be from the lost transaction.
  private func rollBack() {
    // Some failures (full disk, I/O) have rolled back already; there is nothing to do then.
    if sqlite3_get_autocommit(connection.pointer) == 0 {
      try? connection.execute("ROLLBACK")
    }
    shelves.removeAll()
    shareEnds.removeAll()
    endedLeases.removeAll(keepingCapacity: true)
  }

  // MARK: Checkpoints

  /// Keeps the log short without stalling the hot path: at `backgroundFromPages` another thread copies it
  /// into the database while commits go on.
  ///
  /// Under unbroken load that copy never quite catches up, so the log could not start over; from
  /// `ownFromPages` on the writer copies the small rest between two groups.
  private func checkpoint() {
    let pages = Int(logPages.pointee)
    guard pages >= checkpoints.backgroundFromPages else {
      ownCheckpointAt = checkpoints.ownFromPages
      return
    }
    checkpoints.requestBackground()
    guard pages >= ownCheckpointAt else { return }
    // Busy when the other thread is at it just now, incomplete when a reader still needs the log.
    sqlite3_wal_checkpoint_v2(connection.pointer, nil, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
    ownCheckpointAt = pages + checkpoints.backgroundFromPages
  }
}

private func noteLogPages(
  _ place: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _ name: UnsafePointer<CChar>?,
  _ pages: Int32
) -> Int32 {
  place?.assumingMemoryBound(to: Int32.self).pointee = pages
  return SQLITE_OK
}
