import Foundation
import JSONCore

/// What project, key and token commands share: an action and its operands.
struct AdminCall: Sendable {
  let endpoint: Endpoint
  let credentials: CredentialFolder
  let action: String
  let operands: [String]

  static let flags = [CommonFlags.admin, CommonFlags.credentials]

  init(_ arguments: Arguments, actions: [String]) throws(UsageFault) {
    endpoint = try Endpoint(
      arguments.text("admin", default: "localhost:8080"), defaultPort: 8080, flag: "admin")
    credentials = CredentialFolder(arguments)
    action = try arguments.positional(0, "The action (\(actions.joined(separator: ", ")))")
    guard actions.contains(action) else {
      throw UsageFault(message: "\"\(action)\" is no action: use \(actions.joined(separator: ", ")).")
    }
    operands = Array(arguments.positional.dropFirst())
  }

  func operand(_ index: Int, _ what: String) throws(UsageFault) -> String {
    guard operands.indices.contains(index) else { throw UsageFault(message: "\(what) is missing.") }
    return operands[index]
  }

  func client() throws -> AdminClient {
    try AdminClient(endpoint, key: try credentials.key("admin-key"))
  }
}

extension Console {
  /// Prints an object as JSON or as `name: value` lines.
  func show(_ value: JSONValue) {
    guard !isJSON, let members = value.members else { return result(value) }
    let width = members.map(\.name.count).max() ?? 0
    for member in members {
      let name = member.name.padding(toLength: width, withPad: " ", startingAt: 0)
      result("\(name)  \(member.value.string ?? member.value.text)")
    }
  }

  /// Prints objects as JSON lines or as a table of some of their members.
  func show(_ values: [JSONValue], columns: [String]) {
    if isJSON {
      for value in values { result(value) }
    } else {
      let rows = values.map { value in
        columns.map { name in value[name].map { $0.isNull ? "" : $0.string ?? $0.text } ?? "" }
      }
      result(Table.text([columns] + rows))
    }
  }
}

/// The command `weir project`.
struct ProjectCommand: Subcommand {
  static let name = "project"
  static let operands = "list | create ID"
  static let summary = "Lists the projects of a running server, or makes one with its keys."
  static let flags = AdminCall.flags + [Flag("sender-id", "N", "sender id of the new project")]
  static let examples = ["weir project list", "weir project create shop --sender-id 100000000002"]
  static let positionalMax = 2

  private let call: AdminCall
  private let senderID: String?

  init(_ arguments: Arguments) throws(UsageFault) {
    call = try AdminCall(arguments, actions: ["list", "create"])
    senderID = arguments.text("sender-id")
    if call.action == "create" {
      _ = try call.operand(0, "The project id")
      if senderID == nil { throw UsageFault(message: "--sender-id is missing.") }
    }
  }

  func run(_ console: Console) async throws -> ExitCode {
    let client = try call.client()
    if call.action == "list" {
      let answer = try await client.call("GET", "/projects")
      console.show(answer["projects"]?.array ?? [], columns: ["id", "sender_id"])
    } else {
      let answer = try await client.call(
        "POST", "/projects",
        ["id": .string(try call.operand(0, "The project id")), "sender_id": .string(senderID ?? "")])
      console.show(answer)
    }
    return .done
  }
}

/// The command `weir key`.
struct KeyCommand: Subcommand {
  static let name = "key"
  static let operands = "list | create PROJECT | revoke ID"
  static let summary = "Lists, makes and revokes server keys and API keys."
  static let flags =
    AdminCall.flags + [
      Flag("purpose", "server|api", "what the new key is for (default server)")
    ]
  static let examples = [
    "weir key list", "weir key create demo", "weir key create demo --purpose api", "weir key revoke 3f9a…",
  ]
  static let positionalMax = 2

  private let call: AdminCall
  private let purpose: String

  init(_ arguments: Arguments) throws(UsageFault) {
    call = try AdminCall(arguments, actions: ["list", "create", "revoke"])
    purpose = arguments.text("purpose", default: "server")
    if call.action != "list" {
      _ = try call.operand(0, call.action == "create" ? "The project id" : "The key's id")
    }
  }

  func run(_ console: Console) async throws -> ExitCode {
    let client = try call.client()
    switch call.action {
    case "list":
      let answer = try await client.call("GET", "/keys")
      console.show(
        answer["keys"]?.array ?? [], columns: ["id", "purpose", "sender_id", "hint", "revoked"])
    case "create":
      let project = try call.operand(0, "The project id")
      console.show(
        try await client.call("POST", "/keys", ["project": .string(project), "purpose": .string(purpose)]))
    default:
      let id = try call.operand(0, "The key's id")
      console.show(try await client.call("DELETE", "/keys/\(id.pathEncoded)"))
    }
    return .done
  }
}

/// The command `weir token`.
struct TokenCommand: Subcommand {
  static let name = "token"
  static let operands = "list | show TOKEN | unregister TOKEN | messages TOKEN"
  static let summary = "Lists registrations, shows one and its messages, or unregisters it."
  static let flags =
    AdminCall.flags + [
      Flag("project", "ID", "only registrations of this project (list)"),
      Flag("after", "TOKEN", "go on behind this token (list)"),
      Flag("max", "N", "rows (default 100, at most 1000)"),
    ]
  static let examples = [
    "weir token list --project demo", "weir token show TOKEN", "weir token unregister TOKEN",
    "weir token messages TOKEN --json",
  ]
  static let positionalMax = 2

  private let call: AdminCall
  private let query: String

  init(_ arguments: Arguments) throws(UsageFault) {
    call = try AdminCall(arguments, actions: ["list", "show", "unregister", "messages"])
    if call.action != "list" { _ = try call.operand(0, "The token") }
    var query = "max=\(try arguments.number("max", default: 100, in: 1...1000))"
    if let project = arguments.text("project") { query += "&project=\(project.pathEncoded)" }
    if let after = arguments.text("after") { query += "&after=\(after.pathEncoded)" }
    self.query = query
  }

  func run(_ console: Console) async throws -> ExitCode {
    let client = try call.client()
    guard call.action != "list" else {
      let answer = try await client.call("GET", "/tokens?\(query)")
      console.show(
        answer["tokens"]?.array ?? [], columns: ["token", "state", "app", "platform", "user", "sender_id"])
      return .done
    }
    let token = try call.operand(0, "The token").pathEncoded
    switch call.action {
    case "show": console.show(try await client.call("GET", "/tokens/\(token)"))
    case "unregister": console.show(try await client.call("DELETE", "/tokens/\(token)"))
    default: console.show(try await client.call("GET", "/messages?token=\(token)&\(query)"))
    }
    return .done
  }
}
