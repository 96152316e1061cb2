package import DeliveryCore
package import XMLCore

/// One stream of a client to a server, as those who use streams see it.
///
/// Belongs to one loop.
///
/// Reports to its ``ClientConnectionOwner``, never from within one of these calls.
package protocol ClientConnection: AnyObject {
  /// Connects, logs in and binds. Called once.
  func connect()
  /// Appends a stanza to what is written at the end of the round. Nothing happens on a stream that is not open.
  func write(_ stanza: UnsafeRawBufferPointer)
  /// Ends the stream in order; a peer that does not go along is cut off at a deadline.
  func end()
  /// Closes at once and reports nothing more.
  func abort()
}

/// Who hears from a ``ClientConnection``, on its loop.
package protocol ClientConnectionOwner: AnyObject {
  /// The stream is bound: stanzas may be written.
  ///
  /// - Parameter window: What the server granted when a larger one was asked for.
  func opened(_ stream: StreamNumber, window: Int?)
  /// A message stanza. The text of its `gcm` and its id lie in a buffer that is good until the call returns.
  func received(
    _ text: UnsafeRawBufferPointer, id: UnsafeRawBufferPointer?, kind: MessageKind, on stream: StreamNumber)
  /// A message that was answered with a stanza error of that text.
  func refused(_ id: String, _ text: String, on stream: StreamNumber)
  /// The stream is gone. Comes exactly once, unless it was aborted.
  func closed(_ stream: StreamNumber, _ end: StreamClosure)
}

extension ClientConnectionOwner {
  /// The stream is bound, with the protocol's window.
  package func opened(_ stream: StreamNumber) { opened(stream, window: nil) }
}
