import Synchronization

/// Writes notifications as lines of text.
public final class TerminalPresenter: NotificationPresenter {
  private let write: @Sendable (String) -> Void
  private let continuation: AsyncStream<PresenterEvent>.Continuation
  /// What ``activate(_:action:text:)`` was told.
  public let events: AsyncStream<PresenterEvent>

  /// - Parameter write: Takes one line at a time, without its end.
  public init(_ write: @escaping @Sendable (String) -> Void) {
    self.write = write
    (events, continuation) = AsyncStream.makeStream()
  }

  /// For programs that read the user's choice from the terminal.
  public func activate(
    _ id: String, action: String = NotificationResponse.defaultActionID, text: String? = nil
  ) {
    continuation.yield(.activated(id: id, actionID: action, text: text))
  }

  /// Writes its lines; what was withdrawn or quiet is marked.
  public func present(_ notification: PresentedNotification) async throws -> Int64? {
    for line in Self.lines(notification) { write(line) }
    return nil
  }

  /// Cannot take back what was written.
  public func withdraw(id: String, handle: Int64?) async {}

  /// Writes the number.
  public func setBadge(_ count: Int) async { write("badge \(count)") }

  /// Control characters are dropped: a message must not steer the terminal.
  static func lines(_ notification: PresentedNotification) -> [String] {
    let content = notification.content
    func clean(_ text: String) -> String {
      String(
        String.UnicodeScalarView(
          text.unicodeScalars.map { scalar in
            let isControl = scalar.value < 32 || (127...159).contains(scalar.value)
            return isControl ? " " : scalar
          }))
    }
    let heads = [content.title, content.subtitle].filter { !$0.isEmpty }.map(clean)
    var lines = [(notification.options.contains(.banner) ? "* " : "- ") + heads.joined(separator: " · ")]
    if !content.body.isEmpty { lines.append("  " + clean(content.body)) }
    for attachment in content.attachments { lines.append("  [\(attachment.mediaType) \(attachment.path)]") }
    if !notification.actions.isEmpty {
      lines.append("  " + notification.actions.map { "<\(clean($0.title))>" }.joined(separator: " "))
    }
    return lines
  }
}
