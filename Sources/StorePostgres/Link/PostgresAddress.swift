import CPQ
import Glibc
package import Stores

/// Where a PostgreSQL is: a connection URL as libpq takes it, checked, with the defaults that a server needs.
///
/// Several hosts may be named; the one that takes writes is used. What the URL says itself stands above the defaults.
package struct PostgresAddress: Sendable, Hashable, CustomStringConvertible {
  let url: String
  /// The URL without passwords.
  package let description: String

  /// - Throws: ``StoreFault/refused(detail:)`` saying what is wrong with the URL.
  package init(_ url: String) throws(StoreFault) {
    guard Self.isAddress(url) else {
      throw .refused(detail: "a store is named as postgres://user@host/database, not as \(Self.scheme(url))")
    }
    var problem: UnsafeMutablePointer<CChar>?
    guard let options = PQconninfoParse(url, &problem) else {
      let text = problem.map { String(cString: $0) } ?? "no memory"
      PQfreemem(problem)
      // libpq repeats the URL in some messages.
      let hidden = text.contains(url) ? "the URL cannot be read" : text.split(separator: "\n").joined()
      throw .refused(detail: "the PostgreSQL URL is not valid: \(hidden)")
    }
    defer { PQconninfoFree(options) }
    self.url = url
    description = Self.shown(options)
  }

  /// Whether a text names a PostgreSQL rather than anything else.
  package static func isAddress(_ text: String) -> Bool {
    text.hasPrefix("postgres://") || text.hasPrefix("postgresql://")
  }

  private static func scheme(_ text: String) -> String {
    let first = text.prefix { $0 != ":" && $0 != "/" && $0 != "@" }
    return first.isEmpty || first.count > 16 ? "something else" : "\(first)…"
  }

  private static func shown(_ options: UnsafeMutablePointer<PQconninfoOption>) -> String {
    var values: [String: String] = [:]
    var rest: [String] = []
    var place = options
    while let keyword = place.pointee.keyword {
      let name = String(cString: keyword)
      let isSecret = place.pointee.dispchar.map { $0.pointee == CChar(UInt8(ascii: "*")) } ?? false
      if let value = place.pointee.val.map({ String(cString: $0) }) {
        if ["user", "host", "port", "dbname"].contains(name) {
          values[name] = value
        } else if !isSecret {
          rest.append("\(name)=\(value)")
        } else if name != "password" {
          rest.append("\(name)=***")
        }
        if name == "password" { values["password"] = ":***" }
      }
      place += 1
    }
    let hosts = values["host", default: ""].split(separator: ",", omittingEmptySubsequences: false)
    let ports = values["port", default: ""].split(separator: ",", omittingEmptySubsequences: false)
    let places = hosts.indices.map { index -> String in
      let port = ports.count == 1 ? ports[0] : ports.indices.contains(index) ? ports[index] : ""
      return port.isEmpty ? String(hosts[index]) : "\(hosts[index]):\(port)"
    }
    let user = values["user"].map { $0 + values["password", default: ""] + "@" } ?? ""
    return "postgres://\(user)\(places.joined(separator: ","))/\(values["dbname", default: ""])"
      + (rest.isEmpty ? "" : "?" + rest.joined(separator: "&"))
  }

  /// Tries the hosts in turn until one takes writes.
  ///
  /// - Returns: A connection whose status says how it went; nil for want of memory.
  func connect(as role: String) -> OpaquePointer? {
    let settings: [(String, String)] = [
      ("fallback_application_name", "weir \(role)"),
      // A standby, and a primary that takes no writes, count as down.
      ("target_session_attrs", "read-write"),
      ("connect_timeout", "3"),
      // A host that vanishes without a word is noticed in about 10 s.
      ("keepalives_idle", "4"), ("keepalives_interval", "2"), ("keepalives_count", "3"),
      ("tcp_user_timeout", "10000"),
      ("dbname", url),
      ("client_encoding", "UTF8"),
    ]
    var keywords: [UnsafePointer<CChar>?] = []
    var values: [UnsafePointer<CChar>?] = []
    var copies: [UnsafeMutablePointer<CChar>] = []
    defer { for copy in copies { free(copy) } }
    for (keyword, value) in settings {
      guard let keyword = strdup(keyword), let value = strdup(value) else { return nil }
      copies += [keyword, value]
      keywords.append(UnsafePointer(keyword))
      values.append(UnsafePointer(value))
    }
    keywords.append(nil)
    values.append(nil)
    return PQconnectdbParams(keywords, values, 1)
  }
}
