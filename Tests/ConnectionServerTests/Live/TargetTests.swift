import Foundation
import JSONCore
import PushModel
import TestKit
import Testing

/// Topics, groups and users over sockets: HTTPS, the admin surface and streams.
@Suite struct LiveTargetTests {
  private func basic(_ device: TestDevice) -> [String: String] {
    ["authorization": "Basic " + Data("\(device.id):\(device.secret)".utf8).base64EncodedString()]
  }

  private func subscriptions(_ address: ServerAddress, _ device: TestDevice) -> String {
    "/v1/projects/\(address.projectID)/registrations/\(device.token.replacing(":", with: "%3A"))/topicSubscriptions"
  }

  private func json(_ answer: TestHTTPAnswer) throws -> JSONValue { try JSONValue(parsing: answer.body) }

  @Test func aDeviceJoinsATopicItselfAndGetsItsMessages() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let other = try await address.registerDevice()
      let path = subscriptions(address, device)
      let joined = try await address.request(
        "POST", path + "?topic_name=news", headers: basic(device), body: "{}")
      #expect(joined.status == 200)
      #expect(
        try await address.request("POST", path + "?topic_name=news", headers: basic(device)).status == 200)
      #expect(
        try await address.request("POST", path + "?topic_name=news", headers: basic(other)).status == 404)
      #expect(try await address.request("POST", path + "?topic_name=news").status == 401)
      #expect(
        try await address.request("POST", path + "?topic_name=no%20name", headers: basic(device)).status
          == 400)
      #expect(try await address.request("POST", path, headers: basic(device)).status == 400)
      #expect(try await address.request("GET", path, headers: basic(device)).status == 405)

      let stream = try await address.connect(device)
      let sender = try await address.connectAppServer()
      sender.sendMessage(to: "/topics/news", id: "m1", data: ["k": "é<&>"])
      let ack = try await sender.nextPayload()
      #expect(ack["message_type"] == "ack")
      #expect(ack["from"] == "/topics/news")
      let message = try await stream.nextPayload()
      #expect(message["from"] == "/topics/news")
      #expect(message["token"] == device.token)
      #expect(message["data", "k"] == "é<&>")
      stream.acknowledgeDelivery(message)

      // The same id again is acked and not delivered again.
      sender.sendMessage(to: "/topics/news", id: "m1", data: ["k": "again"])
      #expect(try await sender.nextPayload()["message_type"] == "ack")
      let left = try await address.request("DELETE", path + "/news", headers: basic(device))
      #expect(left.status == 200)
      #expect(try await address.request("DELETE", path + "/news", headers: basic(device)).status == 404)
      #expect(
        try await address.request("DELETE", path + "/news?allow_missing=true", headers: basic(device)).status
          == 200)
      sender.sendMessage(to: "/topics/news", id: "m2")
      #expect(try await sender.nextPayload()["message_type"] == "ack")
      sender.sendMessage(to: device.token, id: "m3")
      #expect(try await sender.nextPayload()["message_type"] == "ack")
      #expect(try await stream.nextPayload()["from"] == address.senderID)
    }
  }

  @Test func theAPIKeySubscribesAnyTokenOfTheProject() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let path = subscriptions(address, device) + "?topic_name=news"
      let key = try address.secret("api-key")
      #expect(try await address.request("POST", path, headers: ["x-goog-api-key": key]).status == 200)
      #expect(try await address.request("POST", path, headers: ["x-goog-api-key": "wrong"]).status == 401)
      let unknown = "/v1/projects/\(address.projectID)/registrations/nobody/topicSubscriptions"
      #expect(
        try await address.request("POST", unknown + "?topic_name=a", headers: ["x-goog-api-key": key]).status
          == 404)
    }
  }

  @Test func topicsAreAdministeredAndTheirMessagesInspected() async throws {
    try await TestServer.run { address in
      var tokens: [String] = []
      for _ in 0..<3 { tokens.append(try await address.registerDevice().token) }
      let body = JSONValue.object([.init("tokens", .array((tokens + ["nobody"]).map { .string($0) }))]).text
      let made = try json(
        try await address.administer("POST", "/admin/v1/topics/news/subscribe", body: body))
      #expect(made["changed"]?.int == 3)
      #expect(made["failed"]?.int == 1)
      #expect(made["results"]?.array?.last?["outcome"]?.string == "unknown_token")
      let list = try json(try await address.administer("GET", "/admin/v1/topics"))
      #expect(list["topics"]?.array?.first?["subscribers"]?.int == 3)
      let shown = try json(try await address.administer("GET", "/admin/v1/topics/news"))
      #expect(shown["subscribers"]?.array?.compactMap { $0["token"]?.string } == tokens)

      let sender = try await address.connectAppServer()
      sender.sendPayload("{\"condition\":\"'news' in topics\",\"message_id\":\"m1\",\"data\":{\"a\":\"b\"}}")
      #expect(try await sender.nextPayload()["message_type"] == "ack")
      var state: JSONValue = .null
      for _ in 0..<200 {
        state = try json(try await address.administer("GET", "/admin/v1/messages/\(address.senderID)/m1"))
        if state["state"]?.string == "fanned_out" { break }
      }
      #expect(state["fanout"]?["audience"]?.string == "'news' in topics")
      #expect(state["fanout"]?["matched"]?.int == 3)
      #expect(state["fanout"]?["waiting"]?.int == 3)
      #expect(state["ended"]?.bool == false)
      let stored = try json(
        try await address.administer(
          "GET", "/admin/v1/messages?token=\(tokens[0].replacing(":", with: "%3A"))"))
      #expect(stored["stored"]?.array?.first?["from_topic_message"]?.bool == true)

      sender.sendPayload("{\"condition\":\"\\\"news\\\" in topics\",\"message_id\":\"m2\"}")
      let nack = try await sender.nextPayload()
      #expect(nack["error"] == "INVALID_JSON")
      #expect(nack["error_description"]?.contains("column 1") == true)
      sender.sendPayload("{\"to\":\"'news' in topics\",\"message_id\":\"m3\"}")
      #expect(try await sender.nextPayload()["error"] == "BAD_REGISTRATION")

      let gone = try json(
        try await address.administer("POST", "/admin/v1/topics/news/unsubscribe", body: body))
      #expect(gone["changed"]?.int == 3)
      #expect(try await address.administer("GET", "/admin/v1/topics/no%20name").status == 400)
      #expect(try await address.administer("DELETE", "/admin/v1/topics").status == 405)
      #expect(try await address.administer("GET", "/admin/v1/topics?project=none").status == 400)
    }
  }

  @Test func groupsAndUsersAreAddressedAndAdministered() async throws {
    try await TestServer.run { address in
      let phone = try await address.registerDevice(user: "ann")
      let tablet = try await address.registerDevice(user: "ann")
      let tokens = JSONValue.array([.string(phone.token), .string(tablet.token)])
      let created = try await address.administer(
        "POST", "/admin/v1/groups",
        body: JSONValue.object([.init("name", "family"), .init("tokens", tokens)]).text)
      let key = try #require(try json(created)["notification_key"]?.string)
      let again = try await address.administer(
        "POST", "/admin/v1/groups",
        body: JSONValue.object([.init("name", "family"), .init("tokens", tokens)]).text)
      #expect(again.status == 409)
      #expect(
        try json(try await address.administer("GET", "/admin/v1/groups/family"))["notification_key"]?.string
          == key)

      let streams = [try await address.connect(phone), try await address.connect(tablet)]
      let sender = try await address.connectAppServer()
      sender.sendMessage(to: key, id: "g1", data: ["a": "b"])
      let ack = try await sender.nextPayload()
      #expect(ack["message_type"] == "ack")
      #expect(ack.text.contains("\"success\":2,\"failure\":0"))
      for stream in streams {
        let message = try await stream.nextPayload()
        #expect(message["from"] == address.senderID)
        stream.acknowledgeDelivery(message)
      }
      for count in 1...2 {
        sender.sendPayload(
          "{\"to\":\"/users/ann\",\"message_id\":\"u\(count)\",\"notification\":{\"title\":\"t\",\"badge\":\"+1\"}}"
        )
        for stream in streams {
          let message = try await stream.nextPayload()
          #expect(message["notification", "badge"] == String(count))
          stream.acknowledgeDelivery(message)
        }
        #expect(try await sender.nextPayload()["message_type"] == "ack")
      }
      let user = try json(try await address.administer("GET", "/admin/v1/users/ann"))
      #expect(user["badge"]?.int == 2)
      #expect(user["devices"]?.array?.count == 2)
      #expect(try await address.administer("DELETE", "/admin/v1/users/ann/badge").status == 200)
      #expect(
        try json(try await address.administer("GET", "/admin/v1/users/ann/badge"))["badge"]?.int == 0)
      #expect(
        try await address.administer("PUT", "/admin/v1/users/ann/badge", body: "{\"badge\":-1}").status == 400
      )
      let removed = try await address.administer(
        "POST", "/admin/v1/groups/family/remove", body: JSONValue.object([.init("tokens", tokens)]).text)
      #expect(try json(removed)["state"]?.string == "deleted")
      sender.sendMessage(to: key, id: "g2")
      #expect(try await sender.nextPayload()["error"] == "DEVICE_UNREGISTERED")
    }
  }

  @Test func aTopicMessageSurvivesARestart() async throws {
    let server = try await ServerProcess.start()
    do {
      let address = server.address
      let device = try await address.registerDevice()
      _ = try await address.request(
        "POST", subscriptions(address, device) + "?topic_name=news", headers: basic(device))
      let sender = try await address.connectAppServer()
      for index in 0..<50 { sender.sendMessage(to: "/topics/news", id: "m\(index)") }
      for _ in 0..<50 { #expect(try await sender.nextPayload()["message_type"] == "ack") }
      try await server.kill()
      try await server.restart()
      let stream = try await server.address.connect(device)
      var seen: Set<String> = []
      for _ in 0..<50 {
        let message = try await stream.nextPayload()
        stream.acknowledgeDelivery(message)
        seen.insert(message["message_id"] ?? "")
      }
      #expect(seen.count == 50)
    } catch {
      try await server.kill()
      throw error
    }
    try await server.kill()
  }
}
