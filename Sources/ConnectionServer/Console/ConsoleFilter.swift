import DeliveryCore
import JSONCore
import PushModel
import Stores

/// Which steps of messages a page of the console wants to see; without a choice a sample of all.
struct ConsoleFilter: Sendable, Equatable {
  struct Refused: Error { var reason: String }

  var sender: SenderID?
  /// The token and its device: what goes to the device is shown.
  var token: String?
  var device: DeviceNumber?
  /// The path of a topic, `/topics/news`.
  var topic: String?
  /// Messages to it that the store knows.
  var fanouts: Set<MessageKey> = []
  var state: MessageState?
  var isUpstream: Bool?

  init() {}

  /// Reads `{"sender_id":…,"token":…,"topic":…,"state":…,"direction":…}`; empty texts choose nothing.
  init(_ body: JSONValue) throws(Refused) {
    guard let members = body.members else { throw Refused(reason: "The filter must be a JSON object.") }
    for member in members {
      guard let text = member.value.string, text.utf8.count <= 4_096 else {
        throw Refused(reason: "\"\(member.name.prefix(64))\" must be a string.")
      }
      guard !text.isEmpty else { continue }
      switch member.name {
      case "sender_id":
        guard let found = SenderID(text: text) else {
          throw Refused(reason: "\"sender_id\" must be a number.")
        }
        sender = found
      case "token": token = text
      case "topic":
        let name = text.hasPrefix("/topics/") ? String(text.dropFirst(8)) : text
        guard let found = TopicName(name) else {
          throw Refused(reason: "A topic's name has 1 to 900 characters of a-z, A-Z, 0-9 and - _ . ~ %.")
        }
        topic = found.path
      case "state":
        guard let found = MessageState.allCases.first(where: { $0.name == text }) else {
          throw Refused(reason: "There is no state \"\(text.prefix(64))\".")
        }
        state = found
      case "direction":
        guard ["downstream", "upstream"].contains(text) else {
          throw Refused(reason: "\"direction\" must be downstream or upstream.")
        }
        isUpstream = text == "upstream"
      default: throw Refused(reason: "There is no filter \"\(member.name.prefix(64))\".")
      }
    }
  }

  /// Everything is wanted, so a sample will do.
  var isEmpty: Bool { self == ConsoleFilter() }

  func picks(_ event: EventRing.Event, _ name: @autoclosure () -> MessageTail.Name?) -> Bool {
    if isUpstream == true { return false }
    if let sender, event.sender != sender { return false }
    if let state, event.state != state { return false }
    if let device, event.device != device { return false }
    if let topic, !fanouts.contains(event.key), name()?.target != topic { return false }
    return true
  }

  func picks(_ note: MessageTail.Note) -> Bool {
    if let isUpstream, note.isUpstream != isUpstream { return false }
    if let sender, note.sender != sender { return false }
    if let state, note.state != state { return false }
    if let token, note.name.target != token { return false }
    if let topic, note.name.target != topic { return false }
    return true
  }
}
