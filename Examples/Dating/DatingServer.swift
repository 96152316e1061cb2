import StreamClient

/// The app server's half.
struct DatingServer {
  /// What users are told, in the languages of the app.
  static let templates: [String: MessageTemplate] = {
    var like = MessageTemplate(
      texts: [
        "en": .init(title: "{name} likes you", body: "Have a look"),
        "de": .init(title: "{name} mag dich", body: "Schau mal"),
      ], category: "people")
    // Three likes while the phone is off are one notification.
    like.collapseKey = "likes"
    let message = MessageTemplate(
      texts: [
        "en": .init(title: "New message", subtitle: "{name}", body: "{text}"),
        "de": .init(title: "Neue Nachricht", subtitle: "{name}", body: "{text}"),
      ],
      category: "chat")
    var match = MessageTemplate(
      texts: [
        "en": .init(title: "It is a match!", body: "You and {name} like each other"),
        "de": .init(title: "Ein Treffer!", body: "Du und {name} mögt euch"),
      ], category: "people")
    match.timeToLive = .seconds(7 * 86_400)
    return ["like": like, "message": message, "match": match]
  }()

  func like(_ user: String, by other: String) async throws {
    try await tell(user, "like", ["name": other, "by": other])
  }

  func message(_ user: String, from other: String, text: String) async throws {
    try await tell(user, "message", ["name": other, "sender": other, "text": text])
  }

  func match(_ user: String, with other: String, picture: String?) async throws {
    try await tell(user, "match", ["name": other], picture: picture)
  }

  private func tell(
    _ user: String, _ type: String, _ values: [String: String], picture: String? = nil
  ) async throws {
    let place = Place()
    let client = try StreamClient(
      .init(
        port: place.xmpp, senderID: "100000000001", serverKey: try place.text("server-key"),
        trust: .file(place.credentials + "/ca.pem")))
    try await client.connect()
    let notifier = Notifier(client, templates: Self.templates)
    let ack = try await notifier.notify(
      user, type, values, language: Place.variable("DATING_LANGUAGE", "en"), image: picture)
    print("sent \(ack.messageID)")
    await client.close()
  }
}
