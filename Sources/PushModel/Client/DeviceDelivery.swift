package import JSONCore

/// What a device receives on its stream.
package enum DeviceDelivery: Sendable, Hashable {
  package struct Message: Sendable, Hashable {
    /// Stable: the same message sent again after a failure has the same one.
    package var messageID: String
    /// A sender id, or `/topics/name`.
    package var from: String
    /// The app it is for.
    package var category: String
    /// The registration it is for.
    package var token: String
    package var priority: Priority
    /// Milliseconds since 1970.
    package var sentTime: Int64
    /// Seconds.
    package var timeToLive: Int64
    package var collapseKey: String?
    package var contentAvailable: Bool
    package var mutableContent: Bool
    package var notification: JSONValue?
    /// `fcm_options.image`.
    package var image: String?
    package var data: [String: String]

    package init(
      messageID: String, from: String, category: String, token: String, priority: Priority, sentTime: Int64,
      timeToLive: Int64, collapseKey: String? = nil, contentAvailable: Bool, mutableContent: Bool,
      notification: JSONValue? = nil, image: String? = nil, data: [String: String]
    ) {
      self.messageID = messageID
      self.from = from
      self.category = category
      self.token = token
      self.priority = priority
      self.sentTime = sentTime
      self.timeToLive = timeToLive
      self.collapseKey = collapseKey
      self.contentAvailable = contentAvailable
      self.mutableContent = mutableContent
      self.notification = notification
      self.image = image
      self.data = data
    }
  }

  case message(Message)
  /// Stored messages were discarded, so many.
  case deleted(from: String, category: String, total: Int64)
  /// An upstream message was taken.
  case upstreamAck(messageID: String)
  /// An upstream message was refused; the error as received.
  case upstreamNack(messageID: String, error: String, description: String)
  /// Of a type that this side does not know: to be logged and ignored.
  case unknown(type: String)
}

/// Reads what a device receives.
///
/// Kept and used again.
package struct DeviceDeliveryReader: Sendable {
  private var document = JSONDocument(depthMax: 32)

  package init() {}

  /// - Throws: ``JSONFault`` when the text is no JSON object, or has no message id where one is needed.
  package mutating func read(_ text: UnsafeRawBufferPointer) throws(JSONFault) -> DeviceDelivery {
    let members = try MemberTable(text, with: &document)
    let type = members.string("message_type")
    if type == "deleted_messages" {
      return .deleted(
        from: members.string("from") ?? "", category: members.string("category") ?? "",
        total: members.integer("total_deleted") ?? 0)
    }
    switch type {
    case nil, "ack", "nack": break
    case let type?: return .unknown(type: type)
    }
    guard let messageID = members.string("message_id") else { throw JSONFault(.wrongKind, at: 0) }
    switch type {
    case "ack": return .upstreamAck(messageID: messageID)
    case "nack":
      return .upstreamNack(
        messageID: messageID, error: members.string("error") ?? "",
        description: members.string("error_description") ?? "")
    default:
      return .message(
        DeviceDelivery.Message(
          messageID: messageID, from: members.string("from") ?? "",
          category: members.string("category") ?? "",
          token: members.string("token") ?? "",
          priority: members.string("priority").flatMap(Priority.init(rawValue:)) ?? .normal,
          sentTime: members.integer("sent_time") ?? 0, timeToLive: members.integer("ttl") ?? 0,
          collapseKey: members.string("collapse_key"), contentAvailable: members.flag("content_available"),
          mutableContent: members.flag("mutable_content"), notification: members.value("notification"),
          image: members.value("fcm_options")?["image"]?.string, data: members.strings("data")))
    }
  }
}
