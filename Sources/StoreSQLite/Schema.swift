import Stores

/// The tables, as a list of steps forward.
///
/// `PRAGMA user_version` holds how many were taken.
enum Schema {
  /// Marks the file as ours: "Weir".
  static let applicationID: Int64 = 0x5765_6972

  /// Step n takes a file of version n to n + 1.
  ///
  /// Steps that were released are never changed.
  static let steps: [String] = [first, targets, places]

  /// Messages stand in the order of writing, with one small index beside: inserts append to the table and
  /// touch an index page each.
  ///
  /// As `WITHOUT ROWID` with (device, number) as key every insert rewrites a page of bodies, which was 3 to 4
  /// times slower. `expires` has no index for the same reason; see ``SlowReader/expired(now:budget:)``.
  private static let first = """
    CREATE TABLE device(
      number INTEGER PRIMARY KEY,
      device_id TEXT NOT NULL UNIQUE,
      secret BLOB NOT NULL,
      node INTEGER,                 -- holds the stream
      epoch INTEGER NOT NULL,
      overflowed INTEGER NOT NULL,  -- discarded and not yet told
      seen INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE registration(
      token TEXT NOT NULL PRIMARY KEY,
      device INTEGER NOT NULL,
      sender INTEGER NOT NULL,
      app TEXT NOT NULL,
      platform TEXT NOT NULL,
      user TEXT,
      state INTEGER NOT NULL,       -- 0 active, 1 alias, 2 unregistered
      alias_of TEXT,
      registered INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX registration_device ON registration(device);
    CREATE INDEX registration_sender ON registration(sender);
    CREATE INDEX registration_alias ON registration(alias_of) WHERE alias_of IS NOT NULL;

    CREATE TABLE message(
      id INTEGER PRIMARY KEY,
      device INTEGER NOT NULL,
      number INTEGER NOT NULL,
      expires INTEGER NOT NULL,
      sender INTEGER NOT NULL,
      app TEXT NOT NULL,
      key BLOB NOT NULL,
      collapse TEXT,
      high INTEGER NOT NULL,
      live INTEGER NOT NULL,        -- the incarnation that handed it to a stream, or 0
      body BLOB NOT NULL,
      receipt BLOB NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX message_place ON message(device, number);

    CREATE TABLE upstream(
      id INTEGER PRIMARY KEY,
      sender INTEGER NOT NULL,
      number INTEGER NOT NULL,
      expires INTEGER NOT NULL,
      key BLOB NOT NULL,
      device INTEGER,
      message_id TEXT NOT NULL,
      origin TEXT NOT NULL,
      body BLOB NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX upstream_place ON upstream(sender, number);

    CREATE TABLE journal(
      id INTEGER PRIMARY KEY,
      at INTEGER NOT NULL,          -- the latest of its entries
      entries BLOB NOT NULL         -- packed, see JournalPacking
    ) STRICT;

    CREATE TABLE project(
      id TEXT NOT NULL PRIMARY KEY,
      sender INTEGER NOT NULL UNIQUE,
      created INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE account_key(
      id INTEGER PRIMARY KEY,
      hash BLOB NOT NULL UNIQUE,
      purpose TEXT NOT NULL,
      sender INTEGER,
      created INTEGER NOT NULL,
      revoked INTEGER NOT NULL,
      hint TEXT NOT NULL
    ) STRICT;

    CREATE TABLE setting(
      name TEXT NOT NULL PRIMARY KEY,
      value BLOB NOT NULL
    ) STRICT, WITHOUT ROWID;

    -- Written by the store itself: how often the file was opened.
    CREATE TABLE opening(incarnation INTEGER NOT NULL) STRICT;
    INSERT INTO opening VALUES (0);
    """

