import ConnectionServer
import Foundation
import TestKit
import Testing

/// The Autobahn test suite against the server's echo path and against our client.
///
/// What it says is read from its own report. Its cases of compression are left out: none is accepted.
@Suite(.serialized) struct AutobahnTests {
  @Test func theServerPassesEveryCase() async throws {
    try await TestServer.run {
      $0.acceptsAnyBearer = true
    } _: { server in
      let directory = try TemporaryDirectory()
      let suite = try ClientScript.autobahn.start(
        ["server", "wss://127.0.0.1:\(server.https)/echo", directory.path + "/reports"], against: server,
        errors: directory.path + "/errors")
      try await check(suite)
    }
  }

  @Test func theClientPassesEveryCase() async throws {
    let directory = try TemporaryDirectory()
    let suite = try ClientScript.autobahn.start(
      ["client", directory.path + "/reports"], against: nil, errors: directory.path + "/errors")
    let line = try await suite.output.wait(for: "the suite's port", within: .seconds(60)) { output in
      output.text.firstIndex(of: "\n").map { String(output.text[..<$0]) }
        ?? (output.exitCode == nil ? nil : "")
    }
    let start = try #require(SuiteStart(line: line), "\(line)\(suite.errorText)")
    let client = try EchoClient(port: start.port)
    for number in 1...start.cases {
      try await client.run("/runCase?case=\(number)&agent=weir")
    }
    try await client.run("/updateReports?agent=weir&shutdownOnComplete=true")
    client.stop()
    try await check(suite)
  }

  private func check(_ suite: ChildProcess) async throws {
    let (code, text) = try await suite.waitForExit(within: .seconds(600))
    #expect(code == 0, "\(text)\(suite.errorText.suffix(2_000))")
    #expect(text.contains("ok 301 cases"), "\(text)")
  }
}

/// The line that the suite's server prints.
private struct SuiteStart: Decodable {
  var port: UInt16
  var cases: Int

  init?(line: String) {
    guard let start = try? JSONDecoder().decode(SuiteStart.self, from: Data(line.utf8)) else { return nil }
    self = start
  }
}
