import Bytes
package import HTTPCore
import JSONCore
package import PushModel

/// A valid legacy HTTP send.
package struct LegacySend: Sendable {
  package enum Form: Sendable, Hashable { case json, plainText }

  package var form: Form
  /// Its places point into `text`.
  package var draft: DownstreamDraft
  package var text: [UInt8]
  /// The elements of `registration_ids`; nil when `to` or `condition` is the target.
  package var tokens: [String]?
  /// The id that the sender gave, in the header or in the body.
  package var messageID: String?

  /// Puts an id where the draft finds it.
  package mutating func setMessageID(_ id: String) {
    let start = text.count
    var writer = ByteWriter(capacity: id.utf8.count)
    writer.append(jsonEscaped: id)
    text.append(contentsOf: writer.bytes)
    draft.setMessageID(JSONString(start: start, end: text.count, decodedCount: id.utf8.count))
  }
}

/// What a legacy HTTP body comes to.
package enum LegacyReading: Sendable {
  case send(LegacySend)
  /// Nothing is sent; this is the answer.
  case answer(HTTPResponse)
}

/// Reads bodies of `/fcm/send` and `/gcm/send` in both forms, with the validator of the streams.
///
/// Kept and used again.
package struct LegacyReader: Sendable {
  private var reader: DownstreamReader
  private let limits: Limits

  package init(limits: Limits) {
    self.limits = limits
    reader = DownstreamReader(limits: limits, form: .legacyHTTP)
  }

  /// - Parameters:
  ///   - fields: Of the request: `Content-Type` chooses the form, `X-Weir-Message-Id` names the message.
  ///   - multicastID: For an answer that needs one.
  package mutating func read(
    _ body: [UInt8], _ fields: HTTPFields, multicastID: Int64
  ) -> LegacyReading {
    let header = fields["x-weir-message-id"]
    if let header, !MessageNames.isUsable(header) {
      return .answer(.legacyText(400, "X-Weir-Message-Id must be 1 to 255 visible ASCII characters\n"))
    }
    switch fields.mediaType {
    case "application/json", "text/json": return readJSON(body, .json, header, multicastID)
    case nil, "application/x-www-form-urlencoded", "text/plain":
      switch Self.json(ofForm: body) {
      case .success(let text): return readJSON(text, .plainText, header, multicastID)
      case .failure(let fault): return .answer(fault.response)
      }
    case .some: return .answer(.legacyText(400, "INVALID_REQUEST: Content-Type must be application/json\n"))
    }
  }

  private mutating func readJSON(
    _ text: [UInt8], _ form: LegacySend.Form, _ header: String?, _ multicastID: Int64
  ) -> LegacyReading {
    let payload = text.withUnsafeBytes { reader.read($0) }
    switch payload {
    case .downstream(let draft):
      var send = LegacySend(form: form, draft: draft, text: text)
      if case .tokens(let range) = draft.target {
        switch tokens(range, in: text) {
        case .success(let found): send.tokens = found
        case .failure(let fault): return .answer(fault.response)
        }
      }
      if !draft.reply.messageID.isEmpty {
        send.messageID = text.withUnsafeBytes { draft.reply.messageID.string(in: $0) }
      }
      send.messageID = header ?? send.messageID
      return .send(send)
    case .nack(let refusal, _): return .answer(answer(refusal, form, text, multicastID))
    // The form of legacy HTTP gives neither.
    case .stanzaError(let text): return .answer(.legacyText(400, text))
    case .ack: return .answer(.legacyText(400, "message_type\n"))
    }
  }

  private func tokens(_ range: JSONRange, in text: [UInt8]) -> Result<[String], LegacyFault> {
    let values = text.withUnsafeBytes { try? JSONValue(parsing: range.raw(in: $0)) }?.array ?? []
    guard !values.isEmpty else { return .failure(.init("\"registration_ids\" field cannot be empty")) }
    guard values.count <= limits.registrationIDsMax else {
      return .failure(
        .init(
          "Number of messages on bulk (\(values.count)) exceeds maximum allowed (\(limits.registrationIDsMax))"
        ))
    }
    let tokens = values.compactMap(\.string)
    guard tokens.count == values.count else {
      return .failure(.init("Field \"registration_ids\" must hold strings only"))
    }
    return .success(tokens)
  }

  /// A refusal before any token was looked at: a 400, or the same error for each receiver.
  private func answer(
    _ refusal: Refusal, _ form: LegacySend.Form, _ text: [UInt8], _ multicastID: Int64
  ) -> HTTPResponse {
    guard let error = refusal.reason.legacyResult else {
      var description = refusal.description
      if description.hasPrefix("InvalidJson: ") { description = String(description.dropFirst(13)) }
      return .legacyText(400, description + "\n")
    }
    if form == .plainText { return LegacyAnswer.plain(.refused(error)) }
    let value = try? JSONValue(parsing: text)
    if let ids = value?["registration_ids"]?.array, (1...limits.registrationIDsMax).contains(ids.count) {
      return LegacyAnswer.multicast(
        id: multicastID, Array(repeating: .refused(error), count: ids.count))
    }
    let to = value?["to"]?.string ?? ""
    if to.hasPrefix("/topics/") || (to.isEmpty && value?["condition"]?.string?.isEmpty == false) {
      return LegacyAnswer.topic(.refused(error), number: "")
    }
    return LegacyAnswer.multicast(id: multicastID, [.refused(error)])
  }

  // MARK: Plain text

  /// The JSON of a form: `registration_id`, `collapse_key`, `data.<key>` and so on.
  private static func json(ofForm body: [UInt8]) -> Result<[UInt8], LegacyFault> {
    var members: [JSONValue.Member] = []
    var data: [JSONValue.Member] = []
    var seen: Set<String> = []
    for (name, value) in FormText.pairs(body) {
      if !seen.insert(name).inserted { return .failure(.init("Duplicate parameter: \(name.prefix(64))")) }
      switch name {
      case "registration_id": if !value.isEmpty { members.append(.init("to", .string(value))) }
      case "collapse_key", "restricted_package_name", "message_id", "priority":
        members.append(.init(name, .string(value)))
      case "time_to_live":
        // What is no number is left to the validator, which says so.
        members.append(.init(name, Int64(value) == nil ? .string(value) : .number(value)))
      case "dry_run", "delay_while_idle", "content_available":
        members.append(.init(name, .bool(value == "1" || value.lowercased() == "true")))
      case _ where name.hasPrefix("data."):
        data.append(.init(String(name.dropFirst(5)), .string(value)))
      default: break
      }
    }
    if !data.isEmpty { members.append(.init("data", .object(data))) }
    return .success(JSONValue.object(members).bytes)
  }
}

/// A request that is answered 400, with a text.
struct LegacyFault: Error {
  let text: String
  init(_ text: String) { self.text = text }
  var response: HTTPResponse { .legacyText(400, text + "\n") }
}
