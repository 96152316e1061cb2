import PushModel
package import Stores

/// Moves devices and what is theirs between databases, so that each is where a number of databases has it.
///
/// No node may use any of them meanwhile. Rows are written to their new database and committed there before they are
/// removed from the old one: a rebalance that was interrupted is run again, and finds what is there already.
package final class PostgresRebalance {
  private let old: [PostgresAddress]
  private let new: [PostgresAddress]
  private var sessions: [PostgresAddress: Session] = [:]
  private static let rowsAtOnce = 2_000

  /// - Parameters:
  ///   - old: In the order of `weir serve --store` so far.
  ///   - new: In the order in which they will be named; the first one is the same.
  /// - Throws: ``StoreFault/refused(detail:)`` when the first one is another, a node lives, or a fan-out is under way.
  package init(from old: [PostgresAddress], to new: [PostgresAddress]) throws(StoreFault) {
    guard let first = old.first, first == new.first else {
      throw .refused(detail: "the first database holds the accounts and stays the first")
    }
    (self.old, self.new) = (old, new)
    do throws(PostgresFailure) {
      for address in Set(old + new) {
        try Opening.prepare(address)
        let session = try Session(address, Session.Role(name: "rebalance", isPipelined: false))
        sessions[address] = session
        let rows = try session.ask(
          """
          SELECT EXISTS (SELECT 1 FROM node WHERE until > now()), EXISTS (SELECT 1 FROM fanout WHERE NOT done)
          """)
        if rows.bool(0, 0) { throw Self.refusal("a node uses \(address): stop all nodes first") }
        if rows.bool(0, 1) {
          throw Self.refusal(
            "a message to a topic is under way in \(address): start the nodes and let it end")
        }
      }
    } catch { throw error.fault }
  }

  private static func refusal(_ detail: String) -> PostgresFailure {
    PostgresFailure(kind: .server, state: "22023", detail: detail)
  }

  /// - Parameter told: Source, target and how many devices went.
  /// - Returns: How many devices were moved.
  package func run(_ told: (String, String, Int) -> Void) throws(StoreFault) -> Int {
    var moved = 0
    do throws(PostgresFailure) {
      for source in old {
        for (place, target) in new.enumerated() where target != source {
          let slots = (0..<StoreSlots.count).filter { StoreSlots.store(of: $0, among: new.count) == place }
          let count = try move(slots, from: source, to: target)
          moved += count
          if count > 0 { told(source.description, target.description, count) }
        }
      }
      for (place, address) in new.enumerated() {
        try mark(address, StorePlace(index: place, count: new.count).text)
      }
      for address in old where !new.contains(address) { try mark(address, "left") }
    } catch { throw error.fault }
    return moved
  }

  private func session(_ address: PostgresAddress) throws(PostgresFailure) -> Session {
    guard let session = sessions[address] else { throw .connection("\(address) is not open") }
    return session
  }

  private func mark(_ address: PostgresAddress, _ place: String) throws(PostgresFailure) {
    var parameters = Parameters()
    parameters.blob(Optional(place))
    _ = try session(address).ask(
      """
      INSERT INTO setting(name, value) VALUES ('store-place', $1)
      ON CONFLICT (name) DO UPDATE SET value = excluded.value
      """, parameters)
  }

  // MARK: One way

  /// What is moved by the slot in a number, in this order: table, columns with their types, which column holds the slot.
  private static let bySlot: [(table: String, columns: [(String, String)], slot: String)] = [
    (
      "device",
      [
        ("number", "int8"), ("epoch", "int8"), ("overflowed", "int8"), ("seen", "int8"),
        ("device_id", "text"),
        ("secret", "bytea"),
      ], "number"
    ),
    (
      "registration",
      [
        ("number", "int8"), ("device", "int8"), ("sender", "int8"), ("registered", "int8"), ("state", "int8"),
        ("token", "text"), ("app", "text"), ("platform", "text"), ("alias_of", "text"), ("user", "bytea"),
      ], "number"
    ),
    (
      "message",
      [
        ("device", "int8"), ("number", "int8"), ("expires", "int8"), ("sender", "int8"), ("live", "int8"),
        ("writer", "int8"), ("share", "int8"), ("job", "int8"), ("key", "uuid"), ("high", "bool"),
        ("app", "text"), ("collapse", "bytea"), ("receipt", "bytea"), ("body", "bytea"),
      ], "device"
    ),
  ]

  private func move(
    _ slots: [Int], from source: PostgresAddress, to target: PostgresAddress
  ) throws(PostgresFailure) -> Int {
    let (from, to) = (try session(source), try session(target))
    let list = slots.map(String.init).joined(separator: ",")
    func isMoved(_ column: String) -> String { "(\(column) & 1023) = ANY ('{\(list)}'::int8[])" }
    let count = Int(try from.ask("SELECT count(*) FROM device WHERE \(isMoved("number"))").int(0, 0))
    try to.execute("BEGIN")
    for part in Self.bySlot {
      try copy(part.table, part.columns, where: isMoved(part.slot), from, to)
    }
    try copyFanouts(where: isMoved("m.device"), from, to)
    try copyNamed(where: isMoved("x.registration"), from, to)
    try copyBadges(Set(slots), from, to)
    try copyUpstream(Set(slots), from, to)
    for sequence in ["device_number", "registration_number"] {
      let last = try from.ask("SELECT last_value FROM \(sequence)").int(0, 0)
      try to.execute(
        "SELECT setval('\(sequence)', greatest(\(last), (SELECT last_value FROM \(sequence))), true)")
    }
    try to.execute("COMMIT")

    try from.execute("BEGIN")
    for part in Self.bySlot.reversed() {
      try from.execute("DELETE FROM \(part.table) WHERE \(isMoved(part.slot))")
    }
    try from.execute("DELETE FROM subscription WHERE \(isMoved("registration"))")
    try from.execute("DELETE FROM group_member WHERE \(isMoved("registration"))")
    try from.execute(
      "DELETE FROM device_group g WHERE NOT EXISTS (SELECT 1 FROM group_member m WHERE m.id = g.id)")
    try from.execute("COMMIT")
    return count
  }

  /// What the messages of a fan-out share; it counts there what is moved.
  private func copyFanouts(
    where condition: String, _ from: Session, _ to: Session
  ) throws(PostgresFailure) {
    let jobs = """
      (SELECT weir_job(m.number, m.share, m.job) AS number, count(*) AS rows FROM message m
        WHERE m.share IS NOT NULL AND \(condition) GROUP BY 1) c
      """
    try stream(
      "SELECT t.number, t.tail FROM fanout_tail t JOIN \(jobs) ON c.number = t.number", ["int8", "bytea"],
      from, to,
      "INSERT INTO fanout_tail(number, tail) SELECT u.* FROM unnest(@) AS u ON CONFLICT DO NOTHING")
    let columns = [
      ("number", "int8"), ("sender", "int8"), ("begun", "int8"), ("expires", "int8"), ("key", "uuid"),
      ("stored", "bool"), ("high", "bool"), ("done", "bool"), ("audience", "bytea"), ("app", "text"),
      ("collapse", "bytea"),
    ]
    try stream(
      """
      SELECT \(columns.map { "f.\($0.0)" }.joined(separator: ", ")), c.rows FROM fanout f JOIN \(jobs) ON c.number = f.number
      """, columns.map(\.1) + ["int8"], from, to,
      """
      INSERT INTO fanout(\(columns.map(\.0).joined(separator: ", ")), matched) SELECT u.* FROM unnest(@) AS u
      ON CONFLICT (number) DO UPDATE SET matched = greatest(fanout.matched, excluded.matched)
      """)
  }

  private func copy(
    _ table: String, _ columns: [(String, String)], where condition: String, _ from: Session, _ to: Session
  ) throws(PostgresFailure) {
    let names = columns.map { "\"\($0.0)\"" }.joined(separator: ", ")
    try stream(
      "SELECT \(names) FROM \(table) WHERE \(condition)", columns.map(\.1), from, to,
      "INSERT INTO \(table)(\(names)) SELECT u.* FROM unnest(@) AS u ON CONFLICT DO NOTHING")
  }

  /// Subscriptions and memberships: their topics and groups have numbers of their own in every database.
  private func copyNamed(
    where condition: String, _ from: Session, _ to: Session
  ) throws(PostgresFailure) {
    try stream(
      """
      SELECT t.sender, t.name, x.registration, x.since FROM subscription x JOIN topic t ON t.id = x.topic
      WHERE \(condition)
      """, ["int8", "text", "int8", "int8"], from, to,
      """
      WITH u AS (SELECT * FROM unnest(@) AS u(sender, name, registration, since)),
      made AS (
        INSERT INTO topic(sender, name) SELECT DISTINCT sender, name FROM u
        ON CONFLICT (sender, name) DO UPDATE SET name = excluded.name RETURNING id, sender, name)
      INSERT INTO subscription(topic, registration, since)
      SELECT m.id, u.registration, u.since FROM u JOIN made m ON m.sender = u.sender AND m.name = u.name
      ON CONFLICT DO NOTHING
      """)
    try stream(
      """
      SELECT g.sender, g.created, g.key, g.name, x.registration FROM group_member x
      JOIN device_group g ON g.id = x.id WHERE \(condition)
      """, ["int8", "int8", "text", "bytea", "int8"], from, to,
      """
      WITH u AS (SELECT * FROM unnest(@) AS u(sender, created, key, name, registration)),
      made AS (
        INSERT INTO device_group(sender, created, key, name) SELECT DISTINCT sender, created, key, name FROM u
        ON CONFLICT (key) DO UPDATE SET key = excluded.key RETURNING id, key)
      INSERT INTO group_member(id, registration)
      SELECT m.id, u.registration FROM u JOIN made m ON m.key = u.key ON CONFLICT DO NOTHING
      """)
  }

  private func copyBadges(_ slots: Set<Int>, _ from: Session, _ to: Session) throws(PostgresFailure) {
    let rows = try from.ask("SELECT sender, badge, \"user\" FROM badge")
    for row in 0..<rows.count {
      let user = rows.blob(row, 2)
      guard slots.contains(StoreSlots.slot(of: String(decoding: user, as: UTF8.self))) else { continue }
      var parameters = Parameters()
      parameters.int(rows.int(row, 0))
      parameters.int(rows.int(row, 1))
      parameters.blob(user)
      _ = try to.ask(
        "INSERT INTO badge(sender, badge, \"user\") VALUES ($1, $2, $3) ON CONFLICT DO NOTHING", parameters)
    }
  }

  private func copyUpstream(_ slots: Set<Int>, _ from: Session, _ to: Session) throws(PostgresFailure) {
    let senders = try from.ask("SELECT DISTINCT sender FROM upstream")
    for row in 0..<senders.count {
      let sender = senders.int(row, 0)
      guard slots.contains(StoreSlots.slot(of: SenderID(sender))) else { continue }
      try copy(
        "upstream",
        [
          ("sender", "int8"), ("number", "int8"), ("expires", "int8"), ("device", "int8"), ("key", "uuid"),
          ("message_id", "bytea"), ("origin", "bytea"), ("body", "bytea"),
        ], where: "sender = \(sender)", from, to)
    }
  }

  /// Reads rows and hands them on, some at a time; `@` in the target stands for the arrays.
  private func stream(
    _ query: String, _ types: [String], _ from: Session, _ to: Session, _ target: String
  ) throws(PostgresFailure) {
    try from.execute("BEGIN")
    _ = try from.ask("DECLARE moved BINARY NO SCROLL CURSOR FOR \(query)")
    let arrays = types.indices.map { "$\($0 + 1)::\(types[$0])[]" }.joined(separator: ", ")
    let insert = target.split(separator: "@", omittingEmptySubsequences: false).joined(separator: arrays)
    while true {
      let rows = try from.ask("FETCH \(Self.rowsAtOnce) FROM moved")
      if rows.count == 0 { break }
      let all = Array(0..<rows.count)
      var parameters = Parameters()
      for (index, type) in types.enumerated() {
        let column = Int32(index)
        switch type {
        case "int8": parameters.ints(all) { rows.optionalInt($0, column) }
        case "bool": parameters.bools(all) { rows.bool($0, column) }
        case "text": parameters.optionalTexts(all) { rows.isNull($0, column) ? nil : rows.blob($0, column) }
        case "uuid": parameters.keyBytes(all) { rows.blob($0, column) }
        default: parameters.optionalBlobs(all) { rows.isNull($0, column) ? nil : rows.blob($0, column) }
        }
      }
      _ = try to.ask(insert, parameters)
    }
    try from.execute("COMMIT")
  }
}
