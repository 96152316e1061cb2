import Foundation
import JSONCore
import TestKit
import Testing

/// `weir load` against a live server: the ledger must be clean, and must be able not to be.
@Suite struct LoadTests {
  private struct Ended {
    var code: Int32
    var summary: JSONValue
    var seconds: [JSONValue]
    var errors: String
  }

  private func load(
    _ scenario: String, _ flags: [String] = [], _ address: ServerAddress
  ) async throws -> Ended {
    let directory = try TemporaryDirectory()
    let file = directory.path + "/scenario.json5"
    try scenario.write(toFile: file, atomically: true, encoding: .utf8)
    let child = try ChildProcess(
      try ServerProcess.findExecutable(),
      [
        "load", file, "--json", "--server", "localhost:\(address.xmpp)", "--https",
        "localhost:\(address.https)", "--admin", "localhost:\(address.admin)", "--credentials",
        address.credentials,
      ] + flags, errors: directory.path + "/errors")
    let code = try await child.waitForExit(within: .seconds(90)).code
    let lines = child.output.current.text.split(separator: "\n").compactMap {
      try? JSONValue(parsing: String($0))
    }
    let errors = child.errorText
    let summary = try #require(lines.last { $0["kind"]?.string == "summary" }, "\(errors)")
    return Ended(
      code: code, summary: summary, seconds: lines.filter { $0["kind"]?.string == "second" }, errors: errors)
  }

  private func count(_ ended: Ended, _ name: String) -> Int64 { ended.summary["ledger"]?[name]?.int ?? -1 }

  @Test func churnSlowReadersAndHalfOpenDevicesLeaveACleanLedger() async throws {
    try await TestServer.run { address in
      let ended = try await load(
        """
        { duration: 3, settle: 40,
          devices: { count: 40, churn: 8, away: "500ms", half_open: 2, waves: [{ at: 1, share: 0.5 }],
            slow_acks: { count: 2, delay: "300ms" }, slow_readers: { count: 2, bytes_per_second: 4000 } },
          senders: { count: 2 }, arrivals: { poisson: 200 },
          messages: { bytes: [{ bytes: 100 }, { bytes: 2000 }],
            topics: { count: 2, share: 0.02, subscribers: 10 } },
          upstream: 20 }
        """, [], address)
      #expect(ended.code == 0, "\(ended.summary.text) \(ended.errors)")
      #expect(ended.summary["ledger_clean"]?.bool == true)
      #expect(count(ended, "acked") > 300 && count(ended, "acked") == count(ended, "written"))
      #expect(count(ended, "delivered") + count(ended, "discarded") >= count(ended, "acked"))
      #expect(count(ended, "upstream_sent") > 20)
      #expect(count(ended, "upstream_acked") == count(ended, "upstream_sent"))
      #expect(ended.seconds.reduce(0) { $0 + ($1["cuts"]?.int ?? 0) } > 20)
      #expect(ended.seconds.contains { ($0["ack_ms"]?["p99"]?.double ?? 0) > 0 })
    }
  }

