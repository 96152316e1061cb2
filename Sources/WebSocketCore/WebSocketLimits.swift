/// Bounds and times of one WebSocket connection, either side.
package struct WebSocketLimits: Hashable, Sendable {
  /// Payload bytes of one message, its fragments together; one more closes with 1009.
  ///
  /// 64 KiB.
  package var messageBytesMax = 65_536
  /// Frames of one message, empty ones counted; one more closes with 1008.
  ///
  /// A frame costs its sender 2 bytes and us some nanoseconds, so the number bounds work, not memory.
  package var fragmentsMax = 1_024
  /// A ping is sent after so long without a byte from the peer; nil for never.
  package var pingAfter: Duration? = .seconds(30)
  /// From a ping to the next byte of the peer; then the peer is given up.
  package var answerWithin = Duration.seconds(60)
  /// From our close frame to the peer's.
  package var closeWithin = Duration.seconds(5)

  package init() {}
}
