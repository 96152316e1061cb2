/// Why a login failed: RFC 6120 §6.5.
package enum SASLFailure: String, Error, Hashable, Sendable, CaseIterable {
  case aborted = "aborted"
  case accountDisabled = "account-disabled"
  case credentialsExpired = "credentials-expired"
  case encryptionRequired = "encryption-required"
  case incorrectEncoding = "incorrect-encoding"
  case invalidAuthzid = "invalid-authzid"
  case invalidMechanism = "invalid-mechanism"
  case malformedRequest = "malformed-request"
  case mechanismTooWeak = "mechanism-too-weak"
  case notAuthorized = "not-authorized"
  case temporaryAuthFailure = "temporary-auth-failure"
}
