import JSONCore
import Synchronization
import Testing

@testable import StreamClient

/// The client over real sockets and TLS, against a server that follows a script.
struct StreamClientWireTests {
  private typealias Script = ScriptedServer.Script

  private func client(
    _ server: ScriptedServer, _ change: (inout StreamClient.Configuration) -> Void = { _ in }
  ) throws -> StreamClient {
    var configuration = StreamClient.Configuration(
      host: "127.0.0.1", port: server.port, senderID: "100000000001", serverKey: "secret",
      trust: .file(server.caFile))
    change(&configuration)
    return try StreamClient(configuration)
  }

  private static func id(_ json: String) -> String {
    (try? JSONValue(parsing: json))?["message_id"]?.string ?? "?"
  }

  private static func ack(_ json: String) -> ScriptedServer.Step {
    .answer("{\"from\":\"t\",\"message_id\":\"\(id(json))\",\"message_type\":\"ack\"}")
  }

  private func message(_ id: String, _ text: String = "1") -> PushMessage {
    PushMessage(to: .topic("news"), data: ["a": text], id: id)
  }

  @Test func aMessageGoesThroughUnchangedAndIsAcked() async throws {
    let server = try await ScriptedServer(Script(onMessage: { _, json in [Self.ack(json)] }))
    let client = try client(server)
    try await client.connect()
    let text = "5 < 7 & 9 > 8 \"q\" 'a' é語🌍\r\n\u{1}\\"
    let ack = try await client.send(message("m-1", text))
    #expect(ack.messageID == "m-1")
    let seen = try JSONValue(parsing: try #require(server.messages.first))
    #expect(seen["data"]?["a"]?.string == text)
    #expect(seen["to"]?.string == "/topics/news")
    await client.close()
  }

  @Test func theCanonicalTokenReachesTheCaller() async throws {
    let server = try await ScriptedServer(
      Script(onMessage: { _, json in
        [
          .answer(
            "{\"from\":\"t\",\"message_id\":\"\(Self.id(json))\",\"message_type\":\"ack\",\"registration_id\":\"new\"}"
          )
        ]
      }))
    let client = try client(server)
    try await client.connect()
    #expect(try await client.send(message("m-1")).canonicalRegistrationID == "new")
    await client.close()
  }

  @Test func wrongCredentialsAreRefused() async throws {
    let server = try await ScriptedServer(Script(acceptsPassword: { $0 == "other" }))
    let client = try client(server)
    let error = await #expect(throws: StreamClient.ConnectError.self) { try await client.connect() }
    #expect(error?.wasRefused == true)
  }

  @Test func anUntrustedCertificateIsNotBelieved() async throws {
    let server = try await ScriptedServer()
    let other = try await ScriptedServer()
    let client = try client(server) { $0.trust = .file(other.caFile) }
    let error = await #expect(throws: StreamClient.ConnectError.self) { try await client.connect() }
    #expect(error?.wasRefused == false)
    #expect(error?.detail.contains("certificate") == true)
    #expect(server.seen.withLock { $0.bound } == 0)
  }

  @Test func aCertificateForAnotherNameIsNotBelieved() async throws {
    let server = try await ScriptedServer()
    let client = try client(server) { $0.serverName = "elsewhere.example" }
    let error = await #expect(throws: StreamClient.ConnectError.self) { try await client.connect() }
    #expect(error?.detail.contains("elsewhere.example") == true)
  }

  @Test func aServerThatSaysNothingRunsIntoTheConnectTimeout() async throws {
    let server = try await ScriptedServer(Script(isMute: true))
    let client = try client(server) { $0.connectTimeout = .milliseconds(300) }
    let error = await #expect(throws: StreamClient.ConnectError.self) { try await client.connect() }
    #expect(error?.detail.hasPrefix("timedOut") == true)
  }

  @Test func nobodyThereIsToldAtOnce() async throws {
    var configuration = StreamClient.Configuration(
      host: "127.0.0.1", port: 1, senderID: "1", serverKey: "k")
    configuration.connectTimeout = .seconds(5)
    let client = try StreamClient(configuration)
    let error = await #expect(throws: StreamClient.ConnectError.self) { try await client.connect() }
    #expect(error?.detail.hasPrefix("connectFailed") == true)
  }

  @Test func settingsOutOfRangeAndMissingFilesAreToldWhenTheClientIsMade() {
    var configuration = StreamClient.Configuration(port: 70_000, senderID: "1", serverKey: "k")
    #expect(throws: StreamClient.ConnectError.self) { try StreamClient(configuration) }
    configuration.port = 5235
    configuration.trust = .file("/nowhere/ca.pem")
    let error = #expect(throws: StreamClient.ConnectError.self) { try StreamClient(configuration) }
    #expect(error?.detail.contains("/nowhere/ca.pem") == true)
  }

  /// P14: control messages have no message id; the prefix does not matter; unknown ones are ignored.
  @Test(arguments: [
    "<message><data:gcm xmlns:data=\"google:mobile:data\">{\"message_type\":\"control\",\"control_type\":\"CONNECTION_DRAINING\"}</data:gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>{&quot;message_type&quot;:&quot;control&quot;,&quot;control_type&quot;:&quot;CONNECTION_DRAINING&quot;}</gcm></message>",
    "<message id=\"\"><x:gcm xmlns:x=\"google:mobile:data\"><![CDATA[ {\"message_type\":\"control\",\"control_type\":\"CONNECTION_DRAINING\"} ]]></x:gcm></message>",
  ])
  func drainingIsKnownByNamespaceWhateverThePrefix(stanza: String) async throws {
    let server = try await ScriptedServer(
      Script(onMessage: { number, json in
        number == 1 ? [.raw(stanza), .end] : [Self.ack(json)]
      }))
    let client = try client(server)
    try await client.connect()
    let ack = try await client.send(message("m-1"))
    #expect(ack.attempts == 2)
    #expect(server.seen.withLock { $0.bound } == 2)
    await client.close()
  }

  @Test func whatIsNotKnownIsIgnored() async throws {
    let server = try await ScriptedServer(
      Script(onMessage: { _, json in
        [
          .answer("{\"message_type\":\"control\",\"control_type\":\"TAKE_A_BREAK\"}"),
          .answer("{\"message_type\":\"news\",\"message_id\":\"x\"}"),
          .answer("no json"), .answer("{\"message_type\":\"ack\",\"message_id\":\"nobody\"}"),
          .raw("  <presence/><message><body>hello</body></message>"),
          Self.ack(json),
        ]
      }))
    let client = try client(server)
    try await client.connect()
    _ = try await client.send(message("m-1"))
    #expect(server.seen.withLock { $0.connections } == 1)
    await client.close()
  }

  @Test func aStanzaErrorEndsThatMessageAlone() async throws {
    let server = try await ScriptedServer(
      Script(onMessage: { _, json in
        guard Self.id(json) == "bad" else { return [Self.ack(json)] }
        return [
          .raw(
            """
            <message id="bad" type="error" to="1@gcm.googleapis.com/x"><gcm xmlns="google:mobile:data">{}</gcm>\
            <error code="400" type="modify"><bad-request xmlns="urn:ietf:params:xml:ns:xmpp-stanzas"/>\
            <text xmlns="urn:ietf:params:xml:ns:xmpp-stanzas">InvalidJson: no\n</text></error></message>
            """)
        ]
      }))
    let client = try client(server)
    try await client.connect()
    let error = await #expect(throws: SendError.self) { try await client.send(message("bad")) }
    #expect(error?.code == .invalidMessage)
    #expect(error?.detail == "InvalidJson: no")
    _ = try await client.send(message("good"))
    await client.close()
  }

  @Test(arguments: [ScriptedServer.Step.cut, .end, .raw("<!DOCTYPE x>"), .raw("</wrong>")])
  func aLostStreamIsReplacedAndTheMessageSentAgain(step: ScriptedServer.Step) async throws {
    let server = try await ScriptedServer(
      Script(onMessage: { number, json in
        number > 1 ? [Self.ack(json)] : [step]
      }))
    let client = try client(server)
    try await client.connect()
    let ack = try await client.send(message("m-1"))
    #expect(ack.attempts == 2)
    #expect(server.messages.map(Self.id) == ["m-1", "m-1"])
    await client.close()
  }

  /// P15: a connection over which nothing comes any more, without an error.
  @Test func aDeadConnectionIsNoticedAndItsMessagesGoToTheNext() async throws {
    let server = try await ScriptedServer(
      Script(dead: [1], onMessage: { _, json in [Self.ack(json)] }))
    let client = try client(server) {
      $0.deadAfter = .milliseconds(400)
      $0.keepaliveIdle = .milliseconds(100)
    }
    let states = client.states
    // Handed over first, so that it is written as soon as the stream is open.
    let sending = Task { try await client.send(message("m-1")) }
    try await client.connect()
    let ack = try await sending.value
    #expect(ack.attempts == 2)
    #expect(ack.latency >= .milliseconds(300))
    await client.close()
    var reasons: [String] = []
    for await state in states {
      if case .disconnected(let disconnection) = state { reasons.append(disconnection.reason) }
    }
    #expect(reasons == ["timedOut: no sign of the server"])
  }

  @Test func manyMessagesAreCoalescedAndAllAcked() async throws {
    let server = try await ScriptedServer(Script(onMessage: { _, json in [Self.ack(json)] }))
    let client = try client(server)
    try await client.connect()
    var acked = 0
    for try await outcome in client.send(contentsOf: (0..<5_000).map { message("m-\($0)") }) {
      if case .success = outcome.result { acked += 1 }
    }
    #expect(acked == 5_000)
    await client.close()
  }

  // MARK: Upstream

  private static let upstream = """
    {"category":"org.example.app","from":"token-1","message_id":"u-5","time_to_live":86400,"data":{"hello":"world"}}
    """
  private static let receipt = """
    {"message_type":"receipt","from":"gcm.googleapis.com","message_id":"dr2:m-1","category":"org.example.app",\
    "time_to_live":0,"data":{"message_status":"MESSAGE_SENT_TO_DEVICE","original_message_id":"m-1",\
    "device_registration_id":"token-1","message_sent_timestamp":"1700000000123"}}
    """

  @Test func upstreamAndReceiptsAreShownOnceAndAckedWhenHandled() async throws {
    let server = try await ScriptedServer(
      Script(onBound: { _ in
        [.answer(Self.upstream), .answer(Self.upstream), .answer(Self.receipt)]
      }))
    let client = try client(server)
    let events = Mutex<[UpstreamEvent]>([])
    let handling = Task {
      await client.handleUpstream { event in events.withLock { $0.append(event) } }
    }
    try await client.connect()
    while server.messages.count < 2 { await Task.yield() }
    await client.close()
    await handling.value
    #expect(
      events.withLock { $0 } == [
        .message(
          UpstreamMessage(
            id: "u-5", from: "token-1", category: "org.example.app", timeToLive: .seconds(86_400),
            data: ["hello": "world"])),
        .receipt(
          DeliveryReceipt(
            originalMessageID: "m-1", token: "token-1", category: "org.example.app",
            sentTimestampMs: 1_700_000_000_123)),
      ])
    let acks = try server.messages.map { try JSONValue(parsing: $0) }
    #expect(acks.map { $0["message_type"]?.string } == ["ack", "ack"])
    #expect(acks.map { $0["to"]?.string } == ["token-1", "gcm.googleapis.com"])
    #expect(acks.map { $0["message_id"]?.string } == ["u-5", "dr2:m-1"])
  }

