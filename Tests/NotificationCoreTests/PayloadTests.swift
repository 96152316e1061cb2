import JSONCore
import Testing

@testable import NotificationCore

struct PayloadTests {
  func content(
    _ json: String, image: String? = nil, isMutable: Bool = false, localizer: Localizer = .none
  ) throws -> NotificationContent {
    NotificationContent(
      push: try JSONValue(parsing: json), data: ["k": "v"], image: image, isMutable: isMutable,
      localizer: localizer)
  }

  @Test func theKeysOfAllPlatformsAreRead() throws {
    let found = try content(
      """
      {"title":"T","subtitle":"S","body":"B","badge":"7","sound":"default","click_action":"chat",
      "icon":"i","image":"https://e/x.png","thread_id":"t","interruption_level":"time-sensitive"}
      """, isMutable: true)
    #expect(found.title == "T" && found.subtitle == "S" && found.body == "B")
    #expect(found.badge == 7 && found.sound == .standard && found.categoryID == "chat")
    #expect(found.icon == "i" && found.imageURL == "https://e/x.png" && found.threadID == "t")
    #expect(found.interruptionLevel == .timeSensitive && found.isMutable)
    #expect(found.userInfo == ["k": "v"])
  }

  @Test(
    arguments: [
      ("\"3\"", 3), ("3", 3), ("\"0\"", 0), ("\"-1\"", nil), ("\"+1\"", 1), ("\"x\"", nil), ("1.5", nil),
      ("true", nil),
    ] as [(String, Int?)])
  func badgesAreDigitsInAStringOrANumber(_ text: String, _ badge: Int?) throws {
    #expect(try content("{\"body\":\"b\",\"badge\":\(text)}").badge == badge)
  }

  @Test func aSoundMayBeCritical() throws {
    #expect(
      try content("{\"sound\":{\"critical\":1,\"name\":\"s\",\"volume\":0.5}}").sound
        == .critical(name: "s", volume: 0.5))
    #expect(try content("{\"sound\":\"a.caf\"}").sound == .named("a.caf"))
    #expect(try content("{\"sound\":\"\"}").sound == nil)
  }

  @Test func textsAreLookedUpAndFilledIn() throws {
    let texts = Localizer { ["hello": "Hallo %@, %2$s!", "n": "100%% %@ %d"][$0] }
    let arguments = "\"[\\\"Ann\\\",\\\"Ben\\\"]\""
    let found = try content(
      """
      {"title_loc_key":"hello","title_loc_args":\(arguments),"title":"no","body_loc_key":"n",
      "body_loc_args":["x"],"body":"no","subtitle_loc_key":"none","subtitle":"yes"}
      """, localizer: texts)
    #expect(found.title == "Hallo Ann, Ben!")
    #expect(found.body == "100% x %d")
    #expect(found.subtitle == "yes")
  }

  @Test func fillingInNeverTraps() {
    for format in ["%", "%%%", "%9$@", "%99999999$@", "%$@", "%0$@", "%1$", "a%"] {
      _ = Localizer.fill(format, ["x"])
    }
    #expect(Localizer.fill("%0$@ %9$@", ["x"]) == "%0$@ %9$@")
  }

  @Test func thePictureOfTheOptionsGoesFirst() throws {
    #expect(try content("{\"image\":\"a\"}", image: "b").imageURL == "b")
    #expect(try content("{\"fcm_options\":{\"image\":\"c\"},\"image\":\"a\"}").imageURL == "c")
  }

  @Test func anExtensionRunsForAlertsAlone() throws {
    #expect(try !content("{\"badge\":\"1\"}", isMutable: true).isMutable)
    #expect(try content("{\"body\":\"b\"}", isMutable: true).isMutable)
    #expect(try !content("{\"body\":\"b\"}").isMutable)
    #expect(try content("{\"body\":\"b\",\"image\":\"https://e/x.png\"}").isMutable)
    #expect(try !content("{\"image\":\"https://e/x.png\"}").isMutable)
  }

  @Test func wrongFormsArePassedOver() throws {
    let found = try content(
      "{\"title\":5,\"body\":null,\"sound\":[],\"badge\":{},\"title_loc_key\":1,\"image\":2}")
    #expect(found.title.isEmpty && found.sound == nil && found.badge == nil && found.imageURL == nil)
    #expect(try content("[]").title.isEmpty)
  }

  @Test func typesAreToldByBytes() {
    let cases: [([UInt8], String?)] = [
      ([0xFF, 0xD8, 0xFF, 0xE0], "image/jpeg"), ([0x89] + Array("PNG\r\n\u{1a}\n".utf8), "image/png"),
      (Array("GIF89a..".utf8), "image/gif"), (Array("RIFF....WAVEfmt ".utf8), "audio/wav"),
      (Array("FORM....AIFC".utf8), "audio/aiff"), (Array("ID3".utf8), "audio/mpeg"),
      ([0xFF, 0xFB, 0x90], "audio/mpeg"), (Array("....ftypM4A ".utf8), "audio/mp4"),
      (Array("....ftypisom".utf8), "video/mp4"), (Array("RIFF....AVI ".utf8), "video/x-msvideo"),
      ([0, 0, 1, 0xBA], "video/mpeg"), (Array("<html>".utf8), nil), ([], nil), ([0xFF], nil),
      (Array("%PDF-1.4".utf8), nil), (Array("RIFF....WEBP".utf8), nil),
    ]
    for (bytes, name) in cases { #expect(MediaType(bytes)?.name == name) }
  }
}

