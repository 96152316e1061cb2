private let progressColumns = """
  f.number, f.key, f.sender, f.audience, f.begun, f.expires, f.place, f.done, f.matched,
  f.delivered + e.delivered, f.expired + e.expired, f.collapsed + e.collapsed, f.overflow + e.overflow,
  f.unregistered + e.unregistered, f.offline + e.offline
  """
/// Ends that are not in the counts of `f` yet.
private let newEnds = """
  LATERAL (SELECT \(sums("x.job = f.number", "fanout_end x"))) e
  """

private func sums(_ condition: String, _ table: String) -> String {
  let columns = [
    ("delivered", 5), ("expired", 6), ("collapsed", 7), ("overflow", 8), ("unregistered", 9), ("offline", 10),
  ].map { "coalesce(sum(x.count) FILTER (WHERE x.state = \($0.1)), 0)::int8 AS \($0.0)" }
  return "\(columns.joined(separator: ", ")) FROM \(table) WHERE \(condition)"
}

/// The registration of a token, or of the one it is an alias of, when that is active.
private let activeRegistration = """
  SELECT a.number, a.sender FROM registration a
  WHERE a.token = (
    SELECT CASE r.state WHEN 1 THEN r.alias_of ELSE r.token END FROM registration r WHERE r.token = $1)
  AND a.state = 0
  """

/// A registration as a fan-out meets it, and what is stored for its device up to a bound.
private func receivers(_ tables: String, _ condition: String) -> String {
  """
  SELECT r.number, r.device, r.token, r.app, r.state, d.node IS NOT NULL,
    CASE WHEN d.node IS NULL THEN 0 ELSE (
      SELECT count(*) FROM (
        SELECT 1 FROM message m WHERE m.device = r.device AND m.collapse IS NULL LIMIT $4) z) END,
    (SELECT min(f.number) FROM registration f WHERE f.device = r.device) = r.number
  FROM \(tables) JOIN device d ON d.number = r.device
  WHERE \(condition) ORDER BY r.number LIMIT $3
  """
}

