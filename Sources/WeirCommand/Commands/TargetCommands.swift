import JSONCore

/// The command `weir topic`.
struct TopicCommand: Subcommand {
  static let name = "topic"
  static let operands = "list | show TOPIC | subscribe TOPIC TOKEN… | unsubscribe TOPIC TOKEN…"
  static let summary = "Lists topics and their subscribers, subscribes and unsubscribes tokens."
  static let flags = AdminCall.flags + TargetQuery.flags
  static let examples = [
    "weir topic list", "weir topic subscribe news TOKEN", "weir topic show news --json",
    "weir topic unsubscribe news TOKEN TOKEN",
  ]
  static let positionalMax = 1_002

  private let call: AdminCall
  private let query: TargetQuery

  init(_ arguments: Arguments) throws(UsageFault) {
    call = try AdminCall(arguments, actions: ["list", "show", "subscribe", "unsubscribe"])
    query = try TargetQuery(arguments)
    if call.action != "list" { _ = try call.operand(0, "The topic") }
    if call.action.hasSuffix("subscribe") { _ = try call.operand(1, "The token") }
  }

  func run(_ console: Console) async throws -> ExitCode {
    let client = try call.client()
    guard call.action != "list" else {
      let answer = try await client.call("GET", "/topics?\(query.page)")
      console.show(answer["topics"]?.array ?? [], columns: ["topic", "subscribers"])
      return .done
    }
    let topic = try call.operand(0, "The topic").pathEncoded
    guard call.action != "show" else {
      let answer = try await client.call("GET", "/topics/\(topic)?\(query.page)")
      console.show(
        answer["subscribers"]?.array ?? [], columns: ["number", "token", "app", "platform", "user"])
      return .done
    }
    let tokens = call.operands.dropFirst().map { JSONValue.string($0) }
    let answer = try await client.call(
      "POST", "/topics/\(topic)/\(call.action)?\(query.project)", ["tokens": .array(tokens)])
    console.show(answer["results"]?.array ?? [], columns: ["token", "outcome"])
    return answer["failed"]?.int == 0 ? .done : .someFailed
  }
}

/// The command `weir user`.
struct UserCommand: Subcommand {
  static let name = "user"
  static let operands = "list | show USER | badge USER"
  static let summary = "Lists users, shows a user's devices, reads or sets the stored badge."
  static let flags =
    AdminCall.flags + TargetQuery.flags + [
      Flag("set", "N", "the badge to store; 0 resets it (badge)")
    ]
  static let examples = ["weir user list", "weir user show ann", "weir user badge ann --set 0"]
  static let positionalMax = 2

  private let call: AdminCall
  private let query: TargetQuery
  private let badge: Int?

  init(_ arguments: Arguments) throws(UsageFault) {
    call = try AdminCall(arguments, actions: ["list", "show", "badge"])
    query = try TargetQuery(arguments)
    if call.action != "list" { _ = try call.operand(0, "The user") }
    badge =
      arguments.text("set") == nil ? nil : try arguments.number("set", default: 0, in: 0...1_000_000_000)
  }

  func run(_ console: Console) async throws -> ExitCode {
    let client = try call.client()
    guard call.action != "list" else {
      let answer = try await client.call("GET", "/users?\(query.page)")
      console.show(answer["users"]?.array ?? [], columns: ["user", "registrations", "badge"])
      return .done
    }
    let user = try call.operand(0, "The user").pathEncoded
    if call.action == "show" {
      let answer = try await client.call("GET", "/users/\(user)?\(query.project)")
      if console.isJSON {
        console.result(answer)
      } else {
        console.say("badge \(answer["badge"]?.int ?? 0)")
        console.show(answer["devices"]?.array ?? [], columns: ["token", "device", "app", "platform"])
      }
    } else if let badge {
      console.show(
        try await client.call("PUT", "/users/\(user)/badge?\(query.project)", ["badge": .number(badge)]))
    } else {
      console.show(try await client.call("GET", "/users/\(user)/badge?\(query.project)"))
    }
    return .done
  }
}

/// The command `weir group`.
struct GroupCommand: Subcommand {
  static let name = "group"
  static let operands = "list | show KEY | create NAME TOKEN… | add KEY TOKEN… | remove KEY TOKEN…"
  static let summary = "Lists, makes and changes device groups; KEY may be the group's name."
  static let flags = AdminCall.flags + TargetQuery.flags
  static let examples = [
    "weir group create family TOKEN TOKEN", "weir group show family", "weir group add family TOKEN",
    "weir group list --json",
  ]
  static let positionalMax = 102

  private let call: AdminCall
  private let query: TargetQuery

  init(_ arguments: Arguments) throws(UsageFault) {
    call = try AdminCall(arguments, actions: ["list", "show", "create", "add", "remove"])
    query = try TargetQuery(arguments)
    if call.action != "list" {
      _ = try call.operand(0, call.action == "create" ? "The name" : "The key or name")
    }
    if ["create", "add", "remove"].contains(call.action) { _ = try call.operand(1, "The token") }
  }

  func run(_ console: Console) async throws -> ExitCode {
    let client = try call.client()
    guard call.action != "list" else {
      let answer = try await client.call("GET", "/groups?\(query.page)")
      console.show(answer["groups"]?.array ?? [], columns: ["name", "notification_key", "sender_id"])
      return .done
    }
    let group = try call.operand(0, "The key or name")
    let tokens = JSONValue.array(call.operands.dropFirst().map { .string($0) })
    switch call.action {
    case "show":
      console.show(try await client.call("GET", "/groups/\(group.pathEncoded)?\(query.project)"))
    case "create":
      console.show(
        try await client.call(
          "POST", "/groups?\(query.project)", ["name": .string(group), "tokens": tokens]))
    default:
      console.show(
        try await client.call(
          "POST", "/groups/\(group.pathEncoded)/\(call.action)?\(query.project)", ["tokens": tokens]))
    }
    return .done
  }
}

/// The flags and the query of topic, user and group commands.
struct TargetQuery: Sendable {
  /// `project=…`, or nothing.
  let project: String
  /// That, and which part of a list is wanted.
  let page: String

  static let flags = [
    Flag("project", "ID", "the project (default: the first one)"),
    Flag("after", "NAME", "go on behind this one (list; for show the number of a subscriber)"),
    Flag("max", "N", "rows (default 100, at most 1000)"),
  ]

  init(_ arguments: Arguments) throws(UsageFault) {
    project = arguments.text("project").map { "project=\($0.pathEncoded)" } ?? ""
    var page = "max=\(try arguments.number("max", default: 100, in: 1...1000))"
    if !project.isEmpty { page += "&\(project)" }
    if let after = arguments.text("after") { page += "&after=\(after.pathEncoded)" }
    self.page = page
  }
}
