import Foundation
import StoreConformance
import StorePostgres
import StoreSQLite
import Stores
import TestKit
import Testing

/// A directory that is removed with the value.
final class Scratch: Sendable {
  let path: String

  init() throws {
    let base = FileManager.default.temporaryDirectory.path
    path = base + "/weir-store-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { path + "/" + name }
}

enum Beds {
  static let memory = StoreFactory("memory") { limits in memoryStore(MemoryStore(limits: limits)) }

  private static func memoryStore(_ store: MemoryStore) -> StoreUnderTest {
    StoreUnderTest(
      store: store, crash: { memoryStore(store.restarted()) },
      failWrites: { fail in
        let fault = StoreFault.unavailable(outcomeUnknown: false, detail: "injected")
        store.setBeforeWrite { _ in fail ? MemoryStore.Fate.fails(fault) : .goesWell }
      })
  }

  static let sqlite = StoreFactory("SQLite") { limits in
    try sqliteStore(in: Scratch(), SQLiteStore.Options(limits: limits))
  }

  /// Remembers two devices at most and checkpoints all the time, so that the rare paths are the common ones.
  static let smallSQLite = StoreFactory("SQLite with little memory") { limits in
    var options = SQLiteStore.Options(limits: limits)
    options.cachedDevicesMax = 2
    options.checkpointPages = 1
    options.cacheKiB = 64
    return try sqliteStore(in: Scratch(), options)
  }

  private static func sqliteStore(
    in scratch: Scratch, _ options: SQLiteStore.Options
  ) throws -> StoreUnderTest {
    let store = try SQLiteStore(directory: scratch.path, options: options)
    return StoreUnderTest(
      store: store,
      crash: {
        // What a killed process leaves: the files as they are now, the log not yet copied.
        let left = try Scratch()
        for name in [options.fileName, options.fileName + "-wal"] {
          if FileManager.default.fileExists(atPath: scratch.file(name)) {
            try FileManager.default.copyItem(atPath: scratch.file(name), toPath: left.file(name))
          }
        }
        await store.close()
        return try sqliteStore(in: left, options)
      },
      failWrites: { fail in
        try await store.limitPages(fail ? 1 : nil)
        _ = scratch
      })
  }

  static let postgres = StoreFactory("PostgreSQL") { limits in
    try await postgresStore(in: PostgresServer.shared().schema(), limits)
  }

  static func postgresStore(
    in schema: PostgresServer.Schema, _ limits: StoreLimits = StoreLimits()
  ) async throws -> StoreUnderTest {
    var options = PostgresStore.Options(limits: limits, nodeName: "test")
    options.nodeLease = .seconds(60)
    // The cases know the numbers of stores that count from 1.
    options.numbersHoldSlots = false
    let store = try PostgresStore(PostgresAddress(schema.url), options: options)
    return StoreUnderTest(
      store: store,
      crash: {
        // What was under way is given up by the server when the connections are gone; here nothing is.
        await store.close()
        return try await postgresStore(in: schema, limits)
      },
      failWrites: { fail in
        // As a full disk says it.
        try await schema.sql(
          fail
            ? """
            CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
              IF (SELECT count(*) FROM message) >= 100 THEN RAISE EXCEPTION USING ERRCODE = '53100'; END IF;
              RETURN NULL;
            END $$;
            CREATE TRIGGER full_disk AFTER INSERT ON message
              FOR EACH STATEMENT EXECUTE FUNCTION full_disk()
            """ : "DROP FUNCTION full_disk CASCADE")
      })
  }

  static let all = [memory, sqlite, smallSQLite, postgres]
}

@Suite struct ConformanceTests {
  @Test(arguments: ConformanceCase.all, Beds.all)
  func holds(_ promise: ConformanceCase, _ factory: StoreFactory) async throws {
    try await promise.run(on: factory)
  }
}
