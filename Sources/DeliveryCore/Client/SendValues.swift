/// One stream of a client, numbered in the order of opening.
///
/// Never used twice by one machine.
package struct StreamNumber: Hashable, Comparable, Sendable {
  package var value: UInt32
  package init(_ value: UInt32) { self.value = value }
  package static func < (left: StreamNumber, right: StreamNumber) -> Bool { left.value < right.value }
}

/// Where a machine keeps one message that has not ended.
///
/// A slot is used again by a later message; the generation tells the two apart.
package struct SendSlot: Hashable, Sendable {
  package var index: Int32
  package var generation: UInt32

  package init(index: Int32, generation: UInt32) {
    self.index = index
    self.generation = generation
  }
}

/// A refusal by the server, as it was written.
package struct Nack: Hashable, Sendable {
  package var code: String
  package var text: String

  package init(code: String, text: String) {
    self.code = code
    self.text = text
  }
}

/// How a message ended, from its sender's point of view.
///
/// Each submitted message gets exactly one.
package struct SendOutcome: Equatable, Sendable {
  package enum End: Equatable, Sendable {
    /// The server took charge. The token is there when another one replaces the target.
    case acked(registrationID: String?)
    /// The server refused it, and no try is left or none would help.
    case nacked(Nack)
    /// The server could not tie the message to an id and answered with a stanza error.
    case stanzaRefused(String)
    /// Written, but neither acked nor nacked in time. It may have been delivered.
    case ackOverdue
    /// The time for all tries ran out; with the last nack, if there was one.
    case deadline(Nack?)
    /// The stream it was written on closed before the answer. It may have been delivered.
    case streamLost
    /// The caller took it back. It may have been delivered when it was written before.
    case cancelled
    /// The sender was closed, or gave up connecting.
    case closed
  }

  package var end: End
  /// How often it was written.
  package var attempts: Int
  /// From submission to this end.
  package var latency: Duration

  package init(end: End, attempts: Int, latency: Duration) {
    self.end = end
    self.attempts = attempts
    self.latency = latency
  }
}

/// Why a stream ended.
package struct StreamClosure: Equatable, Sendable, CustomStringConvertible {
  package enum Kind: String, Sendable {
    /// We ended it.
    case ended
    /// The peer ended it in order.
    case peerEnded
    /// No connection: name, route, refused, TLS.
    case connectFailed
    /// The peer refused the credentials.
    case loginRefused
    /// Connecting, logging in, or a sign of life took too long.
    case timedOut
    /// The transport broke.
    case lost
    /// The peer answered with a stream error.
    case streamError
    /// Another log-in of the same identity took this stream's place.
    case replaced
    /// The peer broke the protocol.
    case protocolBroken
  }

  package var kind: Kind
  /// For people; holds no credentials and no payload.
  package var detail: String
  /// How long the peer asked to be left alone.
  package var retryAfter: Duration?

  package init(_ kind: Kind, _ detail: String = "", retryAfter: Duration? = nil) {
    self.kind = kind
    self.detail = detail
    self.retryAfter = retryAfter
  }

  package var description: String { detail.isEmpty ? kind.rawValue : "\(kind.rawValue): \(detail)" }
}
