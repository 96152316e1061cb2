package import Bytes

/// Remembers the last ids that were handled, so that a repeat is recognised.
///
/// Holds 16 bytes an id and a set of the same; grows with use up to its bound, then the oldest id goes.
package struct DuplicateFilter: Sendable {
  /// How many ids are remembered.
  package let idsMax: Int
  private var ring: [Hash128] = []
  private var oldest = 0
  private var known: Set<Hash128> = []

  package init(idsMax: Int = 1_000) { self.idsMax = max(1, idsMax) }

  package var count: Int { ring.count }

  package func contains(_ key: Hash128) -> Bool { known.contains(key) }

  /// Remembers an id.
  ///
  /// - Returns: false when it was remembered already; nothing changes then.
  @discardableResult
  package mutating func insert(_ key: Hash128) -> Bool {
    guard known.insert(key).inserted else { return false }
    if ring.count < idsMax {
      ring.append(key)
    } else {
      known.remove(ring[oldest])
      ring[oldest] = key
      oldest = (oldest + 1) % idsMax
    }
    return true
  }
}

/// Which messages from the server are being handled, and which were: decides whether one that arrives is
/// shown, joined to a handler that still runs, or only acked again.
///
/// An id is remembered when its handler succeeded. One whose handler failed is forgotten, so that the
/// server's next delivery is shown again. The bound on running handlers is the server's (it stops pushing at
/// 100 without ack); what arrives over ``runningMax`` is left unacked for the server to repeat.
package struct InboundLedger: Sendable {
  package enum Arrival: Sendable, Equatable {
    /// New: run the handler.
    case handle
    /// A repeat of one that is being handled: its ack will go to the stream it came on last.
    case joined
    /// A repeat of one that was handled: ack it, do not show it.
    case ackAgain
    /// Too many are being handled: do nothing, the server will repeat it.
    case overload
  }

  package let runningMax: Int
  private var handled: DuplicateFilter
  private var running: [Hash128: StreamNumber] = [:]

  package init(idsMax: Int = 1_000, runningMax: Int = 1_000) {
    handled = DuplicateFilter(idsMax: idsMax)
    self.runningMax = runningMax
  }

  package var runningCount: Int { running.count }

  /// - Parameter key: A hash over who sent it and its message id: two devices may use the same id.
  package mutating func arrived(_ key: Hash128, on stream: StreamNumber) -> Arrival {
    if handled.contains(key) { return .ackAgain }
    if running[key] != nil {
      running[key] = stream
      return .joined
    }
    guard running.count < runningMax else { return .overload }
    running[key] = stream
    return .handle
  }

  /// The handler of a message ended.
  ///
  /// - Returns: The stream its ack belongs on, nil when there is none to send.
  package mutating func ended(_ key: Hash128, success: Bool) -> StreamNumber? {
    guard let stream = running.removeValue(forKey: key) else { return nil }
    guard success else { return nil }
    handled.insert(key)
    return stream
  }
}
