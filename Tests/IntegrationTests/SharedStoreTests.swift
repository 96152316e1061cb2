import Foundation
import TestKit
import Testing

/// `weir serve` on PostgreSQL: alone, and as one of several nodes.
@Suite(.serialized) struct SharedStoreTests {
  private func start(
    on schema: PostgresServer.Schema, flags: [String] = []
  ) async throws -> ServerProcess {
    try await ServerProcess.start(flags: ["--store", schema.url] + flags)
  }

  private func schema() async throws -> PostgresServer.Schema {
    try await PostgresServer.shared().schema()
  }

  @Test func messagesAreKeptOverARestartAndAKill() async throws {
    let server = try await start(on: schema())
    let registered = try await server.address.registerDevice()
    let stream = try await server.address.connectAppServer()
    for number in 0..<50 {
      stream.sendMessage(to: registered.token, id: "m-\(number)", data: ["n": "\(number)"])
    }
    for _ in 0..<50 { #expect(try await stream.nextPayload()["message_type"] == "ack") }
    try await server.kill()
    try await server.restart()
    let again = try await server.address.connectAppServer()
    for number in 0..<50 {
      again.sendMessage(to: registered.token, id: "m-\(number)", data: ["n": "\(number)"])
    }
    for _ in 0..<50 { #expect(try await again.nextPayload()["message_type"] == "ack") }
    let device = try await server.address.connect(registered)
    for number in 0..<50 {
      let payload = try await device.nextPayload()
      #expect(payload["data", "n"] == "\(number)")
      device.acknowledgeDelivery(payload)
    }
    again.sendMessage(to: registered.token, id: "last", data: ["n": "last"])
    let last = try await device.nextPayload()
    #expect(last["data", "n"] == "last")
    device.acknowledgeDelivery(last)
    #expect(try await server.terminate() == 0)
    try await server.restart()
    let back = try await server.address.connect(registered)
    let sender = try await server.address.connectAppServer()
    sender.sendMessage(to: registered.token, id: "after", data: ["n": "after"])
    #expect(try await back.nextPayload()["data", "n"] == "after")
    #expect(try await server.terminate() == 0)
  }

  @Test func severalNodesMayStartAtOnceOnAnEmptyDatabase() async throws {
    for _ in 0..<3 {
      let schema = try await PostgresServer.shared().schema()
      let nodes = try await withThrowingTaskGroup(of: ServerProcess.self) { group in
        for _ in 0..<4 { group.addTask { try await start(on: schema) } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(try await schema.sql("SELECT count(*) FROM project") == "1")
      #expect(Set(nodes.map(\.address.senderID)).count == 1)
      for node in nodes { #expect(try await node.terminate() == 0) }
    }
  }

  @Test func upstreamIsKeptOverAKill() async throws {
    let server = try await start(on: schema())
    let registered = try await server.address.registerDevice()
    let device = try await server.address.connect(registered)
    let to = "\(server.address.senderID)@fcm.googleapis.com"
    for number in 0..<10 {
      device.sendPayload(#"{"to":"\#(to)","message_id":"u-\#(number)","data":{"n":"\#(number)"}}"#)
      #expect(try await device.nextPayload()["message_type"] == "ack")
    }
    try await server.kill()
    try await server.restart()
    let stream = try await server.address.connectAppServer()
    for number in 0..<10 {
      let upstream = try await stream.nextPayload()
      #expect(upstream["data", "n"] == "\(number)")
      stream.acknowledge(upstream)
    }
    #expect(try await server.terminate() == 0)
  }

  @Test func aMessageAcceptedByOneNodeReachesADeviceOnAnother() async throws {
    let schema = try await schema()
    let (first, second) = (try await start(on: schema), try await start(on: schema))
    let registered = try await first.address.registerDevice()
    let device = try await second.address.connect(registered)
    let sender = try await first.address.connectAppServer()
    for number in 0..<20 {
      sender.sendMessage(to: registered.token, id: "m-\(number)", data: ["n": "\(number)"])
      #expect(try await sender.nextPayload()["message_type"] == "ack")
      let payload = try await device.nextPayload()
      #expect(payload["data", "n"] == "\(number)")
      device.acknowledgeDelivery(payload)
    }
    let answer = try await second.address.administer("GET", "/admin/v1/nodes")
    #expect(answer.status == 200)
    #expect(answer.body.components(separatedBy: "\"alive\":true").count == 3, "\(answer.body)")
    #expect(try await first.terminate() == 0)
    #expect(try await second.terminate() == 0)
  }

  @Test func aDeviceThatLogsInElsewhereIsPutOutHere() async throws {
    let schema = try await schema()
    let (first, second) = (try await start(on: schema), try await start(on: schema))
    let registered = try await first.address.registerDevice()
    let old = try await first.address.connect(registered)
    let sender = try await first.address.connectAppServer()
    sender.sendMessage(to: registered.token, id: "m", data: ["n": "1"])
    #expect(try await old.nextPayload()["data", "n"] == "1")
    let new = try await second.address.connect(registered)
    try await old.waitForStreamError("conflict")
    // What it had not acked comes again there.
    let payload = try await new.nextPayload()
    #expect(payload["data", "n"] == "1")
    new.acknowledgeDelivery(payload)
    #expect(try await first.terminate() == 0)
    #expect(try await second.terminate() == 0)
  }

  @Test func upstreamGoesToTheNodeThatHasTheSendersStreams() async throws {
    let schema = try await schema()
    let (first, second) = (try await start(on: schema), try await start(on: schema))
    let registered = try await first.address.registerDevice()
    let device = try await first.address.connect(registered)
    let stream = try await second.address.connectAppServer()
    let to = "\(first.address.senderID)@fcm.googleapis.com"
    for number in 0..<10 {
      device.sendPayload(#"{"to":"\#(to)","message_id":"u-\#(number)","data":{"n":"\#(number)"}}"#)
      #expect(try await device.nextPayload()["message_type"] == "ack")
      let upstream = try await stream.nextPayload()
      #expect(upstream["data", "n"] == "\(number)")
      stream.acknowledge(upstream)
    }
    // One that the second node has and does not ack comes to the first one when the second is gone.
    device.sendPayload(#"{"to":"\#(to)","message_id":"u-last","data":{"n":"last"}}"#)
    #expect(try await device.nextPayload()["message_type"] == "ack")
    #expect(try await stream.nextPayload()["data", "n"] == "last")
    let here = try await first.address.connectAppServer()
    try await second.kill()
    // What it had acked just before it died may come again: the removal had not reached the store.
    var found = ""
    while found != "last" {
      let again = try await here.nextPayload(within: .seconds(30))
      found = again["data", "n"] ?? "nothing"
      here.acknowledge(again)
      guard (0..<10).contains(Int(found) ?? -1) else { break }
    }
    #expect(found == "last")
    #expect(try await first.terminate() == 0)
  }

  @Test func devicesOfAKilledNodeGoOnElsewhere() async throws {
    let schema = try await schema()
    let (first, second) = (try await start(on: schema), try await start(on: schema))
    let registered = try await first.address.registerDevice()
    let old = try await second.address.connect(registered)
    let sender = try await first.address.connectAppServer()
    sender.sendMessage(to: registered.token, id: "m-1", data: ["n": "1"])
    let payload = try await old.nextPayload()
    #expect(payload["data", "n"] == "1")
    try await second.kill()
    sender.sendMessage(to: registered.token, id: "m-2", data: ["n": "2"])
    for _ in 0..<2 { #expect(try await sender.nextPayload()["message_type"] == "ack") }
    let new = try await first.address.connect(registered)
    #expect(try await new.nextPayload()["data", "n"] == "1")
    #expect(try await new.nextPayload()["data", "n"] == "2")
    #expect(try await first.terminate() == 0)
  }

  @Test func aTopicMessageReachesDevicesOnEveryNode() async throws {
    let schema = try await schema()
    let (first, second) = (try await start(on: schema), try await start(on: schema))
    let here = try await first.address.registerDevice()
    let there = try await first.address.registerDevice()
    for token in [here.token, there.token] {
      let answer = try await first.address.request(
        "POST",
        "/v1/projects/\(first.address.projectID)/registrations/\(token)/topicSubscriptions?topic_name=news",
        headers: ["x-goog-api-key": try first.address.secret("api-key")])
      #expect(answer.status == 200, "\(answer)")
    }
    let streams = [
      try await first.address.connect(here), try await second.address.connect(there),
    ]
    let sender = try await first.address.connectAppServer()
    sender.sendPayload(#"{"to":"/topics/news","message_id":"t-1","data":{"n":"all"}}"#)
    #expect(try await sender.nextPayload()["message_type"] == "ack")
    for stream in streams { #expect(try await stream.nextPayload()["data", "n"] == "all") }
    #expect(try await first.terminate() == 0)
    #expect(try await second.terminate() == 0)
  }

  @Test func sendersAreRefusedWhileTheStoreIsAwayAndDevicesStay() async throws {
    let database = try await PostgresServer.start()
    let server = try await ServerProcess.start(flags: ["--store", database.url(), "--test-mode"])
    let (away, near) = (try await server.address.registerDevice(), try await server.address.registerDevice())
    let device = try await server.address.connect(near)
    let sender = try await server.address.connectAppServer()
    // Both tokens are known to the node.
    sender.sendMessage(to: away.token, id: "before", data: ["n": "1"])
    #expect(try await sender.nextPayload()["message_type"] == "ack")
    try await database.kill()
    // A process of the server may live a moment longer than its master and take one or two more.
    var taken = ["1"]
    for attempt in 2... {
      sender.sendMessage(to: away.token, id: "m-\(attempt)", data: ["n": "\(attempt)"])
      let answer = try await sender.nextPayload(within: .seconds(30))
      guard answer["message_type"] == "nack" else {
        taken.append("\(attempt)")
        continue
      }
      #expect(answer["error"] == "SERVICE_UNAVAILABLE")
      break
    }
    // The doors of HTTP say the same, and when to come again.
    let refused = try await server.address.request(
      "POST", "/v1/projects/\(server.address.projectID)/messages:send",
      headers: ["authorization": "Bearer any", "content-type": "application/json"],
      body: #"{"message":{"token":"\#(away.token)","data":{"n":"v1"}}}"#, within: .seconds(30))
    #expect(refused.status == 503, "\(refused)")
    #expect(refused.headers["retry-after"].flatMap { Int($0) } ?? 0 > 0, "\(refused)")
    let unavailable = try await server.address.request(
      "POST", "/fcm/send",
      headers: [
        "authorization": "key=" + (try server.address.secret("server-key")),
        "content-type": "application/json",
      ], body: #"{"to":"\#(away.token)","data":{"n":"legacy"}}"#, within: .seconds(30))
    let isTold = unavailable.status == 503 || unavailable.body.contains(#""error":"Unavailable""#)
    #expect(isTold, "\(unavailable)")
    #expect(unavailable.headers["retry-after"].flatMap { Int($0) } ?? 0 > 0, "\(unavailable)")
    try await database.restart()
    // Each again, until the store is back: for writing, and for reading what a node has to ask after a loss of touch.
    let end = ContinuousClock.now + .seconds(30)
    for (token, name) in [(away.token, "again"), (near.token, "near")] {
      while true {
        sender.sendMessage(to: token, id: name, data: ["n": name])
        let answer = try await sender.nextPayload(within: .seconds(30))
        if answer["message_type"] == "ack" { break }
        #expect(answer["error"] == "SERVICE_UNAVAILABLE")
        try #require(ContinuousClock.now < end, "the store does not come back")
      }
    }
    taken.append("again")
    #expect(try await device.nextPayload()["data", "n"] == "near")
    let back = try await server.address.connect(away)
    for number in taken { #expect(try await back.nextPayload()["data", "n"] == number) }
    #expect(try await server.terminate() == 0)
    try await database.kill()
  }

  @Test func aStoreThatIsNotThereIsNamedWithoutItsPassword() async throws {
    let directory = try TemporaryDirectory()
    let errors = directory.path + "/errors"
    let (code, _) = try await ChildProcess.run(
      try ServerProcess.findExecutable(),
      [
        "serve", "--data", directory.path + "/data", "--store",
        "postgres://ana:hush@/weir?host=\(directory.path)", "--xmpp-port", "0", "--https-port", "0",
        "--admin-port", "0",
      ], errors: errors)
    let text = try String(contentsOfFile: errors, encoding: .utf8)
    #expect(code == 3)
    #expect(text.contains("cannot be reached"), "\(text)")
    #expect(!text.contains("hush"))
    let (shownCode, shown) = try await ChildProcess.run(
      try ServerProcess.findExecutable(),
      ["serve", "--print-config", "--store", "postgres://ana:hush@db/weir"])
    #expect(shownCode == 0)
    #expect(shown.contains("ana:***@db"), "\(shown)")
    #expect(!shown.contains("hush"))
    let (badCode, _) = try await ChildProcess.run(
      try ServerProcess.findExecutable(), ["serve", "--store", "mysql://db"])
    #expect(badCode == 2)
  }
}
