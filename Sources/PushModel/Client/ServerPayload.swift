package import JSONCore

/// What an app server receives on its stream.
package enum ServerPayload: Sendable, Hashable {
  package struct Nack: Sendable, Hashable {
    package var messageID: String
    package var from: String
    /// As received; older servers put a whole text here.
    package var error: String
    package var description: String
    /// The token to use from now on.
    package var registrationID: String?

    package init(
      messageID: String, from: String, error: String, description: String, registrationID: String? = nil
    ) {
      self.messageID = messageID
      self.from = from
      self.error = error
      self.description = description
      self.registrationID = registrationID
    }
    /// Nil for an unknown `error`, which counts as `INTERNAL_SERVER_ERROR`.
    package var code: NackCode? { NackCode(rawValue: error) }
    package var remedy: NackCode.Remedy { NackCode.remedy(for: error) }
  }

  package struct Upstream: Sendable, Hashable {
    package var messageID: String
    /// The token it comes from.
    package var from: String
    package var category: String
    package var timeToLive: Int64?
    package var data: [String: String]

    package init(
      messageID: String, from: String, category: String, timeToLive: Int64? = nil, data: [String: String]
    ) {
      self.messageID = messageID
      self.from = from
      self.category = category
      self.timeToLive = timeToLive
      self.data = data
    }
  }

  package struct Receipt: Sendable, Hashable {
    /// `dr2:` and the downstream id: what the ack names.
    package var messageID: String
    /// A domain: what the ack has as `to`.
    package var from: String
    package var category: String
    package var originalMessageID: String
    package var token: String
    package var status: String
    /// Milliseconds since 1970.
    package var sentTimestamp: Int64?

    package init(
      messageID: String, from: String, category: String, originalMessageID: String, token: String,
      status: String, sentTimestamp: Int64? = nil
    ) {
      self.messageID = messageID
      self.from = from
      self.category = category
      self.originalMessageID = originalMessageID
      self.token = token
      self.status = status
      self.sentTimestamp = sentTimestamp
    }
  }

  /// `from` is the target as it was sent; `registrationID` the token to use from now on.
  case ack(messageID: String, from: String, registrationID: String?)
  case nack(Nack)
  case upstream(Upstream)
  case receipt(Receipt)
  /// The stream takes no new messages. It has neither message id nor from.
  case draining
  /// Of a type, or a control type, that this side does not know: to be logged and ignored.
  case unknown(type: String)
}

/// Reads what an app server receives.
///
/// Kept and used again.
package struct ServerPayloadReader: Sendable {
  private var document = JSONDocument(depthMax: 32)

  package init() {}

  /// - Throws: ``JSONFault`` when the text is no JSON object, or has no message id where one is needed.
  package mutating func read(_ text: UnsafeRawBufferPointer) throws(JSONFault) -> ServerPayload {
    let members = try MemberTable(text, with: &document)
    let type = members.string("message_type")
    if type == "control" {
      let control = members.string("control_type") ?? ""
      return control == "CONNECTION_DRAINING" ? .draining : .unknown(type: "control \(control)")
    }
    switch type {
    case nil, "ack", "nack", "receipt": break
    case let type?: return .unknown(type: type)
    }
    guard let messageID = members.string("message_id") else { throw JSONFault(.wrongKind, at: 0) }
    let from = members.string("from") ?? ""
    switch type {
    case "ack":
      return .ack(messageID: messageID, from: from, registrationID: members.string("registration_id"))
    case "nack":
      return .nack(
        ServerPayload.Nack(
          messageID: messageID, from: from, error: members.string("error") ?? "",
          description: members.string("error_description") ?? "",
          registrationID: members.string("registration_id")))
    case "receipt":
      let data = members.strings("data")
      return .receipt(
        ServerPayload.Receipt(
          messageID: messageID, from: from, category: members.string("category") ?? "",
          originalMessageID: data["original_message_id"] ?? "", token: data["device_registration_id"] ?? "",
          status: data["message_status"] ?? "",
          sentTimestamp: data["message_sent_timestamp"].flatMap { Int64($0) }))
    default:
      return .upstream(
        ServerPayload.Upstream(
          messageID: messageID, from: from, category: members.string("category") ?? "",
          timeToLive: members.integer("time_to_live"), data: members.strings("data")))
    }
  }
}
