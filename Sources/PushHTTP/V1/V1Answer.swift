import Bytes
package import HTTPCore
import JSONCore
package import PushModel

/// Responses of HTTP v1.
package enum V1Answer {
  static let contentType = "application/json; charset=UTF-8"

  /// `{"name":"projects/P/messages/ID"}`.
  ///
  /// - Parameter isPretty: Over lines, as answers come unless `prettyPrint=false` is asked for.
  package static func sent(project: String, messageID: String, isPretty: Bool) -> HTTPResponse {
    var writer = ByteWriter(capacity: 128)
    writer.append(isPretty ? "{\n  \"name\": \"projects/" : "{\"name\":\"projects/")
    writer.append(jsonEscaped: project)
    writer.append("/messages/")
    writer.append(jsonEscaped: messageID)
    writer.append(isPretty ? "\"\n}\n" : "\"}\n")
    var fields = HTTPFields()
    fields.append("content-type", contentType)
    return HTTPResponse(status: 200, fields: fields, body: writer.take())
  }

  package static func fault(_ fault: V1Fault, isPretty: Bool = true) -> HTTPResponse {
    var fields = HTTPFields()
    fields.append("content-type", contentType)
    if let challenge = fault.challenge { fields.append("www-authenticate", challenge) }
    if let seconds = fault.retryAfter { fields.append("retry-after", String(seconds)) }
    let json = fault.json
    return HTTPResponse(
      status: fault.httpStatus, fields: fields,
      body: isPretty ? json.prettyBytes : json.bytes + [UInt8(ascii: "\n")])
  }

  /// What a nack of the stream is over HTTP v1.
  package static func fault(for code: NackCode, _ description: String) -> V1Fault {
    switch code {
    case .deviceUnregistered: .unregistered
    case .badRegistration: .malformedToken()
    case .senderIDMismatch: .senderMismatch
    case .invalidJSON, .badAck: .invalid(description, field: "message")
    case .serviceUnavailable, .connectionDraining: .unavailable()
    case .internalServerError: .internalFault
    case .deviceMessageRateExceeded: .quota(description, subject: "device", retryAfter: 60)
    case .topicsMessageRateExceeded: .quota("Topic quota exceeded.", subject: "topic", retryAfter: 60)
    case .quotaExceeded: .quota(description, subject: "project", retryAfter: 60)
    case .invalidAPNSCredential, .authenticationFailed: .thirdParty
    }
  }
}
