/// The writer's prepared statements.
struct WriterStatements {
  let begin, commit: Statement

  let shelfDevice, shelfRows: Statement
  let insertMessage, messageExists, deleteMessage, takeMessage, takeExpired: Statement
  let takeLoose, takeLooseExpired, takeOfApp, takeOfDevice, takeExpiredOfDevice: Statement
  let addOverflow, overflowTold, endLive: Statement

  let insertUpstream, deleteUpstream, deleteExpiredUpstream, upstreamPage: Statement
  let insertJournal, pruneJournal: Statement

  let deviceByID, insertDevice, seeDevice, device, claim, release, idleTokens: Statement
  let registration, insertRegistration, makeAlias, moveAliases, unregister, otherActive: Statement

  let insertProject, insertKey, revokeKey, saveSetting: Statement

  init(_ connection: Connection) throws(SQLiteFailure) {
    begin = try connection.prepare("BEGIN IMMEDIATE")
    commit = try connection.prepare("COMMIT")

    shelfDevice = try connection.prepare("SELECT node FROM device WHERE number = ?")
    shelfRows = try connection.prepare(
      "SELECT number, collapse, live FROM message WHERE device = ? ORDER BY number")
    insertMessage = try connection.prepare(
      "INSERT OR IGNORE INTO message(\(plainMessageColumns)) VALUES (?,?,?,?,?,?,?,?,?,?,?)")
    messageExists = try connection.prepare("SELECT 1 FROM message WHERE device = ? AND number = ?")
    deleteMessage = try connection.prepare("DELETE FROM message WHERE device = ? AND number = ?")
    takeMessage = try connection.prepare(
      "DELETE FROM message WHERE device = ? AND number = ? RETURNING number, sender, key, share, job")
    takeExpired = try connection.prepare(
      """
      DELETE FROM message WHERE device = ? AND number = ? AND expires <= ?
      RETURNING number, sender, key, share, job
      """)
    takeLoose = try connection.prepare(
      """
      DELETE FROM message WHERE device = ? AND collapse IS NULL AND live <> ?
      RETURNING number, sender, key, share, job
      """)
    takeLooseExpired = try connection.prepare(
      """
      DELETE FROM message WHERE device = ? AND collapse IS NULL AND live <> ? AND expires <= ?
      RETURNING number, sender, key, share, job
      """)
    takeOfApp = try connection.prepare(
      "DELETE FROM message WHERE device = ? AND sender = ? AND app = ? RETURNING number, sender, key, share, job"
    )
    takeOfDevice = try connection.prepare(
      "DELETE FROM message WHERE device = ? RETURNING number, sender, key, share, job")
    takeExpiredOfDevice = try connection.prepare(
      "DELETE FROM message WHERE device = ? AND expires <= ? RETURNING number, sender, key, share, job")
    addOverflow = try connection.prepare(
      "UPDATE device SET overflowed = overflowed + ?2 WHERE number = ?1")
    overflowTold = try connection.prepare(
      "UPDATE device SET overflowed = max(0, overflowed - ?2) WHERE number = ?1")
    endLive = try connection.prepare("UPDATE message SET live = 0 WHERE device = ? AND live <> 0")

    insertUpstream = try connection.prepare(
      """
      INSERT OR IGNORE INTO upstream(sender, number, expires, key, device, message_id, origin, body)
      VALUES (?,?,?,?,?,?,?,?)
      """)
    deleteUpstream = try connection.prepare("DELETE FROM upstream WHERE sender = ? AND number = ?")
    deleteExpiredUpstream = try connection.prepare(
      "DELETE FROM upstream WHERE sender = ? AND number = ? AND expires <= ?")
    upstreamPage = try connection.prepare(
      """
      SELECT sender, number, expires, key, device, message_id, origin, body FROM upstream
      WHERE sender = ? AND number > ? AND expires > ? ORDER BY number
      """)
    insertJournal = try connection.prepare("INSERT INTO journal(at, entries) VALUES (?,?)")
    pruneJournal = try connection.prepare(
      "DELETE FROM journal WHERE id IN (SELECT id FROM journal WHERE at < ? ORDER BY id LIMIT ?)")

    deviceByID = try connection.prepare("SELECT number FROM device WHERE device_id = ?")
    insertDevice = try connection.prepare(
      "INSERT INTO device(device_id, secret, epoch, overflowed, seen) VALUES (?,?,0,0,?)")
    seeDevice = try connection.prepare("UPDATE device SET seen = ?2 WHERE number = ?1")
    device = try connection.prepare("SELECT node, epoch, seen FROM device WHERE number = ?")
    claim = try connection.prepare(
      "UPDATE device SET node = ?2, epoch = ?3, seen = ?4 WHERE number = ?1")
    release = try connection.prepare(
      """
      UPDATE device SET node = NULL, seen = ?3
      WHERE number = ?1 AND epoch = ?2 AND node IS NOT NULL
      """)
    idleTokens = try connection.prepare(
      """
      SELECT r.token FROM device d JOIN registration r ON r.device = d.number
      WHERE d.number = ? AND d.seen < ? AND r.state = 0 ORDER BY r.token
      """)
    registration = try connection.prepare(
      """
      SELECT \(registrationColumns) FROM registration r JOIN device d ON d.number = r.device
      WHERE r.token = ?
      """)
    insertRegistration = try connection.prepare(
      """
      INSERT INTO registration(token, device, sender, app, platform, user, state, registered)
      VALUES (?,?,?,?,?,?,0,?)
      """)
    makeAlias = try connection.prepare(
      """
      UPDATE registration SET state = 1, alias_of = ?2
      WHERE token = ?1 AND sender = ?3 AND app = ?4 AND state <> 2
      """)
    moveAliases = try connection.prepare("UPDATE registration SET alias_of = ?2 WHERE alias_of = ?1")
    unregister = try connection.prepare("UPDATE registration SET state = 2 WHERE token = ?")
    otherActive = try connection.prepare(
      """
      SELECT 1 FROM registration
      WHERE device = ? AND sender = ? AND app = ? AND state = 0 AND token <> ? LIMIT 1
      """)

    insertProject = try connection.prepare("INSERT INTO project(id, sender, created) VALUES (?,?,?)")
    insertKey = try connection.prepare(
      """
      INSERT OR IGNORE INTO account_key(hash, purpose, sender, created, revoked, hint)
      VALUES (?,?,?,?,?,?)
      """)
    revokeKey = try connection.prepare(
      "UPDATE account_key SET revoked = 1 WHERE hash = ? AND revoked = 0")
    saveSetting = try connection.prepare(
      "INSERT INTO setting(name, value) VALUES (?,?) ON CONFLICT(name) DO UPDATE SET value = excluded.value")
  }
}
