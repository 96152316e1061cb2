import JSONCore
import PushHTTP

/// An HTTP request as the endpoints see it.
struct APIRequest: Sendable {
  var method: String
  /// Percent-decoded, without empty segments.
  var path: [String]
  var query: [String: String]
  /// Names in lower case; the last of equal names.
  var headers: [String: String]
  var body: [UInt8]

  /// - Parameter target: The request target: path and query, as on the request line.
  init(method: String, target: String, headers: [String: String], body: [UInt8]) {
    self.method = method
    self.headers = headers
    self.body = body
    let target = RequestTarget(target)
    path = target.path
    query = target.query
  }
}

struct APIResponse: Sendable {
  var status: Int
  var headers: [(String, String)]
  var body: [UInt8]

  init(status: Int, headers: [(String, String)] = [], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  static func json(_ value: JSONValue, status: Int = 200) -> APIResponse {
    APIResponse(
      status: status, headers: [("Content-Type", "application/json; charset=UTF-8")],
      body: value.bytes + [UInt8(ascii: "\n")])
  }

  static func text(_ text: String, status: Int = 200) -> APIResponse {
    APIResponse(
      status: status, headers: [("Content-Type", "text/plain; charset=UTF-8")], body: Array(text.utf8))
  }

  /// An error in Google's form.
  static func fault(_ status: Int, _ name: String, _ message: String) -> APIResponse {
    json(
      ["error": ["code": .number(status), "message": .string(message), "status": .string(name)]],
      status: status)
  }

  static func invalid(_ message: String) -> APIResponse { fault(400, "INVALID_ARGUMENT", message) }
  static func notFound(_ message: String) -> APIResponse { fault(404, "NOT_FOUND", message) }
  static func unavailable(_ message: String) -> APIResponse {
    var response = fault(503, "UNAVAILABLE", message)
    response.headers.append(("Retry-After", "1"))
    return response
  }

  /// Over a rate: come back after so many seconds.
  static func exhausted(_ message: String, retryAfter: Int) -> APIResponse {
    var response = fault(429, "RESOURCE_EXHAUSTED", message.retry(after: retryAfter))
    response.headers.append(("Retry-After", String(retryAfter)))
    return response
  }

  static func methodNotAllowed(_ allowed: String) -> APIResponse {
    var response = fault(405, "METHOD_NOT_ALLOWED", "Use \(allowed) here.")
    response.headers.append(("Allow", allowed))
    return response
  }
}
