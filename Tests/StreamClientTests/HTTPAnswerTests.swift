import Connections
import DeliveryCore
import JSONCore
import Testing

@testable import StreamClient

struct HTTPAnswerTests {
  private func v1(_ status: Int, _ error: String) -> HTTPAnswer.Meaning {
    HTTPAnswer(status: status, body: Array(error.utf8)).meaningOfV1()
  }

  private func code(_ meaning: HTTPAnswer.Meaning) -> String? {
    switch meaning {
    case .refused(let nack): nack.code
    case .tokenExpired: "expired"
    case .acked: nil
    }
  }

  /// Bodies as the service answers them.
  @Test(arguments: [
    (404, "NOT_FOUND", "UNREGISTERED", "", "DEVICE_UNREGISTERED"),
    (403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH", "", "SENDER_ID_MISMATCH"),
    (400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "message.token", "BAD_REGISTRATION"),
    (400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "message", "INVALID_JSON"),
    (429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", "", "DEVICE_MESSAGE_RATE_EXCEEDED"),
    (503, "UNAVAILABLE", "UNAVAILABLE", "", "SERVICE_UNAVAILABLE"),
    (500, "INTERNAL", "INTERNAL", "", "INTERNAL_SERVER_ERROR"),
    (401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR", "", "INVALID_APNS_CREDENTIAL"),
  ])
  func anErrorOfV1HasTheNameThatStreamsGiveIt(
    _ status: Int, _ name: String, _ code: String, _ field: String, _ nack: String
  ) {
    let body =
      "{\"error\":{\"code\":\(status),\"message\":\"m\",\"status\":\"\(name)\",\"details\":["
      + "{\"@type\":\"type.googleapis.com/google.rpc.BadRequest\",\"fieldViolations\":[{\"field\":\"\(field)\"}]},"
      + "{\"@type\":\"type.googleapis.com/google.firebase.fcm.v1.FcmError\",\"errorCode\":\"\(code)\"}]}}"
    #expect(v1(status, body) == .refused(Nack(code: nack, text: "m")))
  }

  @Test func answersThatAreNoErrorsOfTheServiceAreSortedByStatus() {
    #expect(v1(200, "{\"name\":\"projects/p/messages/1\"}") == .acked(registrationID: nil))
    #expect(code(v1(502, "<html>")) == "SERVICE_UNAVAILABLE")
    #expect(code(v1(500, "")) == "INTERNAL_SERVER_ERROR")
    #expect(code(v1(429, "")) == "DEVICE_MESSAGE_RATE_EXCEEDED")
    #expect(code(v1(413, "413\n")) == "INVALID_JSON")
    #expect(code(v1(404, "{\"error\":{\"status\":\"NOT_FOUND\"}}")) == "INVALID_JSON")
    let expired =
      "{\"error\":{\"status\":\"UNAUTHENTICATED\",\"message\":\"old\",\"details\":"
      + "[{\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\",\"reason\":\"ACCESS_TOKEN_EXPIRED\"}]}}"
    #expect(code(v1(401, expired)) == "expired")
    #expect(code(v1(401, expired.replacing("EXPIRED", with: "WRONG"))) == "AUTHENTICATION_FAILED")
    #expect(code(v1(403, "{\"error\":{\"status\":\"PERMISSION_DENIED\"}}")) == "AUTHENTICATION_FAILED")
  }

  @Test(
    arguments: [
      ("{\"results\":[{\"message_id\":\"0:1\"}]}", nil),
      ("{\"message_id\":6538048937293473000}", nil),
      ("{\"success\":1,\"failure\":2}", nil),
      ("{\"success\":0,\"failure\":2}", "DEVICE_UNREGISTERED"),
      ("{\"results\":[{\"error\":\"NotRegistered\"}]}", "DEVICE_UNREGISTERED"),
      ("{\"results\":[{\"error\":\"InvalidRegistration\"}]}", "BAD_REGISTRATION"),
      ("{\"results\":[{\"error\":\"MismatchSenderId\"}]}", "SENDER_ID_MISMATCH"),
      ("{\"results\":[{\"error\":\"Unavailable\"}]}", "SERVICE_UNAVAILABLE"),
      ("{\"results\":[{\"error\":\"InternalServerError\"}]}", "INTERNAL_SERVER_ERROR"),
      ("{\"results\":[{\"error\":\"DeviceMessageRateExceeded\"}]}", "DEVICE_MESSAGE_RATE_EXCEEDED"),
      ("{\"error\":\"TopicsMessageRateExceeded\"}", "TOPICS_MESSAGE_RATE_EXCEEDED"),
      ("{\"results\":[{\"error\":\"InvalidApnsCredential\"}]}", "INVALID_APNS_CREDENTIAL"),
      ("{\"results\":[{\"error\":\"MessageTooBig\"}]}", "INVALID_JSON"),
      ("not JSON", "INTERNAL_SERVER_ERROR"),
    ] as [(String, String?)])
  func aLegacyAnswerHasTheSameNames(_ body: String, _ nack: String?) {
    #expect(code(HTTPAnswer(status: 200, body: Array(body.utf8)).meaningOfLegacy()) == nack)
  }

  @Test func aLegacyAnswerMayBringANewToken() {
    let body = "{\"results\":[{\"message_id\":\"0:1\",\"registration_id\":\"new\"}]}"
    #expect(
      HTTPAnswer(status: 200, body: Array(body.utf8)).meaningOfLegacy() == .acked(registrationID: "new"))
    #expect(code(HTTPAnswer(status: 401, body: []).meaningOfLegacy()) == "AUTHENTICATION_FAILED")
    #expect(code(HTTPAnswer(status: 503, body: []).meaningOfLegacy()) == "SERVICE_UNAVAILABLE")
    #expect(code(HTTPAnswer(status: 400, body: []).meaningOfLegacy()) == "INVALID_JSON")
  }

  /// Every form of Retry-After.
  @Test(
    arguments: [
      (["5"], nil, 5), (["3600"], nil, 3_600), (["0"], nil, 0), (["-1"], nil, nil), (["abc"], nil, nil),
      ([], nil, nil), ([""], nil, nil), (["5", "6"], nil, nil), (["5", "5"], nil, 5), (["1.5"], nil, nil),
      (["99999999999999999999"], nil, 1_000_000_000),
      // Compared with the answer's own date, or with our clock.
      (["Sun, 06 Nov 1994 08:49:42 GMT"], "Sun, 06 Nov 1994 08:49:37 GMT", 5),
      (["Sun, 06 Nov 1994 08:49:42 GMT"], nil, 5),
      (["Sunday, 06-Nov-94 08:49:42 GMT"], nil, 5), (["Sun Nov  6 08:49:42 1994"], nil, 5),
      (["Sun, 06 Nov 1994 08:49:30 GMT"], nil, 0), (["Sun, 06 Nov"], nil, nil), (["tomorrow"], nil, nil),
    ] as [([String], String?, Int?)])
  func aWaitIsReadInItsForms(_ fields: [String], _ date: String?, _ seconds: Int?) {
    // 08:49:37 of that day.
    #expect(RetryAfter.wait(fields, date: date, now: 784_111_777) == seconds.map { .seconds($0) })
  }

  // MARK: Bodies

  private func v1Body(_ message: String) throws -> JSONValue {
    try JSONValue(parsing: HTTPBody.v1(try JSONValue(parsing: message), now: 1_000))
  }

  @Test func aMessageMeansTheSameInV1() throws {
    let body = try v1Body(
      """
      {"to":"dev-A:t","message_id":"m","collapse_key":"k","priority":"high","time_to_live":60,"dry_run":true,\
      "content_available":true,"data":{"a":"1"},"notification":{"title":"T","body":"B","icon":"i","badge":"3",\
      "android_channel_id":"c","body_loc_key":"L","body_loc_args":"[\\"x\\",\\"y\\"]"}}
      """)
    let message = try #require(body["message"])
    #expect(body["validate_only"]?.bool == true)
    #expect(message["token"]?.string == "dev-A:t" && message["message_id"] == nil)
    #expect(message["data"]?["a"]?.string == "1")
    #expect(message["notification"] == ["title": "T", "body": "B"])
    let android = try #require(message["android"])
    #expect(android["ttl"]?.string == "60s" && android["priority"]?.string == "HIGH")
    #expect(android["collapse_key"]?.string == "k")
    #expect(
      android["notification"]
        == ["icon": "i", "channel_id": "c", "body_loc_key": "L", "body_loc_args": ["x", "y"]])
    #expect(
      message["apns"]?["headers"]
        == ["apns-priority": "10", "apns-expiration": "1060", "apns-collapse-id": "k"])
    #expect(message["apns"]?["payload"]?["aps"] == ["content-available": 1, "badge": 3])
    #expect(message["webpush"]?["headers"] == ["TTL": "60", "Urgency": "high"])
  }

