import Bytes
package import HTTPCore
import JSONCore
package import PushModel

/// What became of one receiver of a legacy send.
package enum LegacyResult: Hashable, Sendable {
  /// `canonical` is the token that took the place of the one sent to.
  case sent(messageID: String, canonical: String?)
  case refused(String)
}

/// Responses of legacy HTTP.
package enum LegacyAnswer {
  /// For `to` a token, and for `registration_ids`, in their order.
  package static func multicast(id: Int64, _ results: [LegacyResult]) -> HTTPResponse {
    var failure = 0
    var canonical = 0
    for result in results {
      switch result {
      case .refused: failure += 1
      case .sent(_, let token): if token != nil { canonical += 1 }
      }
    }
    var writer = ByteWriter(capacity: 96 + results.count * 64)
    writer.append("{\"multicast_id\":")
    writer.append(decimal: id)
    writer.append(",\"success\":")
    writer.append(decimal: Int64(results.count - failure))
    writer.append(",\"failure\":")
    writer.append(decimal: Int64(failure))
    writer.append(",\"canonical_ids\":")
    writer.append(decimal: Int64(canonical))
    writer.append(",\"results\":[")
    for (index, result) in results.enumerated() {
      if index > 0 { writer.append(byte: UInt8(ascii: ",")) }
      switch result {
      case .sent(let messageID, let canonical):
        writer.append("{\"message_id\":")
        writer.append(jsonString: messageID)
        if let canonical {
          writer.append(",\"registration_id\":")
          writer.append(jsonString: canonical)
        }
      case .refused(let error):
        writer.append("{\"error\":")
        writer.append(jsonString: error)
      }
      writer.append("}")
    }
    writer.append("]}")
    return .legacyJSON(writer.take())
  }

  /// For a topic or a condition: the id is a JSON number.
  package static func topic(_ result: LegacyResult, number: String) -> HTTPResponse {
    switch result {
    case .sent: .legacyJSON(Array("{\"message_id\":\(number)}".utf8))
    case .refused(let error): .legacyJSON(JSONValue.object([.init("error", .string(error))]).bytes)
    }
  }

  /// For a device group.
  package static func group(success: Int, failed: [String]) -> HTTPResponse {
    var members: [JSONValue.Member] = [
      .init("success", .number(success)), .init("failure", .number(failed.count)),
    ]
    if !failed.isEmpty {
      members.append(.init("failed_registration_ids", .array(failed.map { .string($0) })))
    }
    return .legacyJSON(JSONValue.object(members).bytes)
  }

  /// The plain-text form.
  package static func plain(_ result: LegacyResult) -> HTTPResponse {
    switch result {
    case .sent(let messageID, nil): .legacyText(200, "id=\(messageID)")
    case .sent(let messageID, let canonical?):
      .legacyText(200, "id=\(messageID)\nregistration_id=\(canonical)")
    // The service says so with the status instead.
    case .refused("Unavailable"): unavailable()
    case .refused("InternalServerError"): .legacyText(500, "InternalServerError\n")
    case .refused(let error): .legacyText(200, "Error=\(error)")
    }
  }

  /// No key, or a wrong one: HTML, as the service answers.
  package static func unauthorized(isMissing: Bool) -> HTTPResponse {
    let title = isMissing ? "Unauthorized" : "INVALID_KEY"
    var fields = HTTPFields()
    fields.append("content-type", "text/html; charset=UTF-8")
    let html = """
      <html>
      <head><title>\(title)</title></head>
      <body>
      <h1>\(title)</h1>
      <h2>Error 401</h2>
      </body>
      </html>

      """
    return HTTPResponse(status: 401, fields: fields, body: Array(html.utf8))
  }

  package static func unavailable(retryAfter: Int? = 1) -> HTTPResponse {
    var response = HTTPResponse.legacyText(503, "Unavailable\n")
    if let retryAfter { response.fields.append("retry-after", String(retryAfter)) }
    return response
  }

  /// The name of a nack's reason in a result.
  package static func error(for code: NackCode, _ description: String) -> String {
    switch code {
    case .invalidJSON, .badAck:
      description.hasPrefix("InvalidPackageName") ? "InvalidPackageName" : "InvalidParameters"
    case .badRegistration: "InvalidRegistration"
    case .deviceUnregistered: "NotRegistered"
    case .senderIDMismatch: "MismatchSenderId"
    case .serviceUnavailable, .connectionDraining: "Unavailable"
    case .internalServerError: "InternalServerError"
    case .deviceMessageRateExceeded, .quotaExceeded: "DeviceMessageRateExceeded"
    case .topicsMessageRateExceeded: "TopicsMessageRateExceeded"
    case .invalidAPNSCredential, .authenticationFailed: "InvalidApnsCredential"
    }
  }
}

extension HTTPResponse {
  package static func legacyJSON(_ body: [UInt8]) -> HTTPResponse {
    var fields = HTTPFields()
    fields.append("content-type", "application/json; charset=UTF-8")
    return HTTPResponse(status: 200, fields: fields, body: body)
  }

  package static func legacyText(_ status: Int, _ text: String) -> HTTPResponse {
    var fields = HTTPFields()
    fields.append("content-type", "text/plain; charset=UTF-8")
    return HTTPResponse(status: status, fields: fields, body: Array(text.utf8))
  }
}
