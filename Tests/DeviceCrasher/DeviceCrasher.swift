import DeviceRuntime
import Glibc

/// An app on a device that stops at a given place, for tests that kill it there.
///
/// `device-crasher FOLDER XMPP HTTPS PROJECT APIKEY CAFILE WHERE`: `WHERE` is `handler` (a message is being handled and
/// not acked), `present` (a notification is being presented) or `nowhere`. Prints a line for each thing that happens.
@main
struct DeviceCrasher {
  static func main() async throws {
    let words = CommandLine.arguments
    guard words.count == 8, let xmpp = Int(words[2]), let https = Int(words[3]) else { exit(2) }
    let stop = words[7]
    let presenter = LinePresenter(stops: stop == "present")
    var settings = DeviceRuntime.NotificationCenter.Configuration(dataFolder: words[1], presenter: presenter)
    settings.serviceExtension = ImageExtension(folder: words[1] + "/attachments")
    // A slow picture is given up soon, unless the process is killed meanwhile.
    settings.extensionTimeLimit = stop == "nowhere" ? .milliseconds(300) : .seconds(60)
    let center = try DeviceRuntime.NotificationCenter(settings)
    _ = try await center.requestAuthorization([.alert, .badge, .sound])
    await center.start()
    var device = Device.Configuration(host: "127.0.0.1", port: xmpp, trust: .file(words[6]))
    device.reconnectSpread = .zero
    let messaging = Messaging(
      Messaging.Configuration(
        device: device, httpsPort: https, project: words[4], apiKey: words[5], app: "org.example.crasher"),
      center)
    await messaging.onMessage { message in
      say("handling \(message.data["n"] ?? "")")
      if stop == "handler" { await forever() }
    }
    try await messaging.start()
    say("token \(try await messaging.token())")
    await forever()
  }

  static func forever() async {
    while true { try? await Task.sleep(for: .seconds(3_600)) }
  }
}

/// Writes a line at once and whole.
func say(_ text: String) {
  let bytes = Array((text + "\n").utf8)
  _ = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
}

final class LinePresenter: NotificationPresenter {
  let stops: Bool
  let events: AsyncStream<PresenterEvent>
  private let continuation: AsyncStream<PresenterEvent>.Continuation

  init(stops: Bool) {
    self.stops = stops
    (events, continuation) = AsyncStream.makeStream()
  }

  func present(_ notification: PresentedNotification) async throws -> Int64? {
    say("presenting \(notification.content.title)")
    if stops { await DeviceCrasher.forever() }
    say("shown \(notification.content.title)")
    return nil
  }

  func withdraw(id: String, handle: Int64?) async {}

  func setBadge(_ count: Int) async { say("badge \(count)") }
}
