import Seams
import Stores

/// This process among those that share the database, as its row in `node` says.
struct Membership: Sendable, Equatable {
  /// 1 to 1023; kept over restarts under one name.
  var number: Int
  /// New with every start; rises over all nodes.
  var incarnation: Int64
  /// How far the database's clock is ahead of this machine's: all nodes go by that one.
  var clockAhead: Duration
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
    _ address: PostgresAddress, name: String, lease: Duration, place: StorePlace
  ) throws(StoreFault) -> Membership {
    do throws(PostgresFailure) {
      let session = try prepare(address)
      try take(place, session)
      return try join(session, name, lease)
    } catch {
      if error.state == newerSchema, let found = Int(error.detail) {
        throw .schemaTooNew(found: found, known: Tables.steps.count)
      }
      throw error.fault
    }
  }

  /// Brings the tables to the newest version.
  @discardableResult
  static func prepare(_ address: PostgresAddress) throws(PostgresFailure) -> Session {
    let session = try Session(address, Session.Role(name: "open", statements: [], isPipelined: false))
    let found = try migrate(session)
    guard found <= Tables.steps.count else {
      // Typed throws allows one type here, so the newer schema leaves by a state of its own.
      throw PostgresFailure(kind: .server, state: newerSchema, detail: String(found))
    }
    return session
  }

  /// Not a state of PostgreSQL's.
  private static let newerSchema = "WEIR1"

  /// A database keeps the place among others that it was first opened with, or was given by a rebalance.
  private static func take(_ place: StorePlace, _ session: Session) throws(PostgresFailure) {
    var parameters = Parameters()
    parameters.blob(Optional(place.text))
    _ = try session.ask(
      """
      INSERT INTO setting(name, value)
      SELECT 'store-place', CASE WHEN EXISTS (SELECT 1 FROM device) THEN convert_to('1/1', 'UTF8') ELSE $1 END
      ON CONFLICT DO NOTHING
      """, parameters)
    // One for all nodes, whichever of them come first together.
    try session.execute(
      """
      INSERT INTO setting(name, value) VALUES ('message-hash-key', uuid_send(gen_random_uuid())) ON CONFLICT DO NOTHING
      """)
    // A statement of its own: within the first one, what another node has just inserted cannot be seen.
    let rows = try session.ask("SELECT value FROM setting WHERE name = 'store-place'")
    let found = rows.count > 0 ? String(decoding: rows.blob(0, 0), as: UTF8.self) : ""
    guard found == place.text else {
      throw PostgresFailure(
        kind: .server, state: "22023",
        detail: "it is database \(found), and is named as \(place.text): see weir rebalance")
    }
  }

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
    let clockAhead = try clockAhead(session, name, lease)
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
      number: Int(rows.int(0, 0)), incarnation: rows.int(0, 1), clockAhead: clockAhead,
      channel: rows.text(0, 2))
  }

  /// How far the database's clock is ahead of this machine's, to about a round trip.
  ///
  /// An earlier process under the same name has a lease that ends within one lease from now. Should it end later, the
  /// database's clock was moved back, as by a change of the primary to a machine that is behind; then it counts as
  /// standing at the lease's end, so that numbers of messages do not come again.
  private static func clockAhead(
    _ session: Session, _ name: String, _ lease: Duration
  ) throws(PostgresFailure) -> Duration {
    var parameters = Parameters()
    parameters.text(name)
    parameters.int(Int64(lease.milliseconds))
    let before = SystemTime().wall
    let rows = try session.ask(
      """
      SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8,
        (SELECT (extract(epoch FROM until) * 1000)::int8 FROM node
          WHERE name = $1::text AND until > clock_timestamp() + $2::int8 * interval '1 millisecond')
      """, parameters)
    let after = SystemTime().wall
    let there = rows.optionalInt(0, 1) ?? rows.int(0, 0)
    return .milliseconds(there - before.ms - (after.ms - before.ms) / 2)
  }
}

extension Duration {
  /// Whole milliseconds, for numbers that fit.
  var milliseconds: Int { Int(components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000) }
}
