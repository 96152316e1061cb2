/// The rules that the server applies itself, so that a batch is one round trip.
enum Functions {
  /// Makes all of them, or puts them in place of older ones.
  static let all = live + elsewhere + ends + enqueue + sweep

  /// Whether a row of a message was handed to the stream that its device has now, by a node that lives.
  private static let live = """
    CREATE OR REPLACE FUNCTION weir_live(live int8, writer int8, epoch int8, node int4) RETURNS bool
    LANGUAGE sql STABLE AS $$
      SELECT live <> 0 AND live = epoch AND node IS NOT NULL
        AND EXISTS (SELECT 1 FROM node n WHERE n.incarnation = writer AND n.until > now())
    $$;

    """

  /// The incarnation of a living node, other than the one that writes, which holds the device's stream.
  ///
  /// It is about to hand the message out, so it is no reason for overflow, up to the bound for connected devices.
  private static let elsewhere = """
    CREATE OR REPLACE FUNCTION weir_elsewhere(device int8, writer int8) RETURNS int8
    LANGUAGE sql STABLE AS $$
      SELECT n.incarnation FROM device d JOIN node n ON n.number = d.node
      WHERE d.number = device AND n.incarnation <> writer AND n.until > now()
    $$;

    """

  /// The fan-out that a row is a share of.
  private static let ends = """
    CREATE OR REPLACE FUNCTION weir_job(number int8, share int8, job int8) RETURNS int8
    LANGUAGE sql IMMUTABLE AS $$
      SELECT CASE WHEN share IS NULL THEN NULL WHEN job = 0 THEN number ELSE job END
    $$;

    """

