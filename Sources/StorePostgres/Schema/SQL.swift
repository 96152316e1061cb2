/// The prepared statements, by the name that a session gives them.
enum SQL: String, CaseIterable, Sendable {
  // Messages in motion
  case enqueue, settle, countEnds, append, settleUpstream, tookOverflow, insertJournal
  case backlog, backlogs, overflowed, overflows, lease, sendersWithUpstream, sweep, journal, pruneJournal
  case find, owners
  // Devices
  case deviceByID, insertDevice, seeDevice, insertRegistration, makeAlias, moveAliases
  case lookUp, registrationForUpdate, deviceRegistrations, unregister, takeOfApp
  case claim, epochs, release, registrationPage, dropAway, touch, idleDevices, idleTokens
  // Topics
  case activeForUpdate, active, topicID, insertTopic, join, leave, topicCount
  case moveSubscriptions, leaveTopics, topicsOf, topicPage, subscriberPage
  // Fan-outs
  case insertFanout, openFanout, moveFanout, openFanouts, fanoutByKey
  case receiversOfTopic, receiversOfSender, receiversByNumber, subscriptionPage
  case foldEnds, pruneFanouts
  // Groups and users
  case groupByKey, groupByName, groupPage, groupForUpdate, insertGroup, deleteGroup, groupMembers
  case insertMember, deleteMember, moveMemberships, leaveGroups
  case userRegistrations, badge, userPage, addBadge, setBadge
  // Accounts
  case projects, insertProject, keys, insertKey, revokeKey, setting, saveSetting, counts
  // Nodes
  case beat, livingNodes, notify, nodes, handOver
}

/// The columns of a message `m` of device `d`, in the order in which ``Rows/message(_:)`` reads them.
///
/// Whether it is live is asked as `weir_live` does, with the living nodes looked up once a statement: calling that for each
/// row took most of the time of reading it.
private let messageColumns = """
  m.device, m.number, m.expires, m.sender, m.app, m.key, m.collapse, m.high,
  m.live <> 0 AND m.live = d.epoch AND d.node IS NOT NULL
    AND m.writer = ANY (ARRAY(SELECT n.incarnation FROM node n WHERE n.until > now())), m.body, m.receipt,
  weir_job(m.number, m.share, m.job), r.token, f.sender, f.audience, t.tail
  """
private let messageTables = """
  message m JOIN device d ON d.number = m.device
  LEFT JOIN registration r ON r.number = m.share
  LEFT JOIN fanout f ON f.number = weir_job(m.number, m.share, m.job)
  LEFT JOIN fanout_tail t ON t.number = f.number
  """

/// The columns of a registration `r` of device `d`, in the order in which ``Rows/registration(_:)`` reads them.
private let registrationColumns = """
  r.token, r.device, r.sender, r.app, r.platform, r."user", r.state, r.alias_of, r.registered, d.seen, r.number
  """

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

extension SQL {
  /// What each lane prepares.
  static let ofWrites: [SQL] = [
    .enqueue, .settle, .countEnds, .append, .settleUpstream, .tookOverflow, .insertJournal, .pruneJournal,
    .owners,
  ]
  static let ofClaims: [SQL] = [
    .claim, .dropAway, .touch, .release, .lease, .handOver, .insertFanout, .addBadge, .setBadge,
  ]
  static let ofEdits: [SQL] = [
    .deviceByID, .registrationForUpdate, .seeDevice, .insertDevice, .insertRegistration, .makeAlias,
    .moveAliases,
    .moveSubscriptions, .moveMemberships, .unregister, .leaveTopics, .leaveGroups, .deleteGroup, .takeOfApp,
    .activeForUpdate, .active, .topicID, .insertTopic, .join, .leave, .topicCount, .groupByKey, .groupByName,
    .groupForUpdate, .groupMembers, .insertGroup, .insertMember, .deleteMember, .projects, .insertProject,
    .insertKey, .revokeKey, .saveSetting, .idleDevices, .idleTokens,
  ]
  static let ofReads: [SQL] = [
    .backlog, .backlogs, .overflowed, .overflows, .epochs, .lookUp,
    .deviceByID, .deviceRegistrations, .projects,
    .keys, .setting,
    .userRegistrations, .badge,
  ]
  static let ofScans: [SQL] = [
    .sendersWithUpstream, .sweep, .journal, .find, .registrationPage, .active, .topicsOf, .topicPage,
    .subscriberPage, .openFanouts, .fanoutByKey, .groupByKey, .groupByName, .groupPage, .groupMembers,
    .userPage,
    .counts, .nodes,
  ]
  static let ofFans: [SQL] = [
    .openFanout, .moveFanout, .topicID, .receiversOfTopic, .receiversOfSender, .receiversByNumber,
    .subscriptionPage, .enqueue, .foldEnds, .pruneFanouts, .owners,
  ]

