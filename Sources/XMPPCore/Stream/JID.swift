/// An address as streams hand it out: `local@domain/resource` (RFC 7622).
///
/// Not prepared, compared by bytes.
package struct JID: Hashable, Sendable, CustomStringConvertible {
  package var local: String
  package var domain: String
  /// Nil for a bare address.
  package var resource: String?

  package init(local: String, domain: String, resource: String? = nil) {
    self.local = local
    self.domain = domain
    self.resource = resource
  }

  /// Splits at the first `/`, then at the first `@`.
  ///
  /// A missing local part is empty.
  ///
  /// - Returns: nil when the domain is empty, or a part is there and empty or over 1,023 bytes.
  package init?(_ text: String) {
    var bare = Substring(text)
    if let slash = text.utf8.firstIndex(of: UInt8(ascii: "/")) {
      resource = String(text[text.utf8.index(after: slash)...])
      bare = text[..<slash]
    }
    if let at = bare.utf8.firstIndex(of: UInt8(ascii: "@")) {
      local = String(bare[..<at])
      domain = String(bare[bare.utf8.index(after: at)...])
      if local.isEmpty { return nil }
    } else {
      local = ""
      domain = String(bare)
    }
    let sizes = [local.utf8.count, domain.utf8.count, resource?.utf8.count ?? 1]
    guard sizes.allSatisfy({ $0 <= 1_023 }), !domain.isEmpty, resource != "" else { return nil }
  }

  package var description: String {
    let bare = local.isEmpty ? domain : local + "@" + domain
    guard let resource else { return bare }
    return bare + "/" + resource
  }
}