  @Test func targetsAreToldApart() throws {
    #expect(try v1Body("{\"to\":\"/topics/news\"}")["message"] == ["topic": "news"])
    #expect(try v1Body("{\"to\":\"/users/7\"}")["message"] == ["user": "7"])
    #expect(try v1Body("{\"condition\":\"'a' in topics\"}")["message"] == ["condition": "'a' in topics"])
    let zero = try v1Body("{\"to\":\"t\",\"time_to_live\":0}")["message"]
    #expect(zero?["android"]?["ttl"]?.string == "0s")
    #expect(zero?["apns"]?["headers"]?["apns-expiration"]?.string == "0")
  }

  @Test func theLegacyFormHasNoMessageIDUnlessItIsWanted() throws {
    let message = try JSONValue(
      parsing: "{\"to\":\"t\",\"message_id\":\"m\",\"delivery_receipt_requested\":false,\"time_to_live\":0}")
    #expect(
      try JSONValue(parsing: HTTPBody.legacy(message, keepsID: false)) == ["to": "t", "time_to_live": 0])
    #expect(
      try JSONValue(parsing: HTTPBody.legacy(message, keepsID: true))
        == ["to": "t", "message_id": "m", "time_to_live": 0])
  }

  @Test func whatOnlyStreamsCanIsRefused() throws {
    var encoder = MessageEncoder(idPrefix: "x-", form: .v1)
    #expect(throws: SendError.self) {
      try encoder.encode(PushMessage(to: .token("dev-A:t"), id: "m", wantsReceipt: true))
    }
    #expect(throws: SendError.self) { try encoder.encode(PushMessage(to: .topic("news"), id: "a b")) }
    #expect(throws: SendError.self) { try encoder.encode(PushMessage(to: .topic("news"), id: "é")) }
    #expect(try encoder.encode(PushMessage(to: .topic("news"))).id == "x-1")
  }
}
