package import XMLCore

/// Conditions of stream errors: RFC 6120 §4.9.3.
package enum StreamErrorCondition: String, Error, Hashable, Sendable, CaseIterable {
  case badFormat = "bad-format"
  case badNamespacePrefix = "bad-namespace-prefix"
  case conflict = "conflict"
  case connectionTimeout = "connection-timeout"
  case hostGone = "host-gone"
  case hostUnknown = "host-unknown"
  case improperAddressing = "improper-addressing"
  case internalServerError = "internal-server-error"
  case invalidFrom = "invalid-from"
  case invalidNamespace = "invalid-namespace"
  case invalidXML = "invalid-xml"
  case notAuthorized = "not-authorized"
  case notWellFormed = "not-well-formed"
  case policyViolation = "policy-violation"
  case remoteConnectionFailed = "remote-connection-failed"
  case reset = "reset"
  case resourceConstraint = "resource-constraint"
  case restrictedXML = "restricted-xml"
  case seeOtherHost = "see-other-host"
  case systemShutdown = "system-shutdown"
  case undefinedCondition = "undefined-condition"
  case unsupportedEncoding = "unsupported-encoding"
  case unsupportedFeature = "unsupported-feature"
  case unsupportedStanzaType = "unsupported-stanza-type"
  case unsupportedVersion = "unsupported-version"

  package init(_ fault: XMLFault) {
    switch fault {
    case .notWellFormed: self = .notWellFormed
    case .restrictedXML: self = .restrictedXML
    case .unsupportedEncoding: self = .unsupportedEncoding
    case .invalidNamespace: self = .invalidNamespace
    case .badFormat: self = .badFormat
    case .limit: self = .policyViolation
    }
  }
}
