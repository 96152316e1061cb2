import Foundation
import Seams
import Synchronization
import TestKit
import Testing

@testable import DeviceRuntime

typealias NotificationCenter = DeviceRuntime.NotificationCenter

/// A notification center with a folder of its own, a clock that stands, and a presenter that keeps what it is shown.
final class CenterFixture: Sendable {
  let directory: TemporaryDirectory
  let presenter = RecordingPresenter()
  let time = ManualTime()
  /// What the user is asked, and what the answer is.
  let questions = Mutex<[AuthorizationOptions]>([])
  let answer = Mutex(true)

  init() throws { directory = try TemporaryDirectory() }

  var folder: String { directory.path + "/app" }

  func configuration(
    _ change: (inout NotificationCenter.Configuration) -> Void = { _ in }
  ) -> NotificationCenter.Configuration {
    var configuration = NotificationCenter.Configuration(dataFolder: folder, presenter: presenter)
    configuration.nowMs = { [time] in time.wall.ms }
    configuration.runsTimers = false
    configuration.askUser = { [weak self] options in
      self?.questions.withLock { $0.append(options) }
      return self?.answer.withLock { $0 } ?? false
    }
    change(&configuration)
    return configuration
  }

  /// Started, with leave for everything.
  func center(
    _ change: (inout NotificationCenter.Configuration) -> Void = { _ in }
  ) async throws -> NotificationCenter {
    let center = try NotificationCenter(configuration(change))
    _ = try await center.requestAuthorization([.alert, .badge, .sound])
    await center.start()
    return center
  }

  static func content(_ title: String, badge: Int? = nil, image: String? = nil) -> NotificationContent {
    var content = NotificationContent(title: title, body: "text")
    content.badge = badge
    content.sound = .standard
    if let image {
      content.imageURL = image
      content.isMutable = true
    }
    return content
  }
}

/// Notes what it hears.
final class RecordingDelegate: NotificationCenterDelegate {
  struct Heard: Sendable {
    var asked: [String] = []
    var responses: [NotificationResponse] = []
    var links: [String?] = []
  }

  let heard = Watched(Heard())
  let wish: PresentationOptions

  init(wish: PresentationOptions = []) { self.wish = wish }

  func willPresent(_ notification: DeliveredNotification) async -> PresentationOptions {
    heard.update { $0.asked.append(notification.request.id) }
    return wish
  }

  func didReceive(_ response: NotificationResponse, link: DeepLink?) async {
    heard.update {
      $0.responses.append(response)
      $0.links.append(link?.text)
    }
  }

  func waitForResponse() async throws -> (NotificationResponse, String?) {
    try await heard.wait(for: "a response", within: .seconds(20)) { heard in
      guard !heard.responses.isEmpty else { return nil }
      return (heard.responses.removeFirst(), heard.links.removeFirst())
    }
  }
}
