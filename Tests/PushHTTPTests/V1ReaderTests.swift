import JSONCore
import PushHTTP
import PushModel
import Testing

struct V1ReaderTests {
  // MARK: Targets

  @Test func everyTargetIsTaken() throws {
    let group = "APA91b" + String(repeating: "g", count: 43)
    for (target, expected) in [
      ("\"token\":\"\(token)\"", token), ("\"topic\":\"news\"", "/topics/news"),
      ("\"topic\":\"/topics/news\"", "/topics/news"), ("\"token\":\"\(group)\"", group),
      ("\"user\":\"ann\"", "/users/ann"), ("\"fid\":\"\(token)\"", token),
    ] {
      let send = try sent("{\"message\":{\(target)}}")
      let found = try send.text.withUnsafeBytes { text in try #require(send.draft.reply.from).string(in: text)
      }
      #expect(found == expected)
      #expect(send.installation == nil)
    }
    let byCondition = try sent("{\"message\":{\"condition\":\"'a' in topics && !('b' in topics)\"}}")
    guard case .condition = byCondition.draft.target else {
      Issue.record("not a condition")
      return
    }
  }

  @Test func anInstallationIDIsAPlaceForATokenToBeFound() throws {
    var send = try sent("{\"message\":{\"fid\":\"dQw4w9WgXcQ_abcdefghij\"}}")
    #expect(send.installation == "dQw4w9WgXcQ_abcdefghij")
    send.setToken(token)
    guard case .token(let place) = send.draft.target else {
      Issue.record("not a token")
      return
    }
    #expect(send.text.withUnsafeBytes { place.string(in: $0) } == token)
    #expect(send.installation == nil)
  }

  @Test func theMessageIDIsWrittenOnceForAllPlatforms() throws {
    var send = try sent(message("\"apns\":{\"payload\":{\"aps\":{\"badge\":1}}}"))
    send.setMessageID("a\"b")
    let draft = send.draft
    send.text.withUnsafeBytes { text in
      #expect(draft.reply.messageID.string(in: text) == "a\"b")
      #expect(draft.rendered(for: .ios).reply.messageID.string(in: text) == "a\"b")
    }
  }

  @Test func twoTargetsOrNoneAreRefused() throws {
    #expect(try fault("{}") == .noTarget)
    #expect(try fault("{\"message\":{}}") == .noTarget)
    #expect(try fault("{\"message\":{\"token\":\"\"}}") == .noTarget)
    #expect(try fault("{\"message\":{\"apns\":{\"live_activity_token\":\"t\"}}}") == .noTarget)
    let two = try fault(message("\"topic\":\"news\""))
    #expect(two.message.contains("'target' is already set. Cannot set 'topic'"))
    #expect(two.httpStatus == 400)
  }

  @Test func malformedTargetsAreToldAsFCMTellsThem() throws {
    #expect(try fault("{\"message\":{\"token\":\"x\"}}") == .malformedToken())
    #expect(try fault("{\"message\":{\"token\":\"'news' in topics\"}}") == .malformedToken())
    #expect(try fault("{\"message\":{\"fid\":\"x\"}}") == .malformedToken(field: "message.fid"))
    #expect(try fault("{\"message\":{\"topic\":\"no name\"}}") == .malformedTopic)
    for condition in ["\\\"news\\\" in topics", "'a' in", "'a' in topics &&", ""] {
      let found = try fault("{\"message\":{\"condition\":\"\(condition)\"}}")
      #expect(found == (condition.isEmpty ? .noTarget : .malformedCondition))
    }
    let user = String(repeating: "u", count: 257)
    #expect(try fault("{\"message\":{\"user\":\"\(user)\"}}").details.contains(.fcm("INVALID_ARGUMENT")))
  }

  // MARK: Names and types

