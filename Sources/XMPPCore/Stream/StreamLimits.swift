/// Bounds and times of one stream, either side.
package struct StreamLimits: Hashable, Sendable {
  /// Bytes of one stanza or header before login.
  ///
  /// 8 KiB.
  package var stanzaBytesMaxBeforeLogin = 8_192
  /// Bytes of one stanza after login: 4096 payload bytes may be several times larger when escaped.
  ///
  /// 64 KiB.
  package var stanzaBytesMax = 65_536
  /// Nested elements of a stanza, itself included.
  package var depthMax = 8
  /// Attributes of one start tag, namespace declarations included.
  package var attributesMax = 32
  /// Failed logins on one stream; the last one ends it (RFC 6120 §6.4.5).
  package var loginTriesMax = 3
  /// From the connection's start until a resource is bound.
  ///
  /// On the client, for each step of it.
  package var loginWithin = Duration.seconds(10)
  /// A space is sent after so long without output.
  package var keepaliveAfter = Duration.seconds(30)
  /// The peer is pinged (XEP-0199) after so long without a byte from it.
  package var pingAfter = Duration.seconds(60)
  /// The peer is given up after so long without a byte from it.
  package var deadAfter = Duration.seconds(90)
  /// From one side's end tag to the other's.
  package var closeWithin = Duration.seconds(5)
  /// Told to peers that meet a server which shuts down: they stay away that long, and up to as much again.
  package var retryAfterShutdown = Duration.seconds(2)

  package init() {}
}
