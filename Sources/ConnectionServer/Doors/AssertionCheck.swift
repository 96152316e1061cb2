import JSONCore
import PushHTTP
import PushModel
import Seams
import TLSCore

/// The token endpoint's decision: a signed assertion for an access token.
/// - Source: RFC 7523 section 2.1; RFC 6749 section 5.
struct AssertionCheck: Sendable {
  let context: ServerContext

  static let grantType = "urn:ietf:params:oauth:grant-type:jwt-bearer"

  /// Whose signature a token bears, among the accounts of that address; nil for nobody's.
  func signer(of token: JSONWebToken, email: String) -> ServiceAccounts.Account? {
    context.accounts.serviceAccounts.find(email: email, keyID: token.keyID).first {
      $0.key.isValid(token.signature, over: token.signedBytes)
    }
  }

  /// - Parameter form: The request's parameters; of equal names the first.
  func accessToken(for form: [(name: String, value: String)]) throws(OAuthFault) -> String {
    func value(_ name: String) -> String? { form.first { $0.name == name }?.value }
    guard let type = value("grant_type"), !type.isEmpty else {
      throw OAuthFault("invalid_request", "Required parameter is missing: grant_type")
    }
    if type == "refresh_token" {
      // Weir has no user accounts, so there is no refresh token it could have given.
      throw OAuthFault.invalidGrant("Bad Request")
    }
    guard type == Self.grantType else {
      throw OAuthFault("unsupported_grant_type", "Invalid grant_type: \(type.prefix(64))")
    }
    guard let assertion = value("assertion"), !assertion.isEmpty else {
      throw OAuthFault("invalid_request", "Missing required parameter: assertion")
    }
    guard let token = JSONWebToken(assertion) else { throw .malformed }
    return try accessToken(for: token)
  }

  private func accessToken(for token: JSONWebToken) throws(OAuthFault) -> String {
    let accounts = context.accounts.serviceAccounts
    guard let email = token.claims["iss"]?.string,
      !accounts.find(email: email, keyID: nil).isEmpty
    else { throw .unknownAccount }
    guard token.algorithm == "RS256", let account = signer(of: token, email: email) else {
      throw .badSignature
    }
    let rules = AssertionRules(leewaySeconds: context.limits.assertionLeewaySeconds)
    if let fault = rules.checkTimes(token.claims, now: context.civilTime) { throw fault }
    if let fault = rules.checkAudience(token.claims, own: accounts.audiences) { throw fault }
    if let subject = token.claims["sub"]?.string, subject != email {
      throw OAuthFault(
        "unauthorized_client",
        "Client is unauthorized to retrieve access tokens using this method, or client not authorized for any of the scopes requested.",
        status: 401)
    }
    guard let scopes = rules.scopes(token.claims) else {
      throw OAuthFault("invalid_scope", "Empty or missing scope not allowed.")
    }
    let access = AccessToken(
      sender: account.sender, maySend: !AssertionRules.messagingScopes.isDisjoint(with: scopes),
      expires: context.time.wall + .seconds(AccessToken.lifetime))
    do { return try accounts.accessToken(access) } catch {
      throw OAuthFault("internal_failure", "The token could not be made.", status: 500)
    }
  }
}
