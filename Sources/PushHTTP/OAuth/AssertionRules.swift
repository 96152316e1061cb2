package import JSONCore
package import Seams

/// What a service account's assertion must say, its signature apart.
package struct AssertionRules: Sendable {
  /// How far the clocks of signer and server may lie apart, in seconds.
  package var leewaySeconds: Int64
  /// Seconds from `iat` to `exp` at most.
  package static let lifetimeMax: Int64 = 3_600
  /// Scopes that allow to send.
  package static let messagingScopes: Set<String> = [
    "https://www.googleapis.com/auth/firebase.messaging", "https://www.googleapis.com/auth/cloud-platform",
    "https://www.googleapis.com/auth/firebase",
  ]

  package init(leewaySeconds: Int) { self.leewaySeconds = Int64(leewaySeconds) }

  /// Google's own addresses of the token endpoint, which clients name whatever host they post to.
  package static let audiences: Set<String> = [
    "https://oauth2.googleapis.com/token", "https://accounts.google.com/o/oauth2/token",
    "https://www.googleapis.com/oauth2/v4/token", "https://www.googleapis.com/oauth2/v3/token",
  ]

  /// Checks `iat` and `exp`: leeway for a clock that runs ahead, none for a lifetime of more than an hour.
  /// - Source: RFC 7519 section 4.1; RFC 7523 section 3.
  package func checkTimes(_ claims: JSONValue, now: WallTime) -> OAuthFault? {
    let rule =
      "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. "
      + "Check your iat and exp values in the JWT claim."
    guard let issued = Self.seconds(claims["iat"]), let expires = Self.seconds(claims["exp"]) else {
      return .invalidGrant(rule)
    }
    let now = now.ms / 1_000
    if issued > now + leewaySeconds {
      return .invalidGrant("\(rule) iat is \(issued - now) seconds ahead of the server's clock.")
    }
    if expires - issued > Self.lifetimeMax {
      return .invalidGrant("\(rule) exp is \(expires - issued) seconds after iat.")
    }
    if expires <= issued { return .invalidGrant("\(rule) exp is not after iat.") }
    if expires <= now {
      return .invalidGrant("\(rule) exp is \(now - expires) seconds behind the server's clock.")
    }
    return nil
  }

  /// Whether one of `aud` is an address of the token endpoint: Google's, or one that ends in this server's path.
  package func checkAudience(_ claims: JSONValue, own: Set<String>) -> OAuthFault? {
    let named = claims["aud"]?.string.map { [$0] } ?? claims["aud"]?.array?.compactMap(\.string) ?? []
    let isFine = named.contains { Self.audiences.contains($0) || own.contains($0) }
    if isFine { return nil }
    return .invalidGrant(
      "Invalid JWT: Failed audience check. The right audience is https://oauth2.googleapis.com/token")
  }

  /// The scopes asked for; nil when there is none.
  package func scopes(_ claims: JSONValue) -> [String]? {
    let text = claims["scope"]?.string ?? ""
    let scopes = text.split(separator: " ").map(String.init)
    return scopes.isEmpty ? nil : scopes
  }

  /// Whole seconds of a time between 1970 and the year 9999.
  private static func seconds(_ value: JSONValue?) -> Int64? {
    guard let value else { return nil }
    if let whole = value.int { return (0...253_402_300_799).contains(whole) ? whole : nil }
    guard let number = value.double, number >= 0, number <= 253_402_300_799 else { return nil }
    return Int64(number)
  }
}
