import Bytes
import PushModel
import Seams
import Stores

/// Completes rows that are shares of a fan-out, from their job and their registration.
final class ShareReader {
  private let job, registration: Statement
  /// The job that was read last, for rows that follow each other.
  private var last: (audience: FanoutJob.Audience, sender: SenderID, shared: SharedTail)?

  init(_ connection: Connection) throws(SQLiteFailure) {
    job = try connection.prepare(
      """
      SELECT f.sender, f.audience, t.tail FROM fanout f JOIN fanout_tail t ON t.number = f.number
      WHERE f.number = ?
      """)
    registration = try connection.prepare(
      "SELECT token FROM registration WHERE number = ?")
  }

  /// The message with its body, when the row is a share; a message that has expired may have lost it.
  /// - Parameter row: Has ``messageColumns``.
  func complete(_ message: StoredMessage, of row: Statement) throws(SQLiteFailure) -> StoredMessage {
    guard let number = row.job(share: 11, job: 12, number: row.int(1)), try read(number), let last else {
      return message
    }
    registration.bind(1, row.int(11))
    defer { registration.reset() }
    guard try registration.row() else { return message }
    var message = message
    message.shared = last.shared
    message.body = SharedTail.head(
      last.audience, sender: last.sender, key: message.key, app: message.app, token: registration.text(0))
    return message
  }

  /// Job numbers are never used again, so what was read once holds.
  private func read(_ number: MessageNumber) throws(SQLiteFailure) -> Bool {
    if last?.shared.job == number { return true }
    job.bind(1, number.column)
    defer { job.reset() }
    guard try job.row(), let audience = FanoutJob.Audience(text: job.text(1)) else { return false }
    last = (audience, SenderID(job.int(0)), SharedTail(job: number, bytes: job.blob(2)))
    return true
  }
}

/// Reads of topics, fan-outs, groups and users.
final class TargetReads {
  private let active, topicsOf, topicPage, subscriberPage: Statement
  private let openFanouts, fanoutByKey: Statement
  private let groupByKey, groupByName, groupPage, members, memberRows: Statement
  private let userRows, badge, userPage: Statement

  init(_ connection: Connection) throws(SQLiteFailure) {
    active = try connection.prepare(
      """
      SELECT a.number FROM registration r
      JOIN registration a ON a.token = CASE r.state WHEN 1 THEN r.alias_of ELSE r.token END
      WHERE r.token = ? AND a.state = 0
      """)
    topicsOf = try connection.prepare(
      """
      SELECT t.name, s.since FROM subscription s JOIN topic t ON t.id = s.topic
      WHERE s.registration = ? ORDER BY t.name
      """)
    topicPage = try connection.prepare(
      "SELECT name, subscribers FROM topic WHERE sender = ? AND name > ? ORDER BY name LIMIT ?")
    subscriberPage = try connection.prepare(
      """
      SELECT \(registrationColumns), r.number FROM topic t
      JOIN subscription s ON s.topic = t.id JOIN registration r ON r.number = s.registration
      JOIN device d ON d.number = r.device
      WHERE t.sender = ? AND t.name = ? AND s.registration > ? ORDER BY s.registration LIMIT ?
      """)
    openFanouts = try connection.prepare(
      "SELECT \(Self.progress) FROM fanout WHERE done = 0 OR begun >= ? ORDER BY number")
    fanoutByKey = try connection.prepare(
      "SELECT \(Self.progress) FROM fanout WHERE key = ? ORDER BY number DESC LIMIT 1")
    groupByKey = try connection.prepare(
      "SELECT id, key, sender, name, created FROM device_group WHERE key = ?")
    groupByName = try connection.prepare(
      "SELECT id, key, sender, name, created FROM device_group WHERE sender = ? AND name = ?")
    groupPage = try connection.prepare(
      """
      SELECT id, key, sender, name, created FROM device_group
      WHERE sender = ? AND name > ? ORDER BY name LIMIT ?
      """)
    members = try connection.prepare("SELECT registration FROM group_member WHERE id = ?")
    memberRows = try connection.prepare(
      """
      SELECT \(registrationColumns), r.number FROM group_member m
      JOIN registration r ON r.number = m.registration JOIN device d ON d.number = r.device
      WHERE m.id = ? ORDER BY m.registration
      """)
    userRows = try connection.prepare(
      """
      SELECT \(registrationColumns), r.number FROM registration r JOIN device d ON d.number = r.device
      WHERE r.sender = ? AND r.user = ? AND r.state = 0 ORDER BY r.number LIMIT ?
      """)
    badge = try connection.prepare("SELECT badge FROM badge WHERE sender = ? AND user = ?")
    userPage = try connection.prepare(
      """
      SELECT r.user, count(*), coalesce(max(b.badge), 0) FROM registration r
      LEFT JOIN badge b ON b.sender = r.sender AND b.user = r.user
      WHERE r.sender = ? AND r.user IS NOT NULL AND r.user > ? AND r.state = 0
      GROUP BY r.user ORDER BY r.user LIMIT ?
      """)
  }

