/// A value on its way from one store to another.
package enum MovedValue: Sendable, Hashable {
  case none
  case int(Int64)
  case bytes([UInt8])
}

/// A table that is moved, with the columns that both stores have under the same names.
///
/// Whose stream a device has and what was leased is not moved: no process holds either at that time.
package struct MovedTable: Sendable {
  package enum Kind: Sendable {
    case int, flag, text, bytes
    /// 16 bytes.
    case key
  }

  package var name: String
  package var columns: [(name: String, kind: Kind)]
  /// Makes a number for each new row that must not meet those that were moved.
  package var identity: String?

  package static let all: [MovedTable] = [
    .init(
      name: "device",
      columns: [
        ("number", .int), ("device_id", .text), ("secret", .bytes), ("epoch", .int), ("overflowed", .int),
        ("seen", .int),
      ], identity: "number"),
    .init(
      name: "registration",
      columns: [
        ("number", .int), ("token", .text), ("device", .int), ("sender", .int), ("app", .text),
        ("platform", .text), ("user", .bytes), ("state", .int), ("alias_of", .text), ("registered", .int),
      ], identity: "number"),
    .init(
      name: "message",
      columns: [
        ("device", .int), ("number", .int), ("expires", .int), ("sender", .int), ("app", .text),
        ("key", .key),
        ("collapse", .bytes), ("high", .flag), ("body", .bytes), ("receipt", .bytes), ("share", .int),
        ("job", .int),
      ]),
    .init(
      name: "upstream",
      columns: [
        ("sender", .int), ("number", .int), ("expires", .int), ("key", .key), ("device", .int),
        ("message_id", .bytes), ("origin", .bytes), ("body", .bytes),
      ]),
    .init(name: "journal", columns: [("at", .int), ("entries", .bytes)]),
    .init(name: "topic", columns: [("id", .int), ("sender", .int), ("name", .text)], identity: "id"),
    .init(name: "subscription", columns: [("topic", .int), ("registration", .int), ("since", .int)]),
    .init(
      name: "fanout",
      columns: [
        ("number", .int), ("key", .key), ("sender", .int), ("audience", .bytes), ("app", .text),
        ("collapse", .bytes), ("begun", .int), ("expires", .int), ("stored", .flag), ("high", .flag),
        ("place", .int), ("done", .flag), ("matched", .int), ("delivered", .int), ("expired", .int),
        ("collapsed", .int), ("overflow", .int), ("unregistered", .int), ("offline", .int),
      ]),
    .init(name: "fanout_tail", columns: [("number", .int), ("tail", .bytes)]),
    .init(
      name: "device_group",
      columns: [("id", .int), ("key", .text), ("sender", .int), ("name", .bytes), ("created", .int)],
      identity: "id"),
    .init(name: "group_member", columns: [("id", .int), ("registration", .int)]),
    .init(name: "badge", columns: [("sender", .int), ("user", .bytes), ("badge", .int)]),
    .init(name: "project", columns: [("id", .text), ("sender", .int), ("created", .int)]),
    .init(
      name: "account_key",
      columns: [
        ("hash", .bytes), ("purpose", .text), ("sender", .int), ("created", .int), ("revoked", .flag),
        ("hint", .bytes),
      ]),
    .init(name: "setting", columns: [("name", .text), ("value", .bytes)]),
  ]

  init(name: String, columns: [(name: String, kind: Kind)], identity: String? = nil) {
    self.name = name
    self.columns = columns
    self.identity = identity
  }

  /// The columns as SQL names them.
  package var columnList: String { columns.map { "\"\($0.name)\"" }.joined(separator: ", ") }
}

/// What one table held: how many rows, and a sum over them that does not depend on their order.
package struct MovedLedger: Sendable, Hashable {
  package var rows = 0
  package var sum: UInt64 = 0

  package init() {}

  package mutating func add(_ row: [MovedValue]) {
    // FNV-1a, 64 bits, over the kind, length and bytes of each value.
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    func mix(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    func mix(_ number: UInt64) {
      for shift in stride(from: 0, to: 64, by: 8) { mix(UInt8(truncatingIfNeeded: number >> UInt64(shift))) }
    }
    for value in row {
      switch value {
      case .none: mix(UInt8(0))
      case .int(let number):
        mix(UInt8(1))
        mix(UInt64(bitPattern: number))
      case .bytes(let bytes):
        mix(UInt8(2))
        mix(UInt64(bytes.count))
        for byte in bytes { mix(byte) }
      }
    }
    rows += 1
    sum = sum &+ hash
  }
}