  /// Stores rows by the rules on cap and collapse, in the order of the arrays.
  ///
  /// Returns a line for each row that was not simply stored (`what` 0 duplicate, 1 unknown device, 2 overflowed, with
  /// its `place` from 1), for each row that came to an end (`what` 10 and its state), and for each device that the caller
  /// wants counted and that stays below its cap (`what` 20, and in `number` how many rows without a key it has then). Most
  /// batches hold rows for devices whose cap is not near and that have no collapse key: those are one INSERT. For the
  /// others the device is locked and row after row is looked at. Rows with a key must be marked as counted; of the others
  /// those that are not are stored whatever there is. Two nodes that write for one device at the same moment may both pass
  /// the cap's check, so a device may have rows beyond its cap; the next one counted discards them.
  private static let enqueue = """
    CREATE OR REPLACE FUNCTION weir_enqueue(
      p_writer int8, p_now int8, p_cap int4, p_connected int4, p_keys int4,
      p_device int8[], p_number int8[], p_expires int8[], p_sender int8[], p_app text[], p_key uuid[],
      p_collapse bytea[], p_high bool[], p_live bool[], p_body bytea[], p_receipt bytea[],
      p_share int8[], p_job int8[], p_counted bool[])
    RETURNS TABLE(
      o_place int4, o_what int2, o_device int8, o_number int8, o_sender int8, o_key uuid, o_job int8)
    LANGUAGE plpgsql AS $$
    DECLARE
      v_count int4 := cardinality(p_device);
      v_careful int8[];
      v_careful_rows int8 := 0;
      v_counted int8[];
      v_counts int8[];
      v_stored_devices int8[];
      v_stored_numbers int8[];
      v_stored int8;
      v_loose int8;
      v_dropped int8;
      v_other int8;
      v_device device%ROWTYPE;
      v_holder int8;
      v_cap int4;
      v_row record;
      v_pass int4;
    BEGIN
      IF true = ANY (p_counted) THEN
        SELECT array_agg(c.device ORDER BY c.device) FILTER (WHERE c.careful),
            coalesce(sum(c.rows) FILTER (WHERE c.careful), 0),
            array_agg(c.device) FILTER (WHERE NOT c.careful), array_agg(c.stored) FILTER (WHERE NOT c.careful)
          INTO v_careful, v_careful_rows, v_counted, v_counts
          FROM (
            SELECT b.device, b.rows, b.loose + s.count AS stored, CASE
                WHEN b.keyed THEN true
                WHEN b.live OR b.loose + s.count <= p_cap THEN false
                WHEN weir_elsewhere(b.device, p_writer) IS NULL THEN true
                ELSE b.loose + (
                  SELECT count(*) FROM (
                    SELECT 1 FROM message m WHERE m.device = b.device AND m.collapse IS NULL
                    LIMIT greatest(0, p_connected - b.loose) + 1) z) > p_connected END AS careful
            FROM (
              SELECT u.device, count(*) AS rows, count(*) FILTER (WHERE u.collapse IS NULL) AS loose,
                bool_or(u.collapse IS NOT NULL) AS keyed, bool_and(u.live) AS live
              FROM unnest(p_device, p_collapse, p_live, p_counted) AS u(device, collapse, live, counted)
              GROUP BY u.device HAVING bool_or(u.counted)) b
            CROSS JOIN LATERAL (
              SELECT count(*) FROM (
                SELECT 1 FROM message m WHERE m.device = b.device AND m.collapse IS NULL
                LIMIT greatest(0, p_cap - b.loose) + 1) z) s) c;
        RETURN QUERY SELECT NULL::int4, 20::int2, u.device, u.stored, NULL::int8, NULL::uuid, NULL::int8
          FROM unnest(v_counted, v_counts) AS u(device, stored);
      END IF;

      IF v_careful_rows < v_count THEN
        WITH stored AS (
          INSERT INTO message(device, number, expires, sender, live, writer, share, job, key, high, app,
            collapse, receipt, body)
          SELECT u.device, u.number, u.expires, u.sender,
            CASE WHEN d.node IS NOT NULL AND (u.live OR n.number IS NOT NULL) THEN d.epoch ELSE 0 END,
            CASE WHEN u.live OR n.number IS NULL THEN p_writer ELSE n.incarnation END, u.share, u.job,
            u.key, u.high, u.app, NULL, u.receipt, u.body
          FROM unnest(p_device, p_number, p_expires, p_sender, p_app, p_key, p_high, p_live, p_body,
            p_receipt, p_share, p_job)
            AS u(device, number, expires, sender, app, key, high, live, body, receipt, share, job)
          JOIN device d ON d.number = u.device
          LEFT JOIN node n ON n.number = d.node AND n.incarnation <> p_writer AND n.until > now()
          WHERE v_careful IS NULL OR u.device <> ALL (v_careful)
          ON CONFLICT DO NOTHING RETURNING device, number)
        SELECT array_agg(s.device), array_agg(s.number), count(*)
          INTO v_stored_devices, v_stored_numbers, v_stored FROM stored s;
        IF v_stored < v_count - v_careful_rows THEN
          RETURN QUERY
            SELECT u.place::int4,
              (CASE WHEN EXISTS (SELECT 1 FROM device d WHERE d.number = u.device) THEN 0 ELSE 1 END)::int2,
              u.device, u.number, NULL::int8, NULL::uuid, NULL::int8
            FROM (
              SELECT r.device, r.number, r.place,
                row_number() OVER (PARTITION BY r.device, r.number ORDER BY r.place) AS nth
              FROM unnest(p_device, p_number) WITH ORDINALITY AS r(device, number, place)) u
            LEFT JOIN unnest(v_stored_devices, v_stored_numbers) AS s(device, number)
              ON s.device = u.device AND s.number = u.number
            WHERE (v_careful IS NULL OR u.device <> ALL (v_careful)) AND (s.device IS NULL OR u.nth > 1);
        END IF;
      END IF;
      IF v_careful IS NULL THEN RETURN; END IF;

      PERFORM 1 FROM device d WHERE d.number = ANY (v_careful) ORDER BY d.number FOR NO KEY UPDATE;
      FOR v_place IN 1..v_count LOOP
        o_place := v_place;
        CONTINUE WHEN p_device[o_place] <> ALL (v_careful);
        o_device := p_device[o_place];
        SELECT * INTO v_device FROM device d WHERE d.number = o_device;
        IF NOT FOUND THEN
          o_what := 1;
          RETURN NEXT;
          CONTINUE;
        END IF;
        v_holder := weir_elsewhere(o_device, p_writer);
        v_cap := CASE WHEN v_holder IS NULL THEN p_cap ELSE p_connected END;
        IF EXISTS (SELECT 1 FROM message m WHERE m.device = o_device AND m.number = p_number[o_place]) THEN
          o_what := 0;
          RETURN NEXT;
          CONTINUE;
        END IF;

        IF p_collapse[o_place] IS NOT NULL THEN
          SELECT m.number INTO v_other FROM message m
            WHERE m.device = o_device AND m.collapse = p_collapse[o_place];
          IF v_other > p_number[o_place] THEN
            o_what := 10 + 7;
            o_number := p_number[o_place];
            o_sender := p_sender[o_place];
            o_key := p_key[o_place];
            o_job := weir_job(o_number, p_share[o_place], p_job[o_place]);
            IF o_job IS NOT NULL THEN INSERT INTO fanout_end VALUES (o_job, 7, 1); END IF;
            RETURN NEXT;
            CONTINUE;
          END IF;
          v_pass := 1;
        ELSE
          v_pass := 3;
          IF NOT p_live[o_place] THEN
            SELECT count(*) INTO v_loose FROM (
              SELECT 1 FROM message m WHERE m.device = o_device AND m.collapse IS NULL LIMIT v_cap) z;
            IF v_loose >= v_cap THEN v_pass := 1; END IF;
          END IF;
        END IF;

        -- What has to go: for a key, its older row first and what is too many after the insert; at the cap, what
        -- is expired first and then everything.
        v_dropped := 0;
        WHILE v_pass < 3 LOOP
          FOR v_row IN
            WITH gone AS (
              DELETE FROM message m WHERE m.device = o_device AND (
                CASE WHEN p_collapse[o_place] IS NULL THEN
                  m.collapse IS NULL AND (v_pass = 2 OR m.expires <= p_now)
                  AND NOT weir_live(m.live, m.writer, v_device.epoch, v_device.node)
                ELSE m.collapse = p_collapse[o_place] END)
              RETURNING m.number, m.sender, m.key, weir_job(m.number, m.share, m.job) AS job)
            SELECT * FROM gone ORDER BY number
          LOOP
            o_what := 10 + CASE WHEN p_collapse[o_place] IS NOT NULL THEN 7 WHEN v_pass = 2 THEN 8 ELSE 6 END;
            o_number := v_row.number;
            o_sender := v_row.sender;
            o_key := v_row.key;
            o_job := v_row.job;
            v_dropped := v_dropped + 1;
            IF o_job IS NOT NULL THEN INSERT INTO fanout_end VALUES (o_job, o_what - 10, 1); END IF;
            RETURN NEXT;
          END LOOP;
          EXIT WHEN v_pass = 2 OR p_collapse[o_place] IS NOT NULL;
          SELECT count(*) INTO v_loose FROM (
            SELECT 1 FROM message m WHERE m.device = o_device AND m.collapse IS NULL LIMIT v_cap) z;
          EXIT WHEN v_loose < v_cap;
          v_pass := 2;
          v_dropped := 0;
        END LOOP;
        IF v_pass = 2 THEN
          UPDATE device d SET overflowed = d.overflowed + v_dropped + 1 WHERE d.number = o_device;
          o_what := 10 + 8;
          o_number := p_number[o_place];
          o_sender := p_sender[o_place];
          o_key := p_key[o_place];
          o_job := weir_job(o_number, p_share[o_place], p_job[o_place]);
          IF o_job IS NOT NULL THEN INSERT INTO fanout_end VALUES (o_job, 8, 1); END IF;
          RETURN NEXT;
          o_what := 2;
          RETURN NEXT;
          CONTINUE;
        END IF;

        INSERT INTO message(device, number, expires, sender, live, writer, share, job, key, high, app, collapse,
          receipt, body)
        VALUES (o_device, p_number[o_place], p_expires[o_place], p_sender[o_place],
          CASE WHEN v_device.node IS NOT NULL AND (p_live[o_place] OR v_holder IS NOT NULL)
            THEN v_device.epoch ELSE 0 END,
          CASE WHEN p_live[o_place] THEN p_writer ELSE coalesce(v_holder, p_writer) END,
          p_share[o_place], p_job[o_place], p_key[o_place], p_high[o_place], p_app[o_place],
          p_collapse[o_place], p_receipt[o_place], p_body[o_place])
        ON CONFLICT (device, number) DO NOTHING;
        CONTINUE WHEN p_collapse[o_place] IS NULL;

        FOR v_row IN
          WITH gone AS (
            DELETE FROM message m WHERE m.device = o_device AND m.number IN (
              SELECT k.number FROM message k WHERE k.device = o_device AND k.collapse IS NOT NULL
              ORDER BY k.number DESC OFFSET p_keys)
            RETURNING m.number, m.sender, m.key, weir_job(m.number, m.share, m.job) AS job)
          SELECT * FROM gone ORDER BY number
        LOOP
          o_what := 10 + 7;
          o_number := v_row.number;
          o_sender := v_row.sender;
          o_key := v_row.key;
          o_job := v_row.job;
          IF o_job IS NOT NULL THEN INSERT INTO fanout_end VALUES (o_job, 7, 1); END IF;
          RETURN NEXT;
        END LOOP;
      END LOOP;
    END $$;

    """

