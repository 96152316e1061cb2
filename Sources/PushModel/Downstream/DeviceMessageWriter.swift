package import Bytes
import JSONCore
package import Seams

/// Writes the JSON objects that devices receive.
///
/// A message is written in two parts so that a fan-out writes the second one once: the head names the device's
/// registration, the tail holds what all receivers share.
package enum DeviceMessageWriter {
  /// What a device is told a message came from.
  package enum Origin: Sendable, Hashable {
    case sender(SenderID)
    case topic(TopicName)
  }

  /// Appends a whole message object.
  ///
  /// - Parameters:
  ///   - draft: As read from `text`, which is unchanged.
  ///   - messageID: Written as 32 hex digits.
  ///   - token: Well formed; for an old token the one it stands for now.
  ///   - category: The registration's app.
  ///   - badge: Written for a badge that counts (``DownstreamDraft/badgeStep``): the sum.
  package static func append(
    _ draft: DownstreamDraft, of text: UnsafeRawBufferPointer, messageID: Hash128, origin: Origin,
    category: String, token: String, sentTime: WallTime, badge: Int64? = nil, to writer: inout ByteWriter
  ) {
    appendHead(messageID: messageID, origin: origin, category: category, token: token, to: &writer)
    appendTail(draft, of: text, sentTime: sentTime, badge: badge, to: &writer)
  }

  /// Appends the opening brace and what differs between the receivers of one message.
  package static func appendHead(
    messageID: Hash128, origin: Origin, category: String, token: String, to writer: inout ByteWriter
  ) {
    writer.append("{\"message_id\":\"")
    writer.append(hex: messageID.high)
    writer.append(hex: messageID.low)
    switch origin {
    case .sender(let sender):
      writer.append("\",\"from\":\"")
      writer.append(decimal: sender.value)
    case .topic(let topic):
      writer.append("\",\"from\":\"/topics/")
      writer.append(topic.text)
    }
    writer.append("\",\"category\":\"")
    writer.append(jsonEscaped: category)
    writer.append("\",\"token\":\"")
    writer.append(token)
    writer.append("\"")
  }

  /// Appends the rest, from a comma to the closing brace.
  ///
  /// `notification` and `data` are passed on as they came; only values in `data` that are no strings are
  /// turned into strings (``appendData``).
  package static func appendTail(
    _ draft: DownstreamDraft, of text: UnsafeRawBufferPointer, sentTime: WallTime, badge: Int64? = nil,
    to writer: inout ByteWriter
  ) {
    switch draft.priority {
    case .high: writer.append(",\"priority\":\"high\",\"sent_time\":")
    case .normal: writer.append(",\"priority\":\"normal\",\"sent_time\":")
    }
    writer.append(decimal: sentTime.ms)
    writer.append(",\"ttl\":")
    writer.append(decimal: Int64(draft.timeToLive))
    if let collapseKey = draft.collapseKey {
      writer.append(",\"collapse_key\":\"")
      writer.append(collapseKey.raw(in: text))
      writer.append("\"")
    }
    if draft.has(.contentAvailable) { writer.append(",\"content_available\":true") }
    if draft.has(.mutableContent) { writer.append(",\"mutable_content\":true") }
    if let notification = draft.notification {
      writer.append(",\"notification\":")
      if let badge {
        NotificationBadge.append(notification.raw(in: text), badge: badge, to: &writer)
      } else {
        writer.append(notification.raw(in: text))
      }
    }
    if let data = draft.data {
      writer.append(",\"data\":")
      if draft.has(.convertsData) {
        appendData(data.raw(in: text), to: &writer)
      } else {
        writer.append(data.raw(in: text))
      }
    }
    if let extras = draft.extras { writer.append(extras.raw(in: text)) }
    writer.append("}")
  }

  /// Appends a `data` object with every value as a string, as the app on the device gets it.
  ///
  /// A number or a boolean becomes a string of exactly its digits or letters, never by way of a floating-point
  /// value; an object or array becomes a string of its text as it came; a `null` member is left out.
  package static func appendData(_ data: UnsafeRawBufferPointer, to writer: inout ByteWriter) {
    var document = JSONDocument(depthMax: 64, recordedDepth: 1)
    // It was read as part of a valid text.
    guard (try? document.read(data)) != nil else {
      writer.append("{}")
      return
    }
    writer.append("{")
    var isFirst = true
    for member in document.members where member.kind != .null {
      writer.append(isFirst ? "\"" : ",\"")
      isFirst = false
      writer.append(member.name.raw(in: data))
      writer.append("\":")
      let value = member.value.raw(in: data)
      if member.kind == .string {
        writer.append(value)
      } else {
        writer.append("\"")
        writer.append(jsonEscaped: value)
        writer.append("\"")
      }
    }
    writer.append("}")
  }

  /// Appends the notice that stored messages were discarded.
  package static func appendDeletedMessages(
    from sender: SenderID, category: String, total: Int, to writer: inout ByteWriter
  ) {
    writer.append("{\"message_type\":\"deleted_messages\",\"from\":\"")
    writer.append(decimal: sender.value)
    writer.append("\",\"category\":\"")
    writer.append(jsonEscaped: category)
    writer.append("\",\"total_deleted\":\"")
    writer.append(decimal: Int64(total))
    writer.append("\"}")
  }

  /// Appends the word that an upstream message was taken.
  /// - Parameter messageID: As it came, between its quotes.
  package static func appendUpstreamAck(messageID: UnsafeRawBufferPointer, to writer: inout ByteWriter) {
    writer.append("{\"message_type\":\"ack\",\"message_id\":\"")
    writer.append(messageID)
    writer.append("\"}")
  }

  /// Appends the word that an upstream message was refused.
  /// - Parameter messageID: As it came, between its quotes.
  package static func appendUpstreamNack(
    messageID: UnsafeRawBufferPointer, error: UpstreamError, description: String, to writer: inout ByteWriter
  ) {
    writer.append("{\"message_type\":\"nack\",\"message_id\":\"")
    writer.append(messageID)
    writer.append("\",\"error\":\"")
    writer.append(error.rawValue)
    writer.append("\",\"error_description\":\"")
    writer.append(jsonEscaped: description)
    writer.append("\"}")
  }
}
