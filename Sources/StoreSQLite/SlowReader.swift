import Bytes
import CSQLite
import PushModel
import Seams
import Stores

/// What a sweep found expired, to be removed by the writer.
struct SweepFinding: Sendable {
  var messages: [WriteBatch.Settlement] = []
  var upstream: [WriteBatch.UpstreamSettlement] = []

  var isEmpty: Bool { messages.isEmpty && upstream.isEmpty }
}

/// The reads that may scan, so that nobody's log-in waits behind them; checkpoints too.
final class SlowReader: Reader {
  let link: ReadConnection
  private let incarnation: Int64
  private let byKey, journalRows, senders: Statement
  private let expiredMessages, expiredUpstream: Statement
  private let devicePage: Statement
  private let registrationPage: Statement
  let senderRegistrationPage: Statement
  private let countRows: [(StoreTable, Statement)]
  private let shares: ShareReader
  let targets: TargetReads

  /// Where the next sweep goes on: the last row id it looked at.
  private var sweptMessages: Int64 = 0
  private var sweptUpstream: Int64 = 0
  /// The same for ``idleDevices(seenBefore:budget:)``: the last device it looked at.
  private var sweptDevices: Int64 = 0

  /// Rows that one sweep looks at in each table; some milliseconds when they are in memory.
  static let sweepSlice = 4_096

  init(
    path: String, _ options: SQLiteStore.Options, incarnation: Int64
  ) throws(SQLiteFailure) {
    link = try ReadConnection(path: path, options)
    let connection = link.connection
    self.incarnation = incarnation
    shares = try ShareReader(connection)
    targets = try TargetReads(connection)
    byKey = try connection.prepare(
      "SELECT \(messageColumns) FROM message WHERE key = ? ORDER BY number, device")
    journalRows = try connection.prepare(
      "SELECT id, entries FROM journal WHERE at >= ? ORDER BY id DESC")
    // Jumps from one sender to the next in the index instead of walking all of it.
    senders = try connection.prepare(
      """
      WITH RECURSIVE found(sender) AS (
        SELECT min(sender) FROM upstream
        UNION ALL
        SELECT (SELECT min(sender) FROM upstream WHERE sender > found.sender) FROM found
        WHERE found.sender IS NOT NULL)
      SELECT sender FROM found WHERE sender IS NOT NULL
      """)
    expiredMessages = try connection.prepare(
      "SELECT id, expires, device, number FROM message WHERE id > ? ORDER BY id LIMIT ?")
    expiredUpstream = try connection.prepare(
      "SELECT id, expires, sender, number FROM upstream WHERE id > ? ORDER BY id LIMIT ?")
    registrationPage = try connection.prepare(
      """
      SELECT \(registrationColumns) FROM registration r JOIN device d ON d.number = r.device
      WHERE r.token > ? ORDER BY r.token LIMIT ?
      """)
    senderRegistrationPage = try connection.prepare(
      """
      SELECT \(registrationColumns) FROM registration r JOIN device d ON d.number = r.device
      WHERE r.token > ? AND r.sender = ?3 ORDER BY r.token LIMIT ?2
      """)
    devicePage = try connection.prepare(
      """
      SELECT number, seen < ?2 AND EXISTS (
        SELECT 1 FROM registration WHERE device = number AND state = 0)
      FROM device WHERE number > ?1 ORDER BY number LIMIT ?3
      """)
    var counting: [(StoreTable, Statement)] = []
    for table in StoreTable.allCases {
      let name =
        switch table {
        case .devices: "device"
        case .registrations: "registration"
        case .messages: "message"
        case .upstream: "upstream"
        case .projects: "project"
        case .keys: "account_key"
        case .journal: "journal"
        case .topics: "topic"
        case .subscriptions: "subscription"
        case .fanouts: "fanout"
        case .groups: "device_group"
        }
      counting.append((table, try connection.prepare("SELECT count(*) FROM \(name)")))
    }
    countRows = counting
  }

  func find(_ key: MessageKey) throws(SQLiteFailure) -> [StoredMessage] {
    var found: [StoredMessage] = []
    withUnsafeBytes(of: (key.hash.high.bigEndian, key.hash.low.bigEndian)) { byKey.bind(1, blob: Array($0)) }
    defer { byKey.reset() }
    while try byKey.row() {
      found.append(try shares.complete(try byKey.message(incarnation: incarnation), of: byKey))
    }
    return found
  }

