import Glibc
import JSONCore
package import NotificationCore
import Seams

/// What an app on a device keeps: identity, settings, notifications, badge, what it received and what it has to send.
///
/// One SQLite file in the app's data folder, for one process at a time. Each call is one transaction that is on the
/// disk when it returns. Calls block for about the time of a disk's sync.
package final class AppStore: Sendable {
  /// How far a received message came.
  package enum Stage: Int64, Sendable, Hashable {
    /// What it shows is written down.
    case noted = 1
    /// The app handled it.
    case handled = 2
  }

  /// A message that waits to be sent.
  package struct Outgoing: Sendable, Hashable {
    package var id: String
    package var to: String
    package var data: [String: String]
    /// Seconds.
    package var timeToLive: Int64
    /// Milliseconds since 1970.
    package var createdMs: Int64

    package init(id: String, to: String, data: [String: String], timeToLive: Int64, createdMs: Int64) {
      self.id = id
      self.to = to
      self.data = data
      self.timeToLive = timeToLive
      self.createdMs = createdMs
    }
  }

  /// Ids of messages that are remembered.
  package static let rememberedMax: Int64 = 1_000
  static let version: Int64 = 1

  /// Where it is.
  package let folder: String
  private let database: Guarded<Database?>

  /// Opens the data of an app, or makes it.
  ///
  /// - Throws: When it cannot be opened, is used by another process, or is newer than this program.
  package init(folder: String) throws(AppStoreFault) {
    self.folder = folder
    try Self.makeFolder(folder)
    let path = folder + "/app.sqlite"
    // Holds the device's secret: for this user alone from its first byte on.
    let file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw AppStoreFault("\(path): \(String(cString: strerror(errno)))") }
    Glibc.close(file)
    let database = try Database(path: path)
    let version = try database.run("PRAGMA user_version").first?.first?.number ?? 0
    guard version <= Self.version else {
      throw AppStoreFault("\(path) was written by a newer version of this program")
    }
    try database.transaction { () throws(AppStoreFault) in
      try database.run("CREATE TABLE IF NOT EXISTS value(name TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID")
      for table in ["pending", "delivered", "outgoing"] {
        try database.run("CREATE TABLE IF NOT EXISTS \(table)(id TEXT PRIMARY KEY, json TEXT NOT NULL)")
      }
      try database.run(
        "CREATE TABLE IF NOT EXISTS message(number INTEGER PRIMARY KEY, id TEXT UNIQUE, stage INTEGER)")
      try database.run("PRAGMA user_version = \(Self.version)")
    }
    self.database = Guarded(database)
  }

  private static func makeFolder(_ path: String) throws(AppStoreFault) {
    guard !path.isEmpty else { return }
    var status = stat()
    if stat(path, &status) == 0 { return }
    if let slash = path.lastIndex(of: "/"), slash > path.startIndex { try makeFolder(String(path[..<slash])) }
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
      throw AppStoreFault("\(path): \(String(cString: strerror(errno)))")
    }
  }

  @discardableResult
  private func locked<Result: Sendable>(
    _ body: (Database) throws(AppStoreFault) -> Result
  ) throws(AppStoreFault) -> Result {
    let result: Swift.Result<Result, AppStoreFault> = database.withLock { database in
      guard let database else { return .failure(AppStoreFault("the app's data is closed")) }
      do throws(AppStoreFault) {
        return .success(try database.transaction { () throws(AppStoreFault) in try body(database) })
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }

  /// Lets another process, or another object of this one, use the data; calls fail from now on.
  package func close() { database.withLock { $0 = nil } }

  // MARK: Values

  /// Small texts by name.
  package func value(_ name: String) throws(AppStoreFault) -> String? {
    try locked { (database) throws(AppStoreFault) in
      try database.run("SELECT text FROM value WHERE name = ?", .text(name)).first?.first?.text
    }
  }

  /// Sets values; nil removes one.
  package func set(_ values: [String: String?]) throws(AppStoreFault) {
    try locked { (database) throws(AppStoreFault) in
      for (name, text) in values { try Self.set(name, text, database) }
    }
  }

  private static func set(_ name: String, _ text: String?, _ database: Database) throws(AppStoreFault) {
    if let text {
      try database.run(
        "INSERT INTO value VALUES (?1, ?2) ON CONFLICT(name) DO UPDATE SET text = ?2", .text(name),
        .text(text))
    } else {
      try database.run("DELETE FROM value WHERE name = ?", .text(name))
    }
  }

  // MARK: Notifications

  /// The notification center as it was last written; rows that cannot be read are left out.
  package func notifications() throws(AppStoreFault) -> NotificationMachine {
    try locked { (database) throws(AppStoreFault) in
      func json(_ table: String) throws(AppStoreFault) -> [JSONValue] {
        try database.run("SELECT json FROM \(table)").compactMap { row in
          row.first?.text.flatMap { try? JSONValue(parsing: $0) }
        }
      }
      func value(_ name: String) throws(AppStoreFault) -> String? {
        try database.run("SELECT text FROM value WHERE name = ?", .text(name)).first?.first?.text
      }
      let settings = try value("settings").flatMap { try? JSONValue(parsing: $0) }
      return NotificationMachine(
        settings: settings.map { NotificationSettings(json: $0) } ?? NotificationSettings(),
        badge: try value("badge").flatMap { Int($0) } ?? 0,
        pending: try json("pending").compactMap { NotificationMachine.Pending(json: $0) },
        delivered: try json("delivered").compactMap { DeliveredNotification(json: $0) })
    }
  }

  /// Writes what changed, together with how far the message came that caused it.
  package func write(
    _ changes: [NotificationMachine.Change], message id: String? = nil, stage: Stage = .noted
  ) throws(AppStoreFault) {
    guard !changes.isEmpty || id != nil else { return }
    try locked { (database) throws(AppStoreFault) in
      for change in changes { try Self.apply(change, database) }
      if let id { try Self.remember(id, stage, database) }
    }
  }

  private static func apply(
    _ change: NotificationMachine.Change, _ database: Database
  ) throws(AppStoreFault) {
    func put(_ table: String, _ id: String, _ json: JSONValue) throws(AppStoreFault) {
      try database.run(
        "INSERT INTO \(table) VALUES (?1, ?2) ON CONFLICT(id) DO UPDATE SET json = ?2", .text(id),
        .text(json.text))
    }
    switch change {
    case .pending(let item): try put("pending", item.request.id, item.json)
    case .pendingGone(let id): try database.run("DELETE FROM pending WHERE id = ?", .text(id))
    case .delivered(let notification): try put("delivered", notification.request.id, notification.json)
    case .deliveredGone(let id): try database.run("DELETE FROM delivered WHERE id = ?", .text(id))
    case .badge(let badge): try set("badge", "\(badge)", database)
    case .settings(let settings): try set("settings", settings.json.text, database)
    }
  }

  // MARK: Messages

  /// How far a message came; nil for one that was not seen, or too long ago.
  package func stage(of id: String) throws(AppStoreFault) -> Stage? {
    try locked { (database) throws(AppStoreFault) in
      try database.run("SELECT stage FROM message WHERE id = ?", .text(id)).first?.first?.number
        .flatMap(Stage.init(rawValue:))
    }
  }

  private static func remember(
    _ id: String, _ stage: Stage, _ database: Database
  ) throws(AppStoreFault) {
    try database.run(
      """
      INSERT INTO message(id, stage) VALUES (?1, ?2)
      ON CONFLICT(id) DO UPDATE SET stage = max(stage, ?2)
      """, .text(id), .number(stage.rawValue))
    try database.run(
      "DELETE FROM message WHERE number <= (SELECT max(number) FROM message) - ?", .number(rememberedMax))
  }

  // MARK: Outgoing

  /// Messages that wait, the oldest first.
  package func outgoing() throws(AppStoreFault) -> [Outgoing] {
    try locked { (database) throws(AppStoreFault) in
      try database.run("SELECT id, json FROM outgoing ORDER BY rowid").compactMap { row in
        guard let id = row[0].text, let json = row[1].text.flatMap({ try? JSONValue(parsing: $0) }),
          let to = json["to"]?.string
        else { return nil }
        var data: [String: String] = [:]
        for member in json["data"]?.members ?? [] { data[member.name] = member.value.string }
        return Outgoing(
          id: id, to: to, data: data, timeToLive: json["ttl"]?.int ?? 0, createdMs: json["created"]?.int ?? 0)
      }
    }
  }

  /// Keeps a message until ``drop(outgoing:)``.
  package func keep(_ message: Outgoing) throws(AppStoreFault) {
    let data = message.data.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, .string($0.value)) }
    let json: JSONValue = [
      "to": .string(message.to), "data": .object(data), "ttl": .number(message.timeToLive),
      "created": .number(message.createdMs),
    ]
    try locked { (database) throws(AppStoreFault) in
      try database.run(
        "INSERT OR REPLACE INTO outgoing VALUES (?1, ?2)", .text(message.id), .text(json.text))
    }
  }

  package func drop(outgoing id: String) throws(AppStoreFault) {
    try locked { (database) throws(AppStoreFault) in
      try database.run("DELETE FROM outgoing WHERE id = ?", .text(id))
    }
  }
}
