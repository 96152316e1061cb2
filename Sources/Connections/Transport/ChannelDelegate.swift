package import EventLoops
package import TLSCore

/// Why a channel is over.
package enum ChannelEnd: Error, Hashable, Sendable, CustomStringConvertible {
  /// `close` was called, and the peer agreed or the time given was over.
  case closed
  /// `abort` was called.
  case aborted
  /// The peer ended the connection; `isClean` when it said so first (close_notify; FIN on a plain channel).
  case peerClosed(isClean: Bool)
  case tls(TLSFault)
  case network(NetworkFault)
  /// The peer reads so slowly that more waited for it than is allowed.
  case backlog(bytes: Int)
  case loopStopped

  /// For people.
  package var description: String {
    switch self {
    case .closed: "closed"
    case .aborted: "aborted"
    case .peerClosed(let isClean): isClean ? "closed by the peer" : "cut by the peer"
    case .tls(let fault): fault.description
    case .network(let fault): fault.description
    case .backlog(let bytes): "the peer reads too slowly: \(bytes) bytes wait for it"
    case .loopStopped: "the loop stopped"
    }
  }
}

/// Who owns a ``Channel`` and hears from it, on the channel's loop.
package protocol ChannelDelegate: AnyObject {
  /// Bytes can be exchanged: comes once, before any plaintext.
  func opened()

  /// Plaintext in a buffer of the loop: good until the call returns.
  func received(_ plaintext: UnsafeRawBufferPointer)

  /// All that waited has been taken by the system; comes only after something had to wait, or reading was paused
  /// with something to be sent.
  func writable()

  /// The peer sends nothing more and may still read; only for channels that do not close by themselves then.
  func inputEnded()

  /// The channel is over and hears nothing more. Comes once, never from within a call to the channel.
  func ended(_ reason: ChannelEnd)
}

extension ChannelDelegate {
  package func opened() {}
  package func writable() {}
  package func inputEnded() {}
}
