/// What SASL PLAIN carries: RFC 4616.
///
/// Printing it never shows the password.
package struct PlainCredentials: Hashable, Sendable, CustomStringConvertible, CustomDebugStringConvertible {
  /// Whom to act as; empty for the same as `authcid`.
  package var authzid: String
  /// Who logs in: a bare local part or `local@domain`.
  package var authcid: String
  package var password: String

  package init(authzid: String = "", authcid: String, password: String) {
    self.authzid = authzid
    self.authcid = authcid
    self.password = password
  }

  /// The part of `authcid` that decides: a sender id or a device id.
  ///
  /// Clients put several domains behind it.
  package var identity: String { Self.local(authcid) }

  /// What stands behind the `@` of `authcid`; nil for a bare identity.
  package var domain: String? {
    guard let at = authcid.utf8.firstIndex(of: UInt8(ascii: "@")) else { return nil }
    return String(authcid[authcid.utf8.index(after: at)...])
  }

  /// Reads `authzid NUL authcid NUL password`.
  ///
  /// - Throws: `malformedRequest` for another shape, `invalidAuthzid` when the two identities differ in their
  ///   local parts.
  package init(message: [UInt8]) throws(SASLFailure) {
    let parts = message.split(separator: 0, omittingEmptySubsequences: false)
    guard parts.count == 3, let authzid = String(validating: parts[0], as: UTF8.self),
      let authcid = String(validating: parts[1], as: UTF8.self),
      let password = String(validating: parts[2], as: UTF8.self), !password.isEmpty,
      !Self.local(authcid).isEmpty
    else { throw .malformedRequest }
    guard authzid.isEmpty || Self.local(authzid) == Self.local(authcid) else { throw .invalidAuthzid }
    self.init(authzid: authzid, authcid: authcid, password: password)
  }

  /// The message in base 64, as `auth` and `response` carry it.
  package var encoded: String {
    Base64.encode(Array(authzid.utf8) + [0] + Array(authcid.utf8) + [0] + Array(password.utf8))
  }

  private static func local(_ identity: String) -> String {
    guard let at = identity.utf8.firstIndex(of: UInt8(ascii: "@")) else { return identity }
    return String(identity[..<at])
  }

  package var description: String { "PlainCredentials(\(identity))" }
  package var debugDescription: String { description }
}
