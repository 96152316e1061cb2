import Foundation

/// Three PostgreSQL servers that Patroni and etcd keep as one primary and two standbys, on loopback, as
/// `dev/cluster.sh` makes them; gone with this process.
package final class DatabaseCluster: Sendable {
  /// Holds data and logs.
  package let directory: TemporaryDirectory
  /// For `weir serve --store`: all three.
  package let url: String
  private let script: String

  private init(_ directory: TemporaryDirectory, _ script: String, _ url: String) {
    self.directory = directory
    self.script = script
    self.url = url
  }

  /// Makes a cluster and waits until it has a synchronous standby; about half a minute.
  package static func start(script: String = "dev/cluster.sh") async throws -> DatabaseCluster {
    let directory = try TemporaryDirectory()
    let (code, text) = try await ChildProcess.run(
      "/bin/bash", [script, "up", directory.path, "\(getpid())"], errors: directory.path + ".errors",
      within: .seconds(180))
    let errors = (try? String(contentsOfFile: directory.path + ".errors", encoding: .utf8)) ?? ""
    guard code == 0 else { throw ServerProcessFailure(description: "\(script) up: \(text) \(errors)") }
    let made = DatabaseCluster(directory, script, "")
    return DatabaseCluster(directory, script, try await made.run("url"))
  }

  /// The number of the primary, 1 to 3; nil while there is none.
  package func leader() async throws -> Int? { Int(try await run("leader")) }

  /// A member and its Patroni are gone, as if their machine were.
  package func kill(_ member: Int) async throws { try await run("kill", "\(member)") }

  /// A member's PostgreSQL ends with all its processes; its Patroni starts it again.
  package func crash(_ member: Int) async throws { try await run("crash", "\(member)") }

  /// The machine of a member is back.
  package func revive(_ member: Int) async throws { try await run("start", "\(member)") }

  package func killEtcd(_ member: Int) async throws { try await run("etcd-kill", "\(member)") }

  package func reviveEtcd(_ member: Int) async throws { try await run("etcd-start", "\(member)") }

  /// Waits until there is a primary and both standbys follow it, one of them synchronously.
  package func waitUntilWhole(within time: Duration = .seconds(120)) async throws {
    let deadline = ContinuousClock.now + time
    while try await run("lagging") != "0" {
      guard ContinuousClock.now < deadline else {
        throw ServerProcessFailure(
          description: "the databases do not come together: \(try await run("members"))")
      }
      try await Task.sleep(for: .milliseconds(250))
    }
  }

  /// Runs SQL on the primary and returns what `psql -At` prints.
  @discardableResult
  package func sql(_ text: String) async throws -> String {
    let (code, output) = try await ChildProcess.run(
      "/bin/sh",
      [
        "-c", "exec \"$0\" \"$@\" 2>&1", "psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d",
        url + "&target_session_attrs=read-write", "-c", text,
      ])
    guard code == 0 else { throw ServerProcessFailure(description: "psql: \(output)") }
    return output.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// Process ids of the postmasters.
  package var postmasters: [Int32] {
    (1...3).compactMap { member in
      (try? String(contentsOfFile: directory.path + "/data\(member)/postmaster.pid", encoding: .utf8))?
        .split(separator: "\n").first.flatMap { Int32($0) }
    }
  }

  package func stop() async throws { try await run("down") }

  @discardableResult
  private func run(_ command: String, _ argument: String? = nil) async throws -> String {
    let (code, text) = try await ChildProcess.run(
      "/bin/bash", [script, command, directory.path] + (argument.map { [$0] } ?? []),
      errors: directory.path + ".errors", within: .seconds(60))
    guard code == 0 else {
      throw ServerProcessFailure(description: "\(script) \(command) ended with \(code): \(text)")
    }
    return text.trimmingCharacters(in: .whitespacesAndNewlines)
  }
}
