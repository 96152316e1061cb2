import Glibc
package import JSONCore

/// Names that a sender may not use inside `data`.
package enum ReservedKeys: Sendable {
  /// Streams and legacy HTTP: `from`, `message_type`, and all that begins with `google` or `gcm`.
  case legacy
  /// HTTP v1: `from`, `message_type`, and all that begins with `google.` or `gcm.notification.`.
  case v1

  package func contains(_ name: UnsafeRawBufferPointer) -> Bool {
    switch name.first {
    case UInt8(ascii: "f"): equals(name, "from")
    case UInt8(ascii: "m"): equals(name, "message_type")
    case UInt8(ascii: "g"):
      switch self {
      case .legacy: begins(name, "google") || begins(name, "gcm")
      case .v1: begins(name, "google.") || begins(name, "gcm.notification.")
      }
    default: false
    }
  }

  /// The same of a name in a JSON text; it is copied only when it is escaped.
  package func contains(_ name: JSONString, in text: UnsafeRawBufferPointer) -> Bool {
    name.lent(in: text) { contains($0) }
  }

  private func equals(_ name: UnsafeRawBufferPointer, _ word: StaticString) -> Bool {
    name.count == word.utf8CodeUnitCount && begins(name, word)
  }

  private func begins(_ name: UnsafeRawBufferPointer, _ word: StaticString) -> Bool {
    guard name.count >= word.utf8CodeUnitCount, let base = name.baseAddress else { return false }
    return memcmp(base, word.utf8Start, word.utf8CodeUnitCount) == 0
  }
}
