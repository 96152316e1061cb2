import JSONCore

/// The command `weir fault`.
struct FaultCommand: Subcommand {
  static let name = "fault"
  static let operands = "list | clear [ID] | nack | drop-ack | unavailable | cut | drain | half-open | delay"
  static let summary = "Makes a running server fail on purpose, for tests of senders."
  static let flags =
    AdminCall.flags + [
      Flag("code", "CODE", "code of the nack (default SERVICE_UNAVAILABLE)"),
      Flag("status", "N", "HTTP status of unavailable (default 503)"),
      Flag("project", "ID", "only messages of this project"),
      Flag("token", "TOKEN", "only messages to this token"),
      Flag("message", "N", "the first message that it befalls, counted from the arming (default 1)"),
      Flag("count", "N", "how many messages it befalls (default 1; 0: until it is cleared)"),
      Flag("delay-ms", "N", "the answer comes so much later"),
      Flag("retry-after", "TEXT", "the Retry-After header, in whatever form"),
    ]
  static let examples = [
    "weir fault nack --code DEVICE_MESSAGE_RATE_EXCEEDED --message 3",
    "weir fault unavailable --retry-after 5 --count 2", "weir fault cut --token TOKEN",
    "weir fault list", "weir fault clear",
  ]
  static let positionalMax = 2
  private static let kinds = ["nack", "drop-ack", "unavailable", "cut", "drain", "half-open", "delay"]

  private let call: AdminCall
  private let order: JSONValue

  init(_ arguments: Arguments) throws(UsageFault) {
    call = try AdminCall(arguments, actions: ["list", "clear"] + Self.kinds)
    var members: [JSONValue.Member] = [
      .init("kind", .string(call.action.replacing("-", with: "_")))
    ]
    for name in ["code", "project", "token"] {
      if let text = arguments.text(name) { members.append(.init(name, .string(text))) }
    }
    if let text = arguments.text("retry-after") { members.append(.init("retry_after", .string(text))) }
    for (flag, member, range) in [
      ("status", "status", 400...599), ("message", "message", 1...1_000_000_000),
      ("count", "count", 0...1_000_000_000), ("delay-ms", "delay_ms", 1...600_000),
    ] where arguments.text(flag) != nil {
      members.append(.init(member, .number(try arguments.number(flag, default: 0, in: range))))
    }
    if call.action == "delay", arguments.text("delay-ms") == nil {
      throw UsageFault(message: "--delay-ms is missing.")
    }
    guard call.operands.isEmpty || call.action == "clear" else {
      throw UsageFault(message: "Unexpected argument \"\(call.operands[0])\".")
    }
    order = .object(members)
  }

  func run(_ console: Console) async throws -> ExitCode {
    let client = try call.client()
    switch call.action {
    case "list":
      let answer = try await client.call("GET", "/faults")
      console.show(
        answer["faults"]?.array ?? [],
        columns: ["id", "kind", "code", "sender_id", "token", "message", "count"])
    case "clear":
      let id = call.operands.first.map { "/" + $0.pathEncoded } ?? ""
      console.show(try await client.call("DELETE", "/faults" + id))
    default: console.show(try await client.call("POST", "/faults", order))
    }
    return .done
  }
}

/// The command `weir stream`.
struct StreamCommand: Subcommand {
  static let name = "stream"
  static let operands = "list | drain [STREAM]"
  static let summary = "Lists the streams of a running server, or drains one, or those of a sender."
  static let flags =
    AdminCall.flags + [
      Flag("sender-id", "N", "only streams of this sender"),
      Flag("kind", "app_server|device", "only streams of this kind (list)"),
      Flag("within-seconds", "N", "how long a drain may take (drain)"),
    ]
  static let examples = [
    "weir stream list --kind app_server", "weir stream drain 0-17",
    "weir stream drain --sender-id 100000000001 --within-seconds 30",
  ]
  static let positionalMax = 2

  private let call: AdminCall
  private let query: String
  private let drain: JSONValue

  init(_ arguments: Arguments) throws(UsageFault) {
    call = try AdminCall(arguments, actions: ["list", "drain"])
    let sender = arguments.text("sender-id")
    var query = "max=10000"
    if let sender { query += "&sender_id=\(sender.pathEncoded)" }
    if let kind = arguments.text("kind") { query += "&kind=\(kind.pathEncoded)" }
    self.query = query
    var members: [JSONValue.Member] = []
    if let stream = call.operands.first { members.append(.init("stream", .string(stream))) }
    if let sender { members.append(.init("sender_id", .string(sender))) }
    if call.action == "drain", members.count != 1 {
      throw UsageFault(message: "Name one stream, or --sender-id.")
    }
    if arguments.text("within-seconds") != nil {
      members.append(
        .init("within_seconds", .number(try arguments.number("within-seconds", default: 0, in: 1...3600))))
    }
    drain = .object(members)
  }

  func run(_ console: Console) async throws -> ExitCode {
    let client = try call.client()
    if call.action == "list" {
      let answer = try await client.call("GET", "/streams?\(query)")
      console.show(
        answer["streams"]?.array ?? [],
        columns: [
          "stream", "kind", "sender_id", "device_id", "peer", "pending", "upstream_pending", "draining",
        ])
    } else {
      console.show(try await client.call("POST", "/drain", drain))
    }
    return .done
  }
}
