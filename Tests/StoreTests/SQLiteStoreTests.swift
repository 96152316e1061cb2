import CFaultVFS
import CSQLite
import Foundation
import PushModel
import Seams
import StoreConformance
import Stores
import Synchronization
import Testing

@testable import StoreSQLite

@Suite struct SQLiteStoreTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func open(_ options: SQLiteStore.Options = .init()) throws -> SQLiteStore {
    try SQLiteStore(directory: scratch.path, options: options)
  }

  private func stage(_ store: SQLiteStore) -> Stage {
    let subject = StoreUnderTest(
      store: store, crash: { throw StoreFault.refused(detail: "not here") }, failWrites: { _ in })
    return Stage(subject, limits: StoreLimits())
  }

  private func execute(_ sql: String) {
    var database: OpaquePointer?
    #expect(sqlite3_open(scratch.file("weir.sqlite"), &database) == SQLITE_OK)
    #expect(sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK)
    sqlite3_close(database)
  }

  // MARK: The directory

  @Test func aSecondStoreOnTheDirectoryIsLockedOut() async throws {
    let first = try open()
    #expect(throws: StoreFault.locked(path: scratch.path)) { try open() }
    await first.close()
    let second = try open()
    let text = try String(contentsOfFile: scratch.file("lock"), encoding: .utf8)
    #expect(text == "\(getpid())\n")
    await second.close()
  }

  @Test func aMissingDirectoryIsMadeForItsOwnerAlone() async throws {
    let path = scratch.file("data")
    let store = try SQLiteStore(directory: path)
    var status = stat()
    #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o700)
    for name in ["lock", "weir.sqlite", "weir.sqlite-wal"] {
      #expect(stat(path + "/" + name, &status) == 0 && status.st_mode & 0o077 == 0)
    }
    await store.close()
  }

  @Test func aDirectoryThatCannotBeMadeIsUnavailable() throws {
    let error = #expect(throws: StoreFault.self) {
      try SQLiteStore(directory: scratch.file("no/such/place"))
    }
    guard case .unavailable(outcomeUnknown: false, _) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
  }

  @Test func aNewerSchemaIsRefusedAndTheLockLetGo() async throws {
    await (try open()).close()
    execute("PRAGMA user_version = 99")
    #expect(throws: StoreFault.schemaTooNew(found: 99, known: 3)) { try open() }
    execute("PRAGMA user_version = 3")
    await (try open()).close()
  }

  @Test func aDatabaseOfAnotherProgramIsRefused() async throws {
    execute("CREATE TABLE theirs(x)")
    let error = #expect(throws: StoreFault.self) { try open() }
    guard case .corrupt = error else {
      Issue.record("\(String(describing: error))")
      return
    }
  }

  @Test func aFileThatIsNoDatabaseIsCorrupt() async throws {
    let noise = Data((0..<8_192).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    try noise.write(to: URL(fileURLWithPath: scratch.file("weir.sqlite")))
    let error = #expect(throws: StoreFault.self) { try open() }
    guard case .corrupt = error else {
      Issue.record("\(String(describing: error))")
      return
    }
  }

  @Test func closingCopiesTheLogAndRemovesIt() async throws {
    let store = try open()
    var stage = stage(store)
    let device = try await stage.device()
    _ = try await stage.store.write(batch([stage.message(for: device)]), now: stage.now)
    await store.close()
    #expect(!FileManager.default.fileExists(atPath: scratch.file("weir.sqlite-wal")))
    let again = try open()
    #expect(try await again.backlog(of: device, max: 10, now: stage.now).messages.count == 1)
    await again.close()
  }

  // MARK: Content that breaks the layout

  @Test(arguments: [
    "UPDATE message SET key = x'00'", "UPDATE message SET key = zeroblob(17)",
  ])
  func aKeyOfTheWrongSizeIsCorruptAndNamesNoContent(_ damage: String) async throws {
    let store = try open()
    var stage = stage(store)
    let device = try await stage.device()
    _ = try await store.write(batch([stage.message(for: device)]), now: stage.now)
    await store.close()
    execute(damage)
    let again = try open()
    await expectCorrupt("table message: a key that is not 16 bytes") { () throws(StoreFault) in
      _ = try await again.backlog(of: device, max: 10, now: stage.now)
    }
    // Others are served.
    let other = try await again.register(
      RegistrationRequest(
        token: "t", deviceID: "d", secretHash: [], sender: SenderID(1), app: "a", platform: .ios,
        user: nil, previousToken: nil), now: stage.now)
    #expect(try await again.lookUp(["t"]) == [other])
    await again.close()
  }

  @Test func unknownStatesAndPlatformsAreCorrupt() async throws {
    let store = try open()
    var stage = stage(store)
    _ = try await stage.device()
    var entries = WriteBatch()
    entries.journal = [
      JournalEntry(
        key: stage.message(for: DeviceNumber(1)).key, sender: SenderID(1), device: DeviceNumber(1),
        state: .delivered, at: stage.now)
    ]
    _ = try await store.write(entries, now: stage.now)
    try await store.addKey(
      AccountKey(hash: [1], purpose: .api, sender: nil, createdAt: stage.now, hint: ""))
    await store.close()
    execute(
      """
      UPDATE registration SET platform = 'toaster';
      UPDATE journal SET entries = x'0011';
      UPDATE account_key SET purpose = 'none';
      """)
    let again = try open()
    await expectCorrupt("table registration, device 1: unknown platform") { () throws(StoreFault) in
      _ = try await again.lookUp(["token-10001"])
    }
    await expectCorrupt("table journal, row 1: entries") { () throws(StoreFault) in
      _ = try await again.journal(since: WallTime(ms: 0), max: 10)
    }
    await expectCorrupt("table account_key: unknown purpose") { () throws(StoreFault) in
      _ = try await again.keys()
    }
    await again.close()
    execute("UPDATE registration SET platform = 'web', state = 7")
    let third = try open()
    await expectCorrupt("table registration, device 1: unknown state") { () throws(StoreFault) in
      _ = try await third.lookUp(["token-10001"])
    }
    await third.close()
  }

  // MARK: A disk that fails

  @Test func aFailedBatchDoesNotTakeTheOthersOfItsGroupAlong() async throws {
    let store = try open()
    var stage = stage(store)
    let device = try await stage.device()
    try await store.limitPages(1)
    let gate = Gate()
    // Holds the writer, so that what follows makes up one group.
    store.write(WriteBatch(), now: stage.now) { _ in gate.wait() }
    let results = Results<WriteOutcome>()
    var big = WriteBatch()
    big.enqueue = (0..<300).map { _ in
      stage.message(for: device, live: true, body: String(repeating: "x", count: 3_000))
    }
    store.write(batch([stage.message(for: device)]), now: stage.now) { results.add($0) }
    store.write(big, now: stage.now) { results.add($0) }
    store.write(batch([stage.message(for: device)]), now: stage.now) { results.add($0) }
    gate.open()
    _ = try await store.write(WriteBatch(), now: stage.now)
    let list = results.all
    #expect(list.count == 3)
    #expect(list.filter { (try? $0.get())?.enqueue == [.stored] }.count == 2)
    #expect(try await store.backlog(of: device, max: 1_000, now: stage.now).messages.count == 2)
    await store.close()
  }

  @Test func aFullQueueTurnsWritesAway() async throws {
    var options = SQLiteStore.Options()
    options.writesWaitingMax = 3
    let store = try open(options)
    let now = WallTime(ms: 0)
    let gate = Gate()
    let entered = Gate()
    store.write(WriteBatch(), now: now) { _ in
      entered.open()
      gate.wait()
    }
    entered.wait()
    let results = Results<WriteOutcome>()
    for _ in 0..<5 { store.write(WriteBatch(), now: now) { results.add($0) } }
    let turnedAway = results.all
    gate.open()
    await store.close()
    #expect(turnedAway.count == 2)
    for result in turnedAway {
      let queueFull = StoreFault.unavailable(outcomeUnknown: false, detail: "the store's queue is full")
      #expect(result == .failure(queueFull))
    }
    #expect(results.all.count == 5)
  }

  private func batch(_ rows: [StoredMessage]) -> WriteBatch {
    var batch = WriteBatch()
    batch.enqueue = rows
    return batch
  }

  private func expectCorrupt(
    _ detail: String, _ call: () async throws(StoreFault) -> Void
  ) async {
    do throws(StoreFault) {
      try await call()
      Issue.record("no fault")
    } catch {
      #expect(error == .corrupt(detail: detail))
    }
  }
}

