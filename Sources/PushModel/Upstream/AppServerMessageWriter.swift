package import Bytes
import JSONCore
package import Seams

/// Writes the JSON objects that app servers receive unasked: upstream messages, receipts, control.
package enum AppServerMessageWriter {
  /// Appends an upstream message.
  ///
  /// - Parameters:
  ///   - draft: As read from `text`, which is unchanged. Values in its `data` that are no strings become
  ///     strings, as downstream.
  ///   - token: The registration it comes from.
  ///   - category: The registration's app.
  package static func appendUpstream(
    _ draft: UpstreamDraft, of text: UnsafeRawBufferPointer, token: String, category: String,
    to writer: inout ByteWriter
  ) {
    writer.append("{\"category\":\"")
    writer.append(jsonEscaped: category)
    writer.append("\",\"from\":\"")
    writer.append(token)
    writer.append("\",\"message_id\":\"")
    writer.append(draft.messageID.raw(in: text))
    writer.append("\",\"time_to_live\":")
    writer.append(decimal: Int64(draft.timeToLive))
    writer.append(",\"data\":")
    if let data = draft.data {
      if draft.convertsData {
        DeviceMessageWriter.appendData(data.raw(in: text), to: &writer)
      } else {
        writer.append(data.raw(in: text))
      }
    } else {
      writer.append("{}")
    }
    writer.append("}")
  }

  /// Appends a delivery receipt.
  ///
  /// - Parameters:
  ///   - messageID: The downstream message's id as it came, between its quotes.
  ///   - token: The registration that got it.
  ///   - sentTime: When the server took the message; milliseconds as a string, as the service writes them.
  ///   - domain: `gcm.googleapis.com`, or `fcm.googleapis.com` for senders that log in with it.
  package static func appendReceipt(
    messageID: UnsafeRawBufferPointer, token: String, category: String, sentTime: WallTime,
    domain: String = "gcm.googleapis.com", to writer: inout ByteWriter
  ) {
    writer.append("{\"message_type\":\"receipt\",\"from\":\"")
    writer.append(domain)
    writer.append("\",\"message_id\":\"dr2:")
    writer.append(messageID)
    writer.append("\",\"category\":\"")
    writer.append(jsonEscaped: category)
    writer.append("\",\"time_to_live\":0,\"data\":{\"message_status\":\"MESSAGE_SENT_TO_DEVICE\"")
    writer.append(",\"original_message_id\":\"")
    writer.append(messageID)
    writer.append("\",\"device_registration_id\":\"")
    writer.append(token)
    writer.append("\",\"message_sent_timestamp\":\"")
    writer.append(decimal: sentTime.ms)
    writer.append("\"}}")
  }

  /// Appends the one control message there is: the stream takes no new messages.
  package static func appendDraining(to writer: inout ByteWriter) {
    writer.append("{\"message_type\":\"control\",\"control_type\":\"CONNECTION_DRAINING\"}")
  }
}
