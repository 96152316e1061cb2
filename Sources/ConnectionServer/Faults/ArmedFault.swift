import JSONCore
import PushModel

/// A fault that a test asked for, as it is applied to one message.
struct ArmedFault: Sendable, Equatable {
  enum Kind: Sendable, Equatable {
    /// The message is refused with this code and not taken.
    case nack(NackCode)
    /// The message is taken and its answer never sent: over HTTP the connection is closed without one.
    case dropAck
    /// The message is taken and stored; then the answer says that the service is not available, with this status over
    /// HTTP and as `SERVICE_UNAVAILABLE` over a stream.
    case unavailable(status: Int)
    /// The message is taken; its connection is cut before the answer.
    case cut
    /// The message is taken; its connection is drained: announced, answered, closed.
    case drain
    /// The connection stays open and says and hears nothing any more.
    case halfOpen
    /// The message is taken; its answer comes later by ``ArmedFault/delayMs``.
    case delay

    var name: String {
      switch self {
      case .nack: "nack"
      case .dropAck: "drop_ack"
      case .unavailable: "unavailable"
      case .cut: "cut"
      case .drain: "drain"
      case .halfOpen: "half_open"
      case .delay: "delay"
      }
    }
  }

  var kind: Kind
  /// The answer, whatever it is, comes so much later.
  var delayMs = 0
  /// The text of a `Retry-After` header, well formed or not; over a stream it stands in the description.
  var retryAfter: String?
}

/// What `POST /admin/v1/faults` asks for: a fault, and which messages it befalls.
struct FaultOrder: Sendable, Equatable {
  var fault: ArmedFault
  /// Only messages of this sender.
  var sender: SenderID?
  /// Only messages to this token.
  var token: String?
  /// Matching messages that go well first.
  var skip = 0
  /// Matching messages that it befalls after those; nil for all, until it is disarmed.
  var left: Int? = 1

  /// Reads an order.
  /// - Parameter sender: Finds the sender of a project's id.
  /// - Throws: ``FaultOrder/Refused`` with a sentence for the caller.
  init(_ body: JSONValue, sender find: (String) -> SenderID?) throws(Refused) {
    guard let members = body.members else { throw Refused("The body must be a JSON object.") }
    let known = [
      "kind", "code", "status", "project", "token", "message", "count", "delay_ms", "retry_after",
    ]
    for member in members where !known.contains(member.name) {
      throw Refused("There is no \"\(member.name.prefix(64))\": use \(known.joined(separator: ", ")).")
    }
    fault = ArmedFault(kind: try Self.kind(body))
    fault.delayMs = try Self.number(body, "delay_ms", 0...600_000) ?? 0
    if fault.kind == .delay, fault.delayMs == 0 { throw Refused("A delay needs \"delay_ms\".") }
    if let value = body["retry_after"] {
      guard let text = value.string ?? value.int.map({ String($0) }), text.utf8.count <= 256,
        text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) })
      else { throw Refused("\"retry_after\" must be at most 256 printable ASCII characters.") }
      fault.retryAfter = text
    }
    if let id = body["project"]?.string {
      guard let found = find(id) else { throw Refused("There is no project \"\(id.prefix(64))\".") }
      sender = found
    }
    token = body["token"]?.string
    skip = (try Self.number(body, "message", 1...1_000_000_000) ?? 1) - 1
    // 0: until it is disarmed.
    let count = try Self.number(body, "count", 0...1_000_000_000) ?? 1
    left = count == 0 ? nil : count
  }

  struct Refused: Error {
    let reason: String
    init(_ reason: String) { self.reason = reason }
  }

  private static func number(
    _ body: JSONValue, _ name: String, _ range: ClosedRange<Int>
  ) throws(Refused) -> Int? {
    guard let value = body[name] else { return nil }
    guard let number = value.int.flatMap({ Int(exactly: $0) }), range.contains(number) else {
      throw Refused("\"\(name)\" must be a number from \(range.lowerBound) to \(range.upperBound).")
    }
    return number
  }

  private static func kind(_ body: JSONValue) throws(Refused) -> ArmedFault.Kind {
    switch body["kind"]?.string {
    case "nack":
      let text = body["code"]?.string ?? NackCode.serviceUnavailable.rawValue
      guard let code = NackCode(rawValue: text), code.isSent else {
        let all = NackCode.allCases.filter(\.isSent).map(\.rawValue).joined(separator: ", ")
        throw Refused("\"code\" must be one of \(all).")
      }
      return .nack(code)
    case "drop_ack": return .dropAck
    case "unavailable": return .unavailable(status: try number(body, "status", 400...599) ?? 503)
    case "cut": return .cut
    case "drain": return .drain
    case "half_open": return .halfOpen
    case "delay": return .delay
    default:
      throw Refused("\"kind\" must be nack, drop_ack, unavailable, cut, drain, half_open or delay.")
    }
  }

  func matches(_ sender: SenderID, _ token: String?) -> Bool {
    if let wanted = self.sender, wanted != sender { return false }
    if let wanted = self.token, wanted != token { return false }
    return true
  }

  var json: JSONValue {
    var members: [JSONValue.Member] = [.init("kind", .string(fault.kind.name))]
    if case .nack(let code) = fault.kind { members.append(.init("code", .string(code.rawValue))) }
    if case .unavailable(let status) = fault.kind { members.append(.init("status", .number(status))) }
    members.append(.init("sender_id", sender.map { .string($0.description) } ?? .null))
    members.append(.init("token", token.map { .string($0) } ?? .null))
    members.append(.init("message", .number(skip + 1)))
    members.append(.init("count", .number(left ?? 0)))
    members.append(.init("delay_ms", .number(fault.delayMs)))
    members.append(.init("retry_after", fault.retryAfter.map { .string($0) } ?? .null))
    return .object(members)
  }
}
