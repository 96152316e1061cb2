import Bytes
import JSONCore
import PushHTTP
import PushModel
import Seams
import Stores
import TLSCore

/// What a bearer token allows.
struct BearerGrant: Sendable, Equatable {
  /// Nil: every project.
  var sender: SenderID?
  var maySend: Bool
  var expires: WallTime

  func allows(_ project: Project) -> Bool { sender == nil || sender == project.sender }
}

/// Decides about bearer tokens: access tokens of the token endpoint, and assertions signed by a service account
/// itself, which newer auth libraries send without asking for a token.
struct BearerCheck: Sendable {
  let context: ServerContext

  /// Addresses that a self-signed assertion may be for.
  private static let audiences: Set<String> = [
    "https://fcm.googleapis.com/", "https://fcm.googleapis.com", "https://iid.googleapis.com/",
    "https://firebase.googleapis.com/",
  ]

  func check(_ text: String, now: WallTime) -> Result<BearerGrant, V1Fault> {
    if context.configuration.acceptsAnyBearer {
      return .success(BearerGrant(sender: nil, maySend: true, expires: WallTime(ms: .max)))
    }
    let accounts = context.accounts.serviceAccounts
    if let token = accounts.read(text) {
      guard token.expires > now else { return .failure(.expiredCredentials) }
      return .success(BearerGrant(sender: token.sender, maySend: token.maySend, expires: token.expires))
    }
    // Its times are of somebody else's clock.
    return selfSigned(text, context.civilTime)
  }

  private func selfSigned(_ text: String, _ now: WallTime) -> Result<BearerGrant, V1Fault> {
    guard let token = JSONWebToken(text), token.algorithm == "RS256",
      let email = token.claims["iss"]?.string,
      let account = AssertionCheck(context: context).signer(of: token, email: email)
    else { return .failure(.badCredentials) }
    let scopes = Set((token.claims["scope"]?.string ?? "").split(separator: " ").map(String.init))
    let isForUs = token.claims["aud"]?.string.map { Self.audiences.contains($0) } ?? false
    guard isForUs || !scopes.isEmpty else { return .failure(.badCredentials) }
    let rules = AssertionRules(leewaySeconds: context.limits.assertionLeewaySeconds)
    guard rules.checkTimes(token.claims, now: now) == nil else {
      let expired = token.claims["exp"]?.int.map { $0 <= now.ms / 1_000 } ?? false
      return .failure(expired ? .expiredCredentials : .badCredentials)
    }
    return .success(
      BearerGrant(
        sender: account.sender, maySend: isForUs || !scopes.isDisjoint(with: AssertionRules.messagingScopes),
        expires: WallTime(ms: (token.claims["exp"]?.int ?? 0) * 1_000)))
  }
}

/// The bearer tokens one loop met lately, so that each is checked once.
///
/// Two generations bound it. Only good ones are kept.
struct BearerCache {
  private var current: [Hash128: BearerGrant] = [:]
  private var previous: [Hash128: BearerGrant] = [:]
  private let generationMax = 512

  mutating func find(_ key: Hash128, now: WallTime) -> BearerGrant? {
    guard let found = current[key] ?? previous[key], found.expires > now else { return nil }
    return found
  }

  mutating func insert(_ key: Hash128, _ grant: BearerGrant) {
    if current.count >= generationMax {
      previous = current
      current = [:]
    }
    current[key] = grant
  }
}
