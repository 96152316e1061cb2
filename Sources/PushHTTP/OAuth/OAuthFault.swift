package import HTTPCore
import JSONCore

/// Why the token endpoint refuses.
/// - Source: RFC 6749 section 5.2; the descriptions as Google's endpoint gives them.
package struct OAuthFault: Error, Hashable, Sendable {
  package var error: String
  package var description: String
  package var status = 400

  package init(_ error: String, _ description: String, status: Int = 400) {
    self.error = error
    self.description = description
    self.status = status
  }

  package static func invalidGrant(_ description: String) -> OAuthFault {
    OAuthFault("invalid_grant", description)
  }

  package static let badSignature = invalidGrant("Invalid JWT Signature.")
  package static let unknownAccount = invalidGrant("Invalid grant: account not found")
  package static let malformed = invalidGrant("Invalid JWT: it is not a signed JSON Web Token.")

  package var response: HTTPResponse {
    OAuthAnswer.json(
      ["error": .string(error), "error_description": .string(description)], status: status)
  }
}

/// Responses of the token endpoint.
package enum OAuthAnswer {
  package static func token(_ text: String, expiresIn seconds: Int) -> HTTPResponse {
    json([
      "access_token": .string(text), "expires_in": .number(seconds), "token_type": "Bearer",
    ])
  }

  static func json(_ value: JSONValue, status: Int = 200) -> HTTPResponse {
    var fields = HTTPFields()
    fields.append("content-type", "application/json; charset=UTF-8")
    // RFC 6749 section 5.1.
    fields.append("cache-control", "no-store")
    fields.append("pragma", "no-cache")
    return HTTPResponse(status: status, fields: fields, body: value.prettyBytes)
  }
}
