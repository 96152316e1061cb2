/// The prepared statements, by the name that a session gives them.
enum SQL: String, CaseIterable, Sendable {
  // Messages in motion
  case enqueue, settle, countEnds, append, settleUpstream, overflowTold, insertJournal
  case backlog, backlogs, overflowed, overflows, lease, sendersWithUpstream, sweep, journal, pruneJournal
  case find, owners
  // Devices
  case deviceByID, insertDevice, seeDevice, insertRegistration, makeAlias, moveAliases
  case lookUp, registrationForUpdate, deviceRegistrations, unregister, takeOfApp
  case claim, epochs, release, dropAway, touch, idleDevices, idleTokens
  case registrationPage, senderRegistrationPage
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
let registrationColumns = """
  r.token, r.device, r.sender, r.app, r.platform, r."user", r.state, r.alias_of, r.registered, d.seen, r.number
  """

extension SQL {
  /// What each lane prepares.
  static let ofWrites: [SQL] = [
    .enqueue, .settle, .countEnds, .append, .settleUpstream, .overflowTold, .insertJournal, .pruneJournal,
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
    .sendersWithUpstream, .sweep, .journal, .find, .registrationPage, .senderRegistrationPage, .active,
    .topicsOf, .topicPage, .subscriberPage, .openFanouts, .fanoutByKey, .groupByKey, .groupByName,
    .groupPage, .groupMembers, .userPage, .counts, .nodes,
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
    case .overflowTold:
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
      WHERE r.token > $1 ORDER BY r.token LIMIT $2
      """
    case .senderRegistrationPage:
      """
      SELECT \(registrationColumns) FROM registration r JOIN device d ON d.number = r.device
      WHERE r.token > $1 AND r.sender = $3 ORDER BY r.token LIMIT $2
      """
    default: textOfTopics
    }
  }
}
