import DeliveryCore
import PushModel
import Seams
import Stores
import Testing

@testable import ConnectionServer

@Suite struct ShardAudienceTests {
  private let group = NotificationKey(random: Array(0..<32)).text

  private func makeGroup(_ harness: ShardHarness, _ tokens: [String]) throws {
    let key = group
    let outcome = try harness.ask {
      harness.store.createGroup(
        key: key, name: "family", sender: harness.sender, tokens: tokens, now: harness.time.wall, $0)
    }
    guard case .done = outcome else { throw StoreFault.refused(detail: "\(outcome)") }
  }

  private func sendToGroup(
    _ harness: ShardHarness, _ id: String, from stream: StreamRef, slot: UInt32, more: String = ""
  ) throws {
    try harness.sendToTarget(
      "{\"to\":\"\(group)\",\"message_id\":\"\(id)\"\(more)}", from: stream, slot: slot)
  }

  private func sendToUser(
    _ harness: ShardHarness, _ user: String, _ id: String, from stream: StreamRef, slot: UInt32,
    more: String = ""
  ) throws {
    try harness.sendToTarget(
      "{\"to\":\"/users/\(user)\",\"message_id\":\"\(id)\"\(more)}", from: stream, slot: slot)
  }

  private func code(_ answer: Answer?) -> NackCode? {
    if case .nack(let code, _, _)? = answer { code } else { nil }
  }

  @Test func everyMemberOfAGroupGetsTheMessageOnceAndTheAckCounts() throws {
    let harness = ShardHarness()
    let phones = try (0..<3).map { try harness.add("\($0)") }
    try makeGroup(harness, phones.map(\.token))
    let (device, _) = harness.connect(phones[1])
    let (sender, stream) = harness.openSender()
    try sendToGroup(harness, "m1", from: stream, slot: 0)
    harness.advance(.milliseconds(20))
    #expect(sender.answers[0] == [.ackCounted(success: 3, failed: [])])
    #expect(device.delivered.count == 1)
    #expect(device.delivered[0].text.contains("\"from\":\"\(harness.sender)\""))
    #expect(harness.storedCount() == 3)
    try sendToGroup(harness, "m1", from: stream, slot: 1)
    harness.advance(.milliseconds(60))
    #expect(sender.answers[1] == [.ack])
    #expect(harness.storedCount() == 3)
    #expect(harness.shards.allSatisfy { $0.manySends.isEmpty })
  }

  @Test func membersThatCannotBeReachedAreNamed() throws {
    let harness = ShardHarness()
    _ = try harness.add("0")
    _ = try harness.add("1", app: "org.example.other")
    try makeGroup(harness, ["dev-0", "dev-1"])
    let (sender, stream) = harness.openSender()
    let package = ",\"restricted_package_name\":\"org.example.app\""
    try sendToGroup(harness, "m1", from: stream, slot: 0, more: package)
    harness.advance(.milliseconds(20))
    #expect(sender.answers[0] == [.ackCounted(success: 1, failed: ["dev-1"])])
    let nobody = ",\"restricted_package_name\":\"org.example.none\""
    try sendToGroup(harness, "m2", from: stream, slot: 1, more: nobody)
    harness.advance(.milliseconds(20))
    #expect(code(sender.answers[1]?.first) == .invalidJSON)
  }

  @Test func aGroupThatIsUnknownOrAnothersIsRefused() throws {
    let harness = ShardHarness()
    let (sender, stream) = harness.openSender()
    try sendToGroup(harness, "m1", from: stream, slot: 0)
    harness.settle()
    #expect(code(sender.answers[0]?.first) == .deviceUnregistered)
    let other = RegistrationRequest(
      token: "other", deviceID: "other", secretHash: [], sender: SenderID(7), app: "a", platform: .linux,
      user: nil, previousToken: nil)
    _ = try harness.ask { harness.store.register(other, now: harness.time.wall, $0) }
    let key = group
    _ = try harness.ask {
      harness.store.createGroup(
        key: key, name: "x", sender: SenderID(7), tokens: ["other"], now: harness.time.wall, $0)
    }
    // The id was refused, so it may be used again.
    try sendToGroup(harness, "m1", from: stream, slot: 1)
    harness.settle()
    #expect(code(sender.answers[1]?.first) == .senderIDMismatch)
  }

