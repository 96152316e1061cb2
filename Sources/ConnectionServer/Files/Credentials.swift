import JSONCore
import PushModel
import Seams
import Stores
import TLSCore

/// The files that a server writes for those who use it, in `DIR/credentials`.
///
/// Made at the first start and kept after it; a file that is missing later is made anew, with a new key. Keys
/// stand here as text and in the store as hashes.
struct Credentials: Sendable {
  let directory: String
  /// Legacy key of the first project's app servers.
  let serverKey: String
  let apiKey: String
  let adminKey: String

  var serverCertificatePath: String { directory + "/server.pem" }
  var serverKeyPath: String { directory + "/server.key" }

  /// Reads or makes the files.
  ///
  /// - Throws: ``CryptoFault`` when a file cannot be read or written.
  static func loadOrMake(in directory: String, now: WallTime) throws(CryptoFault) -> Credentials {
    try PrivateFile.makeDirectory(directory)
    _ = try DevelopmentCertificates.loadOrMake(in: directory, names: [], nowSeconds: now.ms / 1000)
    return Credentials(
      directory: directory,
      serverKey: try loadOrMake("server-key", in: directory) { () throws(CryptoFault) in
        try newKey(.server)
      },
      apiKey: try loadOrMake("api-key", in: directory) { () throws(CryptoFault) in try newKey(.api) },
      adminKey: try loadOrMake("admin-key", in: directory) { () throws(CryptoFault) in
        try newKey(.admin)
      })
  }

  /// A new key in the shape that clients of its kind expect.
  static func newKey(_ purpose: AccountKey.Purpose) throws(CryptoFault) -> String {
    switch purpose {
    case .server:
      // A legacy server key has 11 characters, a colon, and 140 more.
      "AAAA" + String(try Secrets.randomText(bytes: 6).prefix(7)) + ":APA91b"
        + String(try Secrets.randomText(bytes: 102).prefix(134))
    case .api: "AIza" + String(try Secrets.randomText(bytes: 27).prefix(35))
    case .admin: "weir-admin-" + (try Secrets.randomText(bytes: 32))
    }
  }

  private static func loadOrMake(
    _ name: String, in directory: String, _ make: () throws(CryptoFault) -> String
  ) throws(CryptoFault) -> String {
    let path = directory + "/" + name
    if let text = try PrivateFile.read(path) {
      let key = text.trimmed
      if !key.isEmpty { return key }
    }
    let key = try make()
    try PrivateFile.write(key + "\n", to: path, mode: 0o600)
    return key
  }

  /// Writes `service-account.json` in Google's shape when it is missing, and brings its addresses up to date when
  /// the port is another one than at the last start.
  ///
  /// - Returns: What the file holds.
  func makeServiceAccount(_ project: Project, httpsPort: Int) throws(CryptoFault) -> JSONValue {
    let path = directory + "/service-account.json"
    if let text = try PrivateFile.read(path), let kept = try? JSONValue(parsing: text) {
      let moved = Self.moved(kept, httpsPort: httpsPort)
      if moved != kept { try PrivateFile.write(moved.text + "\n", to: path, mode: 0o600) }
      return moved
    }
    let (file, _) = try Self.serviceAccount(project, name: "weir", origin: Self.origin(httpsPort))
    try PrivateFile.write(file.text + "\n", to: path, mode: 0o600)
    return file
  }

  /// A new service account: its file, and the public half of its key, PEM.
  static func serviceAccount(
    _ project: Project, name: String, origin: String
  ) throws(CryptoFault) -> (file: JSONValue, publicPEM: String) {
    let (privatePEM, publicPEM) = try Secrets.rsaKeyPair()
    let file: JSONValue = [
      "type": .string("service_account"),
      "project_id": .string(project.id),
      "private_key_id": .string(try Secrets.sha256(Array(publicPEM.utf8)).prefix(20).hexText),
      "private_key": .string(privatePEM),
      "client_email": .string("\(name)@\(project.id).iam.gserviceaccount.com"),
      "client_id": .string(project.sender.description),
      "auth_uri": .string(origin + "/auth"),
      "token_uri": .string(origin + "/token"),
      "auth_provider_x509_cert_url": .string(origin + "/certs"),
      "client_x509_cert_url": .string(origin + "/certs/weir"),
      "universe_domain": .string("googleapis.com"),
    ]
    return (file, publicPEM)
  }

  private static func origin(_ httpsPort: Int) -> String { "https://localhost:\(httpsPort)" }

  /// The same file with addresses on this machine changed to another port; others stay as somebody wrote them.
  private static func moved(_ file: JSONValue, httpsPort: Int) -> JSONValue {
    guard let members = file.members else { return file }
    return .object(
      members.map { member in
        guard let text = member.value.string, text.hasPrefix("https://localhost:"),
          let path = text.dropFirst("https://localhost:".count).firstIndex(of: "/")
        else { return member }
        return .init(member.name, .string(origin(httpsPort) + text[path...]))
      })
  }
}

extension String {
  /// Without white space at either end.
  var trimmed: String {
    let blank: (Character) -> Bool = { $0.isWhitespace }
    let tail = drop(while: blank)
    guard let last = tail.lastIndex(where: { !blank($0) }) else { return "" }
    return String(tail[...last])
  }
}

extension Sequence<UInt8> {
  /// Lower-case hex digits, two a byte.
  var hexText: String {
    var text = ""
    for byte in self {
      text += String(byte >> 4, radix: 16)
      text += String(byte & 0xF, radix: 16)
    }
    return text
  }
}
