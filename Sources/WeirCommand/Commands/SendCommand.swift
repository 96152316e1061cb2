import Foundation
import JSONCore
import StreamClient

/// The command `weir send`.
struct SendCommand: Subcommand {
  static let name = "send"
  static let summary = "Sends one downstream message over the stream and waits for its ack or nack."
  static let flags =
    StreamSettings.flags + [
      Flag("to", "TARGET", "registration token, /topics/NAME or /users/ID"),
      Flag("condition", "TEXT", "topic condition instead of --to"),
      Flag("id", "ID", "message id (default: made)"),
      Flag("title", "TEXT", "notification title"), Flag("body", "TEXT", "notification body"),
      Flag("subtitle", "TEXT", "notification subtitle"), Flag("badge", "N", "notification badge"),
      Flag("sound", "NAME", "notification sound"),
      Flag("image", "URL", "picture of the notification"),
      Flag("category", "NAME", "what a tap opens: click_action"),
      Flag("tag", "NAME", "takes the place of the notification that is shown with the same"),
      Flag("data", "KEY=VALUE", "a data member; may be repeated"),
      Flag("message", "JSON", "the whole message object; other flags are then left out"),
      Flag("ttl", "SECONDS", "time to live (default four weeks; 0 is now or never)"),
      Flag("collapse-key", "KEY", "a newer message with this key replaces an older one"),
      Flag("priority", "normal|high", "delivery priority"),
      Flag("receipt", nil, "asks for a delivery receipt"),
      Flag("dry-run", nil, "checks the message and delivers nothing"),
      Flag("content-available", nil, "wakes the app in the background"),
      Flag("mutable-content", nil, "lets a service extension change the notification"),
      Flag("timeout", "SECONDS", "for the ack or nack (default 30)"),
    ]
  static let examples = [
    "weir send --to TOKEN --title Hello --body World",
    "weir send --to TOKEN --data order=88 --ttl 600 --receipt",
    "weir send --message '{\"to\":\"TOKEN\",\"data\":{\"k\":\"v\"}}' --json",
  ]

  private let settings: StreamSettings
  private let message: PushMessage
  private let timeout: Duration

  init(_ arguments: Arguments) throws(UsageFault) {
    settings = try StreamSettings(arguments)
    timeout = .seconds(try arguments.number("timeout", default: 30, in: 1...3600))
    message = try Self.message(arguments)
  }

  private static func message(_ arguments: Arguments) throws(UsageFault) -> PushMessage {
    if let text = arguments.text("message") {
      var message = PushMessage.json(text)
      if let id = arguments.text("id") { message.id = id }
      return message
    }
    let target: PushMessage.Target
    switch (arguments.text("to"), arguments.text("condition")) {
    case (let to?, nil):
      if to.hasPrefix("/topics/") {
        target = .topic(String(to.dropFirst(8)))
      } else if to.hasPrefix("/users/") {
        target = .user(String(to.dropFirst(7)))
      } else {
        target = .token(to)
      }
    case (nil, let condition?): target = .condition(condition)
    case (nil, nil): throw UsageFault(message: "--to is missing.")
    default: throw UsageFault(message: "--to and --condition exclude each other.")
    }
    var data: [String: String] = [:]
    for pair in arguments.all("data") {
      let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard sides.count == 2, !sides[0].isEmpty else {
        throw UsageFault(message: "--data takes KEY=VALUE, not \"\(pair)\".")
      }
      data[String(sides[0])] = String(sides[1])
    }
    var notification = PushMessage.Notification(
      title: arguments.text("title"), body: arguments.text("body"))
    notification.subtitle = arguments.text("subtitle")
    notification.badge = arguments.text("badge")
    notification.sound = arguments.text("sound")
    notification.image = arguments.text("image")
    notification.clickAction = arguments.text("category")
    notification.tag = arguments.text("tag")
    var message = PushMessage(to: target, data: data)
    if notification != PushMessage.Notification() { message.notification = notification }
    message.id = arguments.text("id")
    if arguments.text("ttl") != nil {
      message.timeToLive = .seconds(try arguments.number("ttl", default: 0, in: 0...Int(Int32.max)))
    }
    message.collapseKey = arguments.text("collapse-key")
    if let text = arguments.text("priority") {
      guard let priority = PushMessage.Priority(rawValue: text) else {
        throw UsageFault(message: "--priority must be normal or high.")
      }
      message.priority = priority
    }
    message.wantsReceipt = arguments.has("receipt")
    message.isDryRun = arguments.has("dry-run")
    message.contentAvailable = arguments.has("content-available")
    message.mutableContent = arguments.has("mutable-content")
    return message
  }

  func run(_ console: Console) async throws -> ExitCode {
    var configuration = try settings.configuration()
    configuration.retry.totalTimeout = timeout
    let client = try await settings.connect(configuration)
    let code: ExitCode
    do {
      let ack = try await client.send(message)
      if console.isJSON {
        var members: [JSONValue.Member] = [
          .init("outcome", "ack"), .init("message_id", .string(ack.messageID)),
          .init("attempts", .number(ack.attempts)),
          .init("latency_ms", .number("\(ack.latency.milliseconds)")),
        ]
        if let canonical = ack.canonicalRegistrationID {
          members.append(.init("registration_id", .string(canonical)))
        }
        console.result(.object(members))
      } else {
        console.result("ack \(ack.messageID) after \(ack.latency.milliseconds) ms")
        if let canonical = ack.canonicalRegistrationID { console.result("use this token now: \(canonical)") }
      }
      code = .done
    } catch {
      if console.isJSON {
        console.result([
          "outcome": .string(error.nackCode == nil ? error.code.description : "nack"),
          "message_id": error.messageID.map { .string($0) } ?? .null,
          "error": .string(error.nackCode ?? error.code.description),
          "error_description": .string(error.detail),
        ])
      } else {
        console.result("\(error)")
      }
      code = .someFailed
    }
    await client.close()
    return code
  }
}

extension Duration {
  /// Milliseconds with three digits.
  var milliseconds: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) * 1000 + Double(attoseconds / 1_000_000_000_000) / 1000
  }
}
