import EventLoops
import Foundation
import JSONCore
import TestKit
import Testing

@testable import ConnectionServer

/// The console's live feed: what it tells, whom it tells it, and that nobody waits for it.
@Suite struct ConsoleFeedTests {
  private func key(_ address: ServerAddress) throws -> String {
    JSONValue.object([.init("key", .string(try address.secret("admin-key")))]).text
  }

  private func watcher(_ address: ServerAddress, _ filter: String? = nil) async throws -> FeedReader {
    let reader = try await FeedReader(address)
    reader.send(try key(address))
    if let filter { reader.send(#"{"filter":\#(filter)}"#) }
    try await reader.next("the first figures") { $0["figures"] != nil }
    return reader
  }

  @Sendable private static func holds(_ message: JSONValue, _ id: String, _ state: String) -> Bool {
    message["steps"]?.array?.contains { $0["message_id"]?.string == id && $0["state"]?.string == state }
      == true
  }

  // MARK: Who may

  @Test func aPageWithoutTheKeyIsClosed() async throws {
    try await TestServer.run { address in
      for first in [#"{"key":"wrong"}"#, #"{"filter":{}}"#, "{}"] {
        let reader = try await FeedReader(address)
        reader.send(first)
        let end = try await reader.inbox.wait(for: "the end", within: .seconds(10)) { $0.end }
        #expect(end.contains("1008"), "\(first): \(end)")
        #expect(reader.inbox.current.messages.isEmpty)
      }
      let noJSON = try await FeedReader(address)
      noJSON.send("{")
      #expect(
        try await noJSON.inbox.wait(for: "the end", within: .seconds(10)) { $0.end }.contains("1007"))
      // A page that says nothing has five seconds.
      let silent = try await FeedReader(address)
      #expect(
        try await silent.inbox.wait(for: "the end", within: .seconds(15)) { $0.end }.contains("1008"))
      #expect(try await address.administer("GET", "/admin/v1/feed").status == 426)
      #expect(try await address.request("GET", "/admin/v1/feed").status == 404)
    }
  }

  @Test func thePagesAtOnceAreBounded() async throws {
    try await TestServer.run { address in
      var readers: [FeedReader] = []
      for _ in 0..<ConsoleHub.feedsMax { readers.append(try await watcher(address)) }
      let one = try await FeedReader(address)
      #expect(try await one.inbox.wait(for: "the end", within: .seconds(10)) { $0.end }.contains("503"))
      readers.removeLast().close()
      readers.append(try await watcherWithin(address))
    }
  }

  /// A place is free a moment after its page went.
  private func watcherWithin(_ address: ServerAddress) async throws -> FeedReader {
    for _ in 0..<50 {
      let reader = try await FeedReader(address)
      reader.send(try key(address))
      let isIn = try await reader.inbox.wait(for: "figures or the end", within: .seconds(10)) {
        $0.end != nil ? false : $0.messages.isEmpty ? nil : true
      }
      if isIn { return reader }
    }
    throw FeedRefused()
  }
  private struct FeedRefused: Error {}

  // MARK: What it tells

