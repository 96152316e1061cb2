import DesktopNotifications
import DeviceRuntime
import Dispatch
import Glibc
import JSONCore
import Synchronization

/// `weir device --desktop`: an app with its data in a folder, whose pushes are shown where the user is.
struct DesktopDevice: Sendable {
  var endpoint: Endpoint
  var https: Endpoint
  var credentials: CredentialFolder
  var folder: String
  var user: String?
  var messagesMax: Int

  func run(_ console: Console) async throws -> ExitCode {
    let seen = Atomic<Int>(0)
    let presenter = Counting(try presenter(console)) { seen.wrappingAdd(1, ordering: .relaxed) }
    var settings = DeviceRuntime.NotificationCenter.Configuration(dataFolder: folder, presenter: presenter)
    settings.serviceExtension = ImageExtension(folder: folder + "/attachments")
    let center: DeviceRuntime.NotificationCenter
    do throws(NotificationError) {
      center = try DeviceRuntime.NotificationCenter(settings)
    } catch {
      throw CommandFault(.cannotConnect, "\(folder): \(error)")
    }
    _ = try await center.requestAuthorization([.alert, .badge, .sound])
    await center.setDelegate(Taps(console: console))
    await center.start()
    let messaging = Messaging(try configuration(), center)
    await messaging.onMessage { message in
      Self.show(message, console)
      seen.wrappingAdd(1, ordering: .relaxed)
    }
    let stopping = Stopping()
    let signals = Signals([SIGINT, SIGTERM]) { _ in stopping.stop() }
    do {
      try await messaging.start()
    } catch {
      throw CommandFault(.cannotConnect, "\(endpoint): \(error)")
    }
    let token = try await messaging.token()
    if console.isJSON { console.result(["kind": "token", "token": .string(token)]) }
    console.say("token \(token)\nThe data is in \(folder). Ctrl-C ends.")
    while !stopping.isStopped, seen.load(ordering: .relaxed) < messagesMax {
      try await Task.sleep(for: .milliseconds(100))
    }
    signals.stop()
    await messaging.stop()
    await center.stop()
    return .done
  }

  private func configuration() throws(CommandFault) -> Messaging.Configuration {
    var configuration = Messaging.Configuration(
      device: Device.Configuration(
        host: endpoint.host, port: Int(endpoint.port), trust: .file(credentials.caFile)),
      httpsPort: Int(https.port), project: try credentials.projectID(),
      apiKey: try credentials.key("api-key"), app: "org.example.app")
    configuration.user = user
    return configuration
  }

  /// The desktop, or without one the terminal.
  private func presenter(_ console: Console) throws -> any NotificationPresenter {
    do throws(DesktopFault) {
      return try DesktopPresenter(DesktopPresenter.Configuration(appName: "weir"))
    } catch {
      console.say("No desktop here (\(error)), so notifications are printed.")
      return TerminalPresenter { line in
        if console.isJSON {
          console.result(["kind": "notification", "text": .string(line)])
        } else {
          console.result(line)
        }
      }
    }
  }

  private static func show(_ message: DeviceMessage, _ console: Console) {
    let data = message.data.sorted { $0.key < $1.key }
    if console.isJSON {
      console.result([
        "kind": "message", "message_id": .string(message.id), "from": .string(message.from),
        "data": .object(data.map { .init($0.key, .string($0.value)) }),
      ])
    } else {
      let text = data.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
      console.result("message from \(message.from) \(text)")
    }
  }

  /// Says what the user did.
  private struct Taps: NotificationCenterDelegate {
    let console: Console

    func didReceive(_ response: NotificationResponse, link: DeepLink?) async {
      let action = response.actionID == NotificationResponse.defaultActionID ? "tap" : response.actionID
      if console.isJSON {
        console.result([
          "kind": "response", "id": .string(response.notification.request.id), "action": .string(action),
          "text": response.userText.map { .string($0) } ?? .null,
          "link": link.map { .string($0.text) } ?? .null,
        ])
      } else {
        console.result("\(action) on \"\(response.notification.request.content.title)\" \(link?.text ?? "")")
      }
    }
  }

  /// A presenter that counts what was shown.
  private final class Counting: NotificationPresenter {
    private let inner: any NotificationPresenter
    private let count: @Sendable () -> Void

    init(_ inner: any NotificationPresenter, _ count: @escaping @Sendable () -> Void) {
      self.inner = inner
      self.count = count
    }

    var events: AsyncStream<PresenterEvent> { inner.events }

    func present(_ notification: PresentedNotification) async throws -> Int64? {
      defer { count() }
      return try await inner.present(notification)
    }

    func withdraw(id: String, handle: Int64?) async { await inner.withdraw(id: id, handle: handle) }
    func setBadge(_ count: Int) async { await inner.setBadge(count) }
    func adopt(_ shown: [String: Int64]) async { await inner.adopt(shown) }
  }
}
