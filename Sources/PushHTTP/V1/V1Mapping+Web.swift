import Bytes
import JSONCore
import PushModel

extension V1Mapping {
  /// What a web registration gets when the message has a `webpush` block.
  ///
  /// `notification` holds the common one with the block's options over it, and `click_action` for the link.
  mutating func webContent(_ reply: ReplyIDs, _ target: DraftTarget) throws(V1Fault) -> DownstreamDraft {
    var members: [JSONValue.Member] = []
    let own = value(.webNotification)?.members ?? []
    for (key, name) in [
      (V1Key.title, "title"), (.body, "body"), (.image, "image"), (.badge, "badge"),
    ] where !own.contains(where: { $0.name == name }) {
      if let text = text(key) { members.append(.init(name, .string(text))) }
    }
    members += own
    if let link = text(.webLink), !link.isEmpty { members.append(.init("click_action", .string(link))) }
    let notification = members.isEmpty ? nil : write(.object(members))
    let data = data(reader.member(.webData) != nil ? .webData : .data)
    var draft = DownstreamDraft(
      reply: reply, target: target, data: data.range, notification: notification,
      timeToLive: webTimeToLive(), priority: webPriority(notification != nil), options: options,
      payloadBytes: (notification?.count ?? 0) + data.bytes,
      badgeStep: own.contains { $0.name == "badge" } ? 0 : badgeStep)
    if let topic = header("topic", of: .webHeaders), !topic.isEmpty { draft.collapseKey = write(topic) }
    draft.extras = webExtras()
    try checkSize(draft.payloadBytes, target)
    return draft
  }

  /// The header `TTL`, RFC 8030 section 5.2; more than four weeks counts as four weeks.
  private func webTimeToLive() -> Int {
    let max = limits.timeToLiveSecondsMax
    guard let text = header("ttl", of: .webHeaders), let seconds = Int64(text) else { return max }
    return Int(min(seconds, Int64(max)))
  }

  /// The header `Urgency`, RFC 8030 section 5.3.
  private func webPriority(_ hasNotification: Bool) -> Priority {
    switch header("urgency", of: .webHeaders) {
    case "high": .high
    case .some: .normal
    case nil: hasNotification ? .high : .normal
    }
  }

  private mutating func webExtras() -> JSONRange? {
    let start = arena.count
    if let headers = value(.webHeaders) {
      arena.append(",\"webpush\":{\"headers\":")
      headers.write(to: &arena)
      arena.append("}")
    }
    var options: [JSONValue.Member] = []
    if let link = text(.webLink), !link.isEmpty { options.append(.init("link", .string(link))) }
    if let label = text(.webLabel) ?? text(.label) {
      options.append(.init("analytics_label", .string(label)))
    }
    if !options.isEmpty {
      arena.append(",\"fcm_options\":")
      JSONValue.object(options).write(to: &arena)
    }
    return arena.count == start ? nil : JSONRange(start: start, end: arena.count)
  }
}
