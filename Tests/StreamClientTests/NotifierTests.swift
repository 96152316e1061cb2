import Testing

@testable import StreamClient

struct NotifierTests {
  func notifier() throws -> Notifier {
    let client = try StreamClient(
      StreamClient.Configuration(host: "127.0.0.1", port: 1, senderID: "1", serverKey: "k"))
    var chat = MessageTemplate(
      texts: [
        "en": .init(title: "New message", subtitle: "{name}", body: "{text}"),
        "de": .init(title: "Neue Nachricht", subtitle: "{name}", body: "{text}"),
        "de-CH": .init(title: "Neui Nachricht", body: "{text}"),
      ], category: "chat")
    chat.link = "app://chat/{chat}"
    chat.collapseKey = "chat-{chat}"
    var quiet = MessageTemplate(texts: ["en": .init(title: "T", body: "B")])
    quiet.countsBadge = false
    return Notifier(client, templates: ["chat": chat, "quiet": quiet])
  }

  @Test func aTemplateIsFilledInTheUsersLanguage() throws {
    let notifier = try notifier()
    let values = ["name": "Ann", "text": "{braces} stay", "chat": "7"]
    for (language, title) in [
      (nil, "New message"), ("fr", "New message"), ("de", "Neue Nachricht"), ("de-AT", "Neue Nachricht"),
      ("de_AT", "Neue Nachricht"), ("de-CH", "Neui Nachricht"),
    ] as [(String?, String)] {
      let message = try notifier.message(to: .user("ben"), "chat", values, language: language)
      #expect(message.notification?.title == title)
      #expect(message.notification?.body == "{braces} stay")
      #expect(message.notification?.subtitle == (language == "de-CH" ? nil : "Ann"))
    }
  }

  @Test func badgeCategoryLinkAndTypeGoWithIt() throws {
    let message = try notifier().message(
      to: .user("ben"), "chat", ["name": "Ann", "text": "hi", "chat": "7"], image: "https://e/p.png")
    #expect(message.target == .user("ben"))
    #expect(message.notification?.badge == "+1" && message.notification?.clickAction == "chat")
    #expect(message.data["type"] == "chat" && message.data["deep_link"] == "app://chat/7")
    #expect(message.collapseKey == "chat-7")
    #expect(message.notification?.image == "https://e/p.png" && message.mutableContent)
    let quiet = try notifier().message(to: .user("ben"), "quiet")
    #expect(quiet.notification?.badge == nil && !quiet.mutableContent)
  }

  @Test func missingTemplatesAndValuesAreTold() throws {
    let notifier = try notifier()
    #expect(throws: Notifier.TemplateFault.self) { try notifier.message(to: .user("ben"), "none") }
    let fault = #expect(throws: Notifier.TemplateFault.self) {
      try notifier.message(to: .user("ben"), "chat", ["name": "Ann"])
    }
    #expect(fault?.description.contains("text") == true)
  }
}