  /// Numbers for registrations, topics, fan-outs, groups, badges.
  ///
  /// A message that is one receiver's share of a fan-out stands in `message` with the beginning of its JSON left
  /// out (it is made of the registration when it is read) and the rest kept once, in `fanout_tail`.
  private static let targets = """
    CREATE TABLE registration_numbered(
      number INTEGER PRIMARY KEY,
      token TEXT NOT NULL UNIQUE,
      device INTEGER NOT NULL,
      sender INTEGER NOT NULL,
      app TEXT NOT NULL,
      platform TEXT NOT NULL,
      user TEXT,
      state INTEGER NOT NULL,       -- 0 active, 1 alias, 2 unregistered
      alias_of TEXT,
      registered INTEGER NOT NULL,
      topics INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    INSERT INTO registration_numbered(
      token, device, sender, app, platform, user, state, alias_of, registered)
      SELECT token, device, sender, app, platform, user, state, alias_of, registered
      FROM registration ORDER BY registered, token;
    DROP TABLE registration;
    ALTER TABLE registration_numbered RENAME TO registration;
    CREATE INDEX registration_device ON registration(device);
    CREATE INDEX registration_sender ON registration(sender);
    CREATE INDEX registration_alias ON registration(alias_of) WHERE alias_of IS NOT NULL;
    CREATE INDEX registration_user ON registration(sender, user) WHERE user IS NOT NULL;

    ALTER TABLE message ADD COLUMN share INTEGER; -- registration, for a share of a fan-out
    ALTER TABLE message ADD COLUMN job INTEGER;   -- its fan-out; 0 when that has the message's number

    CREATE TABLE topic(
      id INTEGER PRIMARY KEY,
      sender INTEGER NOT NULL,
      name TEXT NOT NULL,
      subscribers INTEGER NOT NULL,
      UNIQUE (sender, name)
    ) STRICT;
    CREATE TABLE subscription(
      topic INTEGER NOT NULL,
      registration INTEGER NOT NULL,
      since INTEGER NOT NULL,
      PRIMARY KEY (topic, registration)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX subscription_registration ON subscription(registration);

    CREATE TABLE fanout(
      number INTEGER PRIMARY KEY,
      key BLOB NOT NULL,
      sender INTEGER NOT NULL,
      audience TEXT NOT NULL,       -- /topics/name or a condition
      app TEXT,
      collapse TEXT,
      begun INTEGER NOT NULL,
      expires INTEGER NOT NULL,
      stored INTEGER NOT NULL,
      high INTEGER NOT NULL,
      place INTEGER NOT NULL,       -- the last registration visited
      done INTEGER NOT NULL,
      matched INTEGER NOT NULL DEFAULT 0,
      delivered INTEGER NOT NULL DEFAULT 0,
      expired INTEGER NOT NULL DEFAULT 0,
      collapsed INTEGER NOT NULL DEFAULT 0,
      overflow INTEGER NOT NULL DEFAULT 0,
      unregistered INTEGER NOT NULL DEFAULT 0,
      offline INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX fanout_key ON fanout(key);
    CREATE TABLE fanout_tail(
      number INTEGER PRIMARY KEY,
      tail BLOB NOT NULL
    ) STRICT;

    CREATE TABLE device_group(
      id INTEGER PRIMARY KEY,
      key TEXT NOT NULL UNIQUE,
      sender INTEGER NOT NULL,
      name TEXT NOT NULL,
      created INTEGER NOT NULL,
      UNIQUE (sender, name)
    ) STRICT;
    CREATE TABLE group_member(
      id INTEGER NOT NULL,
      registration INTEGER NOT NULL,
      PRIMARY KEY (id, registration)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX group_member_registration ON group_member(registration);

    CREATE TABLE badge(
      sender INTEGER NOT NULL,
      user TEXT NOT NULL,
      badge INTEGER NOT NULL,
      PRIMARY KEY (sender, user)
    ) STRICT, WITHOUT ROWID;
    """

  /// A sender's registrations in token order, so that a page of them, or the one that begins so, is a look into the
  /// index and not a sort of all.
  private static let places = "CREATE INDEX registration_place ON registration(sender, token);"

  /// Brings a file to the newest version and counts the opening.
  /// - Returns: The incarnation: 1 for the first opening, rising.
  static func prepare(_ connection: Connection) throws(StoreFault) -> Int64 {
    do throws(SQLiteFailure) {
      let mark = try connection.number("PRAGMA application_id")
      let found = try Int(connection.number("PRAGMA user_version"))
      let tables = try connection.number("SELECT count(*) FROM sqlite_schema")
      guard mark == applicationID || (mark == 0 && found == 0 && tables == 0) else {
        throw SQLiteFailure.corrupt("the database file belongs to another program")
      }
      guard found <= steps.count else {
        // Typed throws allows one type here, so the newer schema leaves by the number below.
        throw SQLiteFailure(code: newerSchema, detail: String(found))
      }
      try connection.execute("PRAGMA page_size = 4096")
      try connection.execute("PRAGMA journal_mode = WAL")
      for step in steps.indices.dropFirst(found) {
        try connection.execute(
          """
          BEGIN IMMEDIATE;
          \(steps[step])
          PRAGMA application_id = \(applicationID);
          PRAGMA user_version = \(step + 1);
          COMMIT;
          """)
      }
      try connection.execute("UPDATE opening SET incarnation = incarnation + 1")
      return try connection.number("SELECT incarnation FROM opening")
    } catch {
      if error.code == newerSchema, let found = Int(error.detail) {
        throw .schemaTooNew(found: found, known: steps.count)
      }
      throw error.fault
    }
  }

  /// Not a code of SQLite's.
  private static let newerSchema: Int32 = -1
}
