import Glibc
import JSONCore

/// Reads the JSON texts that devices send: acks and upstream messages.
///
/// Kept and used again. The same choices as ``DownstreamReader``: `null` counts as left out, a known field that
/// stands twice is refused, unknown fields are ignored.
package struct DeviceUpstreamReader: Sendable {
  private enum Field: Int, CaseIterable {
    case to, messageID, messageType, token, timeToLive, data

    var name: StaticString {
      switch self {
      case .to: "to"
      case .messageID: "message_id"
      case .messageType: "message_type"
      case .token: "token"
      case .timeToLive: "time_to_live"
      case .data: "data"
      }
    }

    static func find(_ name: UnsafeRawBufferPointer) -> Field? {
      let candidate: Field
      switch (name.count, name.first) {
      case (2, _): candidate = .to
      case (4, _): candidate = .data
      case (5, _): candidate = .token
      case (10, _): candidate = .messageID
      case (12, UInt8(ascii: "m")): candidate = .messageType
      case (12, _): candidate = .timeToLive
      default: return nil
      }
      guard let base = name.baseAddress, memcmp(base, candidate.name.utf8Start, name.count) == 0 else {
        return nil
      }
      return candidate
    }
  }

  private struct Fault: Error {
    var error: UpstreamError
    var description: String
  }

  package let limits: Limits
  private var document: JSONDocument
  private var found: [Int]

  package init(limits: Limits) {
    self.limits = limits
    document = JSONDocument(depthMax: max(3, min(limits.jsonDepthMax, 64)))
    found = Array(repeating: -1, count: Field.allCases.count)
  }

  /// Reads one text of any bytes, XML references decoded.
  package mutating func read(_ text: UnsafeRawBufferPointer) -> DevicePayload {
    do throws(JSONFault) {
      try document.read(text)
    } catch {
      return .stanzaError(text: "InvalidJson: JSON_PARSING_ERROR : \(error)\n")
    }
    guard document.kind == .object else {
      return .stanzaError(text: "InvalidJson: JSON_PARSING_ERROR : not a JSON object\n")
    }
    let twice = findFields(in: text)
    guard twice != .messageID else {
      return .stanzaError(text: "InvalidJson: JSON_PARSING_ERROR : Duplicate Field: message_id\n")
    }
    if let member = member(.messageID), member.kind != .string {
      return .stanzaError(
        text: "InvalidJson: JSON_TYPE_ERROR : Field \"message_id\" must be a JSON java.lang.String\n")
    }
    guard let messageID = member(.messageID)?.string, !messageID.isEmpty else {
      return .stanzaError(text: "InvalidJson: JSON_PARSING_ERROR : Missing Required Field: message_id\n")
    }
    do throws(Fault) {
      if let twice {
        throw Fault(
          error: .invalidJSON, description: "InvalidJson: JSON_PARSING_ERROR : Duplicate Field: \(twice.name)"
        )
      }
      if let type = try string(.messageType) {
        // A device has no way to refuse a message: its nack counts as an ack.
        guard type.equals("ack", in: text) || type.equals("nack", in: text) else {
          throw Fault(error: .invalidJSON, description: "InvalidJson: Invalid value for \"message_type\"")
        }
        return .ack(messageID: messageID)
      }
      return .upstream(try upstream(messageID, in: text))
    } catch {
      return .refused(error.error, description: error.description, messageID: messageID)
    }
  }

  private mutating func findFields(in text: UnsafeRawBufferPointer) -> Field? {
    for index in found.indices { found[index] = -1 }
    var twice: Field?
    var index = 0
    while index < document.members.count {
      let name = document.members[index].name
      if let field = name.lent(in: text, { Field.find($0) }) {
        if found[field.rawValue] >= 0, twice != .messageID { twice = field }
        found[field.rawValue] = index
      }
      index = document.members[index].next
    }
    return twice
  }

  private func member(_ field: Field) -> JSONMember? {
    let index = found[field.rawValue]
    guard index >= 0 else { return nil }
    let member = document.members[index]
    if case .null = member.kind { return nil }
    return member
  }

  private func string(_ field: Field) throws(Fault) -> JSONString? {
    guard let member = member(field) else { return nil }
    guard let place = member.string else { throw wrongType(field, "java.lang.String") }
    return place
  }

  private func wrongType(_ field: Field, _ type: StaticString) -> Fault {
    Fault(
      error: .invalidJSON,
      description: "InvalidJson: JSON_TYPE_ERROR : Field \"\(field.name)\" must be a JSON \(type)")
  }

  private func upstream(
    _ messageID: JSONString, in text: UnsafeRawBufferPointer
  ) throws(Fault) -> UpstreamDraft {
    guard let to = try string(.to) else {
      throw Fault(error: .invalidJSON, description: "InvalidJson: Missing Required Field: to")
    }
    let isGroup = to.lent(in: text) { NotificationKey.isWellFormed($0) }
    guard let sender = isGroup ? SenderID(0) : to.lent(in: text, { Self.sender($0) }) else {
      let shown = to.lent(in: text) { Echo.bounded($0, limits.echoCharactersMax) }
      throw Fault(error: .invalidJSON, description: "InvalidJson: Invalid value (\(shown)) for \"to\"")
    }
    let token = try string(.token)
    var seconds = limits.upstreamTimeToLiveSecondsDefault
    if let member = member(.timeToLive) {
      guard member.kind == .number else { throw wrongType(.timeToLive, "java.lang.Number") }
      do throws(Refusal) {
        seconds = try TimeToLive.seconds(member.value.raw(in: text), limits: limits)
      } catch {
        throw Fault(error: .invalidJSON, description: error.description)
      }
    }
    var facts = PayloadRules.DataFacts()
    if let member = member(.data) {
      guard member.kind == .object else { throw wrongType(.data, "object") }
      let children = document.children(of: found[Field.data.rawValue])
      facts = PayloadRules.data(children, of: document, in: text, reserved: .legacy)
    }
    if let name = facts.reservedName {
      let shown = name.lent(in: text) { Echo.bounded($0, limits.echoCharactersMax) }
      throw Fault(error: .invalidJSON, description: "InvalidDataKey: \(shown)")
    }
    guard facts.bytes <= limits.payloadBytesMax else {
      throw Fault(
        error: .messageTooBig,
        description: "MessageTooBig: payload of \(facts.bytes) bytes, limit \(limits.payloadBytesMax)")
    }
    return UpstreamDraft(
      messageID: messageID, sender: sender, group: isGroup ? to : nil, token: token, timeToLive: seconds,
      data: member(.data)?.value, convertsData: !facts.isAllStrings, payloadBytes: facts.bytes)
  }

  /// The sender id of `SENDER@fcm.googleapis.com` or `SENDER@gcm.googleapis.com`.
  private static func sender(_ to: UnsafeRawBufferPointer) -> SenderID? {
    guard let at = to.firstIndex(of: UInt8(ascii: "@")) else { return nil }
    let domain = String(decoding: to[(at + 1)...], as: UTF8.self)
    guard domain == "fcm.googleapis.com" || domain == "gcm.googleapis.com" else { return nil }
    return SenderID(text: String(decoding: to[..<at], as: UTF8.self))
  }
}
