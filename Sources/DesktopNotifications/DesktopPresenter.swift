public import DeviceRuntime
import Glibc
import Seams
import Synchronization

/// Shows notifications on a Linux desktop, through whatever implements `org.freedesktop.Notifications` there.
///
/// Title, subtitle, text, picture, urgency and sound go over; a newer notification takes the place of an older one with
/// the same id; actions and dismissals come back. The number on the icon goes by the launcher-entry signal, which docks
/// of several desktops follow.
/// - Source: Desktop Notifications Specification 1.2.
public final class DesktopPresenter: NotificationPresenter {
  /// How the app appears.
  public struct Configuration: Sendable {
    /// Shown by some desktops.
    public var appName: String
    /// Name of the app's `.desktop` file without its extension; the badge goes to its icon.
    public var desktopEntry: String
    /// Name or path of an icon.
    public var icon: String
    /// What stands on the button that opens a notification.
    public var openTitle: String
    /// Address of the bus; nil for the session's.
    public var busAddress: String?

    /// Makes a configuration.
    public init(appName: String, desktopEntry: String? = nil, icon: String = "", busAddress: String? = nil) {
      self.appName = appName
      self.desktopEntry = desktopEntry ?? appName
      self.icon = icon
      openTitle = "Open"
      self.busAddress = busAddress
    }
  }

  /// What the desktop can do.
  ///
  /// In the words of the specification: `actions`, `body-markup`, `persistence` and more.
  public struct Capabilities: Sendable, Hashable {
    /// The words.
    public var names: Set<String>
    /// The program that shows.
    public var server: String
  }

  private struct State {
    var capabilities: Capabilities?
    /// What the desktop's numbers mean; the newest 256.
    var ids: [UInt32: String] = [:]
    /// The action that a text field stands for.
    var replies: [String: String] = [:]
    var order: [UInt32] = []

    mutating func remember(_ handle: UInt32, _ id: String) {
      ids[handle] = id
      order.removeAll { $0 == handle }
      order.append(handle)
      if order.count > 256, let gone = ids.removeValue(forKey: order.removeFirst()) { replies[gone] = nil }
    }
  }

  /// As it was made.
  public let configuration: Configuration
  /// What the user does.
  public let events: AsyncStream<PresenterEvent>
  private let continuation: AsyncStream<PresenterEvent>.Continuation
  private let state = Guarded(State())
  private let bus: Bus

  private static let service = "org.freedesktop.Notifications"
  private static let path = "/org/freedesktop/Notifications"

  /// Connects to the bus.
  ///
  /// - Throws: ``DesktopFault`` when there is none. That nobody shows notifications on it is no fault: they wait.
  public init(_ configuration: Configuration) throws(DesktopFault) {
    self.configuration = configuration
    let (events, continuation) = AsyncStream<PresenterEvent>.makeStream()
    self.events = events
    self.continuation = continuation
    let target = Target()
    bus = try Bus(address: configuration.busAddress) { signal, bus in
      var signal = signal
      target.presenter?.received(&signal)
    }
    target.set(self)
    _ = bus.submit { bus in
      bus.match("type='signal',sender='\(Self.service)',interface='\(Self.service)'")
      bus.match(
        "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='\(Self.service)'")
    }
  }

  deinit {
    bus.stop()
    continuation.finish()
  }

  /// Lets the bus, which lives on its thread, find the presenter and not keep it.
  private final class Target: Sendable {
    private struct Box { weak var presenter: DesktopPresenter? }
    private let box = Mutex(Box())
    var presenter: DesktopPresenter? { box.withLock { $0.presenter } }
    func set(_ presenter: DesktopPresenter) { box.withLock { $0.presenter = presenter } }
  }

