/// A request's target, taken apart.
package struct RequestTarget: Hashable, Sendable {
  /// Percent-decoded, without empty segments.
  package var path: [String]
  /// The last of equal names.
  package var query: [String: String]

  /// - Parameter text: Path and query, or a whole URL as a proxy's client writes it.
  package init(_ text: String) {
    var rest = text[...]
    for scheme in ["https://", "http://"] where rest.lowercased().hasPrefix(scheme) {
      let behind = rest.dropFirst(scheme.count)
      rest = behind.firstIndex(of: "/").map { behind[$0...] } ?? "/"
      break
    }
    let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    path = (parts.first ?? "").split(separator: "/").map { FormText.decoded($0.utf8, plusIsSpace: false) }
    query = [:]
    if parts.count == 2 {
      for (name, value) in FormText.pairs(Array(parts[1].utf8)) { query[name] = value }
    }
  }

  /// False when the client asks for answers on one line.
  package var isPretty: Bool {
    guard let value = query["prettyPrint"] ?? query["$prettyPrint"] else { return true }
    return value != "false" && value != "0"
  }
}
