import Seams
import Synchronization

/// Slows down and counts failed logins by address.
///
/// Each failure within a minute doubles the pause before the next refusal is sent, up to 5 seconds: a guesser
/// gets a dozen tries a minute from one address, while a mistyped key costs its owner a tenth of a second.
final class LoginGuard: Sendable {
  private struct Failures {
    var count: Int
    var since: Moment
  }
  private let failuresPerMinuteMax: Int
  /// Addresses remembered; beyond it all are forgotten, which costs a flood of addresses nothing but is bounded.
  private let addressesMax = 10_000
  private let failures = Mutex<[String: Failures]>([:])

  init(failuresPerMinuteMax: Int) { self.failuresPerMinuteMax = failuresPerMinuteMax }

  /// Counts a failure.
  ///
  /// - Parameter peer: Address and port; the port does not count.
  /// - Returns: How long to wait before telling.
  func failed(from peer: String, now: Moment) -> Duration {
    let address = peer.lastIndex(of: ":").map { String(peer[..<$0]) } ?? peer
    return failures.withLock { failures in
      if failures.count >= addressesMax { failures.removeAll() }
      var entry = failures[address] ?? Failures(count: 0, since: now)
      if now - entry.since > .seconds(60) { entry = Failures(count: 0, since: now) }
      entry.count += 1
      failures[address] = entry
      if entry.count > failuresPerMinuteMax { return .seconds(5) }
      return .milliseconds(min(5_000, 50 << min(entry.count, 7)))
    }
  }
}
