import Foundation
import JSONCore
import PushHTTP
import PushModel
import TLSCore
import TestKit
import Testing

@testable import ConnectionServer

/// Sends over HTTP against a live server: what clients written by others do not ask for.
@Suite(.serialized) struct HTTPDoorTests {
  private func json(_ answer: TestHTTPAnswer) throws -> JSONValue { try JSONValue(parsing: answer.body) }

  /// An assertion that the server's own service account signs.
  private func assertion(_ address: ServerAddress, from now: Int64, scope: String = scope) throws -> String {
    let file = try JSONValue(
      parsing: String(contentsOfFile: address.credentials + "/service-account.json", encoding: .utf8))
    let claims: JSONValue = [
      "iss": file["client_email"] ?? .null, "scope": .string(scope),
      "aud": "https://oauth2.googleapis.com/token", "iat": .number(now), "exp": .number(now + 3_600),
    ]
    let head = Base64URL.text(Array("{\"alg\":\"RS256\",\"typ\":\"JWT\"}".utf8)[...])
    let text = "\(head).\(Base64URL.text(claims.bytes[...]))"
    let key = try #require(file["private_key"]?.string)
    let signature = try RSASigner.sign(Array(text.utf8), privatePEM: key)
    return "\(text).\(Base64URL.text(signature[...]))"
  }

  private static let scope = "https://www.googleapis.com/auth/firebase.messaging"

  private func token(_ address: ServerAddress) async throws -> String {
    let grant = "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
    let answer = try await address.request(
      "POST", "/token", headers: ["content-type": "application/x-www-form-urlencoded"],
      body:
        "grant_type=\(grant)&assertion=\(try assertion(address, from: Int64(Date().timeIntervalSince1970)))")
    return try #require(try json(answer)["access_token"]?.string, "\(answer)")
  }

  private func send(
    _ address: ServerAddress, _ token: String, _ message: String, id: String? = nil
  ) async throws -> TestHTTPAnswer {
    var headers = ["authorization": "Bearer \(token)", "content-type": "application/json"]
    if let id { headers["x-weir-message-id"] = id }
    return try await address.request(
      "POST", "/v1/projects/\(address.projectID)/messages:send", headers: headers,
      body: "{\"message\":\(message)}")
  }

  private func sendLegacy(_ address: ServerAddress, _ body: String) async throws -> TestHTTPAnswer {
    try await address.request(
      "POST", "/fcm/send",
      headers: [
        "authorization": "key=\(try address.secret("server-key"))", "content-type": "application/json",
      ],
      body: body)
  }

  private func arm(_ address: ServerAddress, _ fault: String) async throws {
    let answer = try await address.administer("POST", "/admin/v1/faults", body: fault)
    #expect((200...201).contains(answer.status), "\(answer)")
  }

  // MARK: Ids

