import Bytes
import JSONCore
import PushHTTP
import PushModel
import Testing

/// What devices of each platform get of a message.
struct V1MappingTests {
  @Test func commonFieldsReachEveryPlatform() throws {
    let send = try sent(
      message(
        "\"notification\":{\"title\":\"T\",\"body\":\"B\",\"image\":\"https://x.org/i.png\"},\"data\":{\"k\":\"v\"}"
      ))
    #expect(send.draft.variants.isEmpty)
    for platform in Platform.allCases {
      let found = try rendered(send, for: platform)
      #expect(found["notification"] == ["title": "T", "body": "B", "image": "https://x.org/i.png"])
      #expect(found["data"] == ["k": "v"])
      #expect(found["priority"] == "high")
      #expect(found["ttl"]?.int == 2_419_200)
    }
  }

  @Test func anEmptyNotificationIsNone() throws {
    let found = try rendered(try sent(message("\"notification\":{},\"data\":{},\"android\":null")))
    #expect(found["notification"] == nil)
    #expect(found["data"] == nil)
    #expect(found["priority"] == "normal")
  }

  @Test func androidReplacesWhatHasTheSameName() throws {
    let send = try sent(
      message(
        """
        "notification":{"title":"common","body":"B"},"data":{"k":"common"},\
        "android":{"collapse_key":"c","priority":"normal","ttl":"3.500000000s","data":{"own":"1"},\
        "restricted_package_name":"org.example.app","direct_boot_ok":true,\
        "fcm_options":{"analytics_label":"l"},"notification":{"title":"own","icon":"i"}}
        """))
    for platform in [Platform.android, .linux] {
      let found = try rendered(send, for: platform)
      #expect(found["notification"] == ["title": "own", "body": "B", "icon": "i"])
      #expect(found["data"] == ["own": "1"])
      #expect(found["collapse_key"] == "c")
      #expect(found["priority"] == "normal")
      #expect(found["ttl"]?.int == 3)
      #expect(found["direct_boot_ok"] == true)
      #expect(found["fcm_options"] == ["analytics_label": "l"])
    }
    #expect(send.draft.restrictedPackageName != nil)
    for platform in [Platform.ios, .web] {
      let found = try rendered(send, for: platform)
      #expect(found["notification"] == ["title": "common", "body": "B"])
      #expect(found["data"] == ["k": "common"])
      #expect(found["collapse_key"] == nil)
      #expect(found["priority"] == "high")
      #expect(found["ttl"]?.int == 2_419_200)
      #expect(send.draft.rendered(for: platform).restrictedPackageName == nil)
    }
  }

  @Test func everyFieldOfAndroidIsTakenInBothSpellings() throws {
    let fields = [
      ("title", "title", "\"t\""), ("body", "body", "\"b\""), ("icon", "icon", "\"i\""),
      ("color", "color", "\"#aaBB09\""), ("sound", "sound", "\"s\""), ("tag", "tag", "\"g\""),
      ("click_action", "clickAction", "\"c\""), ("body_loc_key", "bodyLocKey", "\"k\""),
      ("body_loc_args", "bodyLocArgs", "[\"1\"]"), ("title_loc_key", "titleLocKey", "\"k\""),
      ("title_loc_args", "titleLocArgs", "[\"2\"]"), ("channel_id", "channelId", "\"ch\""),
      ("ticker", "ticker", "\"ti\""), ("sticky", "sticky", "true"),
      ("event_time", "eventTime", "\"2024-05-10T01:02:03.5Z\""), ("local_only", "localOnly", "true"),
      ("notification_priority", "notificationPriority", "\"PRIORITY_MAX\""),
      ("default_sound", "defaultSound", "true"), ("default_vibrate_timings", "defaultVibrateTimings", "true"),
      ("default_light_settings", "defaultLightSettings", "false"),
      ("vibrate_timings", "vibrateTimings", "[\"1s\",\"0.5s\"]"), ("visibility", "visibility", "\"SECRET\""),
      ("notification_count", "notificationCount", "3"), ("image", "image", "\"https://x.org/i\""),
      ("bypass_proxy_notification", "bypassProxyNotification", "true"), ("proxy", "proxy", "\"DENY\""),
    ]
    let light =
      "{\"color\":{\"red\":1,\"green\":0.5,\"blue\":0,\"alpha\":1},\"light_on_duration\":\"1s\",\"light_off_duration\":\"2s\"}"
    let camelLight = light.replacing("light_on_duration", with: "lightOnDuration")
      .replacing("light_off_duration", with: "lightOffDuration")
    let snake =
      fields.map { "\"\($0.0)\":\($0.2)" }.joined(separator: ",") + ",\"light_settings\":\(light)"
    let camel =
      fields.map { "\"\($0.1)\":\($0.2)" }.joined(separator: ",") + ",\"lightSettings\":\(camelLight)"
    let first = try rendered(try sent(message("\"android\":{\"notification\":{\(snake)}}")))
    let second = try rendered(try sent(message("\"android\":{\"notification\":{\(camel)}}")))
    #expect(first == second)
    #expect(first["notification"]?["android_channel_id"] == "ch")
    #expect(first["notification"]?["light_settings"] == (try JSONValue(parsing: light)))
    #expect(first["notification"]?.members?.count == fields.count + 1)
  }

