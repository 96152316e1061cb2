import Foundation

/// `HOST:PORT` as the flags give it.
struct Endpoint: Sendable, CustomStringConvertible {
  let host: String
  let port: UInt16

  /// Reads `host`, `host:port`, `[v6]:port`.
  init(_ text: String, defaultPort: Int, flag: String) throws(UsageFault) {
    var host = text[...]
    var port = String(defaultPort)
    if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
      host = text[text.index(after: text.startIndex)..<end]
      let rest = text[text.index(after: end)...]
      if rest.hasPrefix(":") { port = String(rest.dropFirst()) }
    } else if let colon = text.lastIndex(of: ":"), text.firstIndex(of: ":") == colon {
      host = text[..<colon]
      port = String(text[text.index(after: colon)...])
    }
    guard !host.isEmpty, let number = UInt16(port), number > 0 else {
      throw UsageFault(message: "--\(flag) must be HOST:PORT, not \"\(text)\".")
    }
    self.host = String(host)
    self.port = number
  }

  var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

/// The folder with keys that `weir serve` writes.
struct CredentialFolder: Sendable {
  let path: String

  init(_ arguments: Arguments) {
    path = arguments.text("credentials", default: "./weir-data/credentials")
  }

  var caFile: String { path + "/ca.pem" }

  /// The text of a file in it.
  func key(_ name: String) throws(CommandFault) -> String {
    guard let data = FileManager.default.contents(atPath: path + "/" + name) else {
      throw CommandFault(
        .cannotConnect,
        "\(path)/\(name) cannot be read. Start the server first, or name its folder with --credentials.")
    }
    return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// The sender id of the first project, from the service account file.
  func senderID() throws(CommandFault) -> String {
    struct Account: Decodable {
      let client_id: String
    }
    let text = try key("service-account.json")
    guard let account = try? JSONDecoder().decode(Account.self, from: Data(text.utf8)) else {
      throw CommandFault(.cannotConnect, "\(path)/service-account.json is not what weir serve writes.")
    }
    return account.client_id
  }

  func projectID() throws(CommandFault) -> String {
    struct Account: Decodable {
      let project_id: String
    }
    let text = try key("service-account.json")
    guard let account = try? JSONDecoder().decode(Account.self, from: Data(text.utf8)) else {
      throw CommandFault(.cannotConnect, "\(path)/service-account.json is not what weir serve writes.")
    }
    return account.project_id
  }
}