  @Test func itTellsFiguresAndTheStepsOfMessagesByName() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let stream = try await address.connect(device)
      let sender = try await address.connectAppServer()
      let page = try await watcher(address)
      sender.sendMessage(to: device.token, id: "m1")
      stream.acknowledgeDelivery(try await stream.nextPayload())
      #expect(try await sender.nextPayload()["message_type"] == "ack")
      sender.sendMessage(to: "nobody", id: "m2")
      #expect(try await sender.nextPayload()["error"] == "BAD_REGISTRATION")
      stream.sendPayload(
        #"{"to":"\#(address.senderID)@fcm.googleapis.com","message_id":"u1","data":{"k":"v"}}"#)
      sender.acknowledge(try await sender.nextPayload())
      try await page.next("the delivery") { Self.holds($0, "m1", "delivered") }
      try await page.next("the nack") { Self.holds($0, "m2", "nacked") }
      let message = try await page.next("upstream") { Self.holds($0, "u1", "delivered") }
      let figures = try #require(message["figures"])
      #expect(figures["devices"]?.int == 1 && figures["app_servers"]?.int == 1)
      #expect(figures["downstream"]?["delivered"]?.int == 1 && figures["upstream"]?["accepted"]?.int == 1)
      #expect(figures["nacks"]?["BAD_REGISTRATION"]?.int == 1)
      #expect(figures["rows"]?["registrations"]?.int == 1)
      let steps = page.steps
      let mine = steps.filter { $0["message_id"]?.string == "m1" }
      #expect(mine.map { $0["state"]?.string } == ["accepted", "in_flight", "delivered"])
      #expect(mine.allSatisfy { $0["target"]?.string == device.token })
      #expect(steps.first { $0["message_id"]?.string == "m2" }?["code"]?.string == "BAD_REGISTRATION")
      // The message can be found by what the page was told.
      let id = try #require(mine.first?["device_message_id"]?.string)
      let found = try await address.administer("GET", "/admin/v1/messages?device_message_id=\(id)")
      #expect(try JSONValue(parsing: found.body)["message_id"]?.string == "m1")
      stream.abort()
      sender.abort()
    }
  }

  @Test func aFilterChoosesByTokenStateTopicAndDirection() async throws {
    try await TestServer.run { address in
      let one = try await address.registerDevice()
      let two = try await address.registerDevice()
      _ = try await address.administer(
        "POST", "/admin/v1/topics/news/subscribe", body: #"{"tokens":["\#(two.token)"]}"#)
      let stream = try await address.connect(two)
      let all = try await watcher(address)
      let byToken = try await watcher(address, #"{"token":"\#(one.token)"}"#)
      let byState = try await watcher(address, #"{"state":"stored","sender_id":"\#(address.senderID)"}"#)
      let byTopic = try await watcher(address, #"{"topic":"news"}"#)
      let upstream = try await watcher(address, #"{"direction":"upstream"}"#)
      let sender = try await address.connectAppServer()
      for (id, to) in [("a", one.token), ("b", two.token), ("c", "/topics/news")] {
        sender.sendMessage(to: to, id: id)
        if id != "a" { stream.acknowledgeDelivery(try await stream.nextPayload()) }
        #expect(try await sender.nextPayload()["message_type"] == "ack")
      }
      try await all.next("all") { Self.holds($0, "c", "stored") }
      try await byToken.next("by token") { Self.holds($0, "a", "stored") }
      try await byState.next("by state") { Self.holds($0, "a", "stored") }
      try await byTopic.next("by topic") { Self.holds($0, "c", "stored") }
      // The share that its device got is shown under its topic too.
      try await byTopic.next("the share") { message in
        message["steps"]?.array?.contains {
          $0["state"]?.string == "delivered" && $0["target"]?.string == "/topics/news"
        } == true
      }
      #expect(Set(byToken.steps.map { $0["message_id"]?.string }) == ["a"])
      #expect(Set(byState.steps.map { $0["state"]?.string }) == ["stored"])
      #expect(!byTopic.steps.contains { ["a", "b"].contains($0["message_id"]?.string) })
      #expect(upstream.steps.isEmpty)
      // What cannot be filtered by is told, and the filter before stays.
      for wrong in [
        #"{"token":"nobody"}"#, #"{"state":"lost"}"#, #"{"topic":"a b"}"#, #"{"sender_id":"x"}"#,
        #"{"direction":"sideways"}"#, #"{"colour":"red"}"#, #"{"state":7}"#, "[]",
      ] {
        let before = all.inbox.current.messages.count
        all.send(#"{"filter":\#(wrong)}"#)
        try await all.inbox.wait(for: "a word about \(wrong)", within: .seconds(10)) {
          $0.messages.dropFirst(before).contains { $0["error"] != nil } ? () : nil
        }
      }
      stream.abort()
      sender.abort()
    }
  }

  // MARK: That nobody waits for it

  @Test func aPageThatDoesNotReadIsPassedOverAndCutOffWhileMessagesGoTheirWay() async throws {
    let server = try await TestServer.start()
    let address = server.address
    let worker = try #require(server.server.context.workers.first)
    let device = try await address.registerDevice()
    let stream = try await address.connect(device)
    let sender = try await address.connectAppServer()
    let stuck = try await watcher(address)
    let reading = try await watcher(address)
    stuck.pauseReading()
    // Seconds pass quickly, so that the system's buffers are full soon.
    try await worker.loop.perform { worker.console.period = .milliseconds(1) }
    var largest = 0
    var sent = 0
    let deadline = ContinuousClock.now + .seconds(60)
    while try await worker.loop.perform({ worker.console.feeds.count }) == 2 {
      try #require(ContinuousClock.now < deadline, "the page is still served; \(largest) bytes wait for it")
      let began = ContinuousClock.now
      for _ in 0..<20 {
        sent += 1
        sender.sendMessage(to: device.token, id: "m\(sent)")
        stream.acknowledgeDelivery(try await stream.nextPayload())
        #expect(try await sender.nextPayload()["message_type"] == "ack")
      }
      #expect(ContinuousClock.now - began < .seconds(5))
      largest = try await max(
        largest, worker.loop.perform { worker.console.feeds.values.map(\.queuedBytes).max() ?? 0 })
    }
    // One message at most waits here for a page: it is sent the next one when it has read that.
    #expect(largest < 256 * 1024, "\(largest)")
    let count = reading.inbox.current.messages.count
    try await reading.inbox.wait(for: "the other page to be served", within: .seconds(10)) {
      $0.messages.count > count ? () : nil
    }
    #expect(server.server.context.watch.isOn)
    reading.close()
    // Nobody is left: nothing is kept, and no timer runs.
    var isQuiet = false
    for _ in 0..<200 where !isQuiet {
      isQuiet = try await worker.loop.perform {
        worker.console.feeds.isEmpty && worker.shard.tail.names.isEmpty
      }
    }
    #expect(isQuiet && !server.server.context.watch.isOn)
    stream.abort()
    sender.abort()
    await server.stop()
  }

  @Test func aDrainClosesTheFeed() async throws {
    let server = try await TestServer.start()
    let page = try await watcher(server.address)
    await server.stop()
    #expect(try await page.inbox.wait(for: "the end", within: .seconds(10)) { $0.end }.contains("1001"))
  }
}
