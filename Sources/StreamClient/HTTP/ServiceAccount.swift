import Bytes
import JSONCore
import TLSCore

/// A service account's key file in Google's form: who asks for access tokens, and where.
public struct ServiceAccount: Sendable, CustomStringConvertible {
  /// The project that messages are sent for.
  public var projectID: String
  /// The account's name.
  public var clientEmail: String
  /// Where tokens are asked for.
  public var tokenURI: String
  private let privateKey: String
  private let keyID: String?

  /// Reads the file's JSON.
  ///
  /// - Throws: ``StreamClient/ConnectError`` naming what is missing.
  public init(json: [UInt8]) throws(StreamClient.ConnectError) {
    func fault(_ detail: String) -> StreamClient.ConnectError {
      StreamClient.ConnectError(wasRefused: false, detail: "service account: \(detail)")
    }
    guard let value = try? JSONValue(parsing: json) else { throw fault("not JSON") }
    guard value["type"]?.string == "service_account" else { throw fault("\"type\" is not service_account") }
    func text(_ name: String) throws(StreamClient.ConnectError) -> String {
      guard let text = value[name]?.string, !text.isEmpty else { throw fault("\"\(name)\" is missing") }
      return text
    }
    projectID = try text("project_id")
    clientEmail = try text("client_email")
    tokenURI = try text("token_uri")
    privateKey = try text("private_key")
    keyID = value["private_key_id"]?.string
  }

  /// Without the key.
  public var description: String { clientEmail }

  /// A signed request for a token, for an hour.
  ///
  /// - Parameter seconds: The wall clock, seconds since 1970.
  /// - Source: RFC 7523; Google's OAuth 2.0 for service accounts.
  func assertion(at seconds: Int64) throws(CryptoFault) -> String {
    var head: [JSONValue.Member] = [.init("alg", "RS256"), .init("typ", "JWT")]
    if let keyID { head.append(.init("kid", .string(keyID))) }
    let claims: JSONValue = [
      "iss": .string(clientEmail), "scope": "https://www.googleapis.com/auth/firebase.messaging",
      "aud": .string(tokenURI), "iat": .number(seconds), "exp": .number(seconds + 3_600),
    ]
    let text = Secrets.base64URL(JSONValue.object(head).bytes) + "." + Secrets.base64URL(claims.bytes)
    let signature = try RSASigner.sign(Array(text.utf8), privatePEM: privateKey)
    return text + "." + Secrets.base64URL(signature)
  }

  /// The body of the request for a token.
  func tokenRequest(at seconds: Int64) throws(CryptoFault) -> [UInt8] {
    // Nothing in a JSON web token needs an escape in a form.
    Array(
      "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=\(try assertion(at: seconds))"
        .utf8)
  }
}

/// An access token as the server gave it.
struct GrantedToken: Sendable, Equatable {
  var text: String
  var lifetime: Duration

  /// Reads the answer of a token endpoint; nil for one that gives no token.
  init?(_ body: [UInt8]) {
    guard let value = try? JSONValue(parsing: body), let text = value["access_token"]?.string, !text.isEmpty,
      text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), let seconds = value["expires_in"]?.int, seconds > 0
    else { return nil }
    self.text = text
    lifetime = .seconds(min(seconds, 86_400))
  }

  /// Why a token was refused, for people.
  static func refusal(_ body: [UInt8], status: Int) -> String {
    let value = try? JSONValue(parsing: body)
    let words = [value?["error"]?.string, value?["error_description"]?.string].compactMap { $0 }
    return "no access token: " + (words.isEmpty ? "status \(status)" : words.joined(separator: ", "))
  }
}
