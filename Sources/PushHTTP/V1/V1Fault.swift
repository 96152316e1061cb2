package import JSONCore

/// Why an HTTP v1 request is refused: status, text and details, as Google's APIs tell errors.
package struct V1Fault: Error, Hashable, Sendable {
  package struct Violation: Hashable, Sendable {
    /// Path of the field; nil where none is named.
    package var field: String?
    package var description: String

    package init(_ field: String?, _ description: String) {
      self.field = field
      self.description = description
    }
  }

  package enum Detail: Hashable, Sendable {
    case badRequest([Violation])
    /// FCM's own code.
    case fcm(String)
    case info(reason: String, domain: String, metadata: [String])
    case quota(subject: String, description: String)
    case apns(statusCode: Int, reason: String)
  }

  package var httpStatus: Int
  /// `error.status`.
  package var status: String
  package var message: String
  package var details: [Detail]
  /// Of the header `WWW-Authenticate`.
  package var challenge: String?
  /// Seconds of the header `Retry-After`.
  package var retryAfter: Int?

  package init(
    _ httpStatus: Int, _ status: String, _ message: String, _ details: [Detail] = [],
    challenge: String? = nil, retryAfter: Int? = nil
  ) {
    self.httpStatus = httpStatus
    self.status = status
    self.message = message
    self.details = details
    self.challenge = challenge
    self.retryAfter = retryAfter
  }

  // MARK: Requests at fault

  /// A value that a rule of FCM forbids.
  package static func invalid(_ message: String, field: String?) -> V1Fault {
    V1Fault(
      400, "INVALID_ARGUMENT", message,
      [.badRequest([Violation(field, message)]), .fcm("INVALID_ARGUMENT")])
  }

  package static let noTarget = invalid("Recipient of the message is not set.", field: "message")
  package static let malformedTopic = invalid("Topic name contains invalid characters.", field: "message")

  /// Captured without any details.
  package static let malformedCondition = V1Fault(
    400, "INVALID_ARGUMENT", "Request contains an invalid argument.")

  /// Captured with its two details in this order.
  package static func malformedToken(field: String = "message.token") -> V1Fault {
    let text = "The registration token is not a valid FCM registration token"
    return V1Fault(
      400, "INVALID_ARGUMENT", text, [.fcm("INVALID_ARGUMENT"), .badRequest([Violation(field, text)])])
  }

  /// Captured with a BadRequest that names no field.
  package static func tooLarge(limit: Int) -> V1Fault {
    V1Fault(
      400, "INVALID_ARGUMENT", "Message is too large. The maximum is \(limit / 1_024)K (\(limit) bytes).",
      [.badRequest([]), .fcm("INVALID_ARGUMENT")])
  }

  // MARK: Messages that cannot be taken

  package static let unregistered = V1Fault(
    404, "NOT_FOUND", "Requested entity was not found.", [.fcm("UNREGISTERED")])
  package static let senderMismatch = V1Fault(
    403, "PERMISSION_DENIED", "SenderId mismatch", [.fcm("SENDER_ID_MISMATCH")])
  package static let internalFault = V1Fault(
    500, "INTERNAL", "Internal error encountered.", [.fcm("INTERNAL")])

  package static func unavailable(retryAfter: Int? = 1) -> V1Fault {
    V1Fault(
      503, "UNAVAILABLE", "The service is currently unavailable.", [.fcm("UNAVAILABLE")],
      retryAfter: retryAfter)
  }

  package static func quota(_ message: String, subject: String, retryAfter: Int? = 60) -> V1Fault {
    V1Fault(
      429, "RESOURCE_EXHAUSTED", message,
      [.quota(subject: subject, description: message), .fcm("QUOTA_EXCEEDED")], retryAfter: retryAfter)
  }

  package static let thirdParty = V1Fault(
    401, "UNAUTHENTICATED", "Auth error from APNS or Web Push Service",
    [.fcm("THIRD_PARTY_AUTH_ERROR"), .apns(statusCode: 403, reason: "InvalidProviderToken")])

  // MARK: Callers that may not

  private static let expected =
    "Expected OAuth 2 access token, login cookie or other valid authentication credential. "
    + "See https://developers.google.com/identity/sign-in/web/devconsole-project."

  private static func info(_ reason: String) -> Detail {
    .info(
      reason: reason, domain: "googleapis.com",
      metadata: [
        "method", "google.firebase.fcm.v1.FcmService.SendMessage", "service", "fcm.googleapis.com",
      ])
  }

  package static let noCredentials = V1Fault(
    401, "UNAUTHENTICATED", "Request is missing required authentication credential. \(expected)",
    [info("CREDENTIALS_MISSING")], challenge: "Bearer realm=\"https://accounts.google.com/\"")
  package static let badCredentials = V1Fault(
    401, "UNAUTHENTICATED", "Request had invalid authentication credentials. \(expected)",
    challenge: "Bearer realm=\"https://accounts.google.com/\", error=\"invalid_token\"")
  package static let expiredCredentials = V1Fault(
    401, "UNAUTHENTICATED", "Request had invalid authentication credentials. \(expected)",
    [info("ACCESS_TOKEN_EXPIRED")],
    challenge: "Bearer realm=\"https://accounts.google.com/\", error=\"invalid_token\"")
  package static let insufficientScope = V1Fault(
    403, "PERMISSION_DENIED", "Request had insufficient authentication scopes.",
    [info("ACCESS_TOKEN_SCOPE_INSUFFICIENT")],
    challenge: "Bearer realm=\"https://accounts.google.com/\", error=\"insufficient_scope\"")

  /// The project is another one than the credential's, or there is none of this name.
  package static func noPermission(project: String) -> V1Fault {
    V1Fault(
      403, "PERMISSION_DENIED",
      "Permission to send messages denied on project '\(project)' (or it may not exist).",
      [
        .info(
          reason: "IAM_PERMISSION_DENIED", domain: "iam.googleapis.com",
          metadata: ["permission", "cloudmessaging.messages.create"])
      ])
  }
}

