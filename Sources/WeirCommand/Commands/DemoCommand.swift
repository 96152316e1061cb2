import ConnectionServer
import DeviceRuntime
import Foundation
import JSONCore
import StreamClient
import Synchronization

/// The command `weir demo`.
struct DemoCommand: Subcommand {
  static let name = "demo"
  static let summary = "Server, devices and an app server in one process, with real messages and a summary."
  static let flags = [
    Flag("data", "DIR", "data directory (default: a temporary one, removed afterwards)"),
    Flag("log-level", "LEVEL", "the server's log (default off)"),
  ]
  static let examples = ["weir demo", "weir demo --json"]

  private let directory: String?
  private let logLevel: String

  init(_ arguments: Arguments) throws(UsageFault) {
    directory = arguments.text("data")
    logLevel = arguments.text("log-level", default: "off")
  }

  func run(_ console: Console) async throws -> ExitCode {
    let path =
      directory ?? FileManager.default.temporaryDirectory.appendingPathComponent("weir-demo-\(getpid())").path
    defer { if directory == nil { try? FileManager.default.removeItem(atPath: path) } }
    var configuration = ServerConfiguration()
    configuration.dataDirectory = path
    (configuration.xmppPort, configuration.httpsPort, configuration.adminPort) = (0, 0, 0)
    configuration.logLevel = logLevel
    configuration.loops = 1
    let server: ConnectionServer
    do { server = try await ConnectionServer.start(configuration) } catch {
      throw CommandFault(.cannotConnect, "\(error)")
    }
    console.say("A server is running, with XMPP on port \(server.addresses.xmpp) and its data in \(path).")
    let story = DemoStory(server: server.addresses, console: console)
    let rows: [DemoStory.Row]
    do { rows = try await story.tell() } catch {
      await server.stop()
      throw error
    }
    await server.stop()
    summarise(rows, console)
    return rows.allSatisfy(\.isGood) ? .done : .someFailed
  }

  private func summarise(_ rows: [DemoStory.Row], _ console: Console) {
    if console.isJSON {
      for row in rows {
        console.result([
          "message": .string(row.title), "direction": .string(row.direction), "outcome": .string(row.outcome),
          "arrived": .bool(row.arrived), "milliseconds": .number(String(format: "%.2f", row.milliseconds)),
        ])
      }
      return
    }
    let table = rows.map {
      [
        $0.title, $0.direction, $0.outcome, $0.arrived ? "yes" : "no",
        String(format: "%.2f", $0.milliseconds),
      ]
    }
    console.result("")
    console.result(Table.text([["message", "direction", "outcome", "arrived", "ms"]] + table))
    let good = rows.filter(\.isGood).count
    console.result("\n\(good) of \(rows.count) messages did what they should.")
  }
}

/// What the demo sends and what became of it.
struct DemoStory: Sendable {
  struct Row: Sendable {
    var title: String
    var direction: String
    var outcome: String
    /// The other side saw it.
    var arrived: Bool
    var milliseconds: Double
    /// It was meant to be refused with this outcome.
    var expected = "ack"

    var isGood: Bool { outcome == expected && arrived == (expected == "ack") }
  }

  private struct Letter: Sendable {
    var title: String
    var to: Int
    var message: @Sendable (String) -> PushMessage
  }

  let server: ConnectionServer.Addresses
  let console: Console

  func tell() async throws -> [Row] {
    let caFile = server.credentials + "/ca.pem"
    let registrar = try DeviceRegistrar(
      port: server.https, project: server.projectID, apiKey: try key("api-key"), trust: .file(caFile))
    let seen = Seen()
    var devices: [Device] = []
    for (name, platform) in [("민지", DeviceRegistrar.Platform.ios), ("Ben", .android), ("reader", .linux)] {
      let credentials = try await registrar.register(app: "org.example.demo", platform: platform, user: name)
      let device = try Device(
        credentials, Device.Configuration(port: server.xmpp, trust: .file(caFile)))
      try await device.connect()
      devices.append(device)
    }
    console.say("Three devices are registered and connected.")
    let client = try StreamClient(
      StreamClient.Configuration(
        port: server.xmpp, senderID: String(server.senderID), serverKey: try key("server-key"),
        trust: .file(caFile)))
    try await client.connect()
    console.say("The app server holds one stream.\n")

    let watching = devices.map { device in
      Task { [console] in
        for await message in device.messages {
          seen.add(message.data["demo"] ?? "")
          console.say("  ▸ \(Self.shown(message))")
        }
      }
    }
    let listening = Task { [console] in
      for await delivery in client.upstream {
        if case .message(let message) = delivery.event {
          seen.add(message.data["demo"] ?? "")
          console.say("  ◂ upstream \(message.data.filter { $0.key != "demo" })")
        }
        delivery.ack()
      }
    }

    var rows: [Row] = []
    for letter in Self.letters { rows.append(try await send(letter, devices, client, seen)) }
    rows.append(await sendToNobody(client, registrar))
    for (index, device) in devices.enumerated() { rows.append(await reply(index, device, seen)) }
    for device in devices { await device.close() }
    await client.close()
    for task in watching + [listening] { task.cancel() }
    return rows
  }

  private func key(_ name: String) throws -> String {
    try String(contentsOfFile: server.credentials + "/" + name, encoding: .utf8)
      .trimmingCharacters(in: .whitespacesAndNewlines)
  }

