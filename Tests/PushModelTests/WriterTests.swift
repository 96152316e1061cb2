import Bytes
import JSONCore
import PushModel
import Seams
import Testing

private func written(_ body: (inout ByteWriter) -> Void) -> String {
  var writer = ByteWriter()
  body(&writer)
  return String(decoding: writer.bytes, as: UTF8.self)
}

private func lent<Result>(_ text: String, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows
  -> Result
{
  try Array(text.utf8).withUnsafeBytes(body)
}

@Suite struct WriterTests {
  @Test func aDeviceGetsTheWholeMessage() throws {
    var reader = DownstreamReader(limits: Limits())
    let json = try lent(Sample.message(#""data":{"a":"1"}"#)) { text in
      guard case .downstream(let draft) = reader.read(text) else { throw JSONFault(.wrongKind, at: 0) }
      return written { writer in
        DeviceMessageWriter.append(
          draft, of: text, messageID: Hash128(high: 1, low: 0xABC),
          origin: .sender(SenderID(100_000_000_001)),
          category: "org.\"x\"", token: Sample.token, sentTime: WallTime(ms: 1_700_000_000_000), to: &writer)
      }
    }
    #expect(
      json
        == #"{"message_id":"00000000000000010000000000000abc","from":"100000000001","category":"org.\"x\"","#
        + "\"token\":\"\(Sample.token)\""
        + #","priority":"normal","sent_time":1700000000000,"ttl":2419200,"data":{"a":"1"}}"#)
    var delivered = DeviceDeliveryReader()
    guard case .message(let message) = try lent(json, { try delivered.read($0) }) else {
      Issue.record("not a message")
      return
    }
    #expect(message.messageID == "00000000000000010000000000000abc")
    #expect(
      message.from == "100000000001" && message.category == "org.\"x\"" && message.token == Sample.token)
    #expect(message.data == ["a": "1"] && message.timeToLive == 2_419_200 && message.priority == .normal)
  }

  @Test(arguments: [
    ("+1", 1), ("+20", 20), ("+9999", 9999), ("+10000", 0), ("+", 0), ("+0", 0), ("1", 0), ("+x", 0),
  ])
  func aBadgeThatCountsIsReplacedByTheSum(_ badge: String, _ step: Int) throws {
    var reader = DownstreamReader(limits: Limits())
    let message = Sample.message(#""notification":{"title":"t","badge":"\#(badge)","x":[1.0]}"#)
    try lent(message) { text in
      guard case .downstream(let draft) = reader.read(text) else { throw JSONFault(.wrongKind, at: 0) }
      #expect(draft.badgeStep == step)
      let tail = written {
        DeviceMessageWriter.appendTail(draft, of: text, sentTime: WallTime(ms: 0), badge: 7, to: &$0)
      }
      #expect(tail.contains(#""notification":{"title":"t","badge":"7","x":[1.0]}"#))
    }
  }

  @Test func numbersAreWrittenInTheirDigits() {
    for value in [0, 9, 10, -1, 1_700_000_000_123, Int64.max, Int64.min] {
      #expect(written { $0.append(decimal: value) } == String(value))
    }
    #expect(written { $0.append(hex: 0x0123_4567_89AB_CDEF) } == "0123456789abcdef")
    #expect(written { $0.append(hex: 0) } == "0000000000000000")
  }

  @Test func aTopicMessageComesFromTheTopic() throws {
    let topic = try #require(TopicName("x"))
    let head = written {
      DeviceMessageWriter.appendHead(
        messageID: Hash128(high: 0, low: 0), origin: .topic(topic), category: "c", token: "t", to: &$0)
    }
    #expect(head.contains(#""from":"/topics/x""#))
  }

  @Test func noticesAndOutcomesHaveTheirShapes() throws {
    #expect(
      written {
        DeviceMessageWriter.appendDeletedMessages(from: SenderID(5), category: "c", total: 137, to: &$0)
      }
        == #"{"message_type":"deleted_messages","from":"5","category":"c","total_deleted":"137"}"#)
    lent(#"u\"1"#) { id in
      #expect(
        written { DeviceMessageWriter.appendUpstreamAck(messageID: id, to: &$0) }
          == #"{"message_type":"ack","message_id":"u\"1"}"#)
      #expect(
        written {
          DeviceMessageWriter.appendUpstreamNack(
            messageID: id, error: .tooManyMessages, description: "a\"b", to: &$0)
        }
          == #"{"message_type":"nack","message_id":"u\"1","error":"TOO_MANY_MESSAGES","error_description":"a\"b"}"#
      )
    }
    #expect(
      written { AppServerMessageWriter.appendDraining(to: &$0) }
        == #"{"message_type":"control","control_type":"CONNECTION_DRAINING"}"#)
  }

  @Test func aReceiptIsReadBackByTheAppServer() throws {
    let json = lent(#"m\/1"#) { id in
      written {
        AppServerMessageWriter.appendReceipt(
          messageID: id, token: Sample.token, category: "org.x", sentTime: WallTime(ms: 1_700_000_000_123),
          to: &$0)
      }
    }
    #expect(
      json.contains(#""message_sent_timestamp":"1700000000123""#) && json.contains(#""time_to_live":0"#))
    var reader = ServerPayloadReader()
    let payload = try lent(json) { try reader.read($0) }
    #expect(
      payload
        == .receipt(
          ServerPayload.Receipt(
            messageID: "dr2:m/1", from: "gcm.googleapis.com", category: "org.x", originalMessageID: "m/1",
            token: Sample.token, status: "MESSAGE_SENT_TO_DEVICE", sentTimestamp: 1_700_000_000_123)))
  }
}

@Suite struct UpstreamTests {
  private enum Read: Equatable {
    case ack(String)
    case upstream(id: String, sender: SenderID, token: String?, timeToLive: Int, toAppServer: String)
    case stanzaError(String)
    case refused(UpstreamError, String, id: String)
  }

  private func read(_ text: String, limits: Limits = Limits()) -> Read {
    var reader = DeviceUpstreamReader(limits: limits)
    return lent(text) { bytes in
      switch reader.read(bytes) {
      case .ack(let id): return .ack(id.string(in: bytes))
      case .upstream(let draft):
        return .upstream(
          id: draft.messageID.string(in: bytes), sender: draft.sender, token: draft.token?.string(in: bytes),
          timeToLive: draft.timeToLive,
          toAppServer: written {
            AppServerMessageWriter.appendUpstream(draft, of: bytes, token: "T", category: "c", to: &$0)
          })
      case .stanzaError(let text): return .stanzaError(text)
      case .refused(let error, let description, let id):
        return .refused(error, description, id: id.string(in: bytes))
      }
    }
  }

  private func message(_ more: String) -> String {
    "{\"to\":\"100000000001@fcm.googleapis.com\",\"message_id\":\"u-1\"\(more)}"
  }

  @Test func acksAreRead() {
    #expect(read(#"{"message_type":"ack","message_id":"00ff"}"#) == .ack("00ff"))
    #expect(read(#"{"message_type":"nack","message_id":"00ff"}"#) == .ack("00ff"))
  }

  @Test func upstreamMessagesReachTheAppServer() {
    #expect(
      read(message(#","token":"tk","time_to_live":60,"data":{"hello":"world","n":1.50}"#))
        == .upstream(
          id: "u-1", sender: SenderID(100_000_000_001), token: "tk", timeToLive: 60,
          toAppServer:
            #"{"category":"c","from":"T","message_id":"u-1","time_to_live":60,"data":{"hello":"world","n":"1.50"}}"#
        ))
    #expect(
      read(#"{"to":"7@gcm.googleapis.com","message_id":"u-1"}"#)
        == .upstream(
          id: "u-1", sender: SenderID(7), token: nil, timeToLive: 86_400,
          toAppServer: #"{"category":"c","from":"T","message_id":"u-1","time_to_live":86400,"data":{}}"#))
  }

  @Test(arguments: ["5", "true", "[]", "{}"])
  func wrongTypesAreNamed(_ value: String) {
    for (field, type) in [
      ("token", "java.lang.String"), ("data", "object"), ("message_type", "java.lang.String"),
    ] where !(field == "data" && value == "{}") {
      #expect(
        read(message(",\"\(field)\":\(value)"))
          == .refused(
            .invalidJSON, "InvalidJson: JSON_TYPE_ERROR : Field \"\(field)\" must be a JSON \(type)",
            id: "u-1"))
    }
    #expect(
      read("{\"to\":\(value),\"message_id\":\"u-1\"}")
        == .refused(
          .invalidJSON, "InvalidJson: JSON_TYPE_ERROR : Field \"to\" must be a JSON java.lang.String",
          id: "u-1"))
  }

  @Test(arguments: [
    "7", "7@example.org", "@fcm.googleapis.com", "x@fcm.googleapis.com", "7@fcm.googleapis.com@",
    "1234567890123456789@fcm.googleapis.com", "",
  ])
  func addressesOfNoSenderAreRefused(_ to: String) {
    #expect(
      read("{\"to\":\"\(to)\",\"message_id\":\"u-1\"}")
        == .refused(.invalidJSON, "InvalidJson: Invalid value (\(to)) for \"to\"", id: "u-1"))
  }

  @Test func limitsOfPayloadAndTimeHold() {
    func sized(_ bytes: Int) -> String {
      message(",\"data\":{\"k\":\"\(String(repeating: "x", count: bytes - 1))\"}")
    }
    if case .upstream = read(sized(4096)) {} else { Issue.record("4096 bytes refused") }
    #expect(
      read(sized(4097))
        == .refused(.messageTooBig, "MessageTooBig: payload of 4097 bytes, limit 4096", id: "u-1"))
    for time in ["-1", "2419201", "1.5"] {
      if case .refused(.invalidJSON, let text, id: "u-1") = read(message(",\"time_to_live\":\(time)")) {
        #expect(text.contains("INVALID_TTL"))
      } else {
        Issue.record("\(time) taken")
      }
    }
    #expect(
      read(message(",\"time_to_live\":\"5\""))
        == .refused(
          .invalidJSON,
          "InvalidJson: JSON_TYPE_ERROR : Field \"time_to_live\" must be a JSON java.lang.Number", id: "u-1"))
    #expect(
      read(message(",\"data\":{\"from\":\"x\"}")) == .refused(.invalidJSON, "InvalidDataKey: from", id: "u-1")
    )
    #expect(
      read(message(",\"data\":{},\"data\":{}"))
        == .refused(.invalidJSON, "InvalidJson: JSON_PARSING_ERROR : Duplicate Field: data", id: "u-1"))
    #expect(
      read(message(",\"message_type\":\"x\""))
        == .refused(.invalidJSON, "InvalidJson: Invalid value for \"message_type\"", id: "u-1"))
    #expect(
      read("{\"message_id\":\"u-1\"}")
        == .refused(.invalidJSON, "InvalidJson: Missing Required Field: to", id: "u-1"))
  }

  @Test(arguments: [
    "{}", "[]", "", "{\"message_id\":5}", "{\"message_id\":\"\"}",
    "{\"message_id\":\"a\",\"message_id\":\"a\"}",
  ])
  func withoutAMessageIDThereIsAStanzaError(_ text: String) {
    guard case .stanzaError(let why) = read(text) else {
      Issue.record("\(text) taken")
      return
    }
    #expect(why.hasPrefix("InvalidJson: ") && why.hasSuffix("\n"))
  }
}