  private static let progress = """
    number, key, sender, audience, begun, expires, place, done, matched, delivered, expired, collapsed,
    overflow, unregistered, offline
    """

  private func numbered(_ page: Statement) throws(SQLiteFailure) -> [NumberedRegistration] {
    defer { page.reset() }
    var found: [NumberedRegistration] = []
    while try page.row() {
      found.append(
        NumberedRegistration(number: RegistrationNumber(page.int(10)), registration: try page.registration()))
    }
    return found
  }

  private static func bounded(_ max: Int) -> Int64 { Int64(Swift.max(0, min(max, 1_000_000))) }

  // MARK: Topics

  func topics(of token: String) throws(SQLiteFailure) -> [Subscription]? {
    active.bind(1, text: token)
    defer { active.reset() }
    guard try active.row() else { return nil }
    topicsOf.bind(1, active.int(0))
    defer { topicsOf.reset() }
    var found: [Subscription] = []
    while try topicsOf.row() {
      guard let name = TopicName(topicsOf.text(0)) else { throw .corrupt("table topic: name") }
      found.append(Subscription(topic: name, since: WallTime(ms: topicsOf.int(1))))
    }
    return found
  }

  func topics(sender: SenderID, after: TopicName?, max: Int) throws(SQLiteFailure) -> [TopicSummary] {
    topicPage.bind(1, sender.value)
    topicPage.bind(2, text: after?.text ?? "")
    topicPage.bind(3, Self.bounded(max))
    defer { topicPage.reset() }
    var found: [TopicSummary] = []
    while try topicPage.row() {
      guard let name = TopicName(topicPage.text(0)) else { throw .corrupt("table topic: name") }
      found.append(TopicSummary(topic: name, subscribers: Int(topicPage.int(1))))
    }
    return found
  }

  func subscribers(
    of topic: TopicName, sender: SenderID, after: RegistrationNumber?, max: Int
  ) throws(SQLiteFailure) -> [NumberedRegistration] {
    subscriberPage.bind(1, sender.value)
    subscriberPage.bind(2, text: topic.text)
    subscriberPage.bind(3, after?.value ?? 0)
    subscriberPage.bind(4, Self.bounded(max))
    return try numbered(subscriberPage)
  }

  // MARK: Fan-outs