  private func send(
    _ letter: Letter, _ devices: [Device], _ client: StreamClient, _ seen: Seen
  ) async throws -> Row {
    var message = letter.message(devices[letter.to].credentials.token)
    message.data["demo"] = letter.title
    let start = ContinuousClock.now
    var row = Row(
      title: letter.title, direction: "downstream", outcome: "ack", arrived: false, milliseconds: 0)
    do throws(SendError) { _ = try await client.send(message) } catch {
      row.outcome = error.nackCode ?? error.code.description
    }
    row.milliseconds = (ContinuousClock.now - start).milliseconds
    row.arrived = await seen.wait(for: letter.title)
    return row
  }

  private func sendToNobody(_ client: StreamClient, _ registrar: DeviceRegistrar) async -> Row {
    var row = Row(
      title: "to a phone that left", direction: "downstream", outcome: "ack", arrived: false, milliseconds: 0,
      expected: "DEVICE_UNREGISTERED")
    let start = ContinuousClock.now
    do {
      let gone = try await registrar.register(app: "org.example.demo")
      try await registrar.unregister(gone)
      _ = try await client.send(PushMessage(to: .token(gone.token), data: ["a": "b"]))
    } catch let error as SendError {
      row.outcome = error.nackCode ?? error.code.description
    } catch {
      row.outcome = "\(error)"
    }
    row.milliseconds = (ContinuousClock.now - start).milliseconds
    return row
  }

  private func reply(_ index: Int, _ device: Device, _ seen: Seen) async -> Row {
    let texts = ["답장: 좋아요 👍", "Seen at the pub 🍻", "Issue 7 is read"]
    let title = "reply of device \(index + 1)"
    var row = Row(title: title, direction: "upstream", outcome: "ack", arrived: false, milliseconds: 0)
    let start = ContinuousClock.now
    do throws(UpstreamSendError) {
      _ = try await device.sendUpstream(["demo": title, "text": texts[index]], to: String(server.senderID))
    } catch {
      row.outcome = error.nackCode ?? error.code.description
    }
    row.milliseconds = (ContinuousClock.now - start).milliseconds
    row.arrived = await seen.wait(for: title)
    return row
  }

  private static func shown(_ message: DeviceMessage) -> String {
    let title = message.notificationTitle ?? "(data)"
    let body = message.notificationBody.map { ": \($0)" } ?? ""
    let data = message.data.filter { $0.key != "demo" }.sorted { $0.key < $1.key }
      .map { "\($0.key)=\($0.value)" }.joined(separator: " ")
    return title + body + (data.isEmpty ? "" : "  [\(data)]")
  }

  private static func notified(
    _ token: String, _ title: String, _ body: String, subtitle: String? = nil, badge: String? = nil,
    data: [String: String] = [:], wakes: Bool = false
  ) -> PushMessage {
    var notification = PushMessage.Notification(title: title, body: body)
    notification.subtitle = subtitle
    notification.badge = badge
    notification.sound = "default"
    return PushMessage(
      to: .token(token), data: data, notification: notification, priority: .high, contentAvailable: wakes)
  }

  private static let letters: [Letter] = [
    Letter(title: "like (ko)", to: 0) {
      notified(
        $0, "새로운 좋아요 ❤️", "Ben님이 회원님을 좋아합니다", badge: "1", data: ["type": "like", "user": "ben"], wakes: true)
    },
    Letter(title: "like (en)", to: 1) {
      notified(
        $0, "New like ❤️", "Minji likes you", badge: "1", data: ["type": "like", "user": "minji"], wakes: true)
    },
    Letter(title: "chat (ko)", to: 0) {
      notified(
        $0, "Ben", "오늘 저녁에 시간 있어요? 🍜", subtitle: "새 메시지", badge: "2", data: ["type": "chat", "room": "42"],
        wakes: true)
    },
    Letter(title: "chat (en)", to: 1) {
      notified(
        $0, "Minji", "Tonight at eight? 🍜", subtitle: "New message", badge: "2",
        data: ["type": "chat", "room": "42"], wakes: true)
    },
    Letter(title: "match (ko)", to: 0) {
      notified(
        $0, "매칭 성공 🎉", "Ben님과 서로 좋아합니다", subtitle: "지금 인사하세요", badge: "3", data: ["type": "match"],
        wakes: true)
    },
    Letter(title: "match (en)", to: 1) {
      notified(
        $0, "It's a match 🎉", "You and Minji like each other", subtitle: "Say hello", badge: "3",
        data: ["type": "match"], wakes: true)
    },
    Letter(title: "goal alert", to: 1) {
      PushMessage(
        to: .token($0), data: ["Nick": "Mario", "Room": "PortugalVSDenmark", "body": "great match! ⚽️"],
        collapseKey: "score", timeToLive: .seconds(600))
    },
    Letter(title: "magazine issue", to: 2) {
      PushMessage(
        to: .token($0),
        data: ["volume": "3.21.15", "contents": "http://www.news-magazine.com/world-week/21659772"],
        notification: .init(title: "World Week", body: "Issue 3.21.15 is here 📰"),
        timeToLive: .seconds(86_400))
    },
  ]
}

/// Titles that arrived on the other side.
private final class Seen: Sendable {
  private let titles = Mutex<Set<String>>([])

  func add(_ title: String) { titles.withLock { _ = $0.insert(title) } }

  /// True once the title arrived; false after 5 seconds without it.
  func wait(for title: String) async -> Bool {
    for _ in 0..<1_000 {
      if titles.withLock({ $0.contains(title) }) { return true }
      try? await Task.sleep(for: .milliseconds(5))
    }
    return false
  }
}
