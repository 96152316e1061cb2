/// What a message holds.
package enum MessageContent: Sendable, Hashable {
  /// UTF-8, checked.
  case text
  case binary
}

/// What a connection wants its driver to know.
package enum WebSocketEvent: Sendable, Hashable {
  /// A whole message. The range points into the scratch buffer, until it is next used.
  case message(MessageContent, Range<Int>)
  /// A ping, which is answered already, or a pong: the peer is there.
  case alive
  /// Over: flush the output and close the connection below. Comes once.
  case ended(WebSocketEnd)
}

/// Why a connection is over.
package enum WebSocketEnd: Error, Sendable, Hashable {
  /// The peer began to close, and has its answer; nil when it gave no code.
  case peerClosed(CloseCode?, reason: String)
  /// The peer has answered our close.
  case closed
  /// The peer broke the protocol or a limit, and was told so.
  case failed(WebSocketFault)
  /// No answer to our close in time.
  case closeOverdue
  /// Nothing came from the peer after a ping.
  case unanswered
}
