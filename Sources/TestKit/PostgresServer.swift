import CLinux
import Foundation
import Glibc
import Seams

/// A PostgreSQL of the tests' own: made from Debian's packages in a temporary folder, reached through a socket in it,
/// with the durability settings of production, and gone with this process.
package final class PostgresServer: Sendable {
  /// Holds the data and the socket.
  package let directory: TemporaryDirectory
  private let child: Guarded<ChildProcess>
  private let spareSchemas = Guarded<[String]>([])
  private let schemaCount = Guarded(0)

  /// The one that tests share which do not break it; made for the first that asks.
  package static func shared() async throws -> PostgresServer { try await sharedServer.value }
  private static let sharedServer = Task { try await PostgresServer.start() }

  private init(_ directory: TemporaryDirectory, _ child: ChildProcess) {
    self.directory = directory
    self.child = Guarded(child)
  }

  /// Makes a server with its own data and starts it.
  ///
  /// - Parameter settings: Lines for `postgresql.conf`.
  package static func start(settings: [String] = []) async throws -> PostgresServer {
    let directory = try TemporaryDirectory()
    if getuid() == 0 {
      // PostgreSQL does not run as root.
      guard let user = getpwnam("postgres"),
        chown(directory.path, user.pointee.pw_uid, user.pointee.pw_gid) == 0
      else { throw ServerProcessFailure(description: "There is no user postgres: run dev/deps.sh test") }
    }
    let made = try await ChildProcess.run(
      "/bin/sh",
      [
        "-c",
        try command(
          "initdb", "-D \(directory.path)/data -U postgres -A trust -E UTF8 --locale=C.UTF-8 --no-sync"),
      ], errors: directory.path + ".errors", within: .seconds(300))
    guard made.code == 0 else {
      throw ServerProcessFailure(description: "initdb ended with \(made.code): \(made.text)")
    }
    let lines = [
      "listen_addresses = ''", "unix_socket_directories = '\(directory.path)'", "max_connections = 200",
      "shared_buffers = 128MB", "lc_messages = 'C'",
    ]
    let file = directory.path + "/data/postgresql.conf"
    let old = try String(contentsOfFile: file, encoding: .utf8)
    let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
    try handle.seekToEnd()
    handle.write(Data(("\n" + (lines + settings).joined(separator: "\n") + "\n").utf8))
    try handle.close()
    guard !old.isEmpty else { throw ServerProcessFailure(description: "initdb made no settings file") }
    Leftovers.shared.note(directory.path)
    return PostgresServer(directory, try await launch(directory))
  }

  /// Where the programs of the newest version installed are.
  private static func programs() throws -> String {
    let root = "/usr/lib/postgresql"
    let versions = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
    guard let newest = versions.compactMap({ Int($0) }).max() else {
      throw ServerProcessFailure(description: "PostgreSQL is not installed: run dev/deps.sh test")
    }
    return "\(root)/\(newest)/bin"
  }

  /// A shell command that runs a program as a user that may, and ends with this process.
  private static func command(_ program: String, _ arguments: String) throws -> String {
    let path = "\(try programs())/\(program)"
    let user = getuid() == 0 ? "--reuid=postgres --regid=postgres --init-groups" : ""
    // The signal is asked for together with the change of user, which would forget it.
    return "cd / && exec setpriv \(user) --pdeathsig KILL env LC_ALL=C.UTF-8 \(path) \(arguments) 2>&1"
  }

  private static func launch(_ directory: TemporaryDirectory) async throws -> ChildProcess {
    let child = try ChildProcess(
      "/bin/sh", ["-c", try command("postgres", "-D \(directory.path)/data")],
      errors: directory.path + ".errors")
    Leftovers.shared.note(child.processID)
    let isReady = try await child.output.wait(for: "PostgreSQL", within: .seconds(60)) { output -> Bool? in
      if output.text.contains("ready to accept connections") { return true }
      return output.exitCode == nil ? nil : false
    }
    guard isReady else {
      throw ServerProcessFailure(description: "postgres ended: \(child.output.current.text.suffix(2_000))")
    }
    return child
  }

  /// A connection URL.
  ///
  /// - Parameter schema: Used in place of `public`.
  package func url(schema: String? = nil, user: String = "postgres") -> String {
    "postgres://\(user)@/postgres?host=\(directory.path)"
      + (schema.map { "&options=-csearch_path%3D\($0)" } ?? "")
  }

  /// Process id of the postmaster.
  package var processID: Int32 { child.withLock { $0 }.processID }

  /// What the server has logged since it was last started.
  package var log: String { child.withLock { $0 }.output.current.text }

  /// Runs SQL and returns what `psql -At` prints.
  @discardableResult
  package func sql(_ text: String, schema: String? = nil) async throws -> String {
    let (code, output) = try await ChildProcess.run(
      "/bin/sh",
      [
        "-c", "exec \"$0\" \"$@\" 2>&1", "\(Self.programs())/psql", "-XqAt", "-v", "ON_ERROR_STOP=1",
        "-d", url(schema: schema), "-c", text,
      ])
    guard code == 0 else { throw ServerProcessFailure(description: "psql: \(output)") }
    return output.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// Ends it at once, with all its processes, as a loss of power would except for the page cache; waits for it.
  package func kill() async throws {
    let child = child.withLock { $0 }
    let list = "/proc/\(child.processID)/task/\(child.processID)/children"
    let children = ((try? String(contentsOfFile: list, encoding: .utf8)) ?? "").split(separator: " ")
    child.signal(SIGKILL)
    // They would notice by themselves, a moment later.
    for text in children { if let number = Int32(text) { Glibc.kill(number, SIGKILL) } }
    _ = try await child.waitForExit(within: .seconds(20))
  }

  /// Starts it again on its data.
  package func restart() async throws {
    // Backends of the killed postmaster hold its shared memory until they have noticed.
    for _ in 0..<100 {
      do {
        let started = try await Self.launch(directory)
        child.withLock { $0 = started }
        return
      } catch let failure as ServerProcessFailure where failure.description.contains("shared memory") {
        try await Task.sleep(for: .milliseconds(100))
      }
    }
    throw ServerProcessFailure(description: "postgres does not start again")
  }

  // MARK: Schemas

  /// A schema for one store, empty; given back when the object goes.
  package final class Schema: Sendable {
    package let name: String
    package let server: PostgresServer
    package var url: String { server.url(schema: name) }

    init(name: String, server: PostgresServer) {
      self.name = name
      self.server = server
    }

    deinit { server.spareSchemas.withLock { $0.append(name) } }

    /// Runs SQL in it.
    @discardableResult
    package func sql(_ text: String) async throws -> String { try await server.sql(text, schema: name) }
  }

  /// An empty schema, new or emptied.
  package func schema() async throws -> Schema {
    if let spare = spareSchemas.withLock({ $0.popLast() }) {
      let schema = Schema(name: spare, server: self)
      try await schema.sql(Self.emptying)
      return schema
    }
    let count = schemaCount.withLock { count in
      count += 1
      return count
    }
    let schema = Schema(name: "weir_\(count)", server: self)
    try await sql("CREATE SCHEMA \(schema.name)")
    return schema
  }

  /// Deletes rows rather than tables: making tables is slow.
  private static let emptying = """
    DO $$ DECLARE t record; BEGIN
      FOR t IN SELECT tablename AS name FROM pg_tables
        WHERE schemaname = current_schema() AND tablename NOT IN ('weir_schema', 'message', 'upstream') LOOP
        EXECUTE format('DELETE FROM %I', t.name);
      END LOOP;
      IF to_regclass('message') IS NOT NULL THEN TRUNCATE message, upstream; END IF;
      FOR t IN SELECT sequencename AS name FROM pg_sequences
        WHERE schemaname = current_schema() AND sequencename <> 'incarnation' LOOP
        EXECUTE format('ALTER SEQUENCE %I RESTART', t.name);
      END LOOP;
    END $$
    """
}

/// What has to go when this process ends: objects that live as long as it does are not taken apart.
private final class Leftovers: Sendable {
  static let shared = Leftovers()
  private let state = Guarded<(folders: [String], processes: [Int32])>(([], []))

  private init() {
    atexit { Leftovers.shared.remove() }
  }

  func note(_ folder: String) { state.withLock { $0.folders.append(folder) } }
  func note(_ process: Int32) { state.withLock { $0.processes.append(process) } }

  private func remove() {
    let (folders, processes) = state.withLock { $0 }
    for process in processes { kill(process, SIGKILL) }
    for folder in folders {
      try? FileManager.default.removeItem(atPath: folder)
      try? FileManager.default.removeItem(atPath: folder + ".errors")
    }
  }
}