  var text: String {
    switch self {
    case .enqueue:
      "SELECT * FROM weir_enqueue($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19)"
    case .settle:
      """
      WITH gone AS (
        DELETE FROM message m USING unnest($1::int8[], $2::int8[], $3::int8[]) AS s(device, number, state)
        WHERE m.device = s.device AND m.number = s.number
        RETURNING weir_job(m.number, m.share, m.job) AS job, s.state)
      INSERT INTO fanout_end SELECT g.job, g.state, count(*) FROM gone g
      WHERE g.job IS NOT NULL AND g.state IS NOT NULL GROUP BY 1, 2
      """
    case .countEnds:
      "INSERT INTO fanout_end SELECT * FROM unnest($1::int8[], $2::int8[], $3::int8[])"
    case .append:
      """
      INSERT INTO upstream(sender, number, expires, device, key, message_id, origin, body, lease_node, lease_by,
        lease_until)
      SELECT u.sender, u.number, u.expires, u.device, u.key, u.message_id, u.origin, u.body,
        CASE WHEN u.held THEN $10::int4 ELSE 0 END, CASE WHEN u.held THEN $11::int8 ELSE 0 END,
        CASE WHEN u.held THEN u.expires ELSE 0 END
      FROM unnest($1::int8[], $2::int8[], $3::int8[], $4::int8[], $5::uuid[], $6::bytea[], $7::bytea[],
        $8::bytea[], $9::bool[]) AS u(sender, number, expires, device, key, message_id, origin, body, held)
      ON CONFLICT DO NOTHING
      """
    case .settleUpstream:
      """
      DELETE FROM upstream u USING unnest($1::int8[], $2::int8[]) AS s(sender, number)
      WHERE u.sender = s.sender AND u.number = s.number
      """
    case .tookOverflow:
      // Locked in one order everywhere, so that two nodes do not wait for each other.
      """
      WITH told AS (
        SELECT t.device, sum(t.count)::int8 AS count FROM unnest($1::int8[], $2::int8[]) AS t(device, count)
        GROUP BY t.device),
      locked AS (
        SELECT d.number FROM device d JOIN told t ON t.device = d.number ORDER BY d.number FOR NO KEY UPDATE OF d)
      UPDATE device d SET overflowed = greatest(0, d.overflowed - t.count)
      FROM told t JOIN locked l ON l.number = t.device WHERE d.number = t.device
      """
    case .insertJournal: "INSERT INTO journal(at, entries) VALUES ($1, $2)"
    case .backlog:
      """
      SELECT \(messageColumns) FROM \(messageTables)
      WHERE m.device = $1 AND m.number > $2 AND m.expires > $3 ORDER BY m.number LIMIT $4
      """
    case .backlogs:
      // Each device's rows by the index, however many devices are asked for.
      """
      SELECT \(messageColumns) FROM unnest($1::int8[]) AS w(device)
      JOIN device d ON d.number = w.device
      CROSS JOIN LATERAL (
        SELECT * FROM message p WHERE p.device = w.device AND p.expires > $2 ORDER BY p.number LIMIT $3) m
      LEFT JOIN registration r ON r.number = m.share
      LEFT JOIN fanout f ON f.number = weir_job(m.number, m.share, m.job)
      LEFT JOIN fanout_tail t ON t.number = f.number
      ORDER BY m.device, m.number
      """
    case .overflows:
      "SELECT number, overflowed FROM device WHERE number = ANY ($1::int8[]) AND overflowed > 0"
    case .overflowed: "SELECT overflowed FROM device WHERE number = $1"
    case .lease:
      """
      WITH page AS (
        SELECT u.number FROM upstream u
        WHERE u.sender = $1 AND u.number > $2 AND u.expires > $3
          AND (u.lease_until <= $3 OR u.lease_node = $5
            OR NOT EXISTS (SELECT 1 FROM node n WHERE n.incarnation = u.lease_by AND n.until > now()))
        ORDER BY u.number LIMIT $4 FOR UPDATE SKIP LOCKED)
      UPDATE upstream u SET lease_node = $5, lease_until = $6, lease_by = $7
      FROM page p WHERE u.sender = $1 AND u.number = p.number
      RETURNING u.number, u.expires, u.key, u.device, u.message_id, u.origin, u.body
      """
    case .sendersWithUpstream:
      // Jumps from one sender to the next in the index instead of walking all of it.
      """
      WITH RECURSIVE found(sender) AS (
        SELECT min(sender) FROM upstream
        UNION ALL
        SELECT (SELECT min(u.sender) FROM upstream u WHERE u.sender > f.sender) FROM found f
        WHERE f.sender IS NOT NULL)
      SELECT sender FROM found WHERE sender IS NOT NULL
      """
    case .sweep: "SELECT * FROM weir_sweep($1, $2, $3, $4, $5)"
    case .journal: "SELECT id, entries FROM journal WHERE at >= $1 ORDER BY id DESC LIMIT $2"
    case .pruneJournal: "DELETE FROM journal WHERE at < $1"
    case .find:
      "SELECT \(messageColumns) FROM \(messageTables) WHERE m.key = $1 ORDER BY m.number, m.device"
    case .owners:
      "SELECT number, node FROM device WHERE number = ANY ($1::int8[]) AND node IS NOT NULL AND node <> $2"
    default: textOfDevices
    }
  }

