/// Texts of one kind of message, in several languages, and what goes with them.
///
/// A text may hold `{name}` for a value given when it is sent.
public struct MessageTemplate: Sendable, Hashable {
  /// The texts of one language.
  public struct Texts: Sendable, Hashable {
    /// The headline.
    public var title: String
    /// A second headline; for a chat the person who writes.
    public var subtitle: String?
    /// The text.
    public var body: String

    /// Puts texts together.
    public init(title: String, subtitle: String? = nil, body: String) {
      self.title = title
      self.subtitle = subtitle
      self.body = body
    }
  }

  /// Texts by language tag, `de` or `de-AT`.
  public var texts: [String: Texts]
  /// What is used for a language without texts.
  public var defaultLanguage: String
  /// The app's category: which actions it has and what a tap opens.
  public var category: String?
  /// `default` or the name of a sound the app has; nil is silence.
  public var sound: String?
  /// Whether it counts up the number on the app's icon.
  public var countsBadge: Bool
  /// Where a tap leads, with `{name}` for values.
  public var link: String?
  /// A newer message with this key takes the place of one that waits, with `{name}` for values.
  public var collapseKey: String?
  /// How long it may wait for the device.
  public var timeToLive: Duration?

  /// Makes a template; `texts` must hold `defaultLanguage`.
  public init(texts: [String: Texts], defaultLanguage: String = "en", category: String? = nil) {
    self.texts = texts
    self.defaultLanguage = defaultLanguage
    self.category = category
    sound = "default"
    countsBadge = true
  }

  /// The texts of a language, of its main language, or of the default.
  func texts(for language: String?) -> Texts? {
    guard let language else { return texts[defaultLanguage] }
    let main = String(language.prefix { $0 != "-" && $0 != "_" })
    return texts[language] ?? texts[main] ?? texts[defaultLanguage]
  }
}

/// Tells users what happened, by templates: the app server's half of notifications.
///
/// ```swift
/// var notifier = Notifier(client)
/// notifier.templates["like"] = MessageTemplate(texts: ["en": .init(title: "{name} likes you", body: "Say hello")])
/// try await notifier.notify("ann", "like", ["name": "Ben"], language: "en")
/// ```
///
/// The server knows a user's devices and badge: one call reaches all of them, and the badge counts up once.
public struct Notifier: Sendable {
  /// Why nothing was sent.
  public struct TemplateFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// For people.
    public var description: String
  }

  /// The connection to the server.
  public var client: StreamClient
  /// By type.
  public var templates: [String: MessageTemplate]
  /// The data field that tells the app a message's type.
  public var typeField: String

  /// Makes a notifier.
  public init(_ client: StreamClient, templates: [String: MessageTemplate] = [:]) {
    self.client = client
    self.templates = templates
    typeField = "type"
  }

  /// Sends a message of a type to all devices of a user, and counts the user's badge up.
  ///
  /// - Parameters:
  ///   - user: The user's id, as given when devices were registered.
  ///   - type: Which template.
  ///   - values: Put for `{name}` in texts and links, and sent as data.
  ///   - language: The user's language tag; nil is the template's default.
  ///   - image: Address of a picture.
  ///   - id: Of the message: a repeat is acked and neither delivered nor counted again.
  /// - Throws: ``TemplateFault`` for an unknown type or a missing value, ``SendError`` of the send.
  @discardableResult
  public func notify(
    _ user: String, _ type: String, _ values: [String: String] = [:], language: String? = nil,
    image: String? = nil, id: String? = nil
  ) async throws -> Ack {
    try await client.send(
      try message(to: .user(user), type, values, language: language, image: image, id: id))
  }

  /// The message that ``notify(_:_:_:language:image:id:)`` sends, for any target.
  public func message(
    to target: PushMessage.Target, _ type: String, _ values: [String: String] = [:], language: String? = nil,
    image: String? = nil, id: String? = nil
  ) throws(TemplateFault) -> PushMessage {
    guard let template = templates[type], let texts = template.texts(for: language) else {
      throw TemplateFault(description: "there is no template \"\(type)\"")
    }
    var notification = PushMessage.Notification(
      title: try fill(texts.title, values), body: try fill(texts.body, values))
    if let subtitle = texts.subtitle { notification.subtitle = try fill(subtitle, values) }
    notification.badge = template.countsBadge ? "+1" : nil
    notification.sound = template.sound
    notification.clickAction = template.category
    notification.image = image
    var data = values
    data[typeField] = type
    if let link = template.link { data["deep_link"] = try fill(link, values) }
    var message = PushMessage(
      to: target, data: data, notification: notification, id: id, timeToLive: template.timeToLive)
    if let key = template.collapseKey { message.collapseKey = try fill(key, values) }
    // With a picture the app's service extension has work to do.
    message.mutableContent = image != nil
    return message
  }

  private func fill(_ template: String, _ values: [String: String]) throws(TemplateFault) -> String {
    var result = ""
    var rest = template[...]
    while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
      let name = String(rest[rest.index(after: open)..<close])
      guard let value = values[name] else { throw TemplateFault(description: "no value for {\(name)}") }
      result += rest[..<open] + value
      rest = rest[rest.index(after: close)...]
    }
    return result + rest
  }
}