  @Test func aServerThatFailsOnPurposeLeavesACleanLedger() async throws {
    try await TestServer.run { address in
      let ended = try await load(
        """
        { duration: 2, settle: 20, devices: { count: 10 }, senders: { count: 2, answer_within: "1s" },
          arrivals: { constant: 200 },
          faults: [{ at: 0.2, kind: "nack", code: "DEVICE_MESSAGE_RATE_EXCEEDED", count: 3 },
            { at: 0.4, kind: "drop_ack", count: 2 }, { at: 0.6, kind: "unavailable", count: 2 },
            { at: 0.8, kind: "cut" }, { at: 1, kind: "drain" }, { at: 1.2, kind: "delay", delay_ms: 300 },
            { at: 1.5, kind: "half_open" }] }
        """, [], address)
      #expect(ended.code == 0, "\(ended.summary.text) \(ended.errors)")
      #expect(ended.summary["nacks"]?["DEVICE_MESSAGE_RATE_EXCEEDED"]?.int == 3)
      #expect(ended.summary["nacks"]?["SERVICE_UNAVAILABLE"]?.int == 2)
      #expect(count(ended, "delivered_though_unavailable") == 2)
      #expect(count(ended, "acked") + count(ended, "nacked") == count(ended, "written"))
      #expect(ended.summary["lost_streams"]?.members?.isEmpty == false)
      let told = ended.seconds.flatMap { ($0["events"]?.array ?? []).compactMap(\.string) }
      #expect(
        Set(told) == ["nack", "drop_ack", "unavailable", "cut", "drain", "delay", "half_open"])
    }
  }

  @Test func faultsNeedTheAdministrationOfTheServer() async throws {
    try await TestServer.run { address in
      let directory = try TemporaryDirectory()
      let file = directory.path + "/scenario.json5"
      try "{ faults: [{ at: 0, kind: 'cut' }] }".write(toFile: file, atomically: true, encoding: .utf8)
      let child = try ChildProcess(
        try ServerProcess.findExecutable(),
        [
          "load", file, "--server", "localhost:\(address.xmpp)", "--admin", "localhost:1", "--credentials",
          address.credentials,
        ], errors: directory.path + "/errors")
      #expect(try await child.waitForExit(within: .seconds(60)).code == 3)
      #expect(child.errorText.contains("The admin surface at localhost:1 does not answer"))
    }
  }

  @Test func devicesOnWebSocketsThatComeAndGoLoseNothing() async throws {
    try await TestServer.run { address in
      let ended = try await load(
        """
        { duration: 3, settle: 40,
          devices: { count: 60, connect_rate: 10000, away: "100ms", slow_readers: { count: 3 },
            waves: [{ at: 1, share: 1 }, { at: 2, share: 1 }] },
          arrivals: { constant: 200 }, upstream: 20 }
        """, ["--websocket"], address)
      #expect(ended.code == 0, "\(ended.summary.text) \(ended.errors)")
      #expect(count(ended, "acked") > 300 && count(ended, "lost") == 0)
      #expect(ended.seconds.reduce(0) { $0 + ($1["cuts"]?.int ?? 0) } >= 60)
      #expect(count(ended, "upstream_acked") == count(ended, "upstream_sent"))
    }
  }

  @Test func aLedgerThatMissesADeviceFails() async throws {
    try await TestServer.run { address in
      let ended = try await load(
        "{ duration: 1, settle: 3, devices: { count: 5 }, arrivals: { constant: 100 } }", ["--canary"],
        address)
      #expect(ended.code == 1)
      #expect(ended.summary["ledger_clean"]?.bool == false)
      #expect(count(ended, "lost") > 0)
    }
  }

  @Test func withoutDevicesTheAnswersAreCounted() async throws {
    try await TestServer.run { address in
      var tokens: [String] = []
      for _ in 0..<3 { tokens.append(try await address.registerDevice().token) }
      let directory = try TemporaryDirectory()
      let file = directory.path + "/tokens"
      try (tokens + ["unregistered-token"]).joined(separator: "\n").write(
        toFile: file, atomically: true, encoding: .utf8)
      let ended = try await load("{ duration: 1, arrivals: { constant: 80 } }", ["--tokens", file], address)
      #expect(ended.code == 0, "\(ended.errors)")
      #expect(count(ended, "acked") + count(ended, "nacked") == count(ended, "written"))
      #expect(count(ended, "nacked") > 0)
      #expect(ended.summary["ledger"]?["delivered"]?.isNull == true)
      #expect(ended.summary["nacks"]?.members?.isEmpty == false)
    }
  }

  @Test func anExpectationThatIsMissedFails() async throws {
    try await TestServer.run { address in
      let ended = try await load(
        """
        { duration: 1, devices: { count: 3 }, arrivals: { constant: 20 },
          expect: { per_second: 1000000, ack_p99: "1us" } }
        """.replacing("\"1us\"", with: "0.000001"), [], address)
      #expect(ended.code == 1)
      #expect(ended.summary["ledger_clean"]?.bool == true)
      #expect(ended.summary["faults"]?.array?.count == 2)
    }
  }

  @Test func theWindowsAreKeptFullInAClosedLoopAndReportsAreWritten() async throws {
    try await TestServer.run { address in
      let directory = try TemporaryDirectory()
      let html = directory.path + "/report.html"
      let json = directory.path + "/report.json"
      let ended = try await load(
        "{ duration: 1, devices: { count: 10 }, senders: { count: 2, window: 10 } }",
        ["--report", html, "--report", json], address)
      #expect(ended.code == 0, "\(ended.errors)")
      let pending = ended.seconds.filter { $0["phase"]?.string == "loading" }.map { $0["pending"]?.int ?? 0 }
      #expect(pending.allSatisfy { $0 <= 20 })
      #expect(try String(contentsOfFile: html, encoding: .utf8).contains("<svg"))
      let report = try JSONValue(parsing: String(contentsOfFile: json, encoding: .utf8))
      #expect(report["summary"]?["passed"]?.bool == true)
    }
  }

  @Test func aWindowAboveTheProtocolsIsGrantedByTheServerUpToItsLimit() async throws {
    let scenario = "{ duration: 1, devices: { count: 10 }, senders: { window: 400 } }"
    func most(_ ended: Ended) -> Int64 { ended.seconds.map { $0["pending"]?.int ?? 0 }.max() ?? 0 }
    try await TestServer.run { address in
      let ended = try await load(scenario, [], address)
      #expect(ended.code == 0, "\(ended.errors)")
      #expect(most(ended) > 150 && most(ended) <= 400)
      #expect(count(ended, "nacked") == 0)
    }
    let server = try await ServerProcess.start(flags: ["--limit", "negotiated-window=50"])
    let ended = try await load(scenario, [], server.address)
    #expect(ended.code == 0, "\(ended.errors)")
    #expect(most(ended) <= 100)
    #expect(try await server.terminate() == 0)
  }

  @Test func wrongCredentialsExitWithThree() async throws {
    try await TestServer.run { address in
      let directory = try TemporaryDirectory()
      let child = try ChildProcess(
        try ServerProcess.findExecutable(),
        [
          "load", "--devices", "1", "--server", "localhost:\(address.xmpp)", "--https",
          "localhost:\(address.https)", "--credentials", address.credentials, "--server-key", "wrong",
        ], errors: directory.path + "/errors")
      #expect(try await child.waitForExit(within: .seconds(60)).code == 3)
      #expect(child.errorText.contains("login refused"))
    }
  }
}