  @Test func anUnknownNameIsToldWithItsPlaceAndWithoutFCMsCode() throws {
    let found = try fault("{\"message\":{\"toen\":\"x\"}}")
    let text = "Invalid JSON payload received. Unknown name \"toen\" at 'message': Cannot find field."
    #expect(found == V1Fault(400, "INVALID_ARGUMENT", text, [.badRequest([.init("message", text)])]))
    let top = try fault("{\"mesage\":{}}")
    #expect(top.message == "Invalid JSON payload received. Unknown name \"mesage\": Cannot find field.")
    #expect(top.details == [.badRequest([.init(nil, top.message)])])
  }

  @Test func everyFaultOfTypesIsToldWithItsPath() throws {
    let found = try fault(
      "{\"message\":{\"token\":\"\(token)\",\"android\":{\"data\":{\"a\":\"x\",\"n\":1}},\"data\":{\"k\":true,\"z\":null}}}"
    )
    #expect(
      found.details == [
        .badRequest([
          .init(
            "message.android.data[1].value",
            "Invalid value at 'message.android.data[1].value' (TYPE_STRING), 1"),
          .init("message.data[0].value", "Invalid value at 'message.data[0].value' (TYPE_STRING), true"),
          .init("message.data[1].value", "Invalid value at 'message.data[1].value' (TYPE_STRING), null"),
        ]), .fcm("INVALID_ARGUMENT"),
      ])
    #expect(found.message.split(separator: "\n").count == 3)
  }

  @Test(arguments: [
    ("\"notification\":\"x\"", "message.notification"), ("\"token\":1", "message.token"),
    ("\"data\":[]", "message.data"), ("\"android\":[]", "message.android"),
    ("\"android\":{\"ttl\":\"3\"}", "message.android.ttl"),
    ("\"android\":{\"ttl\":3}", "message.android.ttl"),
    ("\"android\":{\"priority\":\"urgent\"}", "message.android.priority"),
    ("\"android\":{\"priority\":2}", "message.android.priority"),
    ("\"android\":{\"direct_boot_ok\":\"true\"}", "message.android.direct_boot_ok"),
    (
      "\"android\":{\"notification\":{\"notification_count\":1.5}}",
      "message.android.notification.notification_count"
    ),
    (
      "\"android\":{\"notification\":{\"notification_count\":2147483648}}",
      "message.android.notification.notification_count"
    ),
    ("\"android\":{\"notification\":{\"event_time\":\"today\"}}", "message.android.notification.event_time"),
    ("\"android\":{\"notification\":{\"visibility\":\"public\"}}", "message.android.notification.visibility"),
    (
      "\"android\":{\"notification\":{\"body_loc_args\":[\"a\",1]}}",
      "message.android.notification.body_loc_args[1]"
    ),
    (
      "\"android\":{\"notification\":{\"body_loc_args\":\"a\"}}", "message.android.notification.body_loc_args"
    ),
    (
      "\"android\":{\"notification\":{\"vibrate_timings\":[\"1s\",\"x\"]}}",
      "message.android.notification.vibrate_timings[1]"
    ),
    (
      "\"android\":{\"notification\":{\"light_settings\":{\"color\":{\"red\":\"1\"}}}}",
      "message.android.notification.light_settings.color.red"
    ),
    ("\"apns\":{\"payload\":1}", "message.apns.payload"),
    ("\"apns\":{\"headers\":{\"apns-priority\":10}}", "message.apns.headers[0].value"),
    ("\"webpush\":{\"notification\":\"x\"}", "message.webpush.notification"),
  ])
  func aWrongTypeIsToldAtItsPath(_ member: String, _ path: String) throws {
    // A second `token` would be a fault of its own.
    let body =
      member.hasPrefix("\"token\"") ? "{\"message\":{\(member)}}" : message(member)
    let found = try fault(body)
    #expect(found.httpStatus == 400)
    #expect(found.status == "INVALID_ARGUMENT")
    guard case .badRequest(let violations)? = found.details.first else {
      Issue.record("no violations")
      return
    }
    #expect(violations.map(\.field) == [path])
    #expect(found.details.last == .fcm("INVALID_ARGUMENT"))
  }

  @Test func aFieldThatStandsTwiceIsRefusedInEitherSpelling() throws {
    let found = try fault(message("\"android\":{\"collapse_key\":\"a\",\"collapseKey\":\"b\"}"))
    #expect(found.message.contains("Field is set twice"))
  }

  @Test func textThatIsNoJSONIsRefusedWithThePlace() throws {
    for body in ["", "{", "[]", "{\"message\":{\"token\":\"\(token)\"}} x", "1"] {
      let found = try fault(body)
      #expect(found.message.hasPrefix("Invalid JSON payload received."))
      #expect(found.httpStatus == 400)
    }
  }

  @Test func cutBodiesAreRefusedAndNeverTrap() throws {
    let whole = Array(
      message(
        "\"android\":{\"ttl\":\"3.5s\",\"notification\":{\"title\":\"é語\",\"light_settings\":{\"color\":{\"red\":1}}}},\"apns\":{\"payload\":{\"aps\":{\"alert\":{\"title\":\"x\"}}}}"
      ).utf8)
    for end in 0..<whole.count {
      var reader = V1Reader(limits: Limits())
      guard case .fault = whole[..<end].withUnsafeBytes({ reader.read($0, wall: wall) }) else {
        Issue.record("taken when cut at \(end)")
        return
      }
    }
  }

  // MARK: Limits

  @Test func thePayloadLimitCountsDecodedBytes() throws {
    func body(_ count: Int, _ unit: String) -> String {
      message("\"data\":{\"b\":\"\(String(repeating: unit, count: count))\"}")
    }
    _ = try sent(body(4_095, "x"))
    #expect(try fault(body(4_096, "x")) == .tooLarge(limit: 4_096))
    _ = try sent(body(2_047, "é"))
    #expect(try fault(body(2_048, "é")) == .tooLarge(limit: 4_096))
    // Every quote is six bytes in the text and one in the value.
    _ = try sent(body(4_090, "\\\""))
    #expect(try fault(body(1_024, "🌍")) == .tooLarge(limit: 4_096))
  }

  @Test func topicsHaveALimitOfTheirOwn() throws {
    let data = String(repeating: "x", count: 2_100)
    let body = "{\"message\":{\"topic\":\"a\",\"data\":{\"b\":\"\(data)\"}}}"
    _ = try sent(body)
    #expect(try fault(body, limits: .asPublished) == .tooLarge(limit: 2_048))
  }

  @Test func reservedKeysAreRefusedAndLookAlikesPass() throws {
    for block in ["\"data\":{%}", "\"android\":{\"data\":{%}}", "\"webpush\":{\"data\":{%}}"] {
      for key in ["from", "message_type", "google.x", "gcm.notification.title"] {
        let found = try fault(message(block.replacing("%", with: "\"\(key)\":\"1\"")))
        #expect(found.message == "Invalid data payload key: \(key)")
        #expect(found.details.last == .fcm("INVALID_ARGUMENT"))
      }
      for key in ["From", "fromage", "gcmx", "gcm", "googly", "google"] {
        _ = try sent(message(block.replacing("%", with: "\"\(key)\":\"1\"")))
      }
    }
  }

  @Test(arguments: [
    ("\"fcm_options\":{\"analytics_label\":\"no label\"}", "message.fcm_options.analytics_label"),
    (
      "\"android\":{\"fcm_options\":{\"analytics_label\":\"\(String(repeating: "a", count: 51))\"}}",
      "message.android.fcm_options.analytics_label"
    ),
    ("\"notification\":{\"image\":\"no url\"}", "message.notification.image"),
    ("\"apns\":{\"fcm_options\":{\"image\":\"ftp://x/y\"}}", "message.apns.fcm_options.image"),
    ("\"android\":{\"notification\":{\"color\":\"red\"}}", "message.android.notification.color"),
    ("\"android\":{\"notification\":{\"color\":\"#12345g\"}}", "message.android.notification.color"),
    (
      "\"android\":{\"notification\":{\"body_loc_args\":[\"a\"]}}",
      "message.android.notification.body_loc_key"
    ),
    (
      "\"android\":{\"notification\":{\"title_loc_args\":[\"a\"]}}",
      "message.android.notification.title_loc_key"
    ),
    ("\"android\":{\"ttl\":\"2419201s\"}", "message.android.ttl"),
    ("\"android\":{\"ttl\":\"2419200.000000001s\"}", "message.android.ttl"),
    ("\"android\":{\"ttl\":\"-1s\"}", "message.android.ttl"),
    (
      "\"android\":{\"notification\":{\"notification_count\":-1}}",
      "message.android.notification.notification_count"
    ),
    (
      "\"android\":{\"notification\":{\"light_settings\":{\"light_on_duration\":\"1s\"}}}",
      "message.android.notification.light_settings.color"
    ),
    (
      "\"android\":{\"notification\":{\"light_settings\":{\"color\":{\"red\":2},\"light_on_duration\":\"1s\",\"light_off_duration\":\"1s\"}}}",
      "message.android.notification.light_settings.color"
    ),
    ("\"webpush\":{\"headers\":{\"TTL\":\"-5\"}}", "message.webpush.headers.TTL"),
    ("\"webpush\":{\"headers\":{\"ttl\":\"x\"}}", "message.webpush.headers.TTL"),
    ("\"webpush\":{\"fcm_options\":{\"link\":\"http://x.org\"}}", "message.webpush.fcm_options.link"),
    ("\"apns\":{\"headers\":{\"apns-priority\":\"7\"}}", "message.apns.headers.apns-priority"),
    ("\"apns\":{\"headers\":{\"apns-expiration\":\"x\"}}", "message.apns.headers.apns-expiration"),
    (
      "\"apns\":{\"headers\":{\"apns-collapse-id\":\"\(String(repeating: "c", count: 65))\"}}",
      "message.apns.headers.apns-collapse-id"
    ),
    ("\"apns\":{\"payload\":{\"aps\":1}}", "message.apns.payload.aps"),
    ("\"apns\":{\"payload\":{\"aps\":{\"badge\":\"1\"}}}", "message.apns.payload.aps.badge"),
    ("\"apns\":{\"payload\":{\"aps\":{\"alert\":1}}}", "message.apns.payload.aps.alert"),
    (
      "\"apns\":{\"payload\":{\"aps\":{\"alert\":{\"title\":1}}}}", "message.apns.payload.aps.alert.title"
    ),
    (
      "\"apns\":{\"payload\":{\"aps\":{\"alert\":{\"loc-args\":[\"a\"]}}}}",
      "message.apns.payload.aps.alert.loc-key"
    ),
    ("\"apns\":{\"payload\":{\"aps\":{\"sound\":1}}}", "message.apns.payload.aps.sound"),
    (
      "\"apns\":{\"payload\":{\"aps\":{\"sound\":{\"critical\":1}}}}", "message.apns.payload.aps.sound.name"
    ),
    (
      "\"apns\":{\"payload\":{\"aps\":{\"sound\":{\"name\":\"a\",\"volume\":2}}}}",
      "message.apns.payload.aps.sound.volume"
    ),
    (
      "\"apns\":{\"payload\":{\"aps\":{\"content-available\":\"1\"}}}",
      "message.apns.payload.aps.content-available"
    ),
    (
      "\"apns\":{\"headers\":{\"apns-priority\":\"10\"},\"payload\":{\"aps\":{\"content-available\":1}}}",
      "message.apns.headers.apns-priority"
    ),
  ])
  func aRuleThatIsBrokenIsToldAtItsField(_ member: String, _ path: String) throws {
    let found = try fault(message(member))
    guard case .badRequest(let violations)? = found.details.first else {
      Issue.record("no violations: \(found)")
      return
    }
    #expect(violations.map(\.field) == [path])
    #expect(violations.first?.description == found.message)
    #expect(found.details.last == .fcm("INVALID_ARGUMENT"))
    #expect(found.httpStatus == 400)
  }
}
