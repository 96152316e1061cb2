import AppStorage
import Foundation
import TestKit
import Testing

@testable import DeviceRuntime

struct ServiceExtensionTests {
  /// Changes the title, or does what a test wants.
  struct Closure: NotificationServiceExtension {
    var body: @Sendable (NotificationContent, BestAttempt) async throws -> NotificationContent
    func content(
      for request: NotificationRequest, bestAttempt: BestAttempt
    ) async throws -> NotificationContent {
      try await body(request.content, bestAttempt)
    }
  }

  struct Broken: Error {}

  func show(
    _ content: NotificationContent, fixture: CenterFixture, limit: Duration = .seconds(30),
    by service: any NotificationServiceExtension
  ) async throws -> NotificationContent {
    let center = try await fixture.center {
      $0.serviceExtension = service
      $0.extensionTimeLimit = limit
    }
    try await center.receive(
      NotificationRequest(remote: "1", content: content), message: "1", stage: .handled)
    await center.settled()
    await center.stop()
    try #require(fixture.presenter.shown.count == 1)
    return fixture.presenter.shown[0].content
  }

  @Test func itChangesWhatIsShown() async throws {
    let shown = try await show(
      CenterFixture.content("coded", image: "x"), fixture: CenterFixture(),
      by: Closure { content, _ in
        var content = content
        content.title = "plain"
        return content
      })
    #expect(shown.title == "plain")
  }

  @Test func itRunsOnlyForMutablePushesWithAnAlert() async throws {
    let fixture = try CenterFixture()
    let center = try await fixture.center {
      $0.serviceExtension = Closure { content, _ in
        var content = content
        content.title = "changed"
        return content
      }
    }
    // Not mutable.
    try await center.receive(
      NotificationRequest(remote: "1", content: CenterFixture.content("a")), message: "1", stage: .handled)
    // A local one.
    try await center.add(NotificationRequest(id: "2", content: CenterFixture.content("b")))
    await center.settled()
    #expect(fixture.presenter.shown.map(\.content.title) == ["a", "b"])
  }

  @Test func whatItCannotDoLeavesTheOriginal() async throws {
    let shown = try await show(
      CenterFixture.content("original", image: "x"), fixture: CenterFixture(),
      by: Closure { _, _ in throw Broken() })
    #expect(shown.title == "original")
  }

  @Test func whenItsTimeIsUpTheBestAttemptIsShownOrElseTheOriginal() async throws {
    for (offers, title) in [(true, "half"), (false, "original")] {
      let shown = try await show(
        CenterFixture.content("original", image: "x"), fixture: CenterFixture(), limit: .milliseconds(50),
        by: Closure { content, best in
          if offers {
            var half = content
            half.title = "half"
            best.offer(half)
          }
          // Does not listen to its cancellation: it is not waited for.
          await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
            DispatchQueue.global().asyncAfter(deadline: .now() + 3) { continuation.resume() }
          }
          return content
        })
      #expect(shown.title == title)
    }
  }

  // MARK: Pictures

  func picture(
    _ address: String, limit: Duration = .seconds(30), caFile: String? = nil
  ) async throws -> (shown: NotificationContent, fixture: CenterFixture) {
    let fixture = try CenterFixture()
    let shown = try await show(
      CenterFixture.content("T", image: address), fixture: fixture, limit: limit,
      by: ImageExtension(folder: fixture.folder + "/attachments", caFile: caFile))
    return (shown, fixture)
  }

  @Test(
    arguments: [
      ("/jpeg", "image/jpeg", "jpg"), ("/png", "image/png", "png"), ("/gif", "image/gif", "gif"),
      ("/untyped", "image/png", "png"), ("/nothing-said", "image/jpeg", "jpg"),
      ("/redirect", "image/png", "png"),
    ])
  func picturesAreAttachedByTheTypeOfTheirBytes(_ path: String, _ type: String, _ suffix: String) async throws
  {
    let server = try await PictureServer.start()
    let (shown, fixture) = try await picture(server.base + path)
    let attachment = try #require(shown.attachments.first)
    #expect(shown.attachments.count == 1)
    #expect(attachment.mediaType == type && attachment.path.hasSuffix("." + suffix))
    withExtendedLifetime(fixture) {
      #expect(FileManager.default.contents(atPath: attachment.path)?.isEmpty == false)
    }
    server.stop()
  }

  @Test(arguments: [
    "/page", "/sound", "/empty", "/short", "/cut", "/lost", "/loop", "/to-file", "/huge", "/endless", "/lots",
    "/missing",
  ])
  func whateverIsWrongWithAPictureTheOriginalIsShown(_ path: String) async throws {
    let server = try await PictureServer.start()
    let (shown, fixture) = try await picture(server.base + path)
    #expect(shown.title == "T" && shown.attachments.isEmpty)
    // Nothing is left of it.
    let left = try? FileManager.default.contentsOfDirectory(atPath: fixture.folder + "/attachments")
    #expect(left?.isEmpty ?? true)
    server.stop()
  }

  @Test(arguments: ["/slow", "/silent"])
  func aSlowPictureIsNotWaitedForBeyondTheLimit(_ path: String) async throws {
    let server = try await PictureServer.start()
    let begin = ContinuousClock.now
    let (shown, _) = try await picture(server.base + path, limit: .milliseconds(300))
    #expect(shown.attachments.isEmpty)
    #expect(ContinuousClock.now - begin < .seconds(10))
    server.stop()
  }

  @Test(arguments: [
    "ftp://127.0.0.1/x", "file:///etc/passwd", "nonsense", "", "http://127.0.0.1:1/x", "http://a b/",
  ])
  func addressesOfOtherKindsAndDeadOnesLeaveTheOriginal(_ address: String) async throws {
    let (shown, _) = try await picture(address)
    #expect(shown.title == "T" && shown.attachments.isEmpty)
  }

  @Test func picturesComeOverHTTPSFromATrustedServerAlone() async throws {
    try await TestServer.run { address in
      let server = try await PictureServer.start(
        certificate: (address.credentials + "/server.pem", address.credentials + "/server.key"))
      let (trusted, _) = try await picture(server.base + "/png", caFile: address.certificateAuthority)
      #expect(trusted.attachments.count == 1)
      let (other, _) = try await picture(server.base + "/png")
      #expect(other.attachments.isEmpty)
      server.stop()
    }
  }
}
