/// The writer's prepared statements for topics, fan-outs, groups and badges.
struct TargetStatements {
  let active, registrationNumber: Statement
  let topic, insertTopic, countTopic, deleteTopic: Statement
  let insertSubscription, deleteSubscription, countTopics, subscriptionsOf: Statement

  let insertFanout, insertTail, fanout, moveFanout, countEnds, pruneable, deleteFanout, deleteTail: Statement
  let subscriberPage, subscriptionPage, senderPage, receiver: Statement
  let insertShare: Statement

  let insertGroup, groupByKey, groupByName, groupsOf, deleteGroup: Statement
  let insertMember, deleteMember: Statement
  let addBadge, setBadge: Statement

  init(_ connection: Connection) throws(SQLiteFailure) {
    // The registration of a token, or of the one it is an alias of, when that is active.
    active = try connection.prepare(
      """
      SELECT a.number, a.sender, a.topics FROM registration r
      JOIN registration a ON a.token = CASE r.state WHEN 1 THEN r.alias_of ELSE r.token END
      WHERE r.token = ? AND a.state = 0
      """)
    registrationNumber = try connection.prepare("SELECT number, sender FROM registration WHERE token = ?")

    topic = try connection.prepare("SELECT id FROM topic WHERE sender = ? AND name = ?")
    insertTopic = try connection.prepare("INSERT INTO topic(sender, name, subscribers) VALUES (?,?,0)")
    countTopic = try connection.prepare("UPDATE topic SET subscribers = subscribers + ?2 WHERE id = ?1")
    deleteTopic = try connection.prepare("DELETE FROM topic WHERE id = ? AND subscribers = 0")
    insertSubscription = try connection.prepare(
      "INSERT OR IGNORE INTO subscription(topic, registration, since) VALUES (?,?,?)")
    deleteSubscription = try connection.prepare(
      "DELETE FROM subscription WHERE topic = ? AND registration = ?")
    countTopics = try connection.prepare("UPDATE registration SET topics = topics + ?2 WHERE number = ?1")
    subscriptionsOf = try connection.prepare(
      "SELECT topic, since FROM subscription WHERE registration = ? ORDER BY topic")

    insertFanout = try connection.prepare(
      """
      INSERT OR IGNORE INTO fanout(
        number, key, sender, audience, app, collapse, begun, expires, stored, high, place, done)
      VALUES (?,?,?,?,?,?,?,?,?,?,0,0)
      """)
    insertTail = try connection.prepare("INSERT INTO fanout_tail(number, tail) VALUES (?,?)")
    fanout = try connection.prepare(
      """
      SELECT f.key, f.sender, f.audience, f.app, f.collapse, f.begun, f.expires, f.stored, f.high, f.place,
        f.done, t.tail
      FROM fanout f JOIN fanout_tail t ON t.number = f.number WHERE f.number = ?
      """)
    moveFanout = try connection.prepare(
      """
      UPDATE fanout SET place = max(place, ?2), done = ?3, matched = matched + ?4, offline = offline + ?5
      WHERE number = ?1
      """)
    countEnds = try connection.prepare(
      """
      UPDATE fanout SET delivered = delivered + ?2, expired = expired + ?3, collapsed = collapsed + ?4,
        overflow = overflow + ?5, unregistered = unregistered + ?6, offline = offline + ?7
      WHERE number = ?1
      """)
    pruneable = try connection.prepare(
      """
      SELECT number FROM fanout WHERE done = 1 AND begun < ?1 AND (stored = 0 OR expires <= ?2
        OR matched <= delivered + expired + collapsed + overflow + unregistered + offline)
      ORDER BY number LIMIT ?3
      """)
    deleteFanout = try connection.prepare("DELETE FROM fanout WHERE number = ?")
    deleteTail = try connection.prepare("DELETE FROM fanout_tail WHERE number = ?")

    subscriberPage = try connection.prepare(
      """
      SELECT s.registration, r.device, r.token, r.app, r.state,
        (SELECT min(f.number) FROM registration f WHERE f.device = r.device) FROM subscription s
      JOIN registration r ON r.number = s.registration
      WHERE s.topic = ? AND s.registration > ? ORDER BY s.registration LIMIT ?
      """)
    subscriptionPage = try connection.prepare(
      "SELECT registration FROM subscription WHERE topic = ? AND registration > ? ORDER BY registration LIMIT ?"
    )
    senderPage = try connection.prepare(
      """
      SELECT number, device, token, app, state,
        (SELECT min(f.number) FROM registration f WHERE f.device = r.device) FROM registration r
      WHERE sender = ? AND number > ? ORDER BY number LIMIT ?
      """)
    receiver = try connection.prepare(
      """
      SELECT number, device, token, app, state,
        (SELECT min(f.number) FROM registration f WHERE f.device = r.device) FROM registration r
      WHERE number = ?
      """)
    insertShare = try connection.prepare(
      """
      INSERT OR IGNORE INTO message(\(plainMessageColumns), share, job)
      VALUES (?,?,?,?,?,?,?,?,?,x'',x'',?,?)
      """)

    insertGroup = try connection.prepare(
      "INSERT INTO device_group(key, sender, name, created) VALUES (?,?,?,?)")
    groupByKey = try connection.prepare("SELECT id, sender, name FROM device_group WHERE key = ?")
    groupByName = try connection.prepare("SELECT id FROM device_group WHERE sender = ? AND name = ?")
    groupsOf = try connection.prepare("SELECT id FROM group_member WHERE registration = ?")
    deleteGroup = try connection.prepare(
      """
      DELETE FROM device_group
      WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM group_member WHERE group_member.id = ?1)
      """)
    insertMember = try connection.prepare("INSERT OR IGNORE INTO group_member(id, registration) VALUES (?,?)")
    deleteMember = try connection.prepare("DELETE FROM group_member WHERE id = ? AND registration = ?")

    addBadge = try connection.prepare(
      """
      INSERT INTO badge(sender, user, badge) VALUES (?1, ?2, max(0, ?3))
      ON CONFLICT (sender, user) DO UPDATE SET badge = max(0, badge + ?3) RETURNING badge
      """)
    setBadge = try connection.prepare(
      """
      INSERT INTO badge(sender, user, badge) VALUES (?1, ?2, max(0, ?3))
      ON CONFLICT (sender, user) DO UPDATE SET badge = excluded.badge
      """)
  }
}