  /// What the desktop can do; asked once for each program that shows.
  public func capabilities() async throws(DesktopFault) -> Capabilities {
    if let known = state.withLock({ $0.capabilities }) { return known }
    let names = try await bus.call {
      BusMessage.call(Self.service, Self.path, Self.service, "GetCapabilities")
    } _: {
      $0.strings()
    }
    let server = try await bus.call {
      BusMessage.call(Self.service, Self.path, Self.service, "GetServerInformation")
    } _: { reader -> String? in
      guard let name = reader.string(), reader.string() != nil, let version = reader.string() else {
        return nil
      }
      return name + " " + version
    }
    let found = Capabilities(names: Set(names), server: server)
    state.withLock { $0.capabilities = found }
    return found
  }

  // MARK: NotificationPresenter

  /// Shows one; what it throws is a ``DesktopFault``.
  public func present(_ notification: PresentedNotification) async throws -> Int64? {
    let capabilities = try await capabilities()
    let appearance = DesktopAppearance(notification, configuration, capabilities.names)
    let replaces = notification.replaces.flatMap { UInt32(exactly: $0) } ?? 0
    let appName = configuration.appName
    let reply = notification.actions.first { $0.textInputPlaceholder != nil }?.id
    state.withLock { $0.replies[notification.id] = reply }
    let handle = try await bus.call {
      let message = BusMessage.call(Self.service, Self.path, Self.service, "Notify")
      message?.append { writer in
        writer.append(appName)
        writer.append(replaces)
        writer.append(appearance.icon)
        writer.append(appearance.summary)
        writer.append(appearance.body)
        writer.append(list: appearance.actions)
        writer.append(table: appearance.hints)
        writer.append(Int32(-1))
      }
      return message
    } _: { [state, id = notification.id] reader -> UInt32? in
      // On the bus's thread, so that a tap which comes right behind finds it.
      guard let handle = reader.uint32() else { return nil }
      state.withLock { $0.remember(handle, id) }
      return handle
    }
    return Int64(handle)
  }

  /// Closes one.
  public func withdraw(id: String, handle: Int64?) async {
    let handles = state.withLock { state in
      let known = state.ids.filter { $0.value == id }.map(\.key)
      for handle in known { state.ids[handle] = nil }
      return known
    }
    for handle in Set(handles + [handle.flatMap { UInt32(exactly: $0) }].compactMap { $0 }) {
      _ = bus.submit { bus in
        guard let message = BusMessage.call(Self.service, Self.path, Self.service, "CloseNotification") else {
          return
        }
        message.append { $0.append(handle) }
        bus.send(message)
      }
    }
  }

  /// Tells docks the number.
  public func setBadge(_ count: Int) async {
    let entry = "application://\(configuration.desktopEntry).desktop"
    let path = "/com/canonical/unity/launcherentry/\(Self.number(of: entry))"
    _ = bus.submit { bus in
      guard let message = BusMessage.signal(path, "com.canonical.Unity.LauncherEntry", "Update") else {
        return
      }
      message.append { writer in
        writer.append(entry)
        writer.append(table: [("count", .int64(Int64(count))), ("count-visible", .bool(count > 0))])
      }
      bus.send(message)
    }
  }

  /// Listens to those of an earlier process.
  public func adopt(_ shown: [String: Int64]) async {
    state.withLock { state in
      for (id, handle) in shown.sorted(by: { $0.value < $1.value }) {
        if let handle = UInt32(exactly: handle) { state.remember(handle, id) }
      }
    }
  }

  /// Any number will do as long as it stays the same.
  private static func number(of text: String) -> UInt32 {
    text.utf8.reduce(5_381) { ($0 << 5) &+ $0 &+ UInt32($1) }
  }

  // MARK: Signals