// Statements on topics, fan-outs, groups, users and accounts.
extension SQL {
  var textOfTopics: String {
    switch self {
    case .activeForUpdate: activeRegistration + " FOR NO KEY UPDATE OF a"
    case .active: activeRegistration
    case .topicID: "SELECT id FROM topic WHERE sender = $1 AND name = $2"
    case .insertTopic: "INSERT INTO topic(sender, name) VALUES ($1, $2) RETURNING id"
    case .join:
      "INSERT INTO subscription(topic, registration, since) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
    case .leave: "DELETE FROM subscription WHERE topic = $1 AND registration = $2"
    case .topicCount:
      "SELECT count(*) FROM (SELECT 1 FROM subscription WHERE registration = $1 LIMIT $2) z"
    case .moveSubscriptions:
      """
      WITH gone AS (DELETE FROM subscription WHERE registration = $1 RETURNING topic, since)
      INSERT INTO subscription SELECT topic, $2, since FROM gone ON CONFLICT DO NOTHING
      """
    case .leaveTopics: "DELETE FROM subscription WHERE registration = $1"
    case .topicsOf:
      """
      SELECT t.name, s.since FROM subscription s JOIN topic t ON t.id = s.topic
      WHERE s.registration = $1 ORDER BY t.name
      """
    case .topicPage:
      """
      SELECT t.name, (SELECT count(*) FROM subscription s WHERE s.topic = t.id) FROM topic t
      WHERE t.sender = $1 AND t.name > $2 AND EXISTS (SELECT 1 FROM subscription s WHERE s.topic = t.id)
      ORDER BY t.name LIMIT $3
      """
    case .subscriberPage:
      """
      SELECT \(registrationColumns) FROM topic t
      JOIN subscription s ON s.topic = t.id JOIN registration r ON r.number = s.registration
      JOIN device d ON d.number = r.device
      WHERE t.sender = $1 AND t.name = $2 AND s.registration > $3 ORDER BY s.registration LIMIT $4
      """
    case .insertFanout:
      """
      WITH made AS (
        INSERT INTO fanout(number, key, sender, audience, app, collapse, begun, expires, stored, high)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING RETURNING number)
      INSERT INTO fanout_tail SELECT number, $11 FROM made
      """
    case .openFanout:
      """
      SELECT f.key, f.sender, f.audience, f.app, f.collapse, f.begun, f.expires, f.stored, f.high, f.place,
        f.done, t.tail
      FROM fanout f JOIN fanout_tail t ON t.number = f.number WHERE f.number = $1 FOR NO KEY UPDATE OF f
      """
    case .moveFanout:
      """
      UPDATE fanout SET place = greatest(place, $2), done = $3, matched = matched + $4, offline = offline + $5
      WHERE number = $1
      """
    case .openFanouts:
      """
      SELECT \(progressColumns) FROM fanout f, \(newEnds)
      WHERE NOT f.done OR f.begun >= $1 ORDER BY f.number
      """
    case .fanoutByKey:
      "SELECT \(progressColumns) FROM fanout f, \(newEnds) WHERE f.key = $1 ORDER BY f.number DESC LIMIT 1"
    case .receiversOfTopic:
      receivers(
        "subscription s JOIN registration r ON r.number = s.registration",
        "s.topic = $1 AND s.registration > $2")
    case .receiversOfSender: receivers("registration r", "r.sender = $1 AND r.number > $2")
    case .receiversByNumber: receivers("registration r", "r.number = ANY ($1::int8[]) AND r.number > $2")
    case .subscriptionPage:
      """
      SELECT registration FROM subscription WHERE topic = $1 AND registration > $2 ORDER BY registration LIMIT $3
      """
    case .foldEnds:
      """
      WITH gone AS (DELETE FROM fanout_end RETURNING job, state, count),
      e AS (SELECT x.job AS number, \(sums("true GROUP BY x.job", "gone x")))
      UPDATE fanout f SET delivered = f.delivered + e.delivered, expired = f.expired + e.expired,
        collapsed = f.collapsed + e.collapsed, overflow = f.overflow + e.overflow,
        unregistered = f.unregistered + e.unregistered, offline = f.offline + e.offline
      FROM e WHERE f.number = e.number
      """
    case .pruneFanouts:
      """
      WITH old AS (
        SELECT number FROM fanout WHERE done AND begun < $1 AND (NOT stored OR expires <= $2
          OR matched <= delivered + expired + collapsed + overflow + unregistered + offline)
        ORDER BY number LIMIT $3 FOR UPDATE SKIP LOCKED),
      tails AS (DELETE FROM fanout_tail t USING old o WHERE t.number = o.number)
      DELETE FROM fanout f USING old o WHERE f.number = o.number
      """
    default: textOfAudiences
    }
  }

