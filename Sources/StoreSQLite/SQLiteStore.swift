package import Stores
import Synchronization

/// The ``Store`` of one process: a SQLite database in a data directory.
///
/// One thread writes, with group commit: whatever was submitted while the last transaction was being synced
/// makes up the next one. Two threads read, one for what somebody waits for and one for what may scan.
/// Answers come on these threads, so a completion must be short. What an answer says is durable
/// (`synchronous=FULL`, write-ahead log) and seen by every read submitted after it.
package final class SQLiteStore: Store {
  package struct Options: Sendable {
    package var limits: StoreLimits
    package var fileName = "weir.sqlite"
    /// Writes that may wait; further ones are answered ``StoreFault/unavailable(outcomeUnknown:detail:)``.
    package var writesWaitingMax = 4_096
    /// Reads that may wait on either reading thread.
    package var readsWaitingMax = 65_536
    /// When claims and releases of streams alone are to be written, so much lies between two transactions: a device
    /// that logs in among thousands shares one with others.
    package var claimsWait = Duration.milliseconds(5)
    /// Devices whose counts the writer remembers, at some 200 bytes each.
    package var cachedDevicesMax = 65_536
    /// Page cache of the writer.
    package var cacheKiB = 65_536
    /// Log size in pages of 4 KiB from which it is copied into the database in the background.
    package var checkpointPages = 4_096
    /// A registered SQLite file system in place of the default one; for tests.
    package var fileSystem: String?

    package init(limits: StoreLimits = StoreLimits()) { self.limits = limits }
  }

  private let directory: DataDirectory
  private let writer: WorkThread<Writer>
  private let quick: WorkThread<QuickReader>
  private let slow: WorkThread<SlowReader>

  private enum Life: Sendable {
    case open
    /// Who waits for the end.
    case closing([@Sendable () -> Void])
    case closed
  }
  private let life = Mutex(Life.open)

  /// Opens or makes the database; waits for the disk.
  ///
  /// ``close(_:)`` must be called: until then its threads keep the store and the lock.
  /// - Throws: ``StoreFault/locked(path:)``, ``StoreFault/schemaTooNew(found:known:)``,
  ///   ``StoreFault/corrupt(detail:)`` or ``StoreFault/unavailable(outcomeUnknown:detail:)``.
  package init(directory path: String, options: Options = Options()) throws(StoreFault) {
    let directory = try DataDirectory(path: path)
    do throws(StoreFault) {
      let file = try directory.prepareFile(options.fileName)
      let plan = CheckpointPlan(backgroundFromPages: options.checkpointPages)
      let incarnation = Incarnation()
      writer = try WorkThread(
        name: "store-write", queueMax: options.writesWaitingMax, batchMax: .max,
        patience: options.claimsWait,
        make: { () throws(StoreFault) in
          try Writer(path: file, options: options, checkpoints: plan) { incarnation.set($0) }
        },
        serve: { $0.serve($1) })
      let number = incarnation.value
      do throws(StoreFault) {
        quick = try WorkThread(
          name: "store-read", queueMax: options.readsWaitingMax, batchMax: 64,
          make: { () throws(StoreFault) in
            do throws(SQLiteFailure) {
              return try QuickReader(path: file, options, incarnation: number)
            } catch { throw error.fault }
          },
          serve: { serveReads($0, $1) })
        do throws(StoreFault) {
          slow = try WorkThread(
            name: "store-scan", queueMax: options.readsWaitingMax, batchMax: 1,
            make: { () throws(StoreFault) in
              do throws(SQLiteFailure) {
                return try SlowReader(path: file, options, incarnation: number)
              } catch { throw error.fault }
            },
            serve: { serveReads($0, $1) })
        } catch {
          quick.close {}
          throw error
        }
      } catch {
        writer.close {}
        throw error
      }
      self.directory = directory
      plan.runBackground { [slow] in
        let job = Job<SlowReader>(
          run: { reader in
            reader.checkpoint()
            return { plan.backgroundEnded() }
          },
          fail: { _ in plan.backgroundEnded() })
        slow.submit(job)
      }
    } catch {
      directory.unlock()
      throw error
    }
  }

  /// Carries the incarnation from the writer's thread to the opener's.
  private final class Incarnation: Sendable {
    private let number = Mutex<Int64>(0)
    func set(_ value: Int64) { number.withLock { $0 = value } }
    var value: Int64 { number.withLock { $0 } }
  }

  package func close(_ done: @escaping @Sendable () -> Void) {
    let (isFirst, isOver) = life.withLock { life in
      switch life {
      case .open:
        life = .closing([done])
        return (true, false)
      case .closing(let waiting):
        life = .closing(waiting + [done])
        return (false, false)
      case .closed:
        return (false, true)
      }
    }
    if isOver { done() }
    guard isFirst else { return }
    // Readers first: a sweep goes on from a reader to the writer. The last connection to close copies the
    // log into the database and removes it.
    slow.close { [self] in
      quick.close { [self] in
        writer.close { [self] in
          directory.unlock()
          let waiting = life.withLock { life -> [@Sendable () -> Void] in
            guard case .closing(let waiting) = life else { return [] }
            life = .closed
            return waiting
          }
          for done in waiting { done() }
        }
      }
    }
  }

  // MARK: Handing work to threads

  private var isOpen: Bool {
    life.withLock { if case .open = $0 { true } else { false } }
  }

  /// Turns work and its completion into a job for one of the threads.
  private func submit<Context, Value: Sendable>(
    to thread: WorkThread<Context>, isFollowUp: Bool = false, isPatient: Bool = false,
    _ done: @escaping Completion<Value>,
    _ work: @escaping @Sendable (Context) throws(SQLiteFailure) -> Result<Value, StoreFault>
  ) {
    guard isFollowUp || isOpen else {
      done(.failure(.unavailable(outcomeUnknown: false, detail: "the store is closed")))
      return
    }
    let job = Job<Context>(
      run: { context throws(SQLiteFailure) in
        let result = try work(context)
        return { done(result) }
      },
      fail: { done(.failure($0)) }, isPatient: isPatient)
    thread.submit(job, isFollowUp: isFollowUp)
  }

  func onWriter<Value: Sendable>(
    isFollowUp: Bool = false, isPatient: Bool = false, _ done: @escaping Completion<Value>,
    _ work: @escaping @Sendable (Writer) throws(SQLiteFailure) -> Result<Value, StoreFault>
  ) {
    submit(to: writer, isFollowUp: isFollowUp, isPatient: isPatient, done, work)
  }

  func onQuick<Value: Sendable>(
    _ done: @escaping Completion<Value>,
    _ work: @escaping @Sendable (QuickReader) throws(SQLiteFailure) -> Value
  ) {
    submit(to: quick, done) { reader throws(SQLiteFailure) in .success(try work(reader)) }
  }

  func onSlow<Value: Sendable>(
    _ done: @escaping Completion<Value>,
    _ work: @escaping @Sendable (SlowReader) throws(SQLiteFailure) -> Value
  ) {
    submit(to: slow, done) { reader throws(SQLiteFailure) in .success(try work(reader)) }
  }

  /// Pages of 4 KiB that hold something; for measurements.
  package func pagesUsed() async throws(StoreFault) -> Int {
    let result = await withCheckedContinuation { continuation in
      onWriter({ (result: Result<Int, StoreFault>) in continuation.resume(returning: result) }) {
        writer throws(SQLiteFailure) in
        let all = try writer.connection.number("PRAGMA page_count")
        return .success(Int(all - (try writer.connection.number("PRAGMA freelist_count"))))
      }
    }
    return try result.get()
  }

  /// Limits the database to so many pages of 4 KiB, as a full disk would; nil lifts the limit.
  ///
  /// For tests.
  package func limitPages(_ pages: Int?) async throws(StoreFault) {
    let result = await withCheckedContinuation { continuation in
      onWriter({ (result: Result<Void, StoreFault>) in continuation.resume(returning: result) }) {
        writer throws(SQLiteFailure) in
        // A limit below what is there counts as what is there.
        try writer.connection.execute("PRAGMA max_page_count = \(pages ?? 4_294_967_294)")
        return .success(())
      }
    }
    try result.get()
  }
}
