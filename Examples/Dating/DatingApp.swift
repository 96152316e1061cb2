import DesktopNotifications
import DeviceRuntime
import Glibc

/// The phone's half.
struct DatingApp: NotificationCenterDelegate {
  let user: String

  func run() async throws {
    let folder = Place.variable("DATING_DATA", "./dating-\(user)")
    var settings = DeviceRuntime.NotificationCenter.Configuration(dataFolder: folder, presenter: presenter())
    // Pictures of matches are fetched before they are shown.
    settings.serviceExtension = ImageExtension(folder: folder + "/attachments")
    // A message opens its chat, likes and matches open the list.
    settings.router.route(action: "reply", to: "dating://chat/{sender}?text={text}")
    settings.router.route(type: "message", to: "dating://chat/{sender}")
    settings.router.route(types: ["like", "match"], to: "dating://notifications")
    let center = try DeviceRuntime.NotificationCenter(settings)
    await center.setCategories([
      NotificationCategory(
        id: "chat", actions: [.textInput(id: "reply", title: "Reply"), .init(id: "mute", title: "Mute")]),
      NotificationCategory(id: "people", actions: [.init(id: "view", title: "View", options: .foreground)]),
    ])
    await center.setDelegate(self)
    _ = try await center.requestAuthorization([.alert, .badge, .sound])
    await center.start()

    let place = Place()
    var configuration = Messaging.Configuration(
      device: Device.Configuration(port: place.xmpp, trust: .file(place.credentials + "/ca.pem")),
      httpsPort: place.https, project: "demo", apiKey: try place.text("api-key"), app: "org.example.dating")
    configuration.user = user
    let messaging = Messaging(configuration, center)
    try await messaging.start()
    say("\(user) is ready, badge \(await center.badgeCount)")
    // The app runs until it is ended; a tap may come at any time.
    while true { try await Task.sleep(for: .seconds(3_600)) }
  }

  /// The desktop, or the terminal.
  private func presenter() -> any NotificationPresenter {
    if let desktop = try? DesktopPresenter(.init(appName: "Dating", desktopEntry: "org.example.dating")) {
      return desktop
    }
    return TerminalPresenter { say($0) }
  }

  func willPresent(_ notification: DeliveredNotification) async -> PresentationOptions {
    // Who reads a chat needs no banner for it, the others do.
    notification.request.content.userInfo["type"] == "message" ? [.list, .badge] : [.list, .badge, .banner]
  }

  func didReceive(_ response: NotificationResponse, link: DeepLink?) async {
    say("opens \(link?.text ?? "the start screen")")
  }
}

/// A line at once, also into a pipe.
func say(_ text: String) {
  print(text)
  fflush(nil)
}
