import HTTPCore
import JSONCore
import PushHTTP
import PushModel
import Testing

/// Bodies and headers of HTTP v1, byte for byte.
struct V1AnswerTests {
  @Test func aNameComesOverLines() {
    let response = V1Answer.sent(project: "demo", messageID: "0:1%a", isPretty: true)
    #expect(text(response) == "{\n  \"name\": \"projects/demo/messages/0:1%a\"\n}\n")
    #expect(response.fields["content-type"] == "application/json; charset=UTF-8")
    let short = V1Answer.sent(project: "demo", messageID: "0:1%a", isPretty: false)
    #expect(text(short) == "{\"name\":\"projects/demo/messages/0:1%a\"}\n")
  }

  @Test func theGeneralFormOfErrors() {
    let response = V1Answer.fault(.noTarget)
    #expect(response.status == 400)
    #expect(
      text(response) == """
        {
          "error": {
            "code": 400,
            "message": "Recipient of the message is not set.",
            "status": "INVALID_ARGUMENT",
            "details": [
              {
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [
                  {
                    "field": "message",
                    "description": "Recipient of the message is not set."
                  }
                ]
              },
              {
                "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError",
                "errorCode": "INVALID_ARGUMENT"
              }
            ]
          }
        }

        """)
  }

  /// As captured from the service, in one line.
  @Test(arguments: [
    (
      V1Fault.malformedToken(),
      "{\"error\":{\"code\":400,\"message\":\"The registration token is not a valid FCM registration token\",\"status\":\"INVALID_ARGUMENT\",\"details\":[{\"@type\":\"type.googleapis.com/google.firebase.fcm.v1.FcmError\",\"errorCode\":\"INVALID_ARGUMENT\"},{\"@type\":\"type.googleapis.com/google.rpc.BadRequest\",\"fieldViolations\":[{\"field\":\"message.token\",\"description\":\"The registration token is not a valid FCM registration token\"}]}]}}"
    ),
    (
      .malformedTopic,
      "{\"error\":{\"code\":400,\"message\":\"Topic name contains invalid characters.\",\"status\":\"INVALID_ARGUMENT\",\"details\":[{\"@type\":\"type.googleapis.com/google.rpc.BadRequest\",\"fieldViolations\":[{\"field\":\"message\",\"description\":\"Topic name contains invalid characters.\"}]},{\"@type\":\"type.googleapis.com/google.firebase.fcm.v1.FcmError\",\"errorCode\":\"INVALID_ARGUMENT\"}]}}"
    ),
    (
      .malformedCondition,
      "{\"error\":{\"code\":400,\"message\":\"Request contains an invalid argument.\",\"status\":\"INVALID_ARGUMENT\"}}"
    ),
    (
      .tooLarge(limit: 4_096),
      "{\"error\":{\"code\":400,\"message\":\"Message is too large. The maximum is 4K (4096 bytes).\",\"status\":\"INVALID_ARGUMENT\",\"details\":[{\"@type\":\"type.googleapis.com/google.rpc.BadRequest\"},{\"@type\":\"type.googleapis.com/google.firebase.fcm.v1.FcmError\",\"errorCode\":\"INVALID_ARGUMENT\"}]}}"
    ),
    (
      .unregistered,
      "{\"error\":{\"code\":404,\"message\":\"Requested entity was not found.\",\"status\":\"NOT_FOUND\",\"details\":[{\"@type\":\"type.googleapis.com/google.firebase.fcm.v1.FcmError\",\"errorCode\":\"UNREGISTERED\"}]}}"
    ),
    (
      .senderMismatch,
      "{\"error\":{\"code\":403,\"message\":\"SenderId mismatch\",\"status\":\"PERMISSION_DENIED\",\"details\":[{\"@type\":\"type.googleapis.com/google.firebase.fcm.v1.FcmError\",\"errorCode\":\"SENDER_ID_MISMATCH\"}]}}"
    ),
  ])
  func capturedBodies(_ fault: V1Fault, _ body: String) {
    #expect(text(V1Answer.fault(fault, isPretty: false)) == body + "\n")
  }

  @Test func aMissingCredentialIsToldWithItsChallenge() throws {
    let response = V1Answer.fault(.noCredentials)
    #expect(response.status == 401)
    #expect(response.fields["www-authenticate"] == "Bearer realm=\"https://accounts.google.com/\"")
    let error = try #require(try JSONValue(parsing: response.body)["error"])
    #expect(error["status"] == "UNAUTHENTICATED")
    #expect(
      error["message"]?.string
        == "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or other valid authentication credential. See https://developers.google.com/identity/sign-in/web/devconsole-project."
    )
    #expect(error["details"]?[0]?["reason"] == "CREDENTIALS_MISSING")
    #expect(error["details"]?[0]?["metadata"]?["service"] == "fcm.googleapis.com")
  }

  @Test func onlyAnExpiredTokenIsCalledExpired() {
    #expect(!text(V1Answer.fault(.badCredentials)).contains("EXPIRED"))
    #expect(text(V1Answer.fault(.expiredCredentials)).contains("ACCESS_TOKEN_EXPIRED"))
    #expect(
      V1Answer.fault(.badCredentials).fields["www-authenticate"]?.contains("error=\"invalid_token\"") == true)
  }

  @Test(arguments: NackCode.allCases)
  func everyNackHasAnAnswer(_ code: NackCode) {
    let fault = V1Answer.fault(for: code, "text")
    #expect((400...599).contains(fault.httpStatus))
    let carriesCode = fault.details.contains { if case .fcm = $0 { true } else { false } }
    #expect(carriesCode)
    let hasPause = fault.httpStatus == 429 || fault.httpStatus == 503
    #expect((fault.retryAfter != nil) == hasPause)
  }

  @Test func aQuotaIsToldWithTheTimeToWait() {
    let response = V1Answer.fault(.quota("Topic quota exceeded.", subject: "topic", retryAfter: 7))
    #expect(response.status == 429)
    #expect(response.fields["retry-after"] == "7")
    #expect(text(response).contains("\"errorCode\": \"QUOTA_EXCEEDED\""))
    #expect(text(response).contains("google.rpc.QuotaFailure"))
    #expect(text(response).contains("RESOURCE_EXHAUSTED"))
  }
}