/// The file system of these tests is one for the process, so they run one after the other.
@Suite(.serialized) struct FailingDiskTests {
  private let scratch: Scratch

  init() throws {
    scratch = try Scratch()
    #expect(fault_vfs_register() == SQLITE_OK)
  }

  private struct Attempt: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var kind: Int
    var outcomeUnknown: Bool
  }

  private static let attempts = [
    Attempt(
      testDescription: "log cannot be written", kind: FAULT_WRITE_LOG, outcomeUnknown: true),
    Attempt(testDescription: "log cannot be synced", kind: FAULT_SYNC_LOG, outcomeUnknown: true),
  ]

  @Test(arguments: attempts)
  private func aCommitThatFailsIsUnknownAndTheSameBatchWorksLater(_ attempt: Attempt) async throws {
    var options = SQLiteStore.Options()
    options.fileSystem = "fault"
    let store = try SQLiteStore(directory: scratch.path, options: options)
    var stage = Stage(
      StoreUnderTest(store: store, crash: { throw StoreFault.refused(detail: "") }, failWrites: { _ in }),
      limits: StoreLimits())
    let device = try await stage.device()
    var batch = WriteBatch()
    batch.enqueue = [stage.message(for: device), stage.message(for: device, collapse: "k")]
    fault_vfs_fail(Int32(attempt.kind))
    for _ in 0..<3 {
      do throws(StoreFault) {
        _ = try await store.write(batch, now: stage.now)
        Issue.record("the write was to fail")
      } catch {
        guard case .unavailable(let unknown, _) = error else {
          Issue.record("\(error)")
          return
        }
        #expect(unknown == attempt.outcomeUnknown)
      }
      #expect(try await store.backlog(of: device, max: 10, now: stage.now).messages.isEmpty)
    }
    fault_vfs_fail(0)
    #expect(try await store.write(batch, now: stage.now).enqueue == [.stored, .stored])
    #expect(try await store.write(batch, now: stage.now).enqueue == [.duplicate, .duplicate])
    await store.close()

    let again = try SQLiteStore(directory: scratch.path, options: options)
    #expect(try await again.backlog(of: device, max: 10, now: stage.now).messages == batch.enqueue)
    await again.close()
  }

  @Test func aReadThatFailsIsOneReadsFault() async throws {
    var options = SQLiteStore.Options()
    options.fileSystem = "fault"
    options.cacheKiB = 16
    let store = try SQLiteStore(directory: scratch.path, options: options)
    var stage = Stage(
      StoreUnderTest(store: store, crash: { throw StoreFault.refused(detail: "") }, failWrites: { _ in }),
      limits: StoreLimits())
    let device = try await stage.device()
    var batch = WriteBatch()
    batch.enqueue = (0..<90).map { _ in
      stage.message(for: device, body: String(repeating: "x", count: 3_000))
    }
    _ = try await store.write(batch, now: stage.now)
    fault_vfs_fail(Int32(FAULT_READ))
    do throws(StoreFault) {
      _ = try await store.backlog(of: device, max: 100, now: stage.now)
      Issue.record("the read was to fail")
    } catch {
      guard case .unavailable(outcomeUnknown: false, _) = error else {
        Issue.record("\(error)")
        return
      }
    }
    fault_vfs_fail(0)
    #expect(try await store.backlog(of: device, max: 100, now: stage.now).messages == batch.enqueue)
    await store.close()
  }
}

/// Holds a thread until it is opened.
final class Gate: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)
  func open() { semaphore.signal() }
  func wait() { semaphore.wait() }
}

/// Collects answers.
final class Results<Value: Sendable>: Sendable {
  private let list = Mutex<[Result<Value, StoreFault>]>([])
  func add(_ result: Result<Value, StoreFault>) { list.withLock { $0.append(result) } }
  var all: [Result<Value, StoreFault>] { list.withLock { $0 } }
}