extension V1Fault {
  /// The body, in the order of members that Google's front end writes.
  package var json: JSONValue {
    var error: [JSONValue.Member] = [
      .init("code", .number(httpStatus)), .init("message", .string(message)),
      .init("status", .string(status)),
    ]
    if !details.isEmpty { error.append(.init("details", .array(details.map(\.json)))) }
    return ["error": .object(error)]
  }
}

extension V1Fault.Detail {
  var json: JSONValue {
    switch self {
    case .badRequest(let violations):
      var members: [JSONValue.Member] = [.init("@type", "type.googleapis.com/google.rpc.BadRequest")]
      if !violations.isEmpty {
        let list = violations.map { violation -> JSONValue in
          guard let field = violation.field else { return ["description": .string(violation.description)] }
          return ["field": .string(field), "description": .string(violation.description)]
        }
        members.append(.init("fieldViolations", .array(list)))
      }
      return .object(members)
    case .fcm(let code):
      return [
        "@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": .string(code),
      ]
    case .info(let reason, let domain, let metadata):
      var pairs: [JSONValue.Member] = []
      for index in stride(from: 0, to: metadata.count - 1, by: 2) {
        pairs.append(.init(metadata[index], .string(metadata[index + 1])))
      }
      return [
        "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": .string(reason),
        "domain": .string(domain), "metadata": .object(pairs),
      ]
    case .quota(let subject, let description):
      return [
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [["subject": .string(subject), "description": .string(description)]],
      ]
    case .apns(let statusCode, let reason):
      return [
        "@type": "type.googleapis.com/google.firebase.fcm.v1.ApnsError", "statusCode": .number(statusCode),
        "reason": .string(reason),
      ]
    }
  }
}
