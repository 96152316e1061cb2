import Bytes
package import PushModel
package import Seams
package import Stores

/// What a case works with: a store, a clock, and makers of rows.
package struct Stage: Sendable {
  package private(set) var subject: StoreUnderTest
  let limits: StoreLimits
  package var now = WallTime(ms: 1_700_000_000_000)
  private var numbers: UInt64 = 1_000
  private var tokens = 0

  static let sender = SenderID(100_000_000_001)

  package init(_ subject: StoreUnderTest, limits: StoreLimits) {
    self.subject = subject
    self.limits = limits
  }

  package var store: any Store { subject.store }

  mutating func crash() async throws { subject = try await subject.crash() }

  mutating func number() -> MessageNumber {
    numbers += 1
    return MessageNumber(numbers)
  }

  static func key(_ value: UInt64) -> MessageKey {
    MessageKey(Hash128(high: value &* 0x9e37_79b9_7f4a_7c15, low: value))
  }

  mutating func token() -> String {
    tokens += 1
    return "token-\(10_000 + tokens)"
  }

  func request(
    _ token: String, device: String, sender: SenderID = Stage.sender, app: String = "org.example.app",
    user: String? = nil, previous: String? = nil
  ) -> RegistrationRequest {
    RegistrationRequest(
      token: token, deviceID: device, secretHash: [UInt8](repeating: 7, count: 32), sender: sender,
      app: app, platform: .linux, user: user, previousToken: previous)
  }

  /// A new device with one app.
  package mutating func device() async throws -> DeviceNumber {
    let token = token()
    return try await store.register(request(token, device: "device-" + token), now: now).device
  }

  /// A row as the server would make it.
  package mutating func message(
    for device: DeviceNumber, sender: SenderID = Stage.sender, app: String = "org.example.app",
    collapse: String? = nil, expires: WallTime? = nil, live: Bool = false, body: String = "{}",
    number: MessageNumber? = nil
  ) -> StoredMessage {
    let number = number ?? self.number()
    return StoredMessage(
      number: number, device: device, sender: sender, app: app, key: Self.key(number.value),
      collapse: collapse, expires: expires ?? now + .seconds(3_600), live: live, body: Array(body.utf8),
      receipt: number.value.isMultiple(of: 2) ? Array("{\"receipt\":true}".utf8) : [])
  }

  mutating func upstream(
    for sender: SenderID = Stage.sender, device: DeviceNumber? = nil, expires: WallTime? = nil
  ) -> StoredUpstream {
    let number = number()
    return StoredUpstream(
      number: number, sender: sender, key: Self.key(number.value), device: device,
      expires: expires ?? now + .seconds(3_600), body: Array("{\"n\":\(number.value)}".utf8),
      messageID: "m-\(number.value)", from: "from")
  }

  func enqueue(_ rows: [StoredMessage]) async throws -> WriteOutcome {
    var batch = WriteBatch()
    batch.enqueue = rows
    return try await store.write(batch, now: now)
  }

  func settle(_ rows: [StoredMessage]) async throws {
    var batch = WriteBatch()
    batch.settle = rows.map { .init(device: $0.device, number: $0.number) }
    _ = try await store.write(batch, now: now)
  }

  func append(_ rows: [StoredUpstream]) async throws {
    var batch = WriteBatch()
    batch.append = rows
    _ = try await store.write(batch, now: now)
  }

  /// All of a device's backlog, a page at a time.
  func backlog(of device: DeviceNumber, page: Int = 1_000) async throws -> [StoredMessage] {
    var all: [StoredMessage] = []
    while true {
      let next = try await store.backlog(of: device, after: all.last?.number, max: page, now: now)
      all += next.messages
      guard next.hasMore else { return all }
      try expectEqual(next.messages.count, page, "a page that is not the last")
    }
  }

  func overflowed(_ device: DeviceNumber) async throws -> Int {
    try await store.backlog(of: device, max: 1, now: now).overflowed
  }

  func lease(
    node: Int = 1, after: MessageNumber? = nil, max: Int = 100, seconds: Int = 60,
    for sender: SenderID = Stage.sender
  ) async throws -> [StoredUpstream] {
    try await store.lease(
      for: sender, after: after, max: max, node: node, until: now + .seconds(seconds), now: now)
  }
}
