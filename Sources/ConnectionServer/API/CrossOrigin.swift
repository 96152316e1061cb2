import HTTPCore

/// Lets pages of other origins register devices, and nothing else.
///
/// - Source: Fetch standard, CORS protocol.
struct CrossOrigin: Sendable {
  /// The origin that may, `*` for any, or nothing for none.
  let origin: String

  /// Whether a path is one of registrations: `/v1/projects/{project}/registrations…`.
  static func applies(to path: [String]) -> Bool {
    path.count >= 4 && path[0] == "v1" && path[1] == "projects" && path[3] == "registrations"
  }

  /// The answer to OPTIONS for a path that knows `methods`.
  func options(_ methods: [String], _ path: [String], _ request: HTTPRequest) -> HTTPResponse {
    let allowed = (methods + ["OPTIONS"]).joined(separator: ", ")
    var fields: HTTPFields = ["allow": allowed]
    if Self.applies(to: path), request.fields.has("origin"), !origin.isEmpty {
      fields.append("access-control-allow-origin", origin)
      fields.append("access-control-allow-methods", allowed)
      fields.append(
        "access-control-allow-headers", "authorization, content-type, content-encoding, x-goog-api-key")
      fields.append("access-control-max-age", "86400")
      if origin != "*" { fields.append("vary", "origin") }
    }
    return HTTPResponse(status: 204, fields: fields)
  }

  /// Marks an answer as one that a page may read.
  func mark(_ response: inout HTTPResponse, _ path: [String]) {
    guard Self.applies(to: path), !origin.isEmpty else { return }
    response.fields.append("access-control-allow-origin", origin)
    if origin != "*" { response.fields.append("vary", "origin") }
  }
}