@Suite struct ClientValueTests {
  @Test func aBuiltMessagePassesTheServersRules() throws {
    var message = DownstreamMessage(
      .to(Sample.token), messageID: "m\u{1A}1", data: ["b": "2", "a": "x\u{1A}\"é"])
    message.timeToLive = 0
    message.priority = .high
    message.collapseKey = "k"
    message.contentAvailable = true
    message.mutableContent = true
    message.receiptRequested = true
    message.dryRun = true
    message.restrictedPackageName = "org.x"
    var notification = NotificationContent(title: "t", body: "b")
    notification.badge = "+1"
    notification.bodyLocArgs = ["Ann", "3"]
    message.notification = notification
    let json = String(decoding: try message.encoded(), as: UTF8.self)
    #expect(json.contains(#""data":{"a":"x\u001a\"é","b":"2"}"#))
    #expect(json.contains(#""body_loc_args":"[\"Ann\",\"3\"]""#))
    let draft = try #require(taken(json))
    #expect(
      draft.id == "m\u{1A}1" && draft.timeToLive == 0 && draft.priority == .high && draft.collapseKey == "k")
    #expect(draft.options == [.contentAvailable, .mutableContent, .receiptRequested, .dryRun])
  }

  @Test func theClientRefusesWhatTheServerWould() {
    func refusal(_ message: DownstreamMessage) -> Refusal? {
      do throws(Refusal) {
        _ = try message.encoded()
        return nil
      } catch {
        return error
      }
    }
    #expect(refusal(DownstreamMessage(.to("x"), messageID: "m"))?.reason == .malformedToken)
    #expect(refusal(DownstreamMessage(.to(Sample.token), messageID: ""))?.reason == .invalidJSON)
    #expect(refusal(DownstreamMessage(.condition("'a"), messageID: "m"))?.reason == .invalidParameter)
    #expect(
      refusal(DownstreamMessage(.to(Sample.token), messageID: "m", data: ["gcmx": "1"]))?.reason
        == .invalidDataKey)
    var late = DownstreamMessage(.to(Sample.token), messageID: "m")
    late.timeToLive = 2_419_201
    #expect(refusal(late)?.reason == .invalidTTL)
    let emoji = DownstreamMessage(
      .to(Sample.token), messageID: "m", data: ["b": String(repeating: "🌍", count: 1024)])
    #expect(refusal(emoji)?.reason == .messageTooBig)
  }

  @Test func whatTheServerSaysIsReadWithoutAMessageIDWhereThereIsNone() throws {
    var reader = ServerPayloadReader()
    func read(_ text: String) throws -> ServerPayload { try lent(text) { try reader.read($0) } }
    #expect(try read(#"{"message_type":"control","control_type":"CONNECTION_DRAINING"}"#) == .draining)
    #expect(try read(#"{"message_type":"control","control_type":"NEW"}"#) == .unknown(type: "control NEW"))
    #expect(try read(#"{"message_type":"news"}"#) == .unknown(type: "news"))
    #expect(
      try read(#"{"message_type":"ack","message_id":"m","from":"t","registration_id":"n"}"#)
        == .ack(messageID: "m", from: "t", registrationID: "n"))
    guard
      case .nack(let nack) = try read(
        #"{"message_type":"nack","message_id":"m","from":"t","error":"InvalidJson : X"}"#)
    else {
      Issue.record("no nack")
      return
    }
    #expect(nack.code == nil && nack.remedy == .retryLater && nack.description == "")
    guard
      case .upstream(let upstream) = try read(
        #"{"category":"c","from":"t","message_id":"u","time_to_live":5,"data":{"a":"1","n":2,"z":null}}"#)
    else {
      Issue.record("no upstream")
      return
    }
    #expect(upstream.data == ["a": "1", "n": "2"] && upstream.timeToLive == 5)
    #expect(throws: JSONFault.self) { try read(#"{"message_type":"ack"}"#) }
    #expect(throws: JSONFault.self) { try read("[]") }
  }

  @Test func whatADeviceIsToldIsRead() throws {
    var reader = DeviceDeliveryReader()
    func read(_ text: String) throws -> DeviceDelivery { try lent(text) { try reader.read($0) } }
    #expect(
      try read(#"{"message_type":"deleted_messages","from":"5","category":"c","total_deleted":"137"}"#)
        == .deleted(from: "5", category: "c", total: 137))
    #expect(try read(#"{"message_type":"ack","message_id":"u"}"#) == .upstreamAck(messageID: "u"))
    #expect(
      try read(#"{"message_type":"nack","message_id":"u","error":"TTL_EXCEEDED","error_description":"d"}"#)
        == .upstreamNack(messageID: "u", error: "TTL_EXCEEDED", description: "d"))
    #expect(try read(#"{"message_type":"x"}"#) == .unknown(type: "x"))
  }

  @Test func anUpstreamMessageOfTheRuntimePassesTheServersRules() throws {
    var writer = ByteWriter()
    UpstreamMessage(to: SenderID(7), messageID: "u\"1", token: "t", timeToLive: 0, data: ["a": "<&>"]).write(
      to: &writer)
    var reader = DeviceUpstreamReader(limits: Limits())
    let draft = writer.bytes.withUnsafeBytes { text -> UpstreamDraft? in
      guard case .upstream(let draft) = reader.read(text) else { return nil }
      return draft
    }
    #expect(draft?.sender == SenderID(7) && draft?.timeToLive == 0 && draft?.payloadBytes == 4)
  }
}

@Suite struct LimitsTests {
  @Test func defaultsAreThoseOfTheContract() {
    let limits = Limits()
    #expect(limits.stanzaBytesMax == 65_536 && limits.stanzaBeforeLoginBytesMax == 8_192)
    #expect(limits.xmlDepthMax == 8 && limits.xmlAttributesMax == 32 && limits.loginDeadline == .seconds(10))
    #expect(
      limits.payloadBytesMax == 4_096 && limits.pendingPerStreamMax == 100
        && limits.streamsPerSenderMax == 1_000)
    #expect(
      limits.upstreamPendingPerDeviceMax == 20 && limits.storedPerDeviceMax == 100
        && limits.collapseKeysPerDeviceMax == 4)
    #expect(
      limits.registrationIDsMax == 1_000 && limits.groupMembersMax == 20 && limits.topicsPerTokenMax == 2_000)
    #expect(limits.conditionTopicsMax == 5 && limits.writeBacklogBytesMax == 1 << 20)
    #expect(limits.keepaliveIdle == .seconds(30) && limits.deadAfter == .seconds(90))
    #expect(
      limits.httpHeadBytesMax == 16_384 && limits.httpBodyBytesMax == 1 << 20
        && limits.webSocketMessageBytesMax == 65_536)
    #expect(Limits.asPublished.topicPayloadBytesMax == 2_048)
  }

  @Test func anyBytesAreReadWithoutATrap() {
    var chance = SeededChance(seed: 3)
    var reader = DownstreamReader(limits: Limits())
    var upstream = DeviceUpstreamReader(limits: Limits())
    let seed = Array(
      Sample.message(
        #""data":{"a":1,"b":"\u00e9"},"time_to_live":5,"notification":{"badge":1},"condition":null"#
      ).utf8)
    for _ in 0..<5_000 {
      var text = seed
      for _ in 0..<Int.random(in: 0...4, using: &chance) where !text.isEmpty {
        let at = Int.random(in: text.indices, using: &chance)
        switch Int.random(in: 0..<3, using: &chance) {
        case 0: text[at] = UInt8.random(in: 0...255, using: &chance)
        case 1: text.removeSubrange(at..<min(text.count, at + 5))
        default: text.insert(contentsOf: text[at..<min(text.count, at + 9)], at: at)
        }
      }
      text.withUnsafeBytes { text in
        if case .downstream(let draft) = reader.read(text) {
          var writer = ByteWriter()
          DeviceMessageWriter.appendTail(draft, of: text, sentTime: WallTime(ms: 0), to: &writer)
          let object = Array("{\"x\":1".utf8) + writer.bytes
          #expect(throws: Never.self) { try JSONValue(parsing: object) }
        }
        _ = upstream.read(text)
      }
    }
  }
}
