/// The tables, as a list of steps forward; the table `weir_schema` holds how many were taken.
///
/// Steps that were released are never changed, except that all put today's functions in place. All names are looked up by the session's `search_path`, so a schema
/// other than `public` may be named in the URL.
enum Tables {
  /// Step n takes a database of version n to n + 1.
  static let steps: [String] = [first + Functions.all, calmer + Functions.all, places]

  /// A sender's registrations in token order, so that a page of them, or the one that begins so, is a look into the index and
  /// not a walk through those of others.
  private static let places = "CREATE INDEX registration_place ON registration(sender, token);"

  /// A vacuum for rows that were only inserted would write each page once more to the log, for rows that mostly go soon.
  private static let calmer = """
    ALTER TABLE message SET (autovacuum_vacuum_insert_threshold = -1);
    ALTER TABLE upstream SET (autovacuum_vacuum_insert_threshold = -1);
    ALTER TABLE journal SET (autovacuum_vacuum_insert_threshold = -1);

    """

  /// Messages are inserted and deleted, never updated.
  ///
  /// Whether one is live follows from the epoch that its device had when it was written, so a claim or a release touches one row however much is stored.
  ///
  /// Names that peers choose freely are `bytea`: text may not hold U+0000. Keys are `uuid`, which is 16 bytes and no
  /// more. Text is ordered by its bytes, as Swift does for ASCII.
  private static let first = """
    CREATE SEQUENCE incarnation;
    CREATE TABLE node(
      number int4 PRIMARY KEY,
      name text COLLATE "C" NOT NULL UNIQUE,
      incarnation int8 NOT NULL,
      until timestamptz NOT NULL,        -- its lease, by the server's clock
      started timestamptz NOT NULL,
      detail text NOT NULL               -- for people and the console: a JSON object
    );

    -- The lowest 10 bits of the numbers of devices and registrations are the device's slot.
    CREATE SEQUENCE device_number;
    CREATE SEQUENCE registration_number;
    CREATE TABLE device(
      number int8 PRIMARY KEY,
      node int4,                         -- holds the stream
      epoch int8 NOT NULL DEFAULT 0,
      overflowed int8 NOT NULL DEFAULT 0,
      seen int8 NOT NULL,
      device_id text COLLATE "C" NOT NULL UNIQUE,
      secret bytea NOT NULL
    ) WITH (fillfactor = 80);

    CREATE TABLE registration(
      number int8 PRIMARY KEY,
      device int8 NOT NULL,
      sender int8 NOT NULL,
      registered int8 NOT NULL,
      state int2 NOT NULL DEFAULT 0,     -- 0 active, 1 alias, 2 unregistered
      token text COLLATE "C" NOT NULL UNIQUE,
      app text COLLATE "C" NOT NULL,
      platform text COLLATE "C" NOT NULL,
      alias_of text COLLATE "C",
      "user" bytea
    ) WITH (fillfactor = 90);
    CREATE INDEX registration_device ON registration(device);
    CREATE INDEX registration_sender ON registration(sender, number);
    CREATE INDEX registration_alias ON registration(alias_of) WHERE alias_of IS NOT NULL;
    CREATE INDEX registration_user ON registration(sender, "user") WHERE "user" IS NOT NULL;

    CREATE TABLE message(
      device int8 NOT NULL,
      number int8 NOT NULL,
      expires int8 NOT NULL,
      sender int8 NOT NULL,
      live int8 NOT NULL,                -- the device's epoch when it was handed to a stream, or 0
      writer int8 NOT NULL,              -- the incarnation that wrote it
      share int8,                        -- registration, for a share of a fan-out
      job int8,                          -- its fan-out; 0 when that has the message's number
      key uuid NOT NULL,
      high bool NOT NULL,
      app text COLLATE "C" NOT NULL,
      collapse bytea,
      receipt bytea NOT NULL,
      body bytea NOT NULL,
      PRIMARY KEY (device, number)
    ) WITH (toast_tuple_target = 8160);
    ALTER TABLE message ALTER COLUMN body SET STORAGE EXTERNAL;
    CREATE UNIQUE INDEX message_collapse ON message(device, collapse) WHERE collapse IS NOT NULL;

    CREATE TABLE upstream(
      sender int8 NOT NULL,
      number int8 NOT NULL,
      expires int8 NOT NULL,
      lease_until int8 NOT NULL DEFAULT 0,
      lease_by int8 NOT NULL DEFAULT 0,  -- incarnation
      device int8,
      lease_node int4 NOT NULL DEFAULT 0,
      key uuid NOT NULL,
      message_id bytea NOT NULL,
      origin bytea NOT NULL,
      body bytea NOT NULL,
      PRIMARY KEY (sender, number)
    ) WITH (fillfactor = 70, toast_tuple_target = 8160);
    ALTER TABLE upstream ALTER COLUMN body SET STORAGE EXTERNAL;

    CREATE TABLE journal(
      id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      at int8 NOT NULL,                  -- the latest of its entries
      entries bytea NOT NULL
    );
    ALTER TABLE journal ALTER COLUMN entries SET STORAGE EXTERNAL;

    CREATE TABLE topic(
      id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      sender int8 NOT NULL,
      name text COLLATE "C" NOT NULL,
      UNIQUE (sender, name)
    );
    CREATE TABLE subscription(
      topic int8 NOT NULL,
      registration int8 NOT NULL,
      since int8 NOT NULL,
      PRIMARY KEY (topic, registration)
    );
    CREATE INDEX subscription_registration ON subscription(registration);

    CREATE TABLE fanout(
      number int8 PRIMARY KEY,
      sender int8 NOT NULL,
      begun int8 NOT NULL,
      expires int8 NOT NULL,
      place int8 NOT NULL DEFAULT 0,     -- the last registration visited
      matched int8 NOT NULL DEFAULT 0,
      delivered int8 NOT NULL DEFAULT 0,
      expired int8 NOT NULL DEFAULT 0,
      collapsed int8 NOT NULL DEFAULT 0,
      overflow int8 NOT NULL DEFAULT 0,
      unregistered int8 NOT NULL DEFAULT 0,
      offline int8 NOT NULL DEFAULT 0,
      key uuid NOT NULL,
      stored bool NOT NULL,
      high bool NOT NULL,
      done bool NOT NULL DEFAULT false,
      audience bytea NOT NULL,           -- /topics/name or a condition
      app text COLLATE "C",
      collapse bytea
    ) WITH (fillfactor = 50);
    CREATE INDEX fanout_key ON fanout(key);
    CREATE TABLE fanout_tail(number int8 PRIMARY KEY, tail bytea NOT NULL);
    -- Ends since the counts in fanout were last brought up to date: inserts meet nobody, one counter would.
    CREATE TABLE fanout_end(job int8 NOT NULL, state int2 NOT NULL, count int8 NOT NULL);
    CREATE INDEX fanout_end_job ON fanout_end(job);

    CREATE TABLE device_group(
      id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      sender int8 NOT NULL,
      created int8 NOT NULL,
      key text COLLATE "C" NOT NULL UNIQUE,
      name bytea NOT NULL,
      UNIQUE (sender, name)
    );
    CREATE TABLE group_member(
      id int8 NOT NULL,
      registration int8 NOT NULL,
      PRIMARY KEY (id, registration)
    );
    CREATE INDEX group_member_registration ON group_member(registration);

    CREATE TABLE badge(
      sender int8 NOT NULL,
      badge int8 NOT NULL,
      "user" bytea NOT NULL,
      PRIMARY KEY (sender, "user")
    ) WITH (fillfactor = 80);

    CREATE TABLE project(
      id text COLLATE "C" PRIMARY KEY,
      sender int8 NOT NULL UNIQUE,
      created int8 NOT NULL
    );
    CREATE TABLE account_key(
      id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      sender int8,
      created int8 NOT NULL,
      revoked bool NOT NULL,
      hash bytea NOT NULL UNIQUE,
      purpose text COLLATE "C" NOT NULL,
      hint bytea NOT NULL
    );
    CREATE TABLE setting(name text COLLATE "C" PRIMARY KEY, value bytea NOT NULL);

    """
}