  private var textOfAudiences: String {
    switch self {
    case .groupByKey: "SELECT id, key, sender, name, created FROM device_group WHERE key = $1"
    case .groupByName:
      "SELECT id, key, sender, name, created FROM device_group WHERE sender = $1 AND name = $2"
    case .groupPage:
      """
      SELECT id, key, sender, name, created FROM device_group WHERE sender = $1 AND name > $2
      ORDER BY name LIMIT $3
      """
    case .groupForUpdate: "SELECT id, sender, name FROM device_group WHERE key = $1 FOR UPDATE"
    case .insertGroup:
      "INSERT INTO device_group(key, sender, name, created) VALUES ($1, $2, $3, $4) RETURNING id"
    case .deleteGroup:
      """
      DELETE FROM device_group WHERE id = $1
      AND NOT EXISTS (SELECT 1 FROM group_member m WHERE m.id = device_group.id)
      """
    case .groupMembers:
      """
      SELECT \(registrationColumns) FROM group_member m
      JOIN registration r ON r.number = m.registration JOIN device d ON d.number = r.device
      WHERE m.id = $1 ORDER BY m.registration
      """
    case .insertMember: "INSERT INTO group_member(id, registration) VALUES ($1, $2) ON CONFLICT DO NOTHING"
    case .deleteMember: "DELETE FROM group_member WHERE id = $1 AND registration = $2"
    case .moveMemberships:
      """
      WITH gone AS (DELETE FROM group_member WHERE registration = $1 RETURNING id)
      INSERT INTO group_member SELECT id, $2 FROM gone ON CONFLICT DO NOTHING
      """
    case .leaveGroups: "DELETE FROM group_member WHERE registration = $1 RETURNING id"
    case .userRegistrations:
      """
      SELECT \(registrationColumns) FROM registration r JOIN device d ON d.number = r.device
      WHERE r.sender = $1 AND r."user" = $2 AND r.state = 0 ORDER BY r.number LIMIT $3
      """
    case .badge: "SELECT badge FROM badge WHERE sender = $1 AND \"user\" = $2"
    case .userPage:
      """
      SELECT r."user", count(*), coalesce(max(b.badge), 0) FROM registration r
      LEFT JOIN badge b ON b.sender = r.sender AND b."user" = r."user"
      WHERE r.sender = $1 AND r."user" IS NOT NULL AND r.state = 0 AND ($2::bytea IS NULL OR r."user" > $2)
      GROUP BY r."user" ORDER BY r."user" LIMIT $3
      """
    case .addBadge:
      """
      INSERT INTO badge AS b (sender, "user", badge) VALUES ($1, $2, greatest(0, $3::int8))
      ON CONFLICT (sender, "user") DO UPDATE SET badge = greatest(0, b.badge + $3::int8) RETURNING badge
      """
    case .setBadge:
      """
      INSERT INTO badge(sender, "user", badge) VALUES ($1, $2, greatest(0, $3::int8))
      ON CONFLICT (sender, "user") DO UPDATE SET badge = excluded.badge
      """
    default: textOfAccounts
    }
  }

  private var textOfAccounts: String {
    switch self {
    case .projects: "SELECT id, sender, created FROM project ORDER BY id"
    case .insertProject: "INSERT INTO project(id, sender, created) VALUES ($1, $2, $3)"
    case .keys: "SELECT hash, purpose, sender, created, revoked, hint FROM account_key ORDER BY id"
    case .insertKey:
      """
      INSERT INTO account_key(hash, purpose, sender, created, revoked, hint) VALUES ($1, $2, $3, $4, $5, $6)
      ON CONFLICT DO NOTHING
      """
    case .revokeKey: "UPDATE account_key SET revoked = true WHERE hash = $1 AND NOT revoked"
    case .setting: "SELECT value FROM setting WHERE name = $1"
    case .saveSetting:
      """
      INSERT INTO setting(name, value) VALUES ($1, $2)
      ON CONFLICT (name) DO UPDATE SET value = excluded.value
      """
    case .counts:
      """
      SELECT (SELECT count(*) FROM device), (SELECT count(*) FROM registration), (SELECT count(*) FROM message),
        (SELECT count(*) FROM upstream), (SELECT count(*) FROM project), (SELECT count(*) FROM account_key),
        (SELECT count(*) FROM topic t WHERE EXISTS (SELECT 1 FROM subscription s WHERE s.topic = t.id)),
        (SELECT count(*) FROM subscription), (SELECT count(*) FROM fanout), (SELECT count(*) FROM device_group),
        (SELECT count(*) FROM journal)
      """
    case .beat:
      "UPDATE node SET until = now() + $2::int8 * interval '1 millisecond' WHERE incarnation = $1"
    case .handOver: "UPDATE upstream SET lease_until = 0 WHERE sender = $1 AND lease_by = $2"
    case .livingNodes: "SELECT incarnation FROM node WHERE until > now()"
    case .notify: "SELECT pg_notify($1, $2)"
    case .nodes:
      """
      SELECT n.number, n.name, n.incarnation, (extract(epoch FROM n.started) * 1000)::int8, n.until > now(),
        (SELECT count(*) FROM device d WHERE d.node = n.number)
      FROM node n ORDER BY n.number
      """
    default: preconditionFailure("a statement without text: \(rawValue)")
    }
  }
}
