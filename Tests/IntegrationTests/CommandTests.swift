import Foundation
import JSONCore
import TestKit
import Testing

/// The `weir` command as a person or a script runs it, against a live server.
@Suite struct CommandTests {
  private struct Ended {
    var code: Int32
    var lines: [JSONValue]
    var text: String
    var errors: String
  }

  private func start(
    _ words: [String], _ server: ServerAddress, port: Int? = nil, errors: TemporaryDirectory
  ) throws -> ChildProcess {
    var arguments = words
    if let port { arguments += ["--server", "localhost:\(port)"] }
    return try ChildProcess(
      try ServerProcess.findExecutable(), arguments + ["--credentials", server.credentials],
      errors: errors.path + "/errors")
  }

  private func weir(_ words: [String], _ server: ServerAddress, port: Int? = nil) async throws -> Ended {
    let directory = try TemporaryDirectory()
    let child = try start(words, server, port: port, errors: directory)
    let code = try await child.waitForExit(within: .seconds(60)).code
    return Self.ended(child, code)
  }

  private static func ended(_ child: ChildProcess, _ code: Int32) -> Ended {
    let text = child.output.current.text
    return Ended(
      code: code, lines: text.split(separator: "\n").compactMap { try? JSONValue(parsing: String($0)) },
      text: text, errors: child.errorText)
  }

  @Test func registerSendAndReceive() async throws {
    try await TestServer.run { address in
      let registered = try await weir(["register", "--count", "2"], address, port: address.https)
      #expect(registered.code == 0, "\(registered.errors)")
      #expect(registered.lines.count == 2)
      let token = try #require(registered.lines.first?["token"]?.string)

      let directory = try TemporaryDirectory()
      let file = directory.path + "/devices.ndjson"
      try registered.text.write(toFile: file, atomically: true, encoding: .utf8)
      let device = try start(
        ["device", "--from", file, "--json", "--messages", "1"], address, port: address.xmpp,
        errors: directory)
      let sent = try await weir(
        ["send", "--to", token, "--title", "안녕", "--data", "k=v", "--json"], address, port: address.xmpp)
      #expect(sent.code == 0, "\(sent.errors)")
      #expect(sent.lines.first?["outcome"]?.string == "ack")
      let code = try await device.waitForExit(within: .seconds(60)).code
      let received = Self.ended(device, code)
      #expect(code == 0, "\(received.errors)")
      let message = received.lines.first { $0["kind"]?.string == "message" }
      #expect(message?["data"]?["k"]?.string == "v")
      #expect(message?["notification"]?["title"]?.string == "안녕")
    }
  }

  @Test func aRefusedMessageExitsWithOneAndAWrongKeyWithThree() async throws {
    try await TestServer.run { address in
      let registered = try await weir(["register"], address, port: address.https)
      let token = try #require(registered.lines.first?["token"]?.string)
      let gone = try await weir(
        ["token", "unregister", token, "--admin", "localhost:\(address.admin)"], address)
      #expect(gone.code == 0, "\(gone.errors)")
      let sent = try await weir(["send", "--to", token, "--json"], address, port: address.xmpp)
      #expect(sent.code == 1)
      #expect(sent.lines.first?["error"]?.string == "DEVICE_UNREGISTERED")
      let refused = try await weir(
        ["send", "--to", token, "--server-key", "wrong"], address, port: address.xmpp)
      #expect(refused.code == 3, "\(refused.errors)")
    }
  }

  @Test(arguments: ["stream", "http", "http2", "legacy"])
  func bulkSendsEveryLineOnceAndGoesOnWhereItStopped(_ mode: String) async throws {
    try await TestServer.run { address in
      let registered = try await weir(["register", "--count", "3"], address, port: address.https)
      let tokens = registered.lines.compactMap { $0["token"]?.string }
      let directory = try TemporaryDirectory()
      let lines = (0..<90).map { "{\"to\":\"\(tokens[$0 % 3])\",\"data\":{\"n\":\"\($0)\"}}" }
      let file = directory.path + "/messages.ndjson"
      try (lines + ["{\"to\":\"bad\"}", "no JSON"]).joined(separator: "\n").write(
        toFile: file, atomically: true, encoding: .utf8)
      let words = [
        "bulk", file, "--json", "--mode", mode, "--connections", "2", "--checkpoint",
        directory.path + "/checkpoint",
        "--report",
        directory.path + "/report.json",
      ]
      let port = mode == "stream" ? address.xmpp : address.https
      let first = try await weir(words, address, port: port)
      #expect(first.code == 1, "\(first.errors)")
      let report = try #require(first.lines.last)
      #expect(report["outcomes"]?["ack"]?.int == 90)
      #expect(report["messages"]?.int == 92)
      #expect(first.lines.contains { $0["line"]?.int == 91 })
      let again = try await weir(words, address, port: port)
      #expect(again.lines.last?["messages"]?.int == 0)
      #expect(again.lines.last?["skipped"]?.int == 92)
      let saved = try String(contentsOfFile: directory.path + "/report.json", encoding: .utf8)
      #expect((try? JSONValue(parsing: saved))?["messages"]?.int == 0)
    }
  }

