/// A secret text (server key, device secret, registration token) that no description, interpolation, dump or
/// log line shows.
package struct Redacted: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  private let secret: String

  package init(_ secret: String) { self.secret = secret }

  /// The secret itself, under a name that a reviewer notices.
  package var revealed: String { secret }

  /// The length alone: enough to see an empty or cut secret.
  package var description: String { "<redacted, \(secret.utf8.count) bytes>" }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
