import ConnectionServer
import DeviceRuntime
import Foundation
import Seams
import StreamClient
import TestKit
import Testing

/// An app's process is killed with SIGKILL at the worst moments; what the server was told is compared with what the
/// user saw.
struct KillTests {
  /// A server, an app server, and a folder for an app whose process comes and goes.
  final class Stage: Sendable {
    let server: ServerFixture
    let client: StreamClient
    let directory: TemporaryDirectory

    init() async throws {
      server = try await ServerFixture()
      client = try server.client()
      directory = try TemporaryDirectory()
      try await client.connect()
    }

    func start(stopping place: String) throws -> ChildProcess {
      let found = server.server.addresses
      return try ChildProcess(
        ServerProcess.findExecutable("device-crasher"),
        [
          directory.path + "/app", "\(found.xmpp)", "\(found.https)", found.projectID, server.apiKey,
          server.caFile, place,
        ], errors: directory.path + "/errors")
    }

    func stop() async {
      await client.close()
      await server.stop()
    }

    func push(
      _ token: String, _ number: Int, image: String? = nil, wakesApp: Bool = false
    ) -> PushMessage {
      var notification = PushMessage.Notification(title: "n\(number)", body: "B")
      notification.badge = "\(number)"
      notification.image = image
      return PushMessage(
        to: .token(token), data: ["n": "\(number)"], notification: notification, wantsReceipt: true,
        contentAvailable: wakesApp, mutableContent: image != nil)
    }

    /// Sends, and waits until the device acked it.
    func sendUntilAcked(_ message: PushMessage) async throws {
      let ack = try await client.send(message)
      var upstream = client.upstream.makeAsyncIterator()
      while let delivery = await upstream.next() {
        delivery.ack()
        if case .receipt(let receipt) = delivery.event, receipt.originalMessageID == ack.messageID { return }
      }
    }
  }

  func line(_ child: ChildProcess, _ prefix: String) async throws -> String {
    try await child.output.wait(for: prefix, within: .seconds(30)) { output in
      let lines = output.text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
      return lines.first { $0.hasPrefix(prefix) }.map { String($0.dropFirst(prefix.count)) }
    }
  }

  func kill(_ child: ChildProcess) async throws {
    child.signal(SIGKILL)
    _ = try await child.waitForExit(within: .seconds(15))
  }

  @Test func killedBetweenReceiveAndAckTheMessageIsHandledAgainAndShownOnce() async throws {
    let stage = try await Stage()
    var child = try stage.start(stopping: "handler")
    let token = try await line(child, "token ")
    _ = try await stage.client.send(stage.push(token, 1, wakesApp: true))
    _ = try await line(child, "handling 1")
    _ = try await line(child, "shown n1")
    try await kill(child)
    child = try stage.start(stopping: "nowhere")
    _ = try await line(child, "handling 1")
    _ = try await line(child, "badge 1")
    #expect(!child.output.current.text.contains("badge 0"))
    try await kill(child)
    await stage.stop()
  }

  @Test func killedBetweenAckAndShowTheNotificationIsShownAtTheNextStart() async throws {
    let stage = try await Stage()
    var child = try stage.start(stopping: "present")
    let token = try await line(child, "token ")
    try await stage.sendUntilAcked(stage.push(token, 2))
    _ = try await line(child, "presenting n2")
    try await kill(child)
    child = try stage.start(stopping: "nowhere")
    _ = try await line(child, "badge 2")
    _ = try await line(child, "shown n2")
    try await kill(child)
    await stage.stop()
  }

  @Test func killedDuringThePicturesDownloadTheNotificationIsShownAtTheNextStart() async throws {
    let stage = try await Stage()
    let pictures = try await PictureServer.start()
    var child = try stage.start(stopping: "handler")
    let token = try await line(child, "token ")
    try await stage.sendUntilAcked(stage.push(token, 3, image: pictures.base + "/slow"))
    try await pictures.waitForRequest("/slow")
    #expect(!child.output.current.text.contains("shown"))
    try await kill(child)
    child = try stage.start(stopping: "nowhere")
    _ = try await line(child, "badge 3")
    _ = try await line(child, "shown n3")
    try await kill(child)
    pictures.stop()
    await stage.stop()
  }

  @Test func killedAgainAndAgainNothingIsLostAndTheBadgeIsRight() async throws {
    let stage = try await Stage()
    let seed = UInt64.random(in: 1...9_999)
    var chance = SeededChance(seed: seed)
    var child = try stage.start(stopping: "nowhere")
    let token = try await line(child, "token ")
    var seen = ""
    let count = 60
    for number in 1...count {
      _ = try await stage.client.send(stage.push(token, number, wakesApp: number % 2 == 0))
      guard number % 10 == 0 else { continue }
      // Somewhere in the middle of the last ten.
      let target = "shown n\(number - Int.random(in: 0...8, using: &chance))"
      _ = try await line(child, target)
      try await kill(child)
      seen += child.output.current.text
      child = try stage.start(stopping: "nowhere")
      _ = try await line(child, "token ")
    }
    _ = try await child.output.wait(for: "the last one", within: .seconds(30)) { [seen] output in
      let all = Set((seen + output.text).split(separator: "\n"))
      return (1...count).allSatisfy { all.contains("shown n\($0)") } ? true : nil
    }
    try await kill(child)
    // What the store says after the last kill; the presenter is told it at each start.
    let last = try stage.start(stopping: "nowhere")
    #expect(try await line(last, "badge ") == "\(count)", "seed \(seed)")
    try await kill(last)
    await stage.stop()
  }
}