  private var textOfDevices: String {
    switch self {
    case .deviceByID: "SELECT number, secret FROM device WHERE device_id = $1"
    case .insertDevice:
      """
      INSERT INTO device(number, device_id, secret, seen)
      VALUES (nextval('device_number') << (CASE WHEN $4::int8 IS NULL THEN 0 ELSE 10 END) | coalesce($4, 0),
        $1, $2, $3) RETURNING number
      """
    case .seeDevice: "UPDATE device SET seen = $2 WHERE number = $1"
    case .insertRegistration:
      """
      INSERT INTO registration(number, token, device, sender, app, platform, "user", registered)
      VALUES (nextval('registration_number') << (CASE WHEN $8::int8 IS NULL THEN 0 ELSE 10 END) | coalesce($8, 0),
        $1, $2, $3, $4, $5, $6, $7) RETURNING number
      """
    case .makeAlias:
      """
      UPDATE registration SET state = 1, alias_of = $2
      WHERE token = $1 AND sender = $3 AND app = $4 AND state <> 2 RETURNING number
      """
    case .moveAliases: "UPDATE registration SET alias_of = $2 WHERE alias_of = $1"
    case .lookUp:
      """
      SELECT \(registrationColumns) FROM unnest($1::text[]) WITH ORDINALITY AS u(token, place)
      LEFT JOIN registration r ON r.token = u.token LEFT JOIN device d ON d.number = r.device ORDER BY u.place
      """
    case .registrationForUpdate:
      """
      SELECT \(registrationColumns) FROM registration r JOIN device d ON d.number = r.device
      WHERE r.token = $1 FOR NO KEY UPDATE OF r
      """
    case .deviceRegistrations:
      """
      SELECT \(registrationColumns) FROM registration r JOIN device d ON d.number = r.device
      WHERE d.device_id = $1 AND r.state = 0 ORDER BY r.token
      """
    case .unregister: "UPDATE registration SET state = 2 WHERE token = $1"
    case .takeOfApp:
      """
      WITH gone AS (
        DELETE FROM message m WHERE m.device = $1 AND m.sender = $2 AND m.app = $3 AND NOT EXISTS (
          SELECT 1 FROM registration r
          WHERE r.device = $1 AND r.sender = $2 AND r.app = $3 AND r.state = 0)
        RETURNING m.number, m.sender, m.key, weir_job(m.number, m.share, m.job) AS job),
      counted AS (
        INSERT INTO fanout_end SELECT g.job, 9, count(*) FROM gone g WHERE g.job IS NOT NULL GROUP BY g.job)
      SELECT * FROM gone ORDER BY number
      """
    case .claim:
      """
      UPDATE device d SET node = $2, epoch = d.epoch + 1, seen = $3
      FROM (SELECT number, node FROM device WHERE number = $1 FOR NO KEY UPDATE) o
      WHERE d.number = o.number RETURNING d.epoch, o.node
      """
    case .dropAway:
      // Of a device that was last seen before $2; what has expired at $3 ends as that.
      """
      WITH away AS (SELECT number FROM device WHERE number = $1 AND seen < $2 FOR NO KEY UPDATE),
      gone AS (
        DELETE FROM message m USING away a WHERE m.device = a.number
        RETURNING m.number, m.sender, m.key, weir_job(m.number, m.share, m.job) AS job,
          CASE WHEN m.expires <= $3 THEN 6 ELSE 8 END AS state),
      counted AS (
        INSERT INTO fanout_end SELECT g.job, g.state, count(*) FROM gone g WHERE g.job IS NOT NULL GROUP BY 1, 2),
      told AS (
        UPDATE device d SET overflowed = d.overflowed + (SELECT count(*) FROM gone g WHERE g.state = 8)
        WHERE d.number = $1 AND EXISTS (SELECT 1 FROM gone g WHERE g.state = 8))
      SELECT number, sender, key, job, state::int4 FROM gone ORDER BY state, number
      """
    case .touch: "UPDATE device SET seen = $2 WHERE number = ANY ($1::int8[])"
    case .idleDevices:
      // The next slice of devices, and whether each is to go.
      """
      SELECT d.number, d.seen < $2 AND EXISTS (
        SELECT 1 FROM registration r WHERE r.device = d.number AND r.state = 0)
      FROM device d WHERE d.number > $1 ORDER BY d.number LIMIT $3
      """
    case .idleTokens:
      """
      SELECT r.token FROM device d JOIN registration r ON r.device = d.number
      WHERE d.number = $1 AND d.seen < $2 AND r.state = 0 ORDER BY r.token
      """
    case .epochs: "SELECT number, epoch FROM device WHERE number = ANY ($1::int8[])"
    case .release:
      "UPDATE device SET node = NULL, seen = $3 WHERE number = $1 AND epoch = $2 AND node IS NOT NULL"
    case .registrationPage:
      """
      SELECT \(registrationColumns) FROM registration r JOIN device d ON d.number = r.device
      WHERE r.token > $1 AND ($3::int8 IS NULL OR r.sender = $3) ORDER BY r.token LIMIT $2
      """
    default: textOfTopics
    }
  }

  private var textOfTopics: String {
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
