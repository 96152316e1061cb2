import Bytes
import Connections
import JSONCore
import PushModel
import PushXMPP
import Seams

/// Turns messages into stanzas, checked by the server's own rules.
///
/// Kept and used again by one thread at a time.
struct MessageEncoder: Sendable {
  /// What is made of a message.
  enum Form: Sendable, Equatable {
    case stanza
    /// The body of a request to the legacy endpoint.
    case legacyHTTP(keepsID: Bool)
    /// The body of a request of HTTP v1.
    case v1
  }

  private let form: Form
  private var reader: DownstreamReader
  private var json = ByteWriter(capacity: 1_024)
  private let stanzas = PushStanzas()
  /// Before the number of every id that is made here.
  private let idPrefix: String
  private let ordersByTarget: Bool
  private var lastID: UInt64 = 0

  /// - Parameter idPrefix: Distinct for every encoder of a sender.
  init(
    limits: Limits = Limits(), idPrefix: String, form: Form = .stanza, ordersByTarget: Bool = false
  ) {
    self.form = form
    reader = DownstreamReader(limits: limits)
    self.idPrefix = idPrefix
    self.ordersByTarget = ordersByTarget
  }

  /// 16 hex digits drawn by the system, for ``init(limits:idPrefix:)``.
  static func randomPrefix() -> String {
    var writer = ByteWriter(capacity: 17)
    writer.append(hex: UInt64.random(in: .min ... .max))
    writer.append("-")
    return String(decoding: writer.bytes, as: UTF8.self)
  }

  /// - Throws: `invalidMessage`, with the field at fault.
  mutating func encode(_ message: PushMessage) throws(SendError) -> EncodedMessage {
    json.removeAll()
    if let raw = message.rawJSON {
      json.append(raw)
    } else {
      try write(message)
    }
    var payload = json.bytes.withUnsafeBytes { reader.read($0) }
    if case .stanzaError = payload, addMessageID() {
      payload = json.bytes.withUnsafeBytes { reader.read($0) }
    }
    switch payload {
    case .downstream(let draft):
      let id = json.bytes.withUnsafeBytes { draft.reply.messageID.string(in: $0) }
      if form != .stanza { return try request(id, draft) }
      var stanza = ByteWriter(capacity: json.count + json.count / 8 + 128)
      json.bytes.withUnsafeBytes { stanzas.append($0, id: id, to: &stanza) }
      return EncodedMessage(id: id, stanza: stanza.take(), order: order(of: draft))
    case .nack(let refusal, let reply):
      let id = json.bytes.withUnsafeBytes { reply.messageID.string(in: $0) }
      throw SendError(
        code: .invalidMessage, messageID: id, field: refusal.field, detail: refusal.description)
    case .stanzaError(let text):
      throw SendError(code: .invalidMessage, field: "message_id", detail: text)
    case .ack:
      throw SendError(code: .invalidMessage, field: "message_type", detail: "an ack is not a message")
    }
  }

  /// A hash of the target; nil when order does not matter, or the target is a condition.
  private func order(of draft: DownstreamDraft) -> UInt64? {
    guard ordersByTarget, let target = draft.reply.from else { return nil }
    var hasher = Hasher()
    json.bytes.withUnsafeBytes { bytes in target.withDecoded(in: bytes) { hasher.combine(bytes: $0) } }
    return UInt64(bitPattern: Int64(hasher.finalize()))
  }

  /// The body of a request that says the same.
  private func request(_ id: String, _ draft: DownstreamDraft) throws(SendError) -> EncodedMessage {
    guard !draft.has(.receiptRequested) else {
      throw SendError(
        code: .invalidMessage, messageID: id, field: "delivery_receipt_requested",
        detail: "receipts are given on streams only")
    }
    guard id.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), (1...255).contains(id.utf8.count) else {
      throw SendError(
        code: .invalidMessage, messageID: id, field: "message_id",
        detail: "1 to 255 visible ASCII characters over HTTP")
    }
    guard let message = try? JSONValue(parsing: json.bytes) else {
      throw SendError(code: .invalidMessage, messageID: id, detail: "not a JSON object")
    }
    switch form {
    case .legacyHTTP(let keepsID):
      return EncodedMessage(id: id, stanza: HTTPBody.legacy(message, keepsID: keepsID))
    case .v1, .stanza:
      return EncodedMessage(id: id, stanza: HTTPBody.v1(message, now: SystemTime().wall.ms / 1_000))
    }
  }

  private mutating func makeID() -> String {
    lastID += 1
    return idPrefix + String(lastID)
  }

  /// Puts an id first into a raw object that has none.
  ///
  /// - Returns: false when it is no object or has a `message_id` already.
  private mutating func addMessageID() -> Bool {
    guard let object = try? JSONValue(parsing: json.bytes, depthMax: 16), object.members != nil,
      object["message_id"] == nil, let brace = json.bytes.firstIndex(of: UInt8(ascii: "{"))
    else { return false }
    let rest = Array(json.bytes[(brace + 1)...])
    json.removeAll()
    json.append("{\"message_id\":")
    json.append(jsonString: makeID())
    if object.members?.isEmpty == false { json.append(",") }
    json.append(rest)
    return true
  }

  private mutating func write(_ message: PushMessage) throws(SendError) {
    let id = message.id ?? makeID()
    let address: DownstreamMessage.Address
    switch message.target {
    case .token(let token): address = .to(token)
    case .group(let key): address = .to(key)
    case .topic(let name): address = .to("/topics/" + name)
    case .condition(let text): address = .condition(text)
    case .user(let user): address = .to("/users/" + user)
    }
    var downstream = DownstreamMessage(address, messageID: id, data: message.data)
    downstream.notification = message.notification.map(NotificationContent.init)
    downstream.collapseKey = message.collapseKey
    downstream.priority = message.priority.map { $0 == .high ? .high : .normal }
    if let timeToLive = message.timeToLive {
      let (seconds, rest) = timeToLive.components
      guard rest == 0 else {
        throw SendError(
          code: .invalidMessage, messageID: id, field: "time_to_live", detail: "not whole seconds")
      }
      downstream.timeToLive = Int(clamping: seconds)
    }
    downstream.contentAvailable = message.contentAvailable
    downstream.mutableContent = message.mutableContent
    downstream.receiptRequested = message.wantsReceipt
    downstream.dryRun = message.isDryRun
    downstream.write(to: &json)
  }
}

extension NotificationContent {
  init(_ notification: PushMessage.Notification) {
    self.init(title: notification.title, body: notification.body)
    subtitle = notification.subtitle
    icon = notification.icon
    image = notification.image
    color = notification.color
    sound = notification.sound
    tag = notification.tag
    badge = notification.badge
    clickAction = notification.clickAction
    channelID = notification.channelID
    titleLocKey = notification.titleLocKey
    titleLocArgs = notification.titleLocArgs
    bodyLocKey = notification.bodyLocKey
    bodyLocArgs = notification.bodyLocArgs
  }
}
