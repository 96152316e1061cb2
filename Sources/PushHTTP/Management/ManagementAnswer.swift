package import HTTPCore
package import JSONCore

/// Responses of the instance id and device group calls: errors are a bare string.
package enum ManagementAnswer {
  package static func json(_ value: JSONValue, status: Int = 200) -> HTTPResponse {
    var fields = HTTPFields()
    fields.append("content-type", "application/json; charset=UTF-8")
    return HTTPResponse(status: status, fields: fields, body: value.bytes)
  }

  package static func error(_ text: String, status: Int = 400) -> HTTPResponse {
    json(["error": .string(text)], status: status)
  }
}

/// A call that is answered with an error.
package struct ManagementFault: Error, Hashable, Sendable {
  package var status: Int
  package var text: String

  package init(_ text: String, status: Int = 400) {
    self.text = text
    self.status = status
  }

  package static let malformedTopic = ManagementFault("Topic name format is invalid")
  package static let malformedToken = ManagementFault("InvalidToken")
  package static let unknownToken = ManagementFault(
    "No information found about this instance id.", status: 404)
  package static let senderMismatch = ManagementFault("SenderId mismatch", status: 403)

  package var response: HTTPResponse { ManagementAnswer.error(text, status: status) }
}