  func journal(since: WallTime, max: Int) throws(SQLiteFailure) -> [JournalEntry] {
    var found: [JournalEntry] = []
    journalRows.bind(1, since.ms)
    defer { journalRows.reset() }
    while found.count < max, try journalRows.row() {
      guard let entries = journalRows.withBlob(1, JournalPacking.unpackBackwards) else {
        throw .corrupt("table journal, row \(journalRows.int(0)): entries")
      }
      for entry in entries where entry.at >= since && found.count < max { found.append(entry) }
    }
    return found
  }

  /// Devices of the next slice that were last seen before `seenBefore` and have an active registration.
  ///
  /// There is no index on `seen`: it would cost each log-in a page, for something that is looked at by the month.
  func idleDevices(seenBefore: WallTime, budget: Int) throws(SQLiteFailure) -> [DeviceNumber] {
    var found: [DeviceNumber] = []
    guard budget > 0 else { return found }
    devicePage.bind(1, sweptDevices)
    devicePage.bind(2, seenBefore.ms)
    devicePage.bind(3, Int64(Self.sweepSlice))
    defer { devicePage.reset() }
    var looked = 0
    while try devicePage.row() {
      looked += 1
      sweptDevices = devicePage.int(0)
      if devicePage.int(1) != 0 {
        found.append(DeviceNumber(sweptDevices))
        if found.count == budget { return found }
      }
    }
    if looked < Self.sweepSlice { sweptDevices = 0 }
    return found
  }

  func sendersWithUpstream() throws(SQLiteFailure) -> [SenderID] {
    var found: [SenderID] = []
    while try senders.row() { found.append(SenderID(senders.int(0))) }
    return found
  }

  /// The first half of a sweep: looks at the next slice of each table for expired rows.
  ///
  /// There is no index on `expires`: it would cost each insert and each delete a page, for rows that mostly
  /// go long before they expire (reads pass over expired ones anyway). A full scan of a million rows takes
  /// too long for one call, so each call takes up to ``sweepSlice`` rows in the order of writing where the
  /// last one stopped, here and not on the writer's thread, which then only deletes what was found.
  func expired(now: WallTime, budget: Int) throws(SQLiteFailure) -> SweepFinding {
    var finding = SweepFinding()
    let messages = try slice(expiredMessages, from: &sweptMessages, now: now, budget: budget)
    finding.messages = messages.map { .init(device: DeviceNumber($0), number: MessageNumber(column: $1)) }
    let upstream = try slice(
      expiredUpstream, from: &sweptUpstream, now: now, budget: budget - messages.count)
    finding.upstream = upstream.map { .init(sender: SenderID($0), number: MessageNumber(column: $1)) }
    return finding
  }

  /// Steps through `id, expires, owner, number` rows and moves `position` on; back to 0 at the table's end.
  private func slice(
    _ statement: Statement, from position: inout Int64, now: WallTime, budget: Int
  ) throws(SQLiteFailure) -> [(owner: Int64, number: Int64)] {
    guard budget > 0 else { return [] }
    var found: [(owner: Int64, number: Int64)] = []
    statement.bind(1, position)
    statement.bind(2, Int64(Self.sweepSlice))
    defer { statement.reset() }
    var seen = 0
    while found.count < budget {
      guard try statement.row() else {
        if seen < Self.sweepSlice { position = 0 }
        break
      }
      seen += 1
      position = statement.int(0)
      if statement.int(1) <= now.ms { found.append((statement.int(2), statement.int(3))) }
    }
    return found
  }

  func registrations(
    sender: SenderID?, after: String?, max: Int
  ) throws(SQLiteFailure) -> [Registration] {
    let page = sender == nil ? registrationPage : senderRegistrationPage
    page.bind(1, text: after ?? "")
    page.bind(2, Int64(Swift.max(0, max)))
    if let sender { page.bind(3, sender.value) }
    defer { page.reset() }
    var found: [Registration] = []
    while try page.row() { found.append(try page.registration()) }
    return found
  }

  func counts() throws(SQLiteFailure) -> [String: Int] {
    var counts: [String: Int] = [:]
    for (table, statement) in countRows {
      defer { statement.reset() }
      counts[table.rawValue] = try statement.row() ? Int(statement.int(0)) : 0
    }
    return counts
  }

  /// Copies what it can of the log into the database while commits go on.
  func checkpoint() {
    sqlite3_wal_checkpoint_v2(link.connection.pointer, nil, SQLITE_CHECKPOINT_PASSIVE, nil, nil)
  }
}
