import Seams
import Stores

/// This process among those that share the database, as its row in `node` says.
struct Membership: Sendable, Equatable {
  /// 1 to 1023; kept over restarts under one name.
  var number: Int
  /// New with every start; rises over all nodes.
  var incarnation: Int64
  /// What the names of this store's notification channels begin with.
  var channel: String

  /// The channel of one node, or of all.
  func channel(of node: Int?) -> String { node.map { "\(channel)_\($0)" } ?? channel }
}

/// The first things done in a database: bringing the tables to the newest version, and becoming a node.
enum Opening {
  /// - Parameters:
  ///   - name: Of the node; an earlier process under it counts as dead from now on.
  ///   - lease: How long the node counts as alive without another word.
  static func open(
    _ address: PostgresAddress, name: String, lease: Duration
  ) throws(StoreFault) -> Membership {
    do throws(PostgresFailure) {
      let session = try Session(address, Session.Role(name: "open", statements: [], isPipelined: false))
      let found = try migrate(session)
      guard found <= Tables.steps.count else {
        // Typed throws allows one type here, so the newer schema leaves by a state of its own.
        throw PostgresFailure(kind: .server, state: newerSchema, detail: String(found))
      }
      return try join(session, name, lease)
    } catch {
      if error.state == newerSchema, let found = Int(error.detail) {
        throw .schemaTooNew(found: found, known: Tables.steps.count)
      }
      throw error.fault
    }
  }

  /// Not a state of PostgreSQL's.
  private static let newerSchema = "WEIR1"

  /// - Returns: The version that was found when it is newer than what is known, else the newest.
  private static func migrate(_ session: Session) throws(PostgresFailure) -> Int {
    let encoding = try session.ask("SELECT current_setting('server_encoding')").text(0, 0)
    guard encoding == "UTF8" else {
      throw PostgresFailure(
        kind: .server, state: "22021", detail: "the database's encoding is \(encoding), not UTF8")
    }
    guard !(try session.ask("SELECT current_schema()").isNull(0, 0)) else {
      throw PostgresFailure(
        kind: .server, state: "3F000", detail: "the schema that search_path names does not exist")
    }
    try session.execute("BEGIN")
    // One at a time; the others find all done.
    try session.execute("SELECT pg_advisory_xact_lock(hashtext('weir ' || current_schema()))")
    try session.execute("CREATE TABLE IF NOT EXISTS weir_schema(version int4 NOT NULL)")
    let rows = try session.ask("SELECT version FROM weir_schema")
    let found = rows.count > 0 ? Int(rows.int(0, 0)) : 0
    if rows.count == 0 { try session.execute("INSERT INTO weir_schema VALUES (0)") }
    for step in Tables.steps.indices.dropFirst(found) {
      try session.execute(Tables.steps[step])
      try session.execute("UPDATE weir_schema SET version = \(step + 1)")
    }
    try session.execute("COMMIT")
    return max(found, Tables.steps.count)
  }

  private static func join(
    _ session: Session, _ name: String, _ lease: Duration
  ) throws(PostgresFailure) -> Membership {
    try session.execute("BEGIN")
    try session.execute("LOCK TABLE node IN EXCLUSIVE MODE")
    var parameters = Parameters()
    parameters.text(name)
    parameters.int(Int64(lease.milliseconds))
    let rows = try session.ask(
      """
      INSERT INTO node(number, name, incarnation, until, started, detail)
      SELECT coalesce(
          (SELECT number FROM node WHERE name = $1::text),
          (SELECT min(g) FROM generate_series(1, 1023) g WHERE NOT EXISTS (
            SELECT 1 FROM node n WHERE n.number = g)),
          (SELECT number FROM node WHERE until < now() - interval '1 hour' ORDER BY until LIMIT 1)),
        $1::text, nextval('incarnation'), now() + $2::int8 * interval '1 millisecond', now(), '{}'
      ON CONFLICT (number) DO UPDATE SET name = excluded.name, incarnation = excluded.incarnation,
        until = excluded.until, started = excluded.started, detail = excluded.detail
      RETURNING number, incarnation, 'weir_' || md5(current_schema())
      """, parameters)
    try session.execute("COMMIT")
    return Membership(
      number: Int(rows.int(0, 0)), incarnation: rows.int(0, 1), channel: rows.text(0, 2))
  }
}

extension Duration {
  /// Whole milliseconds, for numbers that fit.
  var milliseconds: Int { Int(components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000) }
}
