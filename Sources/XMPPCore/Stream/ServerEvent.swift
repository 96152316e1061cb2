package import XMLCore

/// What the accepting side of a stream wants its driver to know or do.
package enum ServerEvent: Hashable, Sendable {
  /// Look the credentials up and answer with ``ServerStream/authenticated(local:output:now:)`` or
  /// ``ServerStream/refused(_:output:now:)``. Nothing is taken from the peer until then.
  case authenticate(PlainCredentials)
  /// The peer has an address; messages follow, and may be sent.
  case bound(JID)
  /// A message with a `gcm` element. Ranges point into the scratch buffer, until it is next used.
  case message(MessageHead)
  /// The peer sent its end tag after it was bound. Write what it is still owed, then
  /// ``ServerStream/close(output:)``.
  case peerClosing
  /// Over: flush the output and close the connection. Comes once.
  case ended(StreamEnd)
}

/// Why the accepting side ended a stream.
package enum StreamEnd: Hashable, Sendable {
  /// The peer's end tag came, or the driver closed.
  case closed
  /// The header closed itself (seen where documentation was copied); answered by a header and an end tag.
  case selfClosedHeader
  /// A stream error was sent; the text is for the log.
  case faulted(StreamErrorCondition, String)
  /// The last login try failed.
  case loginRefused
  /// No bound resource within the login deadline.
  case loginOverdue
  /// Not a byte from the peer for too long.
  case silent
  /// The peer sent a stream error of that name.
  case peerFault(String)
}
