package import Seams

/// How busy a loop was lately: the share of time in which it worked instead of waiting.
///
/// Counted over spans of ``spanNs``, since a single round says nothing.
package struct LoopLoad: Sendable {
  /// Long enough to hold many rounds, short enough that a burst is noticed at once.
  package static let spanNs: Int64 = 20_000_000

  private var since: Moment
  private var workedNs: Int64 = 0
  private var last = 0.0

  package init(since: Moment) { self.since = since }

  /// Counts a round.
  package mutating func worked(from start: Moment, to end: Moment) {
    workedNs &+= max(0, end.ns &- start.ns)
    let span = end.ns &- since.ns
    guard span >= Self.spanNs else { return }
    last = min(1, Double(workedNs) / Double(span))
    since = end
    workedNs = 0
  }

  /// The share, 0 to 1: of the last whole span, or of a longer wait since.
  package func share(at now: Moment) -> Double {
    let span = now.ns &- since.ns
    return span > 2 &* Self.spanNs ? min(1, Double(workedNs) / Double(span)) : last
  }
}
