import Bytes
import JSONCore

/// The `notification` of a message as a sender builds it: keys of legacy HTTP and XMPP.
package struct NotificationContent: Sendable, Hashable {
  package var title: String?
  package var body: String?
  package var subtitle: String?
  package var icon: String?
  package var image: String?
  package var color: String?
  package var sound: String?
  package var tag: String?
  /// Digits; `"0"` clears, `"+1"` counts the user's stored badge up (an extension).
  package var badge: String?
  package var clickAction: String?
  package var channelID: String?
  package var titleLocKey: String?
  package var titleLocArgs: [String]?
  package var bodyLocKey: String?
  package var bodyLocArgs: [String]?

  package init(title: String? = nil, body: String? = nil) {
    self.title = title
    self.body = body
  }

  func write(to writer: inout ByteWriter) {
    writer.append("{")
    var isFirst = true
    func member(_ name: StaticString, _ value: String?, to writer: inout ByteWriter) {
      guard let value else { return }
      writer.append(isFirst ? "\"" : ",\"")
      isFirst = false
      writer.append(name)
      writer.append("\":")
      writer.append(jsonString: value)
    }
    member("title", title, to: &writer)
    member("body", body, to: &writer)
    member("subtitle", subtitle, to: &writer)
    member("icon", icon, to: &writer)
    member("image", image, to: &writer)
    member("color", color, to: &writer)
    member("sound", sound, to: &writer)
    member("tag", tag, to: &writer)
    member("badge", badge, to: &writer)
    member("click_action", clickAction, to: &writer)
    member("android_channel_id", channelID, to: &writer)
    member("title_loc_key", titleLocKey, to: &writer)
    member("title_loc_args", titleLocArgs.map(Self.arrayText), to: &writer)
    member("body_loc_key", bodyLocKey, to: &writer)
    member("body_loc_args", bodyLocArgs.map(Self.arrayText), to: &writer)
    writer.append("}")
  }

  /// Legacy messages carry these arrays as strings that hold a JSON array.
  private static func arrayText(_ elements: [String]) -> String {
    JSONValue.array(elements.map { .string($0) }).text
  }
}
