import EventLoops
import Seams
import Telemetry

/// A connection that is not through its log-in yet.
protocol LoginGuest: AnyObject {
  /// When its peer was heard last.
  var heardAt: Moment { get }
}

/// Bounds the log-ins that are under way on one listener and loop.
///
/// When more peers come at once than the processor can shake hands with, and all are served side by side, all take longer
/// than the login deadline, and what was done for them is lost. Here a bounded number goes on at a time; who comes later
/// waits in the system's queue of the listening socket, where it costs nothing.
///
/// A peer that says nothing for a while gives its place away, so that silent connections keep nobody out. Such a
/// connection stays until its own deadline.
final class LoginGate {
  /// How often it is looked whether somebody has gone silent, while others wait.
  private static var lookEvery: Duration { .milliseconds(100) }

  private let loop: any Loop
  private let max: Int
  private let patience: Duration
  private let waits: Counter
  private var underWay: [ObjectIdentifier: any LoginGuest] = [:]
  private var lookedAt: Moment?
  private var timer: LoopTimer?
  /// Who goes on accepting when there is room again after ``admits()`` said no.
  var listeners: [TCPListener] = []

  /// - Parameters:
  ///   - max: Log-ins under way.
  ///   - patience: A peer that says nothing for so long does not count.
  ///   - waits: Counts how often accepting was put off.
  init(on loop: any Loop, max: Int, patience: Duration, waits: Counter) {
    self.loop = loop
    self.max = Swift.max(1, max)
    self.patience = patience
    self.waits = waits
  }

  /// Those that count at present.
  var count: Int { underWay.count }

  /// Whether another connection may be accepted; if not, the listeners are told when.
  func admits() -> Bool {
    if underWay.count >= max { forgetSilent() }
    guard underWay.count >= max else { return true }
    if timer == nil {
      waits.add()
      lookLater()
    }
    return false
  }

  func enter(_ guest: any LoginGuest) { underWay[ObjectIdentifier(guest)] = guest }

  /// The log-in is over, well or badly.
  ///
  /// Harmless when repeated.
  func leave(_ guest: any LoginGuest) {
    guard underWay.removeValue(forKey: ObjectIdentifier(guest)) != nil else { return }
    // Some at once, so that the listener is not started and stopped for each.
    if underWay.count <= max - (max + 7) / 8 { open() }
  }

  private func open() {
    guard let timer else { return }
    timer.cancel()
    self.timer = nil
    for listener in listeners { listener.acceptAgain() }
  }

  private func lookLater() {
    timer = loop.after(Self.lookEvery) { [weak self] in
      guard let self else { return }
      forgetSilent()
      if underWay.count < max { open() } else { lookLater() }
    }
  }

  private func forgetSilent() {
    let now = loop.now
    if let lookedAt, now < lookedAt + Self.lookEvery { return }
    lookedAt = now
    for (key, guest) in underWay where guest.heardAt + patience <= now { underWay[key] = nil }
  }
}
