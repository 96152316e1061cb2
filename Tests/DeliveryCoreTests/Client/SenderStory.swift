import DeliveryCore
import Seams

/// A sender machine with a clock, for stories: every event answers with its actions.
struct SenderStory {
  typealias Action = SenderMachine.Action

  var machine: SenderMachine
  var now = Moment(ns: 1_000_000_000)
  /// Slots by message id, of everything submitted.
  private(set) var slots: [String: SendSlot] = [:]

  init(_ settings: SenderMachine.Settings = .init(), seed: UInt64 = 1) {
    machine = SenderMachine(settings, seed: seed)
  }

  /// Connected on stream 1.
  static func connected(_ settings: SenderMachine.Settings = .init(), seed: UInt64 = 1) -> SenderStory {
    var story = SenderStory(settings, seed: seed)
    _ = story.start()
    _ = story.opened(1)
    return story
  }

  func slot(_ id: String) -> SendSlot { slots[id] ?? SendSlot(index: -1, generation: 0) }

  /// The write of a message, as an action.
  func write(_ id: String, _ stream: UInt32) -> Action { .write(slot(id), StreamNumber(stream)) }

  func finish(
    _ id: String, _ end: SendOutcome.End, attempts: Int = 1, after latency: Duration = .zero
  ) -> Action {
    .finish(slot(id), SendOutcome(end: end, attempts: attempts, latency: latency))
  }

  mutating func start() -> [Action] { collect { $0.start(now: $1, &$2) } }

  mutating func submit(_ id: String, order: UInt64? = nil) -> [Action] {
    var actions: [Action] = []
    let answer = machine.submit(id: id, order: order, now: now, &actions)
    if case .accepted(let slot) = answer { slots[id] = slot }
    return actions
  }

  mutating func answer(toSubmitting id: String) -> SenderMachine.Submission {
    var actions: [Action] = []
    let answer = machine.submit(id: id, now: now, &actions)
    if case .accepted(let slot) = answer { slots[id] = slot }
    return answer
  }

  mutating func opened(_ stream: UInt32, window: Int? = nil) -> [Action] {
    collect { $0.opened(StreamNumber(stream), window: window, now: $1, &$2) }
  }

  mutating func closed(_ stream: UInt32, _ end: StreamClosure = .init(.lost)) -> [Action] {
    collect { $0.closed(StreamNumber(stream), end, now: $1, &$2) }
  }

  mutating func acked(_ id: String, on stream: UInt32 = 1, token: String? = nil) -> [Action] {
    collect { $0.acked(id, registrationID: token, on: StreamNumber(stream), now: $1, &$2) }
  }

  mutating func nacked(_ id: String, _ code: String, on stream: UInt32 = 1) -> [Action] {
    collect { $0.nacked(id, Nack(code: code, text: ""), on: StreamNumber(stream), now: $1, &$2) }
  }

  mutating func stanzaRefused(_ id: String, on stream: UInt32 = 1) -> [Action] {
    collect { $0.stanzaRefused(id, "bad", on: StreamNumber(stream), now: $1, &$2) }
  }

  mutating func draining(_ stream: UInt32) -> [Action] {
    collect { $0.drainingAnnounced(StreamNumber(stream), now: $1, &$2) }
  }

  mutating func cancel(_ id: String) -> [Action] {
    let slot = slot(id)
    return collect { $0.cancel(slot, now: $1, &$2) }
  }

  mutating func close(within patience: Duration = .seconds(5)) -> [Action] {
    collect { $0.close(now: $1, deadline: $1 + patience, &$2) }
  }

  /// Moves time on, then ticks.
  mutating func pass(_ duration: Duration) -> [Action] {
    now = now + duration
    return collect { $0.tick(now: $1, &$2) }
  }

  /// Moves time to the next deadline and ticks; nothing when there is none.
  mutating func passToDeadline() -> [Action] {
    guard let next = machine.nextDeadline() else { return [] }
    now = max(now, next)
    return collect { $0.tick(now: $1, &$2) }
  }

  private mutating func collect(
    _ event: (inout SenderMachine, Moment, inout [Action]) -> Void
  ) -> [Action] {
    var actions: [Action] = []
    event(&machine, now, &actions)
    return actions
  }
}