  private func progress(_ page: Statement) throws(SQLiteFailure) -> FanoutProgress {
    let number = MessageNumber(column: page.int(0))
    guard let audience = FanoutJob.Audience(text: page.text(3)) else {
      throw .corrupt("table fanout, number \(number.value): audience")
    }
    var counts = FanoutCounts()
    counts.matched = Int(page.int(8))
    counts.delivered = Int(page.int(9))
    counts.expired = Int(page.int(10))
    counts.collapsed = Int(page.int(11))
    counts.droppedOverflow = Int(page.int(12))
    counts.droppedUnregistered = Int(page.int(13))
    counts.droppedOffline = Int(page.int(14))
    let place = page.int(6)
    return FanoutProgress(
      number: number, key: try page.key(1, table: "fanout"), sender: SenderID(page.int(2)),
      audience: audience,
      begun: WallTime(ms: page.int(4)), expires: WallTime(ms: page.int(5)),
      cursor: place == 0 ? nil : RegistrationNumber(place), isDone: page.int(7) != 0, counts: counts)
  }

  func fanouts(since: WallTime) throws(SQLiteFailure) -> [FanoutProgress] {
    openFanouts.bind(1, since.ms)
    defer { openFanouts.reset() }
    var found: [FanoutProgress] = []
    while try openFanouts.row() { found.append(try progress(openFanouts)) }
    return found
  }

  func fanout(of key: MessageKey) throws(SQLiteFailure) -> FanoutProgress? {
    withUnsafeBytes(of: (key.hash.high.bigEndian, key.hash.low.bigEndian)) {
      fanoutByKey.bind(1, blob: Array($0))
    }
    defer { fanoutByKey.reset() }
    return try fanoutByKey.row() ? try progress(fanoutByKey) : nil
  }

  // MARK: Groups

  private func group(_ row: Statement) throws(SQLiteFailure) -> DeviceGroup {
    memberRows.bind(1, row.int(0))
    return DeviceGroup(
      key: row.text(1), sender: SenderID(row.int(2)), name: row.text(3), createdAt: WallTime(ms: row.int(4)),
      members: try numbered(memberRows))
  }

  func group(key: String) throws(SQLiteFailure) -> DeviceGroup? {
    groupByKey.bind(1, text: key)
    defer { groupByKey.reset() }
    return try groupByKey.row() ? try group(groupByKey) : nil
  }

  func group(named name: String, sender: SenderID) throws(SQLiteFailure) -> DeviceGroup? {
    groupByName.bind(1, sender.value)
    groupByName.bind(2, text: name)
    defer { groupByName.reset() }
    return try groupByName.row() ? try group(groupByName) : nil
  }

  func groups(sender: SenderID, after name: String?, max: Int) throws(SQLiteFailure) -> [DeviceGroup] {
    groupPage.bind(1, sender.value)
    groupPage.bind(2, text: name ?? "")
    groupPage.bind(3, Self.bounded(max))
    defer { groupPage.reset() }
    var found: [DeviceGroup] = []
    while try groupPage.row() { found.append(try group(groupPage)) }
    return found
  }

  func memberNumbers(_ group: Int64) throws(SQLiteFailure) -> [RegistrationNumber] {
    members.bind(1, group)
    defer { members.reset() }
    var found: [RegistrationNumber] = []
    while try members.row() { found.append(RegistrationNumber(members.int(0))) }
    return found
  }

  // MARK: Users

  func devices(ofUser user: String, sender: SenderID, max: Int) throws(SQLiteFailure) -> UserDevices {
    userRows.bind(1, sender.value)
    userRows.bind(2, text: user)
    userRows.bind(3, Self.bounded(max))
    let registrations = try numbered(userRows)
    badge.bind(1, sender.value)
    badge.bind(2, text: user)
    defer { badge.reset() }
    return UserDevices(registrations: registrations, badge: try badge.row() ? badge.int(0) : 0)
  }

  func users(sender: SenderID, after: String?, max: Int) throws(SQLiteFailure) -> [UserSummary] {
    userPage.bind(1, sender.value)
    userPage.bind(2, text: after ?? "")
    userPage.bind(3, Self.bounded(max))
    defer { userPage.reset() }
    var found: [UserSummary] = []
    while try userPage.row() {
      found.append(
        UserSummary(
          user: userPage.text(0), registrations: Int(userPage.int(1)), badge: userPage.int(2)))
    }
    return found
  }
}