  private func received(_ signal: inout BusReader) {
    switch signal.member {
    case "ActionInvoked":
      guard let handle = signal.uint32(), let key = signal.string(), let id = forget(handle) else { return }
      let action = key == "default" ? NotificationResponse.defaultActionID : key
      continuation.yield(.activated(id: id, actionID: action, text: nil))
    case "NotificationReplied":
      guard let handle = signal.uint32(), let text = signal.string(), let id = forget(handle) else { return }
      let action = state.withLock { $0.replies[id] } ?? NotificationResponse.defaultActionID
      continuation.yield(.activated(id: id, actionID: action, text: text))
    case "NotificationClosed":
      // 1 is timed out: it is still in the user's list, and its actions in the desktop's.
      // 2 is dismissed by the user, 3 is our own call, 4 is anything.
      guard let handle = signal.uint32(), let reason = signal.uint32(), reason == 2, let id = forget(handle)
      else { return }
      continuation.yield(.dismissed(id: id))
    case "NameOwnerChanged":
      guard signal.string() == Self.service, signal.string() != nil, let owner = signal.string() else {
        return
      }
      state.withLock { $0.capabilities = nil }
      if !owner.isEmpty { continuation.yield(.available) }
    default: break
    }
  }

  private func forget(_ handle: UInt32) -> String? {
    state.withLock { state in
      state.order.removeAll { $0 == handle }
      return state.ids.removeValue(forKey: handle)
    }
  }
}

/// A notification in the words of the specification.
struct DesktopAppearance: Sendable, Hashable {
  var icon: String
  var summary: String
  var body: String
  /// Keys and titles in turn.
  var actions: [String]
  var hints: [(String, BusValue)]

  /// The key that desktops with a text field use for it.
  static let replyKey = "inline-reply"

  init(
    _ notification: PresentedNotification, _ configuration: DesktopPresenter.Configuration,
    _ capabilities: Set<String>
  ) {
    let content = notification.content
    let hasMarkup = capabilities.contains("body-markup")
    func text(_ plain: String) -> String { hasMarkup ? Self.escaped(plain) : plain }
    icon = content.icon ?? configuration.icon
    summary = content.title.isEmpty ? configuration.appName : content.title
    let subtitle = hasMarkup ? "<b>\(text(content.subtitle))</b>" : content.subtitle
    body = [content.subtitle.isEmpty ? "" : subtitle, text(content.body)].filter { !$0.isEmpty }.joined(
      separator: "\n")
    actions = []
    if capabilities.contains("actions") {
      actions += ["default", configuration.openTitle]
      for action in notification.actions {
        if action.textInputPlaceholder != nil, capabilities.contains(Self.replyKey) {
          actions += [Self.replyKey, action.title]
        } else {
          actions += [action.id, action.title]
        }
      }
    }
    hints = []
    let urgency: UInt8 =
      switch content.interruptionLevel {
      case _ where !notification.options.contains(.banner): 0
      case .passive: 0
      case .active: 1
      case .timeSensitive, .critical: 2
      }
    hints.append(("urgency", .byte(urgency)))
    hints.append(("desktop-entry", .string(configuration.desktopEntry)))
    if let picture = content.attachments.first(where: { $0.mediaType.hasPrefix("image/") }) {
      hints.append(("image-path", .string(Self.absolute(picture.path))))
    }
    if !notification.options.contains(.list) { hints.append(("transient", .bool(true))) }
    switch content.sound {
    case _ where !notification.options.contains(.sound): hints.append(("suppress-sound", .bool(true)))
    case nil: hints.append(("suppress-sound", .bool(true)))
    case .standard: hints.append(("sound-name", .string("message-new-instant")))
    case .named(let name), .critical(let name, _):
      hints.append((name.hasPrefix("/") ? "sound-file" : "sound-name", .string(name)))
    }
  }

  /// The program that shows has another working directory.
  private static func absolute(_ path: String) -> String {
    guard let resolved = realpath(path, nil) else { return path }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  /// Text of a sender must not become markup.
  static func escaped(_ text: String) -> String {
    var result = ""
    for character in text {
      switch character {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      default: result.append(character)
      }
    }
    return result
  }

  static func == (left: DesktopAppearance, right: DesktopAppearance) -> Bool {
    left.icon == right.icon && left.summary == right.summary && left.body == right.body
      && left.actions == right.actions && left.hints.map(\.0) == right.hints.map(\.0)
      && left.hints.map(\.1) == right.hints.map(\.1)
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(summary)
    hasher.combine(body)
  }
}