  @Test(arguments: ["stream", "http", "http2", "legacy"])
  func bulkWithoutAServerSaysSoAtOnce(_ mode: String) async throws {
    try await TestServer.run { address in
      let directory = try TemporaryDirectory()
      let file = directory.path + "/messages.ndjson"
      try "{\"to\":\"/topics/a\"}".write(toFile: file, atomically: true, encoding: .utf8)
      // Nobody listens at port 1.
      let ended = try await weir(["bulk", file, "--mode", mode], address, port: 1)
      #expect(ended.code == 3, "\(ended.errors)")
      #expect(ended.errors.contains("localhost:1: cannot connect"))
    }
  }

  @Test func listenPrintsAndAcksWhatDevicesSend() async throws {
    try await TestServer.run { address in
      let directory = try TemporaryDirectory()
      let listening = try start(
        ["listen", "--json", "--count", "2"], address, port: address.xmpp, errors: directory)
      let devices = try start(
        ["device", "--https", "localhost:\(address.https)", "--upstream", "20", "--json"], address,
        port: address.xmpp, errors: try TemporaryDirectory())
      let code = try await listening.waitForExit(within: .seconds(60)).code
      devices.signal(SIGTERM)
      #expect(try await devices.waitForExit(within: .seconds(30)).code == 0)
      let heard = Self.ended(listening, code)
      #expect(code == 0, "\(heard.errors)")
      #expect(heard.lines.filter { $0["kind"]?.string == "upstream" }.count == 2)
    }
  }

  @Test func projectsAndKeysAreAdministered() async throws {
    try await TestServer.run { address in
      let admin = ["--admin", "localhost:\(address.admin)", "--json"]
      let made = try await weir(
        ["project", "create", "shop", "--sender-id", "100000000002"] + admin, address)
      #expect(made.code == 0, "\(made.errors)")
      let serverKey = try #require(made.lines.first?["server_key"]?.string)
      let login = try await weir(
        [
          "send", "--to", "x", "--message", "{\"to\":\"/topics/none\"}", "--json", "--sender-id",
          "100000000002",
          "--server-key", serverKey,
        ], address, port: address.xmpp)
      #expect(login.code == 0, "\(login.errors)")
      let twice = try await weir(
        ["project", "create", "shop", "--sender-id", "100000000003"] + admin, address)
      #expect(twice.code == 1)
      let key = try await weir(["key", "create", "shop"] + admin, address)
      let id = try #require(key.lines.first?["id"]?.string)
      #expect(try await weir(["key", "revoke", id] + admin, address).code == 0)
      #expect(try await weir(["key", "revoke", id] + admin, address).code == 1)
    }
  }

  @Test func theDemoDoesWhatItShould() async throws {
    let directory = try TemporaryDirectory()
    let child = try ChildProcess(
      try ServerProcess.findExecutable(), ["demo", "--json"], errors: directory.path + "/errors")
    let code = try await child.waitForExit(within: .seconds(90)).code
    let ended = Self.ended(child, code)
    #expect(code == 0, "\(ended.errors)")
    #expect(ended.lines.count == 12)
    #expect(ended.lines.filter { $0["direction"]?.string == "upstream" }.count == 3)
  }

  @Test func settingsArePrintedAndUnknownLimitsExplained() async throws {
    let directory = try TemporaryDirectory()
    let executable = try ServerProcess.findExecutable()
    let shown = try ChildProcess(
      executable, ["serve", "--print-config", "--xmpp-port", "7", "--openssl-records"],
      environment: ["WEIR_HTTPS_PORT": "8"],
      errors: directory.path + "/errors")
    #expect(try await shown.waitForExit(within: .seconds(30)).code == 0)
    let value = try JSONValue(parsing: shown.output.current.text)
    #expect(value["xmpp-port"]?.int == 7)
    #expect(value["https-port"]?.int == 8)
    #expect(value["openssl-records"]?.bool == true)
    let refused = try ChildProcess(
      executable, ["serve", "--data", directory.path + "/data", "--limit", "nonsense=1"],
      errors: directory.path + "/errors")
    #expect(try await refused.waitForExit(within: .seconds(30)).code == 2)
    #expect(refused.errorText.contains("There is no limit \"nonsense\""))
  }
}
