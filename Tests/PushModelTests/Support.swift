import Bytes
import JSONCore
import PushModel
import Seams

/// Well-formed values that tests share.
enum Sample {
  static let token = "abcdefghijklmnopqrstuv:APA91b" + String(repeating: "Z", count: 43)
  static let key = "APA91b" + String(repeating: "k", count: 43)

  /// A message to ``token`` with further members, written as JSON text.
  static func message(_ more: String = "") -> String {
    "{\"to\":\"\(token)\",\"message_id\":\"m-1\"\(more.isEmpty ? "" : ",")\(more)}"
  }
}

/// A payload in words that tests compare, with everything that needs the text read out.
enum Outcome: Equatable {
  case downstream(Draft)
  case ack(id: String, to: String)
  case stanzaError(String)
  case nack(NackCode, String, id: String, from: String?)
}

struct Draft: Equatable {
  var id: String
  var target: Target?
  var data: String?
  var notification: String?
  var collapseKey: String?
  var timeToLive: Int
  var priority: Priority
  var options: DownstreamDraft.Options
  var packageName: String?
  var payloadBytes: Int
  /// What a device is sent, without head.
  var tail: String
}

func read(
  _ bytes: [UInt8], limits: Limits = Limits(), form: DownstreamReader.Form = .stream
) -> Outcome {
  var reader = DownstreamReader(limits: limits, form: form)
  return bytes.withUnsafeBytes { text in
    switch reader.read(text) {
    case .downstream(let draft):
      var tail = ByteWriter()
      DeviceMessageWriter.appendTail(draft, of: text, sentTime: WallTime(ms: 7), to: &tail)
      func raw(_ place: JSONRange?) -> String? {
        place.map { String(decoding: $0.raw(in: text), as: UTF8.self) }
      }
      return .downstream(
        Draft(
          id: draft.reply.messageID.string(in: text), target: draft.ownedTarget(in: text, limits: limits),
          data: raw(draft.data), notification: raw(draft.notification),
          collapseKey: draft.collapseKey?.string(in: text), timeToLive: draft.timeToLive,
          priority: draft.priority, options: draft.options,
          packageName: draft.restrictedPackageName?.string(in: text), payloadBytes: draft.payloadBytes,
          tail: String(decoding: tail.bytes, as: UTF8.self)))
    case .ack(let ack):
      return .ack(id: ack.messageID.string(in: text), to: ack.to.string(in: text))
    case .stanzaError(let text):
      return .stanzaError(text)
    case .nack(let refusal, let reply):
      return .nack(
        refusal.nack, refusal.description, id: reply.messageID.string(in: text),
        from: reply.from?.string(in: text))
    }
  }
}

func read(
  _ text: String, limits: Limits = Limits(), form: DownstreamReader.Form = .stream
) -> Outcome {
  read(Array(text.utf8), limits: limits, form: form)
}

func taken(_ text: String, limits: Limits = Limits(), form: DownstreamReader.Form = .stream) -> Draft? {
  guard case .downstream(let draft) = read(text, limits: limits, form: form) else { return nil }
  return draft
}

/// The description of a nack with that code, or nil.
func nack(_ text: String, _ code: NackCode = .invalidJSON, limits: Limits = Limits()) -> String? {
  guard case .nack(code, let description, id: "m-1", from: _) = read(text, limits: limits) else { return nil }
  return description
}
