import DeliveryCore
import PushModel
import Seams

/// What the console's tail shows of a shard's messages beside the steps in its ``EventRing``: the names that senders gave
/// them and where they go, and steps that the ring does not hold, which are refusals and those of upstream messages.
///
/// Filled only while a console watches. In a second it takes at most ``notesPerSecondMax``; what comes above is left out
/// here, and shown without its name.
struct MessageTail {
  /// As its sender knows a message.
  struct Name: Sendable, Hashable {
    var messageID: String
    /// The token, topic, condition, group or user.
    var target: String
  }

  /// A step that the ring does not hold.
  struct Note: Sendable {
    var sender: SenderID
    var isUpstream: Bool
    var name: Name
    var state: MessageState
    /// Of a refusal.
    var code: String?
    var at: WallTime
  }

  static let namesMax = 4_096
  static let notesMax = 512
  static let notesPerSecondMax = 1_000

  private(set) var names: [MessageKey: Name] = [:]
  private var order: [MessageKey] = []
  private var oldest = 0
  private var notes: [Note] = []
  private var second: Int64 = 0
  private var takenInSecond = 0
  /// How many steps the ring had been given when they were last looked at; nil before the first time.
  var cursor: UInt64?

  /// Whether there is room for another in this second.
  mutating func hasRoom(at wall: WallTime) -> Bool {
    let now = wall.ms / 1_000
    if now != second { (second, takenInSecond) = (now, 0) }
    takenInSecond += 1
    return takenInSecond <= Self.notesPerSecondMax
  }

  /// Keeps a name; the oldest one goes when there are ``namesMax``.
  mutating func keep(_ name: Name, of key: MessageKey) {
    guard names.updateValue(name, forKey: key) == nil else { return }
    if order.count < Self.namesMax {
      order.append(key)
    } else {
      names[order[oldest]] = nil
      order[oldest] = key
      oldest = (oldest + 1) % Self.namesMax
    }
  }

  /// Keeps a step until it is taken; those above ``notesMax`` are left out.
  mutating func keep(_ note: Note) {
    if notes.count < Self.notesMax { notes.append(note) }
  }

  mutating func takeNotes() -> [Note] {
    defer { notes = [] }
    return notes
  }

  /// Nobody watches any more.
  mutating func forget() { self = MessageTail() }
}
