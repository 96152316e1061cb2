import CSQLite
import PushModel
import Seams
import Stores
import Testing

@testable import StoreSQLite

@Suite struct SchemaTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func execute(_ sql: String) {
    var database: OpaquePointer?
    #expect(sqlite3_open(scratch.file("weir.sqlite"), &database) == SQLITE_OK)
    #expect(sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK)
    sqlite3_close(database)
  }

  @Test func aFileOfTheFirstVersionIsTakenOverWithAllItHolds() async throws {
    execute(Schema.steps[0])
    execute(
      """
      PRAGMA application_id = \(Schema.applicationID);
      PRAGMA user_version = 1;
      INSERT INTO device VALUES (1, 'd', x'01', NULL, 0, 0, 5);
      INSERT INTO registration VALUES
        ('late', 1, 9, 'app', 'linux', 'ana', 0, NULL, 7), ('old', 1, 9, 'app', 'linux', NULL, 1, 'late', 6),
        ('first', 1, 9, 'other', 'linux', NULL, 0, NULL, 5);
      INSERT INTO message VALUES (1, 1, 77, 1000, 9, 'app', zeroblob(16), NULL, 1, 0, x'7b7d', x'');
      """)
    let store = try SQLiteStore(directory: scratch.path)
    let now = WallTime(ms: 10)
    let backlog = try await store.backlog(of: DeviceNumber(1), max: 10, now: now)
    #expect(backlog.messages.map(\.number) == [MessageNumber(77)])
    #expect(backlog.messages.map(\.shared) == [nil])
    let found = try await store.lookUp(["old", "late"])
    #expect(found.map { $0?.state } == [.alias(of: "late"), .active])
    let topic = try #require(TopicName("news"))
    let changes = ["late", "first"].map {
      SubscriptionChange(token: $0, sender: SenderID(9), topic: topic, isSubscribed: true)
    }
    #expect(try await store.change(changes, now: now) == [.changed, .changed])
    // Numbers follow the order of registration.
    let subscribers = try await store.subscribers(of: topic, sender: SenderID(9), max: 10)
    #expect(subscribers.map(\.registration.token) == ["first", "late"])
    #expect(subscribers.map(\.number) == [RegistrationNumber(1), RegistrationNumber(3)])
    #expect(try await store.devices(ofUser: "ana", sender: SenderID(9)).registrations.count == 1)
    await store.close()
  }
}

/// How much of the store a page of a list looks at.
@Suite struct PageCostTests {
  private let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func execute(_ sql: String) {
    var database: OpaquePointer?
    #expect(sqlite3_open(scratch.file("weir.sqlite"), &database) == SQLITE_OK)
    #expect(sqlite3_exec(database, sql, nil, nil, nil) == SQLITE_OK)
    sqlite3_close(database)
  }

  /// Steps of SQLite's machine for one page, and its first token.
  private func page(after: String?, in reader: SlowReader) throws -> (steps: Int, tokens: [String]) {
    let statement = reader.senderRegistrationPage
    _ = sqlite3_stmt_status(statement.pointer, SQLITE_STMTSTATUS_VM_STEP, 1)
    let rows = try reader.registrations(sender: SenderID(9), after: after, max: 51)
    return (Int(sqlite3_stmt_status(statement.pointer, SQLITE_STMTSTATUS_VM_STEP, 1)), rows.map(\.token))
  }

  @Test func aPageOfRegistrationsCostsTheSameAmongTwentyThousand() async throws {
    let store = try SQLiteStore(directory: scratch.path)
    func fill(_ range: Range<Int>) {
      let numbers = """
        WITH RECURSIVE n(i) AS (
          SELECT \(range.lowerBound) UNION ALL SELECT i + 1 FROM n WHERE i < \(range.upperBound - 1))
        """
      execute(
        """
        \(numbers) INSERT INTO device SELECT i + 1, 'd' || i, x'01', NULL, 0, 0, 5 FROM n;
        \(numbers) INSERT INTO registration(
          token, device, sender, app, platform, user, state, alias_of, registered)
          SELECT printf('%08d', (i * 7919) % 1000003), i + 1, 9, 'app', 'linux', NULL, 0, NULL, 7 FROM n;
        """)
    }
    fill(0..<200)
    let reader = try SlowReader(path: scratch.file("weir.sqlite"), SQLiteStore.Options(), incarnation: 1)
    let small = try page(after: nil, in: reader)
    fill(200..<20_000)
    let large = try page(after: nil, in: reader)
    let middle = try page(after: large.tokens.last, in: reader)
    #expect(small.tokens.count == 51 && large.tokens.count == 51 && middle.tokens.count == 51)
    #expect(try #require(middle.tokens.first) > #require(large.tokens.last))
    // 51 rows: some hundred steps, not twenty thousand times a few.
    #expect(small.steps > 0)
    #expect(
      large.steps <= small.steps + 20 && middle.steps <= small.steps + 20, "\(small) \(large) \(middle)")
    await store.close()
  }
}
