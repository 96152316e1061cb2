import HTTPCore
import JSONCore
import PushModel
import Synchronization
import TLSCore
import TestKit
import Testing

@testable import StreamClient

struct HTTPSenderTests {
  private static let sent = HTTPResponse(
    status: 200, fields: ["content-type": "application/json"],
    body: Array("{\"name\":\"projects/demo/messages/1\"}".utf8))

  private static func error(
    _ status: Int, _ name: String, _ details: String = "", retryAfter: String? = nil
  ) -> HTTPResponse {
    var response = HTTPResponse(
      status: status,
      body: Array("{\"error\":{\"status\":\"\(name)\",\"message\":\"m\",\"details\":[\(details)]}}".utf8))
    if let retryAfter { response.fields.append("retry-after", retryAfter) }
    return response
  }

  private func sender(
    _ responder: TestResponder, access: HTTPSender.Configuration.Access? = nil,
    _ mode: HTTPSender.Configuration.Mode = .oneAtATime,
    _ change: (inout HTTPSender.Configuration) -> Void = { _ in }
  ) throws -> HTTPSender {
    var configuration = HTTPSender.Configuration(
      host: "localhost", port: responder.port, access: access ?? .accessToken("secret", project: "demo"),
      trust: .file(responder.authority), mode: mode)
    change(&configuration)
    return try HTTPSender(configuration)
  }

  private let token = RegistrationToken(
    random: [UInt8](repeating: 7, count: RegistrationToken.randomByteCount)
  ).text

  private func message(_ id: String) -> PushMessage {
    PushMessage(to: .token(token), data: ["k": "v"], id: id)
  }

  @Test(arguments: [
    HTTPSender.Configuration.Mode.oneAtATime, .connections(2), .streams(10, connections: 1),
  ])
  func aMessageIsPostedAndAcked(_ mode: HTTPSender.Configuration.Mode) async throws {
    let responder = try await TestResponder.start { _, _ in .respond(Self.sent) }
    let sender = try sender(responder, mode)
    let ack = try await sender.send(message("m-1"))
    #expect(ack.messageID == "m-1" && ack.attempts == 1)
    let request = try #require(responder.requests.current.first)
    #expect(request.method == "POST")
    #expect(request.target == "/v1/projects/demo/messages:send?prettyPrint=false")
    #expect(request.fields["authorization"] == "Bearer secret")
    #expect(request.fields["content-type"] == "application/json")
    #expect(request.fields["x-weir-message-id"] == "m-1")
    #expect(try JSONValue(parsing: request.body)["message"]?["token"]?.string == token)
    await sender.close()
    responder.stop()
  }

  @Test func oneAtATimeMeansOneRequestOnOneConnection() async throws {
    let responder = try await TestResponder.start { _, _ in .respond(Self.sent) }
    let sender = try sender(responder)
    var count = 0
    for try await outcome in sender.send(contentsOf: (0..<50).map { message("m-\($0)") }) {
      _ = try outcome.result.get()
      count += 1
    }
    #expect(count == 50)
    #expect(responder.most.withLock { [$0.unanswered, $0.connections] } == [1, 1])
    #expect(responder.requests.current.map { $0.fields["x-weir-message-id"] } == (0..<50).map { "m-\($0)" })
    await sender.close()
    responder.stop()
  }

  @Test func manyStreamsShareAConnection() async throws {
    let responder = try await TestResponder.start { _, _ in .respond(Self.sent) }
    let sender = try sender(responder, .streams(100, connections: 1))
    var count = 0
    for try await outcome in sender.send(contentsOf: (0..<2_000).map { message("m-\($0)") }) {
      _ = try outcome.result.get()
      count += 1
    }
    #expect(count == 2_000)
    let most = responder.most.withLock { $0 }
    #expect(most.connections == 1 && most.unanswered > 1 && most.unanswered <= 100)
    await sender.close()
    responder.stop()
  }

  @Test func aBusyServerIsAskedAgainWhenItSays() async throws {
    let responder = try await TestResponder.start { _, earlier in
      earlier < 2 ? .respond(Self.error(503, "UNAVAILABLE", retryAfter: "0")) : .respond(Self.sent)
    }
    let sender = try sender(responder)
    let ack = try await sender.send(message("m-1"))
    #expect(ack.attempts == 3)
    #expect(Set(responder.requests.current.map { $0.fields["x-weir-message-id"] }) == ["m-1"])
    await sender.close()
    responder.stop()
  }

