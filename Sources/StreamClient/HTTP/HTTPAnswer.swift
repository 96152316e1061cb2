import DeliveryCore
import JSONCore
import PushModel

/// An answer of the server to one send, and what it means.
struct HTTPAnswer: Sendable {
  var status: Int
  var body: [UInt8]
  var retryAfter: [String] = []
  var date: String?

  enum Meaning: Equatable, Sendable {
    case acked(registrationID: String?)
    /// The condition by the name that the stream protocol has for it.
    case refused(Nack)
    /// The access token is too old: another one may do.
    case tokenExpired(Nack)
  }

  // MARK: HTTP v1

  /// - Source: FCM, HTTP v1 error codes.
  func meaningOfV1() -> Meaning {
    if status == 200 { return .acked(registrationID: nil) }
    let error = (try? JSONValue(parsing: body))?["error"]
    let details = error?["details"]?.array ?? []
    func detail(_ name: String, _ member: String) -> String? {
      details.first { $0["@type"]?.string?.hasSuffix(name) == true }?[member]?.string
    }
    let code = detail("google.firebase.fcm.v1.FcmError", "errorCode") ?? error?["status"]?.string ?? ""
    let text = error?["message"]?.string ?? "status \(status)"
    if status == 401, code != "THIRD_PARTY_AUTH_ERROR" {
      let nack = Nack(code: NackCode.authenticationFailed.rawValue, text: text)
      return detail("google.rpc.ErrorInfo", "reason") == "ACCESS_TOKEN_EXPIRED"
        ? .tokenExpired(nack) : .refused(nack)
    }
    return .refused(Nack(code: Self.v1Code(code, status, isToken: namesToken(details)).rawValue, text: text))
  }

  private func namesToken(_ details: [JSONValue]) -> Bool {
    details.contains { detail in
      detail["fieldViolations"]?.array?.contains { $0["field"]?.string == "message.token" } == true
    }
  }

  private static func v1Code(_ code: String, _ status: Int, isToken: Bool) -> NackCode {
    switch code {
    case "UNREGISTERED": return .deviceUnregistered
    case "SENDER_ID_MISMATCH": return .senderIDMismatch
    case "QUOTA_EXCEEDED", "RESOURCE_EXHAUSTED": return .deviceMessageRateExceeded
    case "UNAVAILABLE": return .serviceUnavailable
    case "INTERNAL": return .internalServerError
    case "THIRD_PARTY_AUTH_ERROR": return .invalidAPNSCredential
    case "INVALID_ARGUMENT": return isToken ? .badRegistration : .invalidJSON
    case "PERMISSION_DENIED": return .authenticationFailed
    default: return byStatus(status)
    }
  }

  private static func byStatus(_ status: Int) -> NackCode {
    switch status {
    case 401, 403: .authenticationFailed
    case 429: .deviceMessageRateExceeded
    case 500: .internalServerError
    case 501..., 408: .serviceUnavailable
    default: .invalidJSON
    }
  }

  // MARK: Legacy

  /// - Source: FCM, legacy HTTP response parameters and error codes.
  func meaningOfLegacy() -> Meaning {
    guard status == 200 else {
      let text = status == 400 ? String(decoding: body.prefix(200), as: UTF8.self) : "status \(status)"
      return .refused(Nack(code: Self.byStatus(status).rawValue, text: text))
    }
    guard let value = try? JSONValue(parsing: body), value.members != nil else {
      return .refused(Nack(code: NackCode.internalServerError.rawValue, text: "the answer is no JSON"))
    }
    if let result = value["results"]?.array?.first {
      if let error = result["error"]?.string { return .refused(Self.legacyNack(error)) }
      return .acked(registrationID: result["registration_id"]?.string)
    }
    if let error = value["error"]?.string { return .refused(Self.legacyNack(error)) }
    if value["message_id"] != nil { return .acked(registrationID: nil) }
    if let success = value["success"]?.int, success > 0 { return .acked(registrationID: nil) }
    return .refused(
      Nack(code: NackCode.deviceUnregistered.rawValue, text: "no device of the group was reached"))
  }

  private static func legacyNack(_ error: String) -> Nack {
    let code: NackCode =
      switch error {
      case "NotRegistered": .deviceUnregistered
      case "InvalidRegistration": .badRegistration
      case "MismatchSenderId": .senderIDMismatch
      case "Unavailable": .serviceUnavailable
      case "InternalServerError": .internalServerError
      case "DeviceMessageRateExceeded": .deviceMessageRateExceeded
      case "TopicsMessageRateExceeded": .topicsMessageRateExceeded
      case "InvalidApnsCredential": .invalidAPNSCredential
      default: .invalidJSON
      }
    return Nack(code: code.rawValue, text: error)
  }
}
