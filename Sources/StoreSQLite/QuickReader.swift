import PushModel
import Seams
import Stores

/// The reads that somebody waits for: backlog, look-ups, credentials, keys.
///
/// Each is a few index probes.
final class QuickReader: Reader {
  let link: ReadConnection
  private let incarnation: Int64
  private let page, overflowed, registration, device, deviceRegistrations: Statement
  private let projectRows, keyRows, settingRow: Statement
  private let shares: ShareReader
  let targets: TargetReads

  init(
    path: String, _ options: SQLiteStore.Options, incarnation: Int64
  ) throws(SQLiteFailure) {
    link = try ReadConnection(path: path, options)
    let connection = link.connection
    self.incarnation = incarnation
    shares = try ShareReader(connection)
    targets = try TargetReads(connection)
    page = try connection.prepare(
      """
      SELECT \(messageColumns) FROM message
      WHERE device = ? AND number > ? AND expires > ? ORDER BY number LIMIT ?
      """)
    overflowed = try connection.prepare("SELECT overflowed FROM device WHERE number = ?")
    registration = try connection.prepare(
      """
      SELECT \(registrationColumns) FROM registration r JOIN device d ON d.number = r.device
      WHERE r.token = ?
      """)
    device = try connection.prepare("SELECT number, secret FROM device WHERE device_id = ?")
    deviceRegistrations = try connection.prepare(
      """
      SELECT \(registrationColumns) FROM registration r JOIN device d ON d.number = r.device
      WHERE r.device = ? AND r.state = 0 ORDER BY r.token
      """)
    projectRows = try connection.prepare("SELECT id, sender, created FROM project ORDER BY id")
    keyRows = try connection.prepare(
      "SELECT hash, purpose, sender, created, revoked, hint FROM account_key ORDER BY id")
    settingRow = try connection.prepare("SELECT value FROM setting WHERE name = ?")
  }

  func backlog(
    of device: DeviceNumber, after: MessageNumber?, max: Int, now: WallTime
  ) throws(SQLiteFailure) -> Backlog {
    let limit = Swift.max(0, min(max, 1_000_000))
    page.bind(1, device.value)
    page.bind(2, after?.column ?? -1)
    page.bind(3, now.ms)
    page.bind(4, Int64(limit) + 1)
    defer { page.reset() }
    var backlog = Backlog(messages: [], hasMore: false, overflowed: 0)
    while try page.row() {
      if backlog.messages.count == limit {
        backlog.hasMore = true
        break
      }
      let message = try page.message(incarnation: incarnation)
      backlog.messages.append(page.isNull(11) ? message : try shares.complete(message, of: page))
    }
    overflowed.bind(1, device.value)
    defer { overflowed.reset() }
    if try overflowed.row() { backlog.overflowed = Int(overflowed.int(0)) }
    return backlog
  }

  func lookUp(_ tokens: [String]) throws(SQLiteFailure) -> [Registration?] {
    var found: [Registration?] = []
    found.reserveCapacity(tokens.count)
    defer { registration.reset() }
    for token in tokens {
      registration.reset()
      registration.bind(1, text: token)
      found.append(try registration.row() ? try registration.registration() : nil)
    }
    return found
  }

  func credentials(of deviceID: String) throws(SQLiteFailure) -> DeviceCredentials? {
    device.bind(1, text: deviceID)
    defer { device.reset() }
    guard try device.row() else { return nil }
    var credentials = DeviceCredentials(
      number: DeviceNumber(device.int(0)), secretHash: device.blob(1), registrations: [])
    deviceRegistrations.bind(1, credentials.number.value)
    defer { deviceRegistrations.reset() }
    while try deviceRegistrations.row() {
      credentials.registrations.append(try deviceRegistrations.registration())
    }
    return credentials
  }

  func projects() throws(SQLiteFailure) -> [Project] {
    var projects: [Project] = []
    while try projectRows.row() {
      projects.append(
        Project(
          id: projectRows.text(0), sender: SenderID(projectRows.int(1)),
          createdAt: WallTime(ms: projectRows.int(2))))
    }
    return projects
  }

  func keys() throws(SQLiteFailure) -> [AccountKey] {
    var keys: [AccountKey] = []
    defer { keyRows.reset() }
    while try keyRows.row() {
      guard let purpose = AccountKey.Purpose(rawValue: keyRows.text(1)) else {
        throw .corrupt("table account_key: unknown purpose")
      }
      keys.append(
        AccountKey(
          hash: keyRows.blob(0), purpose: purpose,
          sender: keyRows.isNull(2) ? nil : SenderID(keyRows.int(2)),
          createdAt: WallTime(ms: keyRows.int(3)), revoked: keyRows.int(4) != 0, hint: keyRows.text(5)))
    }
    return keys
  }

  func setting(_ name: String) throws(SQLiteFailure) -> [UInt8]? {
    settingRow.bind(1, text: name)
    defer { settingRow.reset() }
    return try settingRow.row() ? settingRow.blob(0) : nil
  }
}