  @Test func aWaitBeyondTheMessagesTimeEndsItAtOnce() async throws {
    let responder = try await TestResponder.start { _, _ in
      .respond(Self.error(503, "UNAVAILABLE", retryAfter: "3600"))
    }
    let sender = try sender(responder)
    let error = await #expect(throws: SendError.self) { try await sender.send(message("m-1")) }
    #expect(error?.code == .nacked && error?.nackCode == "SERVICE_UNAVAILABLE" && error?.attempts == 1)
    #expect(error?.detail.contains("3600") == true)
    await sender.close()
    responder.stop()
  }

  @Test func aMessageAtFaultIsPostedOnce() async throws {
    let detail = "{\"@type\":\"t/google.firebase.fcm.v1.FcmError\",\"errorCode\":\"UNREGISTERED\"}"
    let responder = try await TestResponder.start { _, _ in .respond(Self.error(404, "NOT_FOUND", detail)) }
    let sender = try sender(responder)
    let error = await #expect(throws: SendError.self) { try await sender.send(message("m-1")) }
    #expect(error?.nackCode == "DEVICE_UNREGISTERED" && error?.shouldDropToken == true)
    #expect(responder.requests.current.count == 1)
    await sender.close()
    responder.stop()
  }

  @Test func aConnectionThatIsCutIsOpenedAgainOrNotAsThePolicySays() async throws {
    let responder = try await TestResponder.start { _, earlier in earlier == 0 ? .cut : .respond(Self.sent) }
    let patient = try sender(responder)
    #expect(try await patient.send(message("m-1")).attempts == 2)
    await patient.close()
    responder.stop()
    let other = try await TestResponder.start { _, _ in .cut }
    let strict = try sender(other) { $0.retry = .never }
    let error = await #expect(throws: SendError.self) { try await strict.send(message("m-1")) }
    #expect(error?.code == .streamLost && other.requests.current.count == 1)
    await strict.close()
    other.stop()
  }

  @Test func aServerThatDoesNotAnswerIsOverdue() async throws {
    let responder = try await TestResponder.start { _, _ in .silence }
    let sender = try sender(responder) {
      $0.retry = .never
      $0.requestTimeout = .milliseconds(300)
    }
    let error = await #expect(throws: SendError.self) { try await sender.send(message("m-1")) }
    #expect(error?.code == .ackOverdue)
    await sender.close()
    responder.stop()
  }

  @Test func aCancelledSendEndsAndAClosedSenderTakesNothing() async throws {
    let responder = try await TestResponder.start { _, _ in .silence }
    let sender = try sender(responder)
    let message = message("m-1")
    let task = Task { try await sender.send(message) }
    _ = try await responder.requests.wait(for: "the request", within: .seconds(10)) {
      $0.isEmpty ? nil : true
    }
    task.cancel()
    let cancelled = await #expect(throws: SendError.self) { try await task.value }
    #expect(cancelled?.code == .cancelled)
    await sender.close(within: .zero)
    let closed = await #expect(throws: SendError.self) { try await sender.send(message) }
    #expect(closed?.code == .closed)
    responder.stop()
  }

  @Test func anUnknownAuthorityIsNotTrusted() async throws {
    let responder = try await TestResponder.start { _, _ in .respond(Self.sent) }
    let sender = try sender(responder) { $0.trust = .system }
    let error = await #expect(throws: SendError.self) { try await sender.send(message("m-1")) }
    #expect(error?.code == .streamLost && responder.requests.current.isEmpty)
    await sender.close()
    responder.stop()
  }

  // MARK: Access tokens

  private func account(_ port: Int) throws -> (ServiceAccount, publicPEM: String) {
    let (privatePEM, publicPEM) = try Secrets.rsaKeyPair()
    let file: JSONValue = [
      "type": "service_account", "project_id": "demo", "private_key_id": "k1",
      "private_key": .string(privatePEM), "client_email": "a@demo.example",
      "token_uri": .string("https://localhost:\(port)/token"),
    ]
    return (try ServiceAccount(json: file.bytes), publicPEM)
  }

