import ConnectionServer
import Foundation
import TestKit
import Testing

/// XMPP over WebSocket against a live server, by an independent client.
@Suite(.serialized) struct WebSocketTests {
  @Test func anIndependentClientSpeaksXMPPOverWebSocket() async throws {
    try await TestServer.run { try await ClientScript.webSocket.run(against: $0) }
  }

  @Test func anIndependentClientSpeaksXMPPOverWebSocketThroughHTTP2() async throws {
    try await TestServer.run { try await ClientScript.webSocketOverHTTP2.run(against: $0) }
  }

  @Test func silenceIsAnsweredWithPingsAndAnEnd() async throws {
    try await TestServer.run {
      $0.limits["keepalive-seconds"] = 1
      $0.limits["dead-seconds"] = 3
    } _: {
      try await ClientScript.webSocket.run(["silence_is_answered_with_pings_and_an_end"], against: $0)
    }
  }

  @Test(arguments: [ClientScript.webSocket, .webSocketOverHTTP2])
  func aDrainTellsWhereToGoAndClosesWith1001(_ client: ClientScript) async throws {
    let other = "wss://other.example/xmpp"
    let server = try await TestServer.start { $0.seeOtherURI = other }
    let directory = try TemporaryDirectory()
    let script = try client.start(
      ["a_drain_ends_with_1001"], against: server.address, environment: ["SEE_OTHER_URI": other],
      errors: directory.path + "/errors")
    try await script.output.wait(for: "the client to be ready", within: .seconds(60)) {
      $0.text.contains("drain now") || $0.exitCode != nil ? () : nil
    }
    await server.stop()
    let (code, text) = try await script.waitForExit(within: .seconds(60))
    #expect(code == 0, "\(text)\(script.errorText)")
  }

  @Test func aPeerThatDoesNotReadIsCutOffAtTheBacklogLimit() async throws {
    try await TestServer.run {
      $0.limits["write-backlog-bytes"] = 65_536
    } _: {
      try await ClientScript.webSocket.run(["a_peer_that_never_reads_is_cut_off"], against: $0)
    }
  }
}

/// Pages in a real browser: the console, the demo, and a client that others wrote.
@Suite(.serialized) struct BrowserTests {
  @Test func anXMPPClientInAPageIsADeviceAndAnAppServer() async throws {
    try await TestServer.run { try await ClientScript.strophe.run(against: $0) }
  }

  @Test func everyViewOfTheConsoleWorksByMouseAndKeys() async throws {
    try await TestServer.run { server in
      let directory = try TemporaryDirectory()
      let browser = try ClientScript.consolePage.start(
        [ClientScript.package + "/artifacts"], against: server, errors: directory.path + "/errors")
      let (code, text) = try await browser.waitForExit(within: .seconds(240))
      #expect(code == 0 && text.hasSuffix("ok\n"), "\(text)\(browser.errorText.suffix(4_000))")
    }
  }

  @Test func aBrowserPageIsADeviceAndLivesThroughARestart() async throws {
    let server = try await ServerProcess.start()
    let directory = try TemporaryDirectory()
    let browser = try ClientScript.browser.start(
      ["device", ClientScript.package + "/artifacts/browser-demo.png"], against: server.address,
      errors: directory.path + "/errors")
    try await browser.output.wait(for: "the page to be ready for a restart", within: .seconds(180)) {
      $0.text.contains("restart now") || $0.exitCode != nil ? () : nil
    }
    #expect(try await server.terminate() == 0)
    try await server.restart()
    let (code, text) = try await browser.waitForExit(within: .seconds(180))
    #expect(code == 0 && text.hasSuffix("ok\n"), "\(text)\(browser.errorText.suffix(4_000))")
    #expect(try await server.terminate() == 0)
  }
}