  /// P11: not acked when the handler throws; shown again on the next stream, then acked.
  @Test func aFailedHandlerMeansNoAckAndAnotherDelivery() async throws {
    struct HandlerFault: Error {}
    let server = try await ScriptedServer(
      Script(
        onBound: { _ in [.answer(Self.upstream)] },
        onMessage: { number, json in
          if Self.id(json) == "m-cut" { return number == 1 ? [.cut] : [Self.ack(json)] }
          return []
        }))
    let client = try client(server)
    let calls = Mutex(0)
    let handling = Task {
      await client.handleUpstream { _ in
        let isFirst = calls.withLock { calls in
          calls += 1
          return calls == 1
        }
        if isFirst { throw HandlerFault() }
      }
    }
    try await client.connect()
    while calls.withLock({ $0 }) < 1 { await Task.yield() }
    _ = try await client.send(message("m-cut"))
    while server.messages.map(Self.id).last != "u-5" { await Task.yield() }
    #expect(calls.withLock { $0 } == 2)
    #expect(server.messages.map(Self.id).filter { $0 == "u-5" }.count == 1)
    await client.close()
    await handling.value
  }

  @Test func aDeliveryMayBeAckedLaterAndIsForgottenWithoutAnAck() async throws {
    let server = try await ScriptedServer(
      Script(
        onBound: { _ in [.answer(Self.upstream)] },
        onMessage: { _, json in
          json.contains("m-again") ? [.answer(Self.upstream), Self.ack(json)] : []
        }))
    let client = try client(server)
    try await client.connect()
    var iterator = client.upstream.makeAsyncIterator()
    // Dropped without an ack.
    _ = await iterator.next()
    _ = try await client.send(message("m-again"))
    let again = try #require(await iterator.next())
    again.ack()
    again.ack()
    while server.messages.map(Self.id).last != "u-5" { await Task.yield() }
    #expect(server.messages.map(Self.id) == ["m-again", "u-5"])
    await client.close()
  }
}
