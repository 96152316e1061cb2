import JSONCore
import PushHTTP
import PushModel
import Seams
import Stores
import Synchronization
import TLSCore

/// The service accounts that may ask for access tokens, and the key that access tokens are made with.
///
/// The account of the first project is known by its file; those made later by their public halves, which the store
/// keeps as one setting. Private keys are handed out once and not kept.
final class ServiceAccounts: Sendable {
  struct Account: Sendable {
    var email: String
    var sender: SenderID
    var keyID: String
    var key: VerifyingKey
  }

  private let accounts = Mutex<[Account]>([])
  /// The token endpoint's address as `service-account.json` has it.
  private let tokenURI = Mutex<String?>(nil)
  /// Of access tokens' codes; made at the first start.
  private let secret: [UInt8]

  static let setting = "service-accounts"
  static let secretSetting = "access-token-key"

  init(secret: [UInt8]) { self.secret = secret }

  static func load(_ store: any Store) async throws -> ServiceAccounts {
    let secret: [UInt8]
    if let kept = try await store.setting(secretSetting) {
      secret = kept
    } else {
      secret = try Secrets.random(32)
      try await store.saveSetting(secretSetting, secret)
    }
    let accounts = ServiceAccounts(secret: secret)
    if let bytes = try await store.setting(setting), let rows = (try? JSONValue(parsing: bytes))?.array {
      for row in rows {
        guard let email = row["email"]?.string, let sender = row["sender_id"]?.int,
          let keyID = row["key_id"]?.string, let pem = row["public_key"]?.string
        else { continue }
        accounts.add(
          Account(email: email, sender: SenderID(sender), keyID: keyID, key: try VerifyingKey(pem: pem)))
      }
    }
    return accounts
  }

  func add(_ account: Account) { accounts.withLock { $0.append(account) } }

  /// Takes in what `service-account.json` holds: the account, and the address that assertions may name.
  func add(file: JSONValue, sender: SenderID) throws(CryptoFault) {
    guard let email = file["client_email"]?.string, let pem = file["private_key"]?.string else { return }
    add(
      Account(
        email: email, sender: sender, keyID: file["private_key_id"]?.string ?? "",
        key: try VerifyingKey(pem: pem)))
    if let uri = file["token_uri"]?.string { tokenURI.withLock { $0 = uri } }
  }

  /// The audiences that are this server.
  var audiences: Set<String> { Set([tokenURI.withLock { $0 }].compactMap(\.self)) }

  /// Scheme, name and port of the HTTPS listener.
  private var origin: String {
    let uri = tokenURI.withLock { $0 } ?? ""
    return uri.hasSuffix("/token") ? String(uri.dropLast("/token".count)) : "https://localhost:8443"
  }

  /// The accounts of an address; the one with the key id first.
  func find(email: String, keyID: String?) -> [Account] {
    let found = accounts.withLock { $0.filter { $0.email == email } }
    guard let keyID else { return found }
    return found.filter { $0.keyID == keyID } + found.filter { $0.keyID != keyID }
  }

  // MARK: Access tokens

  func accessToken(_ token: AccessToken) throws(CryptoFault) -> String {
    token.text(nonce: try Secrets.random(16)) { Secrets.hmacSHA256($0, key: secret) }
  }

  /// Nil for a token that was not made here.
  func read(_ text: String) -> AccessToken? {
    guard !secret.isEmpty else { return nil }
    return AccessToken(text, { Secrets.hmacSHA256($0, key: secret) }, areEqual: Secrets.areEqual)
  }

  // MARK: New accounts

  /// Makes an account for a project and keeps its public half.
  ///
  /// - Returns: Its file, as Google writes it; the private key stands nowhere else.
  func make(for project: Project, in store: any Store) async throws -> JSONValue {
    let name = "weir-\(try Secrets.randomText(bytes: 6).lowercased().filter { $0.isLetter || $0.isNumber })"
    let (file, publicPEM) = try Credentials.serviceAccount(project, name: name, origin: origin)
    guard let email = file["client_email"]?.string, let keyID = file["private_key_id"]?.string else {
      return file
    }
    var rows: [JSONValue] = []
    if let bytes = try await store.setting(Self.setting) {
      rows = (try? JSONValue(parsing: bytes))?.array ?? []
    }
    rows.append([
      "email": .string(email), "sender_id": .number(project.sender.value), "key_id": .string(keyID),
      "public_key": .string(publicPEM),
    ])
    try await store.saveSetting(Self.setting, JSONValue.array(rows).bytes)
    add(Account(email: email, sender: project.sender, keyID: keyID, key: try VerifyingKey(pem: publicPEM)))
    return file
  }
}