  /// Looks at a slice of blocks of both kinds of messages and ends what is expired, at most `p_budget`.
  ///
  /// The first line returned says where the next call goes on (`o_device` for messages, `o_number` for upstream). There
  /// is no index on `expires`: it would cost every insert and delete, for rows that mostly go long before.
  private static let sweep = """
    CREATE OR REPLACE FUNCTION weir_sweep(p_message int8, p_upstream int8, p_blocks int8, p_now int8, p_budget int4)
    RETURNS TABLE(o_device int8, o_number int8, o_sender int8, o_key uuid, o_job int8)
    LANGUAGE plpgsql AS $$
    DECLARE
      v_next int8 := p_message;
      v_next_upstream int8 := p_upstream;
      v_found int8 := 0;
      v_row record;
      v_upstream int8;
    BEGIN
      FOR v_row IN
        WITH gone AS (
          DELETE FROM message m WHERE m.ctid = ANY (ARRAY(
            SELECT c.ctid FROM message c
            WHERE c.ctid >= format('(%s,0)', p_message)::tid
              AND c.ctid < format('(%s,0)', p_message + p_blocks)::tid AND c.expires <= p_now
            LIMIT p_budget FOR UPDATE SKIP LOCKED))
          RETURNING m.device, m.number, m.sender, m.key, weir_job(m.number, m.share, m.job) AS job),
        counted AS (
          INSERT INTO fanout_end SELECT g.job, 6, count(*) FROM gone g WHERE g.job IS NOT NULL GROUP BY g.job)
        SELECT * FROM gone
      LOOP
        v_found := v_found + 1;
        o_device := v_row.device;
        o_number := v_row.number;
        o_sender := v_row.sender;
        o_key := v_row.key;
        o_job := v_row.job;
        RETURN NEXT;
      END LOOP;
      IF v_found < p_budget THEN
        v_next := p_message + p_blocks;
        IF v_next >= pg_relation_size('message') / current_setting('block_size')::int8 THEN v_next := 0; END IF;
        DELETE FROM upstream m WHERE m.ctid = ANY (ARRAY(
          SELECT c.ctid FROM upstream c
          WHERE c.ctid >= format('(%s,0)', p_upstream)::tid
            AND c.ctid < format('(%s,0)', p_upstream + p_blocks)::tid AND c.expires <= p_now
          LIMIT p_budget - v_found FOR UPDATE SKIP LOCKED));
        GET DIAGNOSTICS v_upstream = ROW_COUNT;
        IF v_found + v_upstream < p_budget THEN
          v_next_upstream := p_upstream + p_blocks;
          IF v_next_upstream >= pg_relation_size('upstream') / current_setting('block_size')::int8 THEN
            v_next_upstream := 0;
          END IF;
        END IF;
      END IF;
      o_device := v_next;
      o_number := v_next_upstream;
      o_key := NULL;
      RETURN NEXT;
    END $$;

    """
}