  @Test func aTokenIsAskedForOnceAndAgainWhenItIsTooOld() async throws {
    let tokens = Mutex(0)
    let responder = try await TestResponder.start { request, _ in
      if request.target == "/token" {
        let number = tokens.withLock { count in
          count += 1
          return count
        }
        return .respond(
          HTTPResponse(
            status: 200, body: Array("{\"access_token\":\"t\(number)\",\"expires_in\":3599}".utf8)))
      }
      // The first one is no good after two messages.
      if request.fields["authorization"] == "Bearer t1", request.fields["x-weir-message-id"] == "m-3" {
        let detail = "{\"@type\":\"t/google.rpc.ErrorInfo\",\"reason\":\"ACCESS_TOKEN_EXPIRED\"}"
        return .respond(Self.error(401, "UNAUTHENTICATED", detail))
      }
      return .respond(Self.sent)
    }
    let (account, publicPEM) = try account(responder.port)
    let sender = try sender(responder, access: .serviceAccount(account))
    for number in 1...4 { _ = try await sender.send(message("m-\(number)")) }
    let requests = responder.requests.current
    #expect(requests.filter { $0.target == "/token" }.count == 2)
    #expect(
      requests.filter { $0.target != "/token" }.map { $0.fields["authorization"] }
        == ["t1", "t1", "t1", "t2", "t2"].map { "Bearer " + $0 })
    // What was asked for is signed by the account, for the endpoint, for an hour.
    let form = String(decoding: try #require(requests.first).body, as: UTF8.self)
    #expect(form.hasPrefix("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion="))
    let parts = form.split(separator: "=")[2].split(separator: ".")
    let key = try VerifyingKey(pem: publicPEM)
    #expect(key.isValid(try bytes(parts[2]), over: Array("\(parts[0]).\(parts[1])".utf8)))
    let claims = try JSONValue(parsing: try bytes(parts[1]))
    #expect(claims["iss"]?.string == "a@demo.example" && claims["aud"]?.string == account.tokenURI)
    #expect((claims["exp"]?.int ?? 0) - (claims["iat"]?.int ?? 0) == 3_600)
    await sender.close()
    responder.stop()
  }

  @Test func aTokenThatIsRefusedEndsWhatWaitsForIt() async throws {
    let responder = try await TestResponder.start { _, _ in
      .respond(HTTPResponse(status: 400, body: Array("{\"error\":\"invalid_grant\"}".utf8)))
    }
    let sender = try sender(responder, access: .serviceAccount(try account(responder.port).0))
    let error = await #expect(throws: SendError.self) { try await sender.send(message("m-1")) }
    #expect(error?.nackCode == "AUTHENTICATION_FAILED" && error?.detail.contains("invalid_grant") == true)
    #expect(error?.attempts == 0)
    await sender.close()
    responder.stop()
  }

  private func bytes(_ text: Substring) throws -> [UInt8] {
    let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    var bits: UInt32 = 0
    var count = 0
    var bytes: [UInt8] = []
    for digit in text.utf8 {
      bits = bits << 6 | UInt32(try #require(alphabet.firstIndex(of: digit)))
      count += 6
      if count >= 8 {
        count -= 8
        bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
      }
    }
    return bytes
  }

  // MARK: The real server

  @Test(arguments: ["v1", "legacy"])
  func theServerDeliversOnceWhatComesTwice(_ form: String) async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let stream = try await address.connect(device)
      let access: HTTPSender.Configuration.Access =
        form == "legacy"
        ? .legacy(serverKey: try address.secret("server-key"))
        : .serviceAccount(try ServiceAccount(json: Array(try address.secret("service-account.json").utf8)))
      let sender = try HTTPSender(
        .init(
          host: "localhost", port: address.https, access: access, trust: .file(address.certificateAuthority),
          mode: form == "legacy" ? .connections(4) : .streams(100, connections: 1)))
      for id in ["m-1", "m-1", "m-2"] {
        #expect(
          try await sender.send(PushMessage(to: .token(device.token), data: ["id": id], id: id)).messageID
            == id)
      }
      var received: [String] = []
      for _ in 0..<2 { received.append(try await stream.nextPayload()["data", "id"] ?? "") }
      #expect(received == ["m-1", "m-2"])
      let error = await #expect(throws: SendError.self) {
        try await sender.send(
          PushMessage(to: .token(token), id: "m-3"))
      }
      #expect(error?.code == .nacked && error?.shouldDropToken == true)
      await sender.close()
    }
  }
}