struct NotificationRouterTests {
  func response(
    category: String? = nil, data: [String: String] = [:], from: String? = nil,
    action: String = NotificationResponse.defaultActionID, text: String? = nil
  ) -> NotificationResponse {
    var content = NotificationContent(title: "T")
    content.categoryID = category
    content.userInfo = data
    return NotificationResponse(
      notification: DeliveredNotification(
        request: NotificationRequest(remote: "id 1", content: content, from: from), dateMs: 0),
      actionID: action, userText: text)
  }

  @Test func theFirstRouteThatFitsCounts() {
    var router = NotificationRouter()
    router.route(action: "reply", to: "app://reply/{chat}/{text}")
    router.route(category: "chat", to: "app://chat/{chat}")
    router.route(types: ["like", "match"], to: "app://notifications")
    router.route(topic: "news", to: "app://news")
    router.route(where: { $0.notification.request.content.userInfo["n"] == "1" }, to: "app://one/{id}")
    #expect(router.link(for: response(category: "chat", data: ["chat": "7"]))?.text == "app://chat/7")
    #expect(
      router.link(for: response(category: "chat", data: ["chat": "7"], action: "reply", text: "a/b"))?.text
        == "app://reply/7/a%2Fb")
    #expect(router.link(for: response(data: ["type": "match"]))?.text == "app://notifications")
    #expect(router.link(for: response(from: "/topics/news"))?.text == "app://news")
    #expect(router.link(for: response(data: ["n": "1"]))?.text == "app://one/id%201")
    #expect(router.link(for: response()) == nil)
  }

  @Test func aRouteWhoseDataIsMissingIsPassedOver() {
    var router = NotificationRouter()
    router.route(category: "chat", to: "app://chat/{chat}")
    router.route(where: { _ in true }, to: "app://home")
    #expect(router.link(for: response(category: "chat"))?.text == "app://home")
  }

  @Test func aMessageMayBringItsOwnLinkAndADismissalLeadsNowhere() {
    var router = NotificationRouter()
    #expect(router.link(for: response(data: ["deep_link": "app://x/y?z#w"]))?.path == ["x", "y"])
    router.route(where: { _ in true }, to: "app://home")
    #expect(router.link(for: response(action: NotificationResponse.dismissActionID)) == nil)
  }

  @Test func linksAreTakenApart() {
    #expect(DeepLink("app://a/b").scheme == "app")
    #expect(DeepLink("nothing").scheme.isEmpty)
    #expect(DeepLink("nothing").path == ["nothing"])
  }
}
