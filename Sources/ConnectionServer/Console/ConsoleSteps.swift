import Bytes
import DeliveryCore
import JSONCore
import PushModel
import Seams

/// What one page is shown of one second.
struct ConsoleSteps: Sendable {
  var events: [EventRing.Event] = []
  var notes: [MessageTail.Note] = []
  /// One message in so many is shown, with all its steps.
  var every: UInt64 = 1
  /// Steps that were chosen and had no room, or were not looked at.
  var leftOut = 0

  /// Steps of one second, of each loop.
  static let stepsMax = 100
  /// Steps of one second, of all loops together.
  static let shownMax = 200
  /// Steps that one look goes back over; a loop takes about a third of a millisecond for them.
  static let walkMax = 16_384

  mutating func add(_ other: ConsoleSteps) {
    events += other.events
    notes += other.notes
    every = max(every, other.every)
    leftOut += other.leftOut
  }

  /// Oldest first, the newest ``shownMax``.
  func shown(_ names: [MessageKey: MessageTail.Name]) -> (steps: [JSONValue], leftOut: Int) {
    var rows: [(at: Int64, order: UInt8, JSONValue)] = []
    for event in events {
      rows.append((event.at.ms, event.state.rawValue, Self.show(event, names[event.key])))
    }
    for note in notes { rows.append((note.at.ms, note.state.rawValue, Self.show(note))) }
    rows.sort { ($0.at, $0.order) < ($1.at, $1.order) }
    return (rows.suffix(Self.shownMax).map(\.2), leftOut + max(0, rows.count - Self.shownMax))
  }

  private static func show(_ event: EventRing.Event, _ name: MessageTail.Name?) -> JSONValue {
    var members: [JSONValue.Member] = [
      .init("at", .number(event.at.ms)), .init("state", .string(event.state.name)),
      .init("direction", "downstream"), .init("sender_id", .string(event.sender.description)),
      .init("device_message_id", .string(event.key.hash.hex)),
    ]
    if event.device.value != 0 { members.append(.init("device", .number(event.device.value))) }
    if let name {
      if !name.messageID.isEmpty { members.append(.init("message_id", .string(name.messageID))) }
      members.append(.init("target", .string(name.target)))
    }
    return .object(members)
  }

  private static func show(_ note: MessageTail.Note) -> JSONValue {
    var members: [JSONValue.Member] = [
      .init("at", .number(note.at.ms)), .init("state", .string(note.state.name)),
      .init("direction", note.isUpstream ? "upstream" : "downstream"),
      .init("sender_id", .string(note.sender.description)),
      .init("message_id", .string(note.name.messageID)), .init("target", .string(note.name.target)),
    ]
    if let code = note.code { members.append(.init("code", .string(code))) }
    return .object(members)
  }
}

extension Shard {
  /// What happened here since the last look, for each filter; bounded, however much it was.
  func consoleSteps(_ filters: [ConsoleFilter]) -> [ConsoleSteps] {
    let since = tail.cursor ?? events.recorded
    tail.cursor = events.recorded
    let new = Int(clamping: events.recorded &- since)
    let notes = tail.takeNotes()
    return filters.map { filter in
      var found = ConsoleSteps()
      if filter.isEmpty {
        // The steps of a message share a hash, so a message is shown whole or not at all; and who is in the smaller
        // sample was in the larger one.
        while new / Int(found.every) > ConsoleSteps.stepsMax, found.every < 1 << 20 { found.every *= 2 }
      }
      let mask = found.every - 1
      let chosen = events.latest(new, walkMax: ConsoleSteps.walkMax, max: ConsoleSteps.stepsMax) { event in
        event.key.hash.low & mask == 0 && filter.picks(event, tail.names[event.key])
      }
      found.events = chosen.events
      let wanted = notes.filter(filter.picks)
      found.notes = Array(wanted.suffix(ConsoleSteps.stepsMax))
      found.leftOut = wanted.count - found.notes.count
      if !filter.isEmpty { found.leftOut += chosen.passedOver }
      return found
    }
  }
}