  @Test func enumerationsAreTakenByNumberAndPriorityInLowerCase() throws {
    let found = try rendered(
      try sent(
        message(
          "\"android\":{\"priority\":1,\"notification\":{\"notification_priority\":5,\"visibility\":2}}")))
    #expect(found["priority"] == "high")
    #expect(found["notification"] == ["notification_priority": "PRIORITY_MAX", "visibility": "PUBLIC"])
    for (text, priority) in [("high", "high"), ("HIGH", "high"), ("normal", "normal"), ("NORMAL", "normal")] {
      let found = try rendered(try sent(message("\"android\":{\"priority\":\"\(text)\"}")))
      #expect(found["priority"]?.string == priority)
    }
  }

  @Test(arguments: [
    ("0s", 0), ("0.9s", 0), ("-0s", 0), ("1s", 1), ("3.999999999s", 3), ("2419200s", 2_419_200),
  ])
  func aTimeToLiveIsRoundedDown(_ text: String, _ seconds: Int) throws {
    #expect(try sent(message("\"android\":{\"ttl\":\"\(text)\"}")).draft.timeToLive == seconds)
  }

  // MARK: iOS

  @Test func appleGetsTheWholePayloadOfAPNs() throws {
    let send = try sent(
      message(
        """
        "notification":{"title":"T","body":"B","image":"https://x.org/i.png"},"data":{"k":"v","custom":"lost"},\
        "apns":{"headers":{"apns-priority":"5","apns-collapse-id":"c","apns-expiration":"1700000600"},\
        "payload":{"aps":{"alert":{"title":"own"},"badge":3,"sound":"default","category":"cat"},"custom":7},\
        "fcm_options":{"analytics_label":"l"}}
        """))
    let found = try rendered(send, for: .ios)
    #expect(
      found["apns"]?["payload"] == [
        "aps": [
          "alert": ["title": "own", "body": "B"], "badge": 3, "sound": "default", "category": "cat",
          "mutable-content": 1,
        ],
        "custom": 7, "k": "v", "fcm_options": ["image": "https://x.org/i.png"],
      ])
    #expect(
      found["notification"] == [
        "title": "own", "body": "B", "badge": "3", "sound": "default", "click_action": "cat",
        "image": "https://x.org/i.png",
      ])
    #expect(found["apns"]?["headers"]?["apns-priority"] == "5")
    #expect(found["priority"] == "normal")
    #expect(found["collapse_key"] == "c")
    #expect(found["ttl"]?.int == 600)
    #expect(found["mutable_content"] == true)
    #expect(found["fcm_options"] == ["analytics_label": "l"])
    #expect(try rendered(send, for: .android)["apns"] == nil)
  }

  @Test func aSilentPushIsOfNormalPriority() throws {
    let send = try sent(
      message("\"data\":{\"k\":\"v\"},\"apns\":{\"payload\":{\"aps\":{\"content-available\":true}}}"))
    let found = try rendered(send, for: .ios)
    #expect(found["priority"] == "normal")
    #expect(found["content_available"] == true)
    #expect(found["apns"]?["payload"]?["aps"] == ["content-available": 1])
    #expect(found["notification"] == nil)
  }

  @Test(arguments: [("0", 0), ("1699999999", 0), ("1700000060", 60), ("9999999999", 2_419_200)])
  func theExpirationOfAPNsIsAPointInTime(_ text: String, _ seconds: Int) throws {
    let send = try sent(message("\"apns\":{\"headers\":{\"APNS-Expiration\":\"\(text)\"}}"))
    #expect(send.draft.rendered(for: .ios).timeToLive == seconds)
  }

  @Test func anAlertThatIsATextReplacesTheCommonOne() throws {
    let send = try sent(
      message("\"notification\":{\"title\":\"T\"},\"apns\":{\"payload\":{\"aps\":{\"alert\":\"A\"}}}"))
    let found = try rendered(send, for: .ios)
    #expect(found["apns"]?["payload"]?["aps"] == ["alert": "A"])
    #expect(found["notification"] == ["body": "A"])
  }

  // MARK: Web

  @Test func webGetsTheOptionsOverTheCommonNotification() throws {
    let send = try sent(
      message(
        """
        "notification":{"title":"T","body":"B"},"data":{"k":"v"},\
        "webpush":{"headers":{"TTL":"90","Urgency":"high","Topic":"t"},"data":{"own":"1"},\
        "notification":{"title":"own","actions":[{"action":"a"}],"requireInteraction":true},\
        "fcm_options":{"link":"https://x.org/"}}
        """))
    let found = try rendered(send, for: .web)
    #expect(
      found["notification"] == [
        "body": "B", "title": "own", "actions": [["action": "a"]], "requireInteraction": true,
        "click_action": "https://x.org/",
      ])
    #expect(found["data"] == ["own": "1"])
    #expect(found["ttl"]?.int == 90)
    #expect(found["priority"] == "high")
    #expect(found["collapse_key"] == "t")
    #expect(found["fcm_options"]?["link"] == "https://x.org/")
    #expect(found["webpush"]?["headers"]?["TTL"] == "90")
  }

  // MARK: Extensions and all platforms together

  @Test func aBadgeThatCountsIsCarriedAlong() throws {
    let send = try sent(
      "{\"message\":{\"user\":\"ann\",\"notification\":{\"title\":\"T\",\"badge\":\"+2\"}}}")
    #expect(send.draft.badgeStep == 2)
    #expect(try rendered(send)["notification"]?["badge"] == "+2")
  }

  @Test func validateOnlyIsADryRun() throws {
    #expect(try sent("{\"validate_only\":true,\(message("").dropFirst())").draft.has(.dryRun))
    #expect(try sent("{\"validateOnly\":true,\(message("").dropFirst())").draft.has(.dryRun))
    #expect(!(try sent("{\"validate_only\":false,\(message("").dropFirst())").draft.has(.dryRun)))
  }

  @Test func aFanOutHandsEachPlatformItsOwnForm() throws {
    let send = try sent(
      "{\"message\":{\"topic\":\"a\",\"notification\":{\"title\":\"T\"},\"android\":{\"ttl\":\"5s\"},\"apns\":{\"payload\":{\"aps\":{\"badge\":1}}}}}"
    )
    var writer = ByteWriter()
    send.text.withUnsafeBytes { PlatformTails.append(send.draft, of: $0, sentTime: wall, to: &writer) }
    let whole = try JSONValue(parsing: "{\"head\":1" + String(decoding: writer.bytes, as: UTF8.self))
    #expect(whole["platforms"]?.members?.map(\.name) == ["base", "ios", "web"])
    for platform in Platform.allCases {
      let tail = try #require(writer.bytes.withUnsafeBytes { PlatformTails.tail($0, for: platform) })
      let found = try JSONValue(parsing: "{\"head\":1" + String(decoding: tail, as: UTF8.self))
      #expect(found == (try rendered(send, for: platform)))
    }
    let plain = Array(",\"priority\":\"high\"}".utf8)
    #expect(plain.withUnsafeBytes { PlatformTails.tail($0, for: .ios) } == nil)
  }
}