  @Test func aRetryAfterAHiddenSuccessIsDeliveredOnce() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let stream = try await address.connect(device)
      let token = try await token(address)
      let message = "{\"token\":\"\(device.token)\",\"data\":{\"n\":\"1\"}}"
      try await arm(address, "{\"kind\":\"unavailable\",\"retry_after\":\"1\"}")
      let first = try await send(address, token, message, id: "once")
      #expect(first.status == 503)
      #expect(first.headers["retry-after"] == "1")
      #expect(try json(first)["error"]?["status"] == "UNAVAILABLE")
      let second = try await send(address, token, message, id: "once")
      #expect(second.status == 200)
      #expect(try json(second)["name"]?.string == "projects/\(address.projectID)/messages/once")
      // The stream knows the id as well.
      let sender = try await address.connectAppServer()
      sender.sendMessage(to: device.token, id: "once", data: ["n": "again"])
      #expect(try await sender.nextPayload()["message_type"] == "ack")
      #expect(try await send(address, token, message.replacing("\"1\"", with: "\"last\"")).status == 200)
      let delivered = try await stream.nextPayload()
      #expect(delivered["data", "n"] == "1")
      stream.acknowledgeDelivery(delivered)
      #expect(try await stream.nextPayload()["data", "n"] == "last")
    }
  }

  @Test func tokensAndIdsAreKnownAfterAKill() async throws {
    let server = try await ServerProcess.start()
    let device = try await server.address.registerDevice()
    let token = try await token(server.address)
    let message = "{\"token\":\"\(device.token)\",\"data\":{\"n\":\"1\"}}"
    let first = try await send(server.address, token, message, id: "kept")
    #expect(first.status == 200)
    try await server.kill()
    try await server.restart()
    // The access token and the id are as good as before, and the message is there once.
    #expect(try await send(server.address, token, message, id: "kept").body == first.body)
    #expect(try await send(server.address, token, "{\"token\":\"\(device.token)\"}").status == 200)
    let stream = try await server.address.connect(device)
    let delivered = try await stream.nextPayload()
    #expect(delivered["data", "n"] == "1")
    stream.acknowledgeDelivery(delivered)
    #expect(try await stream.nextPayload()["data"] == nil)
    _ = try await server.terminate()
  }

  // MARK: Rates and faults

  @Test func aProjectOverItsRateIsToldWhenToComeBack() async throws {
    try await TestServer.run {
      $0.limits["project-messages-per-minute"] = 3
    } _: { address in
      let device = try await address.registerDevice()
      let token = try await token(address)
      for _ in 0..<3 {
        #expect(try await send(address, token, "{\"token\":\"\(device.token)\"}").status == 200)
      }
      let refused = try await send(address, token, "{\"token\":\"\(device.token)\"}")
      #expect(refused.status == 429)
      #expect((1...60).contains(try #require(refused.headers["retry-after"].flatMap { Int($0) })))
      #expect(try json(refused)["error"]?["status"] == "RESOURCE_EXHAUSTED")
      #expect(refused.body.contains("QUOTA_EXCEEDED"))
      let legacy = try await sendLegacy(address, "{\"registration_ids\":[\"\(device.token)\"]}")
      #expect(legacy.status == 503)
      #expect(legacy.headers["retry-after"] != nil)
    }
  }

  @Test(arguments: [
    ("5", "5"), ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT"), ("-1", "-1"),
    ("abc", "abc"), ("0", "0"), ("3600", "3600"),
  ])
  func everyFormOfRetryAfterCanBeAskedFor(_ text: String, _ wanted: String) async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let token = try await token(address)
      for status in [503, 429, 500] {
        try await arm(
          address, "{\"kind\":\"unavailable\",\"status\":\(status),\"retry_after\":\"\(text)\"}")
        let answer = try await send(address, token, "{\"token\":\"\(device.token)\"}")
        #expect(answer.status == status)
        #expect(answer.headers["retry-after"] == wanted)
      }
    }
  }

  @Test func everyNackCanBeAskedFor() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let token = try await token(address)
      for code in NackCode.allCases where code.isSent {
        let order = "{\"kind\":\"nack\",\"code\":\"\(code.rawValue)\"}"
        try await arm(address, order)
        let answer = try await send(address, token, "{\"token\":\"\(device.token)\"}")
        #expect(answer.status == V1Answer.fault(for: code, "").httpStatus, "\(code)")
        try await arm(address, order)
        let legacy = try await sendLegacy(address, "{\"to\":\"\(device.token)\"}")
        #expect(
          try json(legacy)["results"]?[0]?["error"]?.string == LegacyAnswer.error(for: code, ""), "\(code)")
      }
    }
  }

  @Test func anAnswerCanBeDelayedOrNeverCome() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let token = try await token(address)
      try await arm(address, "{\"kind\":\"delay\",\"delay_ms\":300}")
      let start = ContinuousClock.now
      #expect(try await send(address, token, "{\"token\":\"\(device.token)\"}").status == 200)
      #expect(ContinuousClock.now - start >= .milliseconds(300))
      try await arm(address, "{\"kind\":\"drop_ack\"}")
      // The connection ends without an answer.
      await #expect(throws: (any Error).self) {
        _ = try await send(address, token, "{\"token\":\"\(device.token)\"}")
      }
      #expect(try await send(address, token, "{\"token\":\"\(device.token)\"}").status == 200)
    }
  }

  @Test func subscriptionsOverTheRateAreToldWhenToComeBack() async throws {
    try await TestServer.run {
      $0.limits["topic-changes-per-second"] = 2
    } _: { address in
      let device = try await address.registerDevice()
      let headers = ["authorization": "key=\(try address.secret("server-key"))"]
      let body = "{\"to\":\"a\",\"registration_tokens\":[\"\(device.token)\",\"x\",\"y\"]}"
      // At once, since the second may be over before a slow machine asks again. The first is taken, whatever its size.
      let answers = try await withThrowingTaskGroup(of: TestHTTPAnswer.self) { group in
        for _ in 0..<8 {
          group.addTask {
            try await address.request("POST", "/iid/v1:batchAdd", headers: headers, body: body)
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(answers.contains { $0.status == 200 })
      let refused = try #require(answers.first { $0.status != 200 })
      #expect(refused.status == 429)
      #expect(refused.body == "{\"error\":\"RESOURCE_EXHAUSTED\"}")
      #expect(refused.headers["retry-after"] != nil)
    }
  }

  // MARK: Limits and times

  @Test func aMulticastOfAThousandIsAnsweredInOrder() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      var ids: [String] = []
      for index in 0..<1_000 { ids.append(index % 100 == 0 ? device.token : "malformed-\(index)") }
      let list = ids.map { "\"\($0)\"" }.joined(separator: ",")
      let answer = try await sendLegacy(address, "{\"registration_ids\":[\(list)],\"data\":{\"a\":\"1\"}}")
      let value = try json(answer)
      #expect(value["success"]?.int == 10)
      #expect(value["failure"]?.int == 990)
      let results = try #require(value["results"]?.array)
      #expect(results.count == 1_000)
      for (index, result) in results.enumerated() {
        #expect((result["message_id"] != nil) == (index % 100 == 0))
      }
    }
  }

  @Test func aTimeToLiveOfZeroIsNeverStored() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let token = try await token(address)
      let now = "{\"token\":\"\(device.token)\",\"android\":{\"ttl\":\"0s\"},\"data\":{\"n\":\"now\"}}"
      #expect(try await send(address, token, now).status == 200)
      #expect(
        try await send(address, token, "{\"token\":\"\(device.token)\",\"data\":{\"n\":\"kept\"}}").status
          == 200)
      let stream = try await address.connect(device)
      let delivered = try await stream.nextPayload()
      #expect(delivered["data", "n"] == "kept")
      stream.acknowledgeDelivery(delivered)
      #expect(try await send(address, token, now).status == 200)
      #expect(try await stream.nextPayload()["data", "n"] == "now")
    }
  }

  @Test func theLeewayOfClocksIsASetting() async throws {
    try await TestServer.run {
      $0.limits["assertion-leeway-seconds"] = 1
    } _: { address in
      let grant = "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
      let ahead = try assertion(address, from: Int64(Date().timeIntervalSince1970) + 120)
      let answer = try await address.request(
        "POST", "/token", body: "grant_type=\(grant)&assertion=\(ahead)")
      #expect(answer.status == 400)
      #expect(try json(answer)["error"] == "invalid_grant")
    }
  }

  @Test func testModeTakesAnyTokenForAnyProject() async throws {
    try await TestServer.run {
      $0.acceptsAnyBearer = true
    } _: { address in
      let device = try await address.registerDevice()
      #expect(try await send(address, "anything", "{\"token\":\"\(device.token)\"}").status == 200)
      let legacy = try await address.request(
        "POST", "/fcm/send",
        headers: [
          "authorization": "Bearer anything", "access_token_auth": "true", "content-type": "application/json",
        ], body: "{\"to\":\"\(device.token)\"}")
      #expect(try json(legacy)["success"]?.int == 1)
    }
    try await TestServer.run { address in
      let answer = try await send(address, "anything", "{\"topic\":\"a\"}")
      #expect(answer.status == 401)
    }
  }

  @Test func theDescriptionNamesEveryRouteOfTheServer() async throws {
    try await TestServer.run { address in
      let document = try json(try await address.request("GET", "/openapi.json"))
      for path in try #require(document["paths"]?.members) {
        let concrete = path.name.replacing("{project}", with: address.projectID)
          .replacing("{token}", with: "t").replacing("{topic}", with: "a")
        for operation in path.value.members ?? [] {
          let answer = try await address.request(operation.name.uppercased(), concrete)
          // Refused for want of a credential or a body, and never for want of a route.
          #expect(answer.status != 405, "\(operation.name) \(path.name)")
          #expect(!answer.body.contains("There is nothing at this path"), "\(operation.name) \(path.name)")
        }
      }
    }
  }
}
