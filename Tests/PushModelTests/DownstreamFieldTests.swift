import JSONCore
import PushModel
import Testing

/// Each field of a message with every kind of value.
@Suite struct DownstreamFieldTests {
  private static let kinds: [(name: String, text: String)] = [
    ("string", "\"abc\""), ("number", "5"), ("true", "true"), ("false", "false"), ("object", "{\"q\":1}"),
    ("array", "[1]"),
  ]
  private static let fields: [(field: String, type: String, taken: Set<String>)] = [
    ("collapse_key", "java.lang.String", ["string"]),
    ("priority", "java.lang.String", ["string"]),
    ("restricted_package_name", "java.lang.String", ["string"]),
    ("time_to_live", "java.lang.Number", ["number"]),
    ("content_available", "java.lang.Boolean", ["true", "false"]),
    ("mutable_content", "java.lang.Boolean", ["true", "false"]),
    ("delivery_receipt_requested", "java.lang.Boolean", ["true", "false"]),
    ("dry_run", "java.lang.Boolean", ["true", "false"]),
    ("delay_while_idle", "java.lang.Boolean", ["true", "false"]),
    ("data", "object", ["object"]),
    ("notification", "object", ["object"]),
    ("message_type", "java.lang.String", ["string"]),
  ]

  @Test(arguments: fields)
  func aFieldOfTheWrongTypeIsNamed(_ field: String, _ type: String, _ taken: Set<String>) {
    for kind in Self.kinds where !taken.contains(kind.name) {
      let text = kind.name == "string" ? "abc" : kind.text
      #expect(
        nack(Sample.message("\"\(field)\":\(kind.text)"))
          == "InvalidJson: JSON_TYPE_ERROR : Field \"\(field)\" must be a JSON \(type): \(text)")
    }
  }

  @Test(arguments: fields)
  func aFieldThatIsNullCountsAsLeftOut(_ field: String, _ type: String, _ taken: Set<String>) {
    #expect(read(Sample.message("\"\(field)\":null")) == read(Sample.message()))
  }

  @Test(arguments: fields)
  func aFieldThatStandsTwiceIsRefused(_ field: String, _ type: String, _ taken: Set<String>) {
    #expect(
      nack(Sample.message("\"\(field)\":null,\"\(field)\":null"))
        == "InvalidJson: JSON_PARSING_ERROR : Duplicate Field: \(field)")
  }

  @Test func targetsOfTheWrongTypeAreNamed() {
    for kind in Self.kinds where kind.name != "string" {
      for field in ["to", "condition"] {
        #expect(
          nack("{\"message_id\":\"m-1\",\"\(field)\":\(kind.text)}")
            == "InvalidJson: JSON_TYPE_ERROR : Field \"\(field)\" must be a JSON java.lang.String: \(kind.text)"
        )
      }
    }
  }

  @Test func unknownFieldsAreIgnored() {
    #expect(read(Sample.message("\"frobnicate\":{\"a\":[1]},\"TO\":1,\"dat\":2")) == read(Sample.message()))
  }

  @Test func allFieldsAreReadAndPassedOn() throws {
    let draft = try #require(
      taken(
        Sample.message(
          #"""
          "collapse_key":"k\/1","priority":"high","time_to_live":60,"content_available":true,
          "mutable_content":true,"delivery_receipt_requested":true,"dry_run":true,"delay_while_idle":true,
          "restricted_package_name":"org.example","data":{"a" : "\u00e9"},"notification":{"title":"t"}
          """#)))
    #expect(draft.id == "m-1")
    #expect(draft.target == RegistrationToken(Sample.token).map(Target.token))
    #expect(draft.collapseKey == "k/1")
    #expect(draft.priority == .high)
    #expect(draft.timeToLive == 60)
    #expect(draft.packageName == "org.example")
    #expect(draft.payloadBytes == 1 + 2 + 5 + 1)
    #expect(
      draft.options == [.contentAvailable, .mutableContent, .receiptRequested, .dryRun, .delayWhileIdle])
    #expect(
      draft.tail
        == #","priority":"high","sent_time":7,"ttl":60,"collapse_key":"k\/1","content_available":true,"#
        + #""mutable_content":true,"notification":{"title":"t"},"data":{"a" : "\u00e9"}}"#)
  }

  @Test func escapedNamesAreTheSameNames() throws {
    let draft = try #require(
      taken(#"{"t\u006f":"\#(Sample.token)","message\u005fid":"m-1","tim\u0065_to_live":5}"#))
    #expect(draft.timeToLive == 5)
    #expect(
      nack(Sample.message(#""t\u006f":null"#)) == "InvalidJson: JSON_PARSING_ERROR : Duplicate Field: to")
  }

  @Test func priorityDependsOnTheNotificationUnlessAsked() {
    #expect(taken(Sample.message())?.priority == .normal)
    #expect(taken(Sample.message("\"data\":{}"))?.priority == .normal)
    #expect(taken(Sample.message("\"notification\":{}"))?.priority == .high)
    #expect(taken(Sample.message("\"notification\":{},\"priority\":\"normal\""))?.priority == .normal)
    #expect(taken(Sample.message("\"priority\":\"high\""))?.priority == .high)
    #expect(nack(Sample.message("\"priority\":\"HIGH\""))?.contains("\"priority\"") == true)
  }

  @Test func anEmptyCollapseKeyIsNone() {
    #expect(taken(Sample.message("\"collapse_key\":\"\""))?.collapseKey == nil)
  }

  @Test func registrationIDsBelongToHTTP() {
    #expect(
      nack("{\"message_id\":\"m-1\",\"registration_ids\":[\"a\"]}")?.contains("\"registration_ids\"") == true)
    #expect(nack(Sample.message("\"registration_ids\":[]"))?.contains("\"registration_ids\"") == true)
    let http = taken("{\"registration_ids\":[\"a\",\"b\"]}", form: .legacyHTTP)
    #expect(http?.id == "" && http?.target == nil)
  }

  @Test func legacyBodiesNeedNoMessageIDAndAreNackedWithoutOne() {
    #expect(taken("{\"to\":\"\(Sample.token)\"}", form: .legacyHTTP)?.id == "")
    #expect(taken(Sample.message(), form: .legacyHTTP)?.id == "m-1")
    #expect(
      taken("{\"notification_key\":\"\(Sample.key)\"}", form: .legacyHTTP)?.target
        == NotificationKey(Sample.key).map(Target.group))
    #expect(
      read("{\"to\"", form: .legacyHTTP)
        == .nack(
          .invalidJSON, "InvalidJson: JSON_PARSING_ERROR : unexpected end at byte 5", id: "", from: nil))
    #expect(
      read("{\"registration_ids\":\"a\"}", form: .legacyHTTP)
        == .nack(
          .invalidJSON, "InvalidJson: JSON_TYPE_ERROR : Field \"registration_ids\" must be a JSON array: a",
          id: "",
          from: nil))
    #expect(
      read("{\"registration_ids\":[],\"to\":\"x\"}", form: .legacyHTTP)
        == .nack(.invalidJSON, "InvalidJson: Only one target field may be used", id: "", from: "x"))
  }

  // MARK: message_id

  @Test(arguments: [
    ("{\"to\":\"x\"}", "JSON_PARSING_ERROR : Missing Required Field: message_id"),
    ("{\"message_id\":\"\"}", "JSON_PARSING_ERROR : Missing Required Field: message_id"),
    ("{\"message_id\":null}", "JSON_PARSING_ERROR : Missing Required Field: message_id"),
    (
      "{\"message_id\":12345678901234567890}",
      "JSON_TYPE_ERROR : Field \"message_id\" must be a JSON java.lang.String: 12345678901234567890"
    ),
    ("{\"message_id\":true}", "JSON_TYPE_ERROR : Field \"message_id\" must be a JSON java.lang.String: true"),
    ("{\"message_id\":\"a\",\"message_id\":\"b\"}", "JSON_PARSING_ERROR : Duplicate Field: message_id"),
    ("[1]", "JSON_PARSING_ERROR : not a JSON object"), ("\"x\"", "JSON_PARSING_ERROR : not a JSON object"),
    ("", "JSON_PARSING_ERROR : unexpected end at byte 0"),
    ("{\"message_id\":\"a\"", "JSON_PARSING_ERROR : unexpected end at byte 17"),
    ("{\"message_id\":\"\\ud83d\"}", "JSON_PARSING_ERROR : half a surrogate pair at byte 15"),
  ])
  func withoutAUsableMessageIDThereIsAStanzaError(_ text: String, _ why: String) {
    #expect(read(text) == .stanzaError("InvalidJson: \(why)\n"))
  }

  @Test func nacksCarryTheIDAndTheTarget() {
    #expect(
      read("{\"message_id\":\"x\\ty\",\"to\":\"nope\"}")
        == .nack(.badRegistration, "Invalid token on 'to' field: nope", id: "x\ty", from: "nope"))
    #expect(
      read("{\"message_id\":\"x\"}")
        == .nack(.invalidJSON, "InvalidJson: Missing Required Field: to", id: "x", from: nil))
    #expect(
      read("{\"message_id\":\"x\",\"condition\":\"'a\"}")
        == .nack(
          .invalidJSON, "InvalidJson: Invalid condition: no closing quote at column 1", id: "x", from: "'a"))
  }

  // MARK: Acks

  @Test func acksOfTheAppServerAreRead() {
    #expect(read(#"{"to":"t\/1","message_id":"u-5","message_type":"ack"}"#) == .ack(id: "u-5", to: "t/1"))
    #expect(
      read(#"{"to":"gcm.googleapis.com","message_id":"dr2:m","message_type":"nack"}"#)
        == .ack(id: "dr2:m", to: "gcm.googleapis.com"))
  }

  @Test(arguments: ["", ",\"to\":\"\"", ",\"to\":5", ",\"to\":null"])
  func anAckWithoutATargetIsABadAck(_ to: String) {
    #expect(nack("{\"message_id\":\"m-1\",\"message_type\":\"ack\"\(to)}", .badAck) != nil)
  }

  @Test func anAckWithoutAMessageIDIsAStanzaError() {
    #expect(
      read(#"{"to":"t","message_type":"ack"}"#)
        == .stanzaError("InvalidJson: JSON_PARSING_ERROR : Missing Required Field: message_id\n"))
  }

  @Test func otherMessageTypesAreRefused() {
    #expect(nack(Sample.message("\"message_type\":\"receipt\""))?.contains("message_type") == true)
  }

  // MARK: notification

  @Test(arguments: [
    ("title", ["string"]), ("body", ["string"]), ("subtitle", ["string"]), ("icon", ["string"]),
    ("tag", ["string"]), ("color", ["string"]), ("image", ["string"]), ("click_action", ["string"]),
    ("android_channel_id", ["string"]), ("body_loc_key", ["string"]), ("title_loc_key", ["string"]),
    ("sound", ["string", "object"]), ("badge", ["string", "number"]), ("body_loc_args", ["string", "array"]),
    ("title_loc_args", ["string", "array"]),
  ])
  func notificationKeysAreHeldToTheirTypes(_ key: String, _ legal: [String]) {
    for kind in Self.kinds {
      let member = "\"notification\":{\"\(key)\":\(kind.text)}"
      if legal.contains(kind.name) {
        #expect(taken(Sample.message(member))?.notification == "{\"\(key)\":\(kind.text)}")
      } else {
        #expect(nack(Sample.message(member))?.contains("\"notification.\(key)\"") == true)
      }
    }
  }

  @Test func otherNotificationKeysPassAsTheyCame() {
    #expect(
      taken(Sample.message(#""notification":{"x" :[1 , 2.50]}"#))?.notification == #"{"x" :[1 , 2.50]}"#)
  }
}
