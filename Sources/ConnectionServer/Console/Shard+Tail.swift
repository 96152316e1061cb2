import PushModel
import Seams
import Stores

// What messages do for the console: nothing while nobody watches.

extension Shard {
  /// Notes how its sender calls a message, and where it goes.
  func nameMessage(_ key: MessageKey, _ id: @autoclosure () -> String, to target: @autoclosure () -> String) {
    guard watch.isOn, tail.hasRoom(at: wall) else { return }
    tail.keep(.init(messageID: id(), target: target()), of: key)
  }

  /// Notes a refusal that its sender is told.
  func noteRefusal(
    _ sender: SenderID, _ id: @autoclosure () -> String, to target: @autoclosure () -> String,
    _ code: NackCode
  ) {
    guard watch.isOn, tail.hasRoom(at: wall) else { return }
    tail.keep(
      .init(
        sender: sender, isUpstream: false, name: .init(messageID: id(), target: target()), state: .nacked,
        code: code.rawValue, at: wall))
  }

  /// Counts a step of an upstream message, and notes it.
  func count(_ record: Upstream, _ state: MessageState) {
    counters.countUpstream(state)
    guard watch.isOn, tail.hasRoom(at: wall) else { return }
    tail.keep(
      .init(
        sender: record.row.sender, isUpstream: true,
        name: .init(messageID: record.row.messageID, target: record.row.from), state: state, code: nil,
        at: wall))
  }
}
