import JSONCore

/// Reads the JSON texts that app servers send: the one validator of streams and legacy HTTP, used by the client
/// library before it sends.
///
/// Kept and used again; on the hot path it allocates nothing. Choices where the protocol is silent: a known
/// field that is `null` counts as left out; a known field that stands twice is refused; an unknown field is
/// ignored; a time to live with a fraction or an exponent is out of range, whatever its value.
/// - Source: FCM XMPP protocol, tables of downstream message fields and error codes.
package struct DownstreamReader: Sendable {
  /// Which front door the text came through.
  package enum Form: Sendable {
    /// A stanza: `message_id` is required, `registration_ids` refused, acks allowed.
    case stream
    /// A legacy HTTP body: `message_id` is optional (an extension) and `registration_ids` allowed. What a
    /// stream answers with a stanza error is a nack here, with an empty place for the id.
    case legacyHTTP
  }

  package let limits: Limits
  package let form: Form
  var document: JSONDocument
  /// The member of each ``DownstreamField``, or -1.
  var found: [Int]

  package init(limits: Limits, form: Form = .stream) {
    self.limits = limits
    self.form = form
    document = JSONDocument(depthMax: max(3, min(limits.jsonDepthMax, 64)))
    found = Array(repeating: -1, count: DownstreamField.allCases.count)
  }

  /// Reads one text.
  /// - Parameter text: As it came, XML references decoded. It may be of any bytes.
  package mutating func read(_ text: UnsafeRawBufferPointer) -> ClientPayload {
    do throws(JSONFault) {
      try document.read(text)
    } catch {
      return noMessageID("InvalidJson: JSON_PARSING_ERROR : \(error)")
    }
    guard document.kind == .object else {
      return noMessageID("InvalidJson: JSON_PARSING_ERROR : not a JSON object")
    }
    let twice = findFields(in: text)

    let noID = JSONString(start: 0, end: 0, decodedCount: 0)
    var messageID = noID
    if let member = member(.messageID) {
      guard let place = member.string else {
        let shown = Echo.bounded(member.value.raw(in: text), limits.echoCharactersMax)
        return noMessageID(
          "InvalidJson: JSON_TYPE_ERROR : Field \"message_id\" must be a JSON java.lang.String: \(shown)")
      }
      messageID = place
    }
    if messageID.isEmpty, form == .stream {
      return noMessageID("InvalidJson: JSON_PARSING_ERROR : Missing Required Field: message_id")
    }
    if twice == .messageID {
      return noMessageID("InvalidJson: JSON_PARSING_ERROR : Duplicate Field: message_id")
    }

    let reply = ReplyIDs(messageID: messageID, from: member(.to)?.string ?? member(.condition)?.string)
    do throws(Refusal) {
      if let twice {
        throw Refusal(
          .invalidJSON, "InvalidJson: JSON_PARSING_ERROR : Duplicate Field: \(twice.name)",
          field: "\(twice.name)")
      }
      if form == .stream, let type = try string(.messageType, in: text) {
        return .ack(try ack(type, messageID, in: text))
      }
      return .downstream(try downstream(reply, in: text))
    } catch {
      return .nack(error, reply)
    }
  }

  private func noMessageID(_ text: String) -> ClientPayload {
    switch form {
    case .stream: .stanzaError(text: text + "\n")
    case .legacyHTTP:
      .nack(
        Refusal(.invalidJSON, text),
        ReplyIDs(messageID: JSONString(start: 0, end: 0, decodedCount: 0), from: nil))
    }
  }

  /// Notes where each known field stands.
  /// - Returns: A field that stands twice; the message id before all others.
  private mutating func findFields(in text: UnsafeRawBufferPointer) -> DownstreamField? {
    for index in found.indices { found[index] = -1 }
    var twice: DownstreamField?
    var index = 0
    while index < document.members.count {
      let name = document.members[index].name
      if let field = name.lent(in: text, { DownstreamField.find($0) }) {
        if found[Int(field.rawValue)] >= 0, twice != .messageID { twice = field }
        found[Int(field.rawValue)] = index
      }
      index = document.members[index].next
    }
    return twice
  }

  /// The field's member, unless it is left out or null.
  func member(_ field: DownstreamField) -> JSONMember? {
    let index = found[Int(field.rawValue)]
    guard index >= 0 else { return nil }
    let member = document.members[index]
    if case .null = member.kind { return nil }
    return member
  }

  /// An ack, or an app server's nack, which counts as one.
  private func ack(
    _ type: JSONString, _ messageID: JSONString, in text: UnsafeRawBufferPointer
  ) throws(Refusal) -> AckDraft {
    guard type.equals("ack", in: text) || type.equals("nack", in: text) else {
      throw invalid("message_type", "must be \"ack\"", type, in: text)
    }
    guard let to = member(.to)?.string, !to.isEmpty else {
      throw Refusal(.malformedAck, "Missing Required Field: to", field: "to")
    }
    return AckDraft(messageID: messageID, to: to)
  }

  private mutating func downstream(
    _ reply: ReplyIDs, in text: UnsafeRawBufferPointer
  ) throws(Refusal) -> DownstreamDraft {
    var options: DownstreamDraft.Options = []
    if try flag(.contentAvailable, in: text) { options.insert(.contentAvailable) }
    if try flag(.mutableContent, in: text) { options.insert(.mutableContent) }
    if try flag(.receiptRequested, in: text) { options.insert(.receiptRequested) }
    if try flag(.dryRun, in: text) { options.insert(.dryRun) }
    if try flag(.delayWhileIdle, in: text) { options.insert(.delayWhileIdle) }
    let collapseKey = try string(.collapseKey, in: text)
    let packageName = try string(.restrictedPackageName, in: text)
    let asked = try priority(in: text)
    let timeToLive = try timeToLive(in: text)
    let target = try target(in: text)
    let notification = try notification(in: text)
    let data = try data(in: text)

    let payloadBytes = notification.bytes + data.bytes
    let limit: Int
    switch target {
    case .topic, .condition: limit = limits.topicPayloadBytesMax
    case .token, .user, .group, .tokens: limit = limits.payloadBytesMax
    }
    guard payloadBytes <= limit else {
      throw Refusal(.messageTooBig, "MessageTooBig: payload of \(payloadBytes) bytes, limit \(limit)")
    }
    if !data.isAllStrings { options.insert(.convertsData) }
    return DownstreamDraft(
      reply: reply, target: target, collapseKey: collapseKey.flatMap { $0.isEmpty ? nil : $0 },
      data: member(.data)?.value, notification: notification.range, timeToLive: timeToLive,
      priority: asked ?? (notification.range == nil ? .normal : .high), options: options,
      restrictedPackageName: packageName.flatMap { $0.isEmpty ? nil : $0 }, payloadBytes: payloadBytes,
      badgeStep: notification.badgeStep)
  }
}
