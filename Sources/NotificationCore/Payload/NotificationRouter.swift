/// Where a tap leads: an address of the app's own, `app://chat/7` for instance.
public struct DeepLink: Sendable, Hashable, CustomStringConvertible {
  /// The whole address.
  public var text: String

  /// Takes an address.
  public init(_ text: String) { self.text = text }

  /// Before `://`; empty when there is none.
  public var scheme: String { text.firstRange(of: "://").map { String(text[..<$0.lowerBound]) } ?? "" }

  /// What stands behind `://`, without a query, at its slashes.
  public var path: [String] {
    let rest = text.firstRange(of: "://").map { text[$0.upperBound...] } ?? text[...]
    return rest.prefix { $0 != "?" && $0 != "#" }.split(separator: "/").map(String.init)
  }

  /// The address.
  public var description: String { text }
}

/// Finds where a tap leads, by routes declared in advance; the first that fits counts.
///
/// ```swift
/// var router = NotificationRouter()
/// router.route(type: "chat", to: "app://chat/{chat_id}")
/// router.route(types: ["like", "match"], to: "app://notifications")
/// router.route(topic: "news", to: "app://news")
/// ```
public struct NotificationRouter: Sendable {
  private struct Route: Sendable {
    var fits: @Sendable (NotificationResponse) -> Bool
    var link: @Sendable (NotificationResponse) -> DeepLink?
  }

  /// Which data field holds a message's type.
  public var typeField: String
  /// Data fields that may hold an address themselves, for what no route fits.
  public var linkFields: [String]
  private var routes: [Route] = []

  /// Makes a router without routes.
  public init(typeField: String = "type", linkFields: [String] = ["deep_link", "link"]) {
    self.typeField = typeField
    self.linkFields = linkFields
  }

  /// Notifications of a category.
  public mutating func route(category: String, to template: String) {
    route(where: { $0.notification.request.content.categoryID == category }, to: template)
  }

  /// Messages whose type field holds this.
  public mutating func route(type: String, to template: String) { route(types: [type], to: template) }

  /// Messages whose type field holds one of these.
  public mutating func route(types: Set<String>, to template: String) {
    let field = typeField
    route(
      where: { $0.notification.request.content.userInfo[field].map(types.contains) ?? false }, to: template)
  }

  /// Messages that came by a topic.
  public mutating func route(topic: String, to template: String) {
    route(where: { $0.notification.request.from == "/topics/" + topic }, to: template)
  }

  /// An action, in any notification.
  public mutating func route(action: String, to template: String) {
    route(where: { $0.actionID == action }, to: template)
  }

  /// Whatever `fits` says.
  public mutating func route(
    where fits: @escaping @Sendable (NotificationResponse) -> Bool, to template: String
  ) {
    route(where: fits) { DeepLink(filling: template, from: $0) }
  }

  /// Whatever `fits` says, to where `link` says; nil goes on with the next route.
  public mutating func route(
    where fits: @escaping @Sendable (NotificationResponse) -> Bool,
    link: @escaping @Sendable (NotificationResponse) -> DeepLink?
  ) {
    routes.append(Route(fits: fits, link: link))
  }

  /// Where a response leads; nil when no route fits, or the user dismissed the notification.
  public func link(for response: NotificationResponse) -> DeepLink? {
    guard response.actionID != NotificationResponse.dismissActionID else { return nil }
    for route in routes where route.fits(response) {
      if let link = route.link(response) { return link }
    }
    for field in linkFields {
      if let text = response.notification.request.content.userInfo[field], !text.isEmpty {
        return DeepLink(text)
      }
    }
    return nil
  }
}

extension DeepLink {
  /// Puts data of the message for `{name}`, as one part of a path; `{action}` and `{text}` are the response's own.
  ///
  /// - Returns: Nil when the message lacks one.
  init?(filling template: String, from response: NotificationResponse) {
    var result = ""
    var rest = template[...]
    while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
      let name = String(rest[rest.index(after: open)..<close])
      let value: String? =
        switch name {
        case "action": response.actionID
        case "text": response.userText
        case "id": response.notification.request.id
        default: response.notification.request.content.userInfo[name]
        }
      guard let value else { return nil }
      result += rest[..<open] + Self.escaped(value)
      rest = rest[rest.index(after: close)...]
    }
    self.init(result + rest)
  }

  /// All but unreserved characters as `%XX` (RFC 3986 section 2.3): data of a peer cannot change an address's shape.
  private static func escaped(_ text: String) -> String {
    var result = ""
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E:
        result.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        let digits = String(byte, radix: 16, uppercase: true)
        result += digits.count == 1 ? "%0" + digits : "%" + digits
      }
    }
    return result
  }
}
