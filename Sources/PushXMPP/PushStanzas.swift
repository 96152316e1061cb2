package import Bytes
import JSONCore
package import PushModel

/// Writes whole stanzas around the JSON of the push protocol.
///
/// It translates and decides nothing.
///
/// Slices named `raw` are the contents of JSON strings as they came, between their quotes and with their
/// escapes; XML escaping happens here, once.
/// - Source: FCM XMPP protocol; the shapes with and without `type` are those that deployed clients tell
///   messages apart by.
package struct PushStanzas: Sendable {
  /// How stanzas stand in their transport.
  package enum Framing: Sendable, Hashable {
    /// Inside a stream element, whose default namespace is `jabber:client`.
    case stream
    /// One stanza a WebSocket message; each says its namespace (RFC 7395 section 3.3.3).
    case webSocket
  }

  package let framing: Framing

  package init(framing: Framing = .stream) {
    self.framing = framing
  }

  // MARK: Server to app server

  /// Appends the word that a message was taken.
  ///
  /// - Parameters:
  ///   - from: The target as the sender wrote it, raw.
  ///   - messageID: Raw.
  ///   - registrationID: The token to use from now on, when `from` is an old one.
  package func appendAck(
    from: UnsafeRawBufferPointer, messageID: UnsafeRawBufferPointer, registrationID: String? = nil,
    to writer: inout ByteWriter
  ) {
    open(to: &writer)
    appendIDs(from, messageID, to: &writer)
    if let registrationID {
      writer.append(",\"registration_id\":\"")
      writer.append(jsonStringAsXML: registrationID)
      writer.append("\"")
    }
    writer.append(",\"message_type\":\"ack\"}</gcm></message>")
  }

  /// Appends the word that a message for a device group was taken.
  ///
  /// - Parameters:
  ///   - success: Members that it was taken for.
  ///   - failed: The tokens of the others.
  package func appendGroupAck(
    from: UnsafeRawBufferPointer, messageID: UnsafeRawBufferPointer, success: Int, failed: [String],
    to writer: inout ByteWriter
  ) {
    open(to: &writer)
    appendIDs(from, messageID, to: &writer)
    writer.append(",\"success\":")
    writer.append(decimal: Int64(success))
    writer.append(",\"failure\":")
    writer.append(decimal: Int64(failed.count))
    if !failed.isEmpty {
      writer.append(",\"failed_registration_ids\":[")
      for (index, token) in failed.enumerated() {
        writer.append(index == 0 ? "\"" : ",\"")
        writer.append(jsonStringAsXML: token)
        writer.append("\"")
      }
      writer.append("]")
    }
    writer.append(",\"message_type\":\"ack\"}</gcm></message>")
  }

  /// Appends the word that a message or an ack was refused.
  ///
  /// The description is always written, even when it is empty: clients wait for it.
  ///
  /// - Parameters:
  ///   - from: The target as the sender wrote it, raw; empty when it gave none.
  ///   - messageID: Raw.
  package func appendNack(
    from: UnsafeRawBufferPointer, messageID: UnsafeRawBufferPointer, code: NackCode, description: String,
    registrationID: String? = nil, to writer: inout ByteWriter
  ) {
    open(to: &writer)
    appendIDs(from, messageID, to: &writer)
    if let registrationID {
      writer.append(",\"registration_id\":\"")
      writer.append(jsonStringAsXML: registrationID)
      writer.append("\"")
    }
    writer.append(",\"message_type\":\"nack\",\"error\":\"")
    writer.append(code.rawValue)
    writer.append("\",\"error_description\":\"")
    writer.append(jsonStringAsXML: description)
    writer.append("\"}</gcm></message>")
  }

  /// Appends a refusal, its ids taken from the refused text.
  package func appendNack(
    _ refusal: Refusal, _ reply: ReplyIDs, of text: UnsafeRawBufferPointer, to writer: inout ByteWriter
  ) {
    appendNack(
      from: reply.from?.raw(in: text) ?? UnsafeRawBufferPointer(start: nil, count: 0),
      messageID: reply.messageID.raw(in: text), code: refusal.nack, description: refusal.description,
      to: &writer)
  }

  /// Appends the notice that this stream takes no new messages.
  ///
  /// - Parameter prefixed: Writes `data:gcm`, which one client was seen to look for; to all others both
  ///   spellings are the same.
  package func appendDraining(prefixed: Bool = true, to writer: inout ByteWriter) {
    writer.append(messageTag)
    writer.append(
      prefixed ? "><data:gcm xmlns:data=\"google:mobile:data\">" : "><gcm xmlns=\"google:mobile:data\">")
    AppServerMessageWriter.appendDraining(to: &writer)
    writer.append(prefixed ? "</data:gcm></message>" : "</gcm></message>")
  }

  /// Appends an upstream message or a receipt.
  ///
  /// - Parameter json: The whole object.
  package func appendToAppServer(
    _ json: UnsafeRawBufferPointer, sender: SenderID, to writer: inout ByteWriter
  ) {
    writer.append(messageTag)
    writer.append(" to=\"")
    writer.append(decimal: sender.value)
    writer.append("@gcm.googleapis.com\" from=\"devices@gcm.googleapis.com\" type=\"normal\">")
    writer.append(Self.gcm)
    writer.append(jsonAsXML: json)
    writer.append("</gcm></message>")
  }

  /// Appends the answer to a stanza whose JSON has no usable message id.
  ///
  /// - Parameters:
  ///   - id: Of the stanza; left out when it had none.
  ///   - jid: Full JID of the bound stream.
  ///   - content: The text of the stanza's `gcm` as it came, references decoded. Any legal XML text.
  ///   - text: What is wrong.
  package func appendStanzaError(
    id: String?, jid: String, content: UnsafeRawBufferPointer, text: String, to writer: inout ByteWriter
  ) {
    writer.append(messageTag)
    if let id {
      writer.append(" id=\"")
      writer.append(xml: id)
      writer.append("\"")
    }
    writer.append(" type=\"error\" to=\"")
    writer.append(xml: jid)
    writer.append("\">")
    writer.append(Self.gcm)
    writer.append(jsonAsXML: content)
    writer.append("</gcm><error code=\"400\" type=\"modify\">")
    writer.append("<bad-request xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\"/>")
    writer.append("<text xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\">")
    // A line feed may stand in element text as it is; the documented text ends with one.
    for line in text.split(separator: "\n", omittingEmptySubsequences: true) {
      writer.append(xml: String(line))
      writer.append("\n")
    }
    writer.append("</text></error></message>")
  }

  // MARK: Server and device

  /// Appends a stanza around a whole JSON object: messages, notices and outcomes for a device.
  package func append(_ json: UnsafeRawBufferPointer, to writer: inout ByteWriter) {
    open(to: &writer)
    writer.append(jsonAsXML: json)
    writer.append("</gcm></message>")
  }

  /// Appends a stanza around a JSON object that stands in two places.
  package func append(
    _ json: UnsafeRawBufferPointer, rest: UnsafeRawBufferPointer, to writer: inout ByteWriter
  ) {
    open(to: &writer)
    writer.append(jsonAsXML: json)
    writer.append(jsonAsXML: rest)
    writer.append("</gcm></message>")
  }

  // MARK: Client to server

  /// Appends a downstream message of an app server, or an upstream message of a device.
  ///
  /// - Parameters:
  ///   - json: The whole object.
  ///   - id: The stanza's id; a stanza error names it.
  package func append(_ json: UnsafeRawBufferPointer, id: String, to writer: inout ByteWriter) {
    writer.append(messageTag)
    writer.append(" id=\"")
    writer.append(xml: id)
    writer.append("\">")
    writer.append(Self.gcm)
    writer.append(jsonAsXML: json)
    writer.append("</gcm></message>")
  }

  /// Appends an app server's ack of an upstream message or a receipt.
  /// - Parameter to: The `from` of what is acked.
  package func appendClientAck(to: String, messageID: String, to writer: inout ByteWriter) {
    open(to: &writer)
    writer.append("{\"to\":\"")
    writer.append(jsonStringAsXML: to)
    writer.append("\",\"message_id\":\"")
    writer.append(jsonStringAsXML: messageID)
    writer.append("\",\"message_type\":\"ack\"}</gcm></message>")
  }

  /// Appends a device's ack of a message.
  package func appendDeviceAck(messageID: String, to writer: inout ByteWriter) {
    open(to: &writer)
    writer.append("{\"message_type\":\"ack\",\"message_id\":\"")
    writer.append(jsonStringAsXML: messageID)
    writer.append("\"}</gcm></message>")
  }

  // MARK: Pieces

  private static let gcm: StaticString = "<gcm xmlns=\"google:mobile:data\">"

  private var messageTag: StaticString {
    switch framing {
    case .stream: "<message"
    case .webSocket: "<message xmlns=\"jabber:client\""
    }
  }

  private func open(to writer: inout ByteWriter) {
    switch framing {
    case .stream: writer.append("<message><gcm xmlns=\"google:mobile:data\">")
    case .webSocket: writer.append("<message xmlns=\"jabber:client\"><gcm xmlns=\"google:mobile:data\">")
    }
  }

  private func appendIDs(
    _ from: UnsafeRawBufferPointer, _ messageID: UnsafeRawBufferPointer, to writer: inout ByteWriter
  ) {
    writer.append("{\"from\":\"")
    writer.append(jsonAsXML: from)
    writer.append("\",\"message_id\":\"")
    writer.append(jsonAsXML: messageID)
    writer.append("\"")
  }
}
