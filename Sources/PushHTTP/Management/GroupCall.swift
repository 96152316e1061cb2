import JSONCore
package import PushModel

/// `POST /fcm/notification`: makes a device group, or changes its members.
package struct GroupCall: Hashable, Sendable {
  package enum Operation: String, Sendable { case create, add, remove }

  package var operation: Operation
  package var name: String?
  package var key: String?
  package var tokens: [String]

  /// - Source: FCM, device groups: parameters of the management calls.
  package init(_ body: [UInt8], limits: Limits) throws(ManagementFault) {
    guard let value = try? JSONValue(parsing: body, depthMax: 8), value.members != nil else {
      throw ManagementFault("InvalidJson")
    }
    guard let text = value["operation"]?.string, let operation = Operation(rawValue: text) else {
      throw ManagementFault("operation must be create, add or remove")
    }
    self.operation = operation
    name = try Self.text(value, "notification_key_name", max: 1_024)
    key = try Self.text(value, "notification_key", max: 1_024)
    guard let list = value["registration_ids"]?.array, !list.isEmpty else {
      throw ManagementFault("no valid registration ids")
    }
    guard list.count <= 1_000 else { throw ManagementFault("too many registration ids") }
    tokens = list.compactMap(\.string)
    guard !tokens.isEmpty else { throw ManagementFault("no valid registration ids") }
    switch operation {
    case .create where name == nil: throw ManagementFault("notification_key_name is missing")
    case .add where key == nil, .remove where key == nil: throw ManagementFault("notification_key is missing")
    default: break
    }
  }

  private static func text(
    _ value: JSONValue, _ name: String, max: Int
  ) throws(ManagementFault) -> String? {
    guard let member = value[name], !member.isNull else { return nil }
    guard let text = member.string, text.utf8.count <= max else {
      throw ManagementFault("\(name) must be a string of at most \(max) bytes")
    }
    return text.isEmpty ? nil : text
  }
}