  @Test func aRepeatOfAGroupMessageIsAnsweredWithTheFirst() throws {
    let harness = ShardHarness()
    _ = try harness.add("0")
    try makeGroup(harness, ["dev-0"])
    let (sender, stream) = harness.openSender()
    harness.holdsStore = true
    try sendToGroup(harness, "m1", from: stream, slot: 0)
    harness.settle()
    try sendToGroup(harness, "m1", from: stream, slot: 1)
    harness.advance(.seconds(1))
    #expect(sender.answers.isEmpty)
    harness.releaseStore()
    harness.advance(.milliseconds(20))
    #expect(sender.answers[0] == [.ackCounted(success: 1, failed: [])])
    #expect(sender.answers[1] == sender.answers[0])
  }

  @Test func aUserIsAllItsActiveRegistrations() throws {
    let harness = ShardHarness()
    let phones = try (0..<3).map { try harness.add("\($0)", user: $0 == 2 ? "ben" : "ana") }
    let devices = phones.map { harness.connect($0) }
    let (sender, stream) = harness.openSender(on: 1)
    try sendToUser(harness, "ana", "m1", from: stream, slot: 0)
    harness.advance(.milliseconds(20))
    #expect(sender.answers[0] == [.ack])
    #expect(devices.map { $0.0.delivered.count } == [1, 1, 0])
    try sendToUser(harness, "nobody", "m2", from: stream, slot: 1)
    harness.settle()
    #expect(code(sender.answers[1]?.first) == .deviceUnregistered)
  }

  @Test func aBadgeThatCountsReachesAllDevicesOfTheUserAsTheSameNumber() throws {
    let harness = ShardHarness()
    let phones = try (0..<2).map { try harness.add("\($0)", user: "ana") }
    let devices = phones.map { harness.connect($0).0 }
    let (sender, stream) = harness.openSender()
    let badge = ",\"notification\":{\"title\":\"t\",\"badge\":\"+1\"}"
    for index in 0..<3 {
      try sendToUser(harness, "ana", "m\(index)", from: stream, slot: UInt32(index), more: badge)
      harness.advance(.milliseconds(20))
    }
    // A repeat does not count.
    try sendToUser(harness, "ana", "m2", from: stream, slot: 9, more: badge)
    harness.advance(.milliseconds(60))
    #expect(sender.answers[9] == [.ack])
    for device in devices {
      #expect(device.delivered.count == 3)
      for (index, record) in device.delivered.enumerated() {
        #expect(record.text.contains("\"badge\":\"\(index + 1)\""), "\(record.text)")
      }
    }
    #expect(
      try harness.ask { harness.store.devices(ofUser: "ana", sender: harness.sender, max: 1, $0) }.badge == 3)
  }

  @Test func aBadgeCountsForOneRegistrationToo() throws {
    let harness = ShardHarness()
    let phone = try harness.add("a", user: "ana")
    let (device, slot) = harness.connect(phone)
    let (sender, stream) = harness.openSender()
    let shard = harness.shards[0]
    let state = try #require(harness.context.accounts.sender(harness.sender))
    let token = RegistrationToken(random: Array(0..<48)).text
    let json = "{\"to\":\"\(token)\",\"message_id\":\"m1\",\"notification\":{\"badge\":\"+5\"}}"
    try Array(json.utf8).withUnsafeBytes { text in
      guard case .downstream(let draft) = shard.scratch.downstream.read(text) else {
        throw StoreFault.refused(detail: "no message")
      }
      shard.sendCountingBadge(
        draft, text, to: phone, sender: state, key: harness.key("m1"),
        origin: Origin(stream: stream, slot: 0), receipt: [])
    }
    harness.settle()
    #expect(device.delivered.first?.text.contains("\"badge\":\"5\"") == true)
    harness.deviceAcks("m1", slot)
    harness.settle()
    #expect(sender.answers[0] == [.ack])
  }

  @Test func aStoreThatCannotBeReadMakesTheSenderTryAgain() throws {
    let harness = ShardHarness()
    _ = try harness.add("a", user: "ana")
    let (sender, stream) = harness.openSender()
    let fault = StoreFault.unavailable(outcomeUnknown: false, detail: "injected")
    harness.store.setBeforeWrite { $0 == .changeBadge ? .fails(fault) : .goesWell }
    let badge = ",\"notification\":{\"badge\":\"+1\"}"
    try sendToUser(harness, "ana", "m1", from: stream, slot: 0, more: badge)
    harness.settle()
    #expect(code(sender.answers[0]?.first) == .serviceUnavailable)
    harness.store.setBeforeWrite(nil)
    try sendToUser(harness, "ana", "m1", from: stream, slot: 1, more: badge)
    harness.advance(.milliseconds(20))
    #expect(sender.answers[1] == [.ack])
  }
}
