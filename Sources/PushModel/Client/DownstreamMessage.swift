package import Bytes
import JSONCore

/// A downstream message as a sender builds it.
package struct DownstreamMessage: Sendable, Hashable {
  /// Whom it is for, as written: the check is made when it is encoded, by the rules the server has.
  package enum Address: Sendable, Hashable {
    /// A token, `/topics/name`, `/users/id` or a notification key.
    case to(String)
    case condition(String)
  }

  package var address: Address
  /// Chosen by the sender, distinct among its messages; the ack repeats it.
  package var messageID: String
  /// Names and values count towards the payload limit.
  ///
  /// Written in the order of the names.
  package var data: [String: String]
  package var notification: NotificationContent?
  package var collapseKey: String?
  package var priority: Priority?
  /// Seconds, 0 to 2,419,200; 0 means now or never, nil four weeks.
  package var timeToLive: Int?
  package var contentAvailable = false
  package var mutableContent = false
  package var receiptRequested = false
  package var dryRun = false
  package var restrictedPackageName: String?

  package init(
    _ address: Address, messageID: String, data: [String: String] = [:],
    notification: NotificationContent? = nil
  ) {
    self.address = address
    self.messageID = messageID
    self.data = data
    self.notification = notification
  }

  /// The JSON object that a stanza carries, checked by the server's own rules.
  /// - Throws: The refusal that the server would answer with.
  package func encoded(limits: Limits = Limits()) throws(Refusal) -> [UInt8] {
    var reader = DownstreamReader(limits: limits)
    return try encoded(checkedBy: &reader)
  }

  /// The same with a reader that is kept, for senders of many messages.
  package func encoded(checkedBy reader: inout DownstreamReader) throws(Refusal) -> [UInt8] {
    var writer = ByteWriter(capacity: 512)
    write(to: &writer)
    let json = writer.take()
    switch json.withUnsafeBytes({ reader.read($0) }) {
    case .downstream: return json
    case .nack(let refusal, _): throw refusal
    case .stanzaError(let text): throw Refusal(.invalidJSON, text, field: "message_id")
    case .ack: throw Refusal(.invalidJSON, "not a message")
    }
  }

  /// Appends the JSON object, unchecked.
  package func write(to writer: inout ByteWriter) {
    switch address {
    case .to(let to):
      writer.append("{\"to\":")
      writer.append(jsonString: to)
    case .condition(let condition):
      writer.append("{\"condition\":")
      writer.append(jsonString: condition)
    }
    writer.append(",\"message_id\":")
    writer.append(jsonString: messageID)
    if let collapseKey {
      writer.append(",\"collapse_key\":")
      writer.append(jsonString: collapseKey)
    }
    if let priority {
      writer.append(",\"priority\":")
      writer.append(jsonString: priority.rawValue)
    }
    if let timeToLive {
      writer.append(",\"time_to_live\":")
      writer.append(decimal: Int64(timeToLive))
    }
    if contentAvailable { writer.append(",\"content_available\":true") }
    if mutableContent { writer.append(",\"mutable_content\":true") }
    if receiptRequested { writer.append(",\"delivery_receipt_requested\":true") }
    if dryRun { writer.append(",\"dry_run\":true") }
    if let restrictedPackageName {
      writer.append(",\"restricted_package_name\":")
      writer.append(jsonString: restrictedPackageName)
    }
    if let notification {
      writer.append(",\"notification\":")
      notification.write(to: &writer)
    }
    if !data.isEmpty {
      writer.append(",\"data\":")
      DataObject.write(data, to: &writer)
    }
    writer.append("}")
  }
}

/// A device's upstream message as an app on it builds it.
package struct UpstreamMessage: Sendable, Hashable {
  package var sender: SenderID
  package var messageID: String
  /// Needed once the device has more than one registration.
  package var token: String?
  package var timeToLive: Int?
  package var data: [String: String]

  package init(
    to sender: SenderID, messageID: String, token: String? = nil, timeToLive: Int? = nil,
    data: [String: String] = [:]
  ) {
    self.sender = sender
    self.messageID = messageID
    self.token = token
    self.timeToLive = timeToLive
    self.data = data
  }

  /// Appends the JSON object that a stanza carries, unchecked; ``DeviceUpstreamReader`` has the rules.
  package func write(to writer: inout ByteWriter) {
    writer.append("{\"to\":\"")
    writer.append(decimal: sender.value)
    writer.append("@fcm.googleapis.com\",\"message_id\":")
    writer.append(jsonString: messageID)
    if let token {
      writer.append(",\"token\":")
      writer.append(jsonString: token)
    }
    if let timeToLive {
      writer.append(",\"time_to_live\":")
      writer.append(decimal: Int64(timeToLive))
    }
    writer.append(",\"data\":")
    DataObject.write(data, to: &writer)
    writer.append("}")
  }
}

/// `data` as senders and apps handle it.
enum DataObject {
  /// Writes in the order of the names, so that equal data gives equal bytes.
  static func write(_ data: [String: String], to writer: inout ByteWriter) {
    writer.append("{")
    var isFirst = true
    for (name, value) in data.sorted(by: { $0.key < $1.key }) {
      if !isFirst { writer.append(",") }
      isFirst = false
      writer.append(jsonString: name)
      writer.append(":")
      writer.append(jsonString: value)
    }
    writer.append("}")
  }
}
