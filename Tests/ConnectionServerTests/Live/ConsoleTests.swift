import Foundation
import JSONCore
import TestKit
import Testing

/// What the console is served, and what its views ask of the administration listener.
@Suite struct ConsoleTests {
  private func json(_ answer: TestHTTPAnswer) throws -> JSONValue { try JSONValue(parsing: answer.body) }

  // MARK: Files

  @Test func theConsoleIsServedFromTheProgramUnderAStrictPolicy() async throws {
    try await TestServer.run { address in
      let page = try await address.administer("GET", "/")
      #expect(page.status == 200 && page.headers["content-type"] == "text/html; charset=utf-8")
      let policy = try #require(page.headers["content-security-policy"])
      #expect(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"))
      #expect(!policy.contains("unsafe") && policy.contains("connect-src 'self'"))
      #expect(page.headers["x-frame-options"] == "DENY")
      #expect(page.headers["x-content-type-options"] == "nosniff")
      #expect(page.headers["referrer-policy"] == "no-referrer")
      #expect(page.headers["access-control-allow-origin"] == nil)
      // Whatever a file of it names is there, and comes from here.
      var wanted = ["/"]
      var seen: Set<String> = []
      while let path = wanted.popLast() {
        guard seen.insert(path).inserted else { continue }
        let answer = try await address.administer("GET", path)
        #expect(answer.status == 200, "\(path)")
        #expect(!answer.body.contains("style=\"") && !answer.body.contains("innerHTML"), "\(path)")
        for found in answer.body.matches(of: #/(?:from|src=|href=) ?"((?:\.|\/)[^"#]*)"/#) {
          let name = String(found.output.1)
          wanted.append(name.hasPrefix("./") ? "/console/" + name.dropFirst(2) : name)
        }
      }
      #expect(seen.count > 18, "\(seen)")
      // Nothing of it stands on the listener that others reach.
      #expect(try await address.request("GET", "/").status == 404)
      #expect(try await address.request("GET", "/console/app.js").status == 404)
      #expect(try await address.administer("GET", "/console/none.js").status == 404)
    }
  }

  // MARK: Lists

  @Test func registrationsComeAPageAtATimeAndByTheirBeginning() async throws {
    try await TestServer.run { address in
      var tokens: [String] = []
      for _ in 0..<7 { tokens.append(try await address.registerDevice().token) }
      var found: [String] = []
      var after = ""
      for round in 0..<4 {
        let page = try json(try await address.administer("GET", "/admin/v1/tokens?max=3\(after)"))
        found += page["tokens"]?.array?.compactMap { $0["token"]?.string } ?? []
        guard let next = page["next"]?.string else {
          #expect(round == 2)
          break
        }
        after = "&after=" + next.replacing(":", with: "%3A")
      }
      #expect(found == tokens.sorted())
      let one = try json(
        try await address.administer(
          "GET", "/admin/v1/tokens?starting=\(tokens[3].prefix(30).replacing(":", with: "%3A"))&project=demo")
      )
      #expect(one["tokens"]?.array?.map { $0["token"]?.string } == [tokens[3]])
      #expect(one["tokens"]?[0]?["connected"]?.bool == false && one["next"] == .null)
      #expect(try json(try await address.administer("GET", "/admin/v1/tokens?starting=none"))["tokens"] == [])
      #expect(try await address.administer("GET", "/admin/v1/tokens?project=none").status == 400)
    }
  }

  @Test func aConnectedDeviceIsShownAsSuch() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let stream = try await address.connect(device)
      let found = try json(try await address.administer("GET", "/admin/v1/tokens"))
      #expect(found["tokens"]?[0]?["connected"]?.bool == true)
      stream.abort()
    }
  }

  @Test func administrationRegistersADeviceThatCanLogIn() async throws {
    try await TestServer.run { address in
      let made = try await address.administer(
        "POST", "/admin/v1/tokens", body: #"{"project":"demo","app":"org.example.made","platform":"ios"}"#)
      #expect(made.status == 201)
      let body = try json(made)
      let token = try #require(body["token"]?.string)
      let found = try json(
        try await address.administer("GET", "/admin/v1/tokens/\(token.replacing(":", with: "%3A"))"))
      #expect(found["app"]?.string == "org.example.made" && found["platform"]?.string == "ios")
      #expect(body["device_id"]?.string?.isEmpty == false && body["device_secret"]?.string?.isEmpty == false)
      for wrong in [#"{"project":"none","app":"a"}"#, #"{"platform":"ios"}"#, "[]"] {
        #expect(
          try await address.administer("POST", "/admin/v1/tokens", body: wrong).status == 400, "\(wrong)")
      }
    }
  }

  @Test func topicsGroupsAndUsersTellWhatToAskForNext() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      for topic in ["a", "b", "c"] {
        _ = try await address.administer(
          "POST", "/admin/v1/topics/\(topic)/subscribe", body: #"{"tokens":["\#(device.token)"]}"#)
      }
      let first = try json(try await address.administer("GET", "/admin/v1/topics?max=2"))
      #expect(first["topics"]?.array?.map { $0["topic"]?.string } == ["a", "b"])
      #expect(first["next"]?.string == "b")
      let last = try json(try await address.administer("GET", "/admin/v1/topics?max=2&after=b"))
      #expect(last["topics"]?.array?.map { $0["topic"]?.string } == ["c"] && last["next"] == .null)
      for list in ["groups", "users", "topics/a"] {
        #expect(
          try json(try await address.administer("GET", "/admin/v1/\(list)"))["next"] == .null, "\(list)")
      }
    }
  }

  // MARK: Sends

  @Test(arguments: ["stream", "legacy", "v1"])
  func aMessageIsSentInTheWordsOfEachFrontDoor(_ form: String) async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let stream = try await address.connect(device)
      func message(to token: String) -> String {
        switch form {
        case "v1": #"{"message":{"token":"\#(token)","data":{"k":"v"}}}"#
        case "legacy": #"{"to":"\#(token)","data":{"k":"v"}}"#
        default: #"{"to":"\#(token)","message_id":"s-1","data":{"k":"v"}}"#
        }
      }
      func send(_ message: String) async throws -> JSONValue {
        let answer = try await address.administer(
          "POST", "/admin/v1/send", body: #"{"form":"\#(form)","project":"demo","message":\#(message)}"#)
        #expect(answer.status == 200)
        return try json(answer)
      }
      async let told = send(message(to: device.token))
      let payload = try await stream.nextPayload()
      #expect(payload["data", "k"] == "v")
      stream.acknowledgeDelivery(payload)
      let fine = try await told
      let refused = try await send(message(to: "nobody"))
      switch form {
      case "stream":
        #expect(fine["answer"]?["message_type"]?.string == "ack" && fine["status"] == .null)
        #expect(fine["answer"]?["message_id"]?.string == "s-1")
        #expect(fine["answer"]?["from"]?.string == device.token)
        #expect(refused["answer"]?["error"]?.string == "BAD_REGISTRATION")
        #expect(try await send(#"{"to":"\#(device.token)"}"#)["answer"]?["error"]?.string == "INVALID_JSON")
      case "legacy":
        #expect(fine["status"]?.int == 200 && fine["answer"]?["success"]?.int == 1)
        #expect(refused["answer"]?["results"]?[0]?["error"]?.string == "InvalidRegistration")
      default:
        #expect(fine["status"]?.int == 200)
        #expect(fine["answer"]?["name"]?.string?.hasPrefix("projects/demo/messages/") == true)
        #expect(refused["status"]?.int == 400)
      }
      stream.abort()
    }
  }

  @Test func sendsByAdministrationMeetFaultsAndAreCheckedAtTheDoor() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      for form in ["stream", "legacy"] {
        _ = try await address.administer("POST", "/admin/v1/faults", body: #"{"kind":"drop_ack"}"#)
        let told = try json(
          try await address.administer(
            "POST", "/admin/v1/send",
            body: #"{"form":"\#(form)","message":{"to":"\#(device.token)","message_id":"f-\#(form)"}}"#))
        #expect(told["answer"] == .null && told["status"] == .null, "\(form)")
      }
      _ = try await address.administer(
        "POST", "/admin/v1/faults", body: #"{"kind":"nack","code":"INTERNAL_SERVER_ERROR"}"#)
      let nacked = try json(
        try await address.administer(
          "POST", "/admin/v1/send",
          body: #"{"form":"stream","message":{"to":"\#(device.token)","message_id":"f-3"}}"#))
      #expect(nacked["answer"]?["error"]?.string == "INTERNAL_SERVER_ERROR")
      for wrong in [
        "{", #"{"form":"stream"}"#, #"{"form":"fax","message":{}}"#, #"{"form":"v1","message":[]}"#,
        #"{"form":"v1","project":"none","message":{}}"#,
      ] {
        #expect(try await address.administer("POST", "/admin/v1/send", body: wrong).status == 400, "\(wrong)")
      }
      #expect(try await address.administer("GET", "/admin/v1/send").status == 405)
    }
  }

  @Test func aTopicAGroupAndAUserAreReachedOverABorrowedStream() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice(user: "ada")
      _ = try await address.administer(
        "POST", "/admin/v1/topics/news/subscribe", body: #"{"tokens":["\#(device.token)"]}"#)
      let stream = try await address.connect(device)
      for (number, target) in ["/topics/news", "/users/ada"].enumerated() {
        let told = try json(
          try await address.administer(
            "POST", "/admin/v1/send",
            body: #"{"form":"stream","message":{"to":"\#(target)","message_id":"t-\#(number)"}}"#))
        #expect(told["answer"]?["message_type"]?.string == "ack", "\(target)")
        stream.acknowledgeDelivery(try await stream.nextPayload())
      }
      stream.abort()
    }
  }

  @Test func aMessageIsFoundByTheIdThatItsDeviceSees() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let sender = try await address.connectAppServer()
      sender.sendMessage(to: device.token, id: "m1")
      #expect(try await sender.nextPayload()["message_type"] == "ack")
      let known = try json(
        try await address.administer("GET", "/admin/v1/messages/\(address.senderID)/m1"))
      let id = try #require(known["device_message_id"]?.string)
      let found = try json(try await address.administer("GET", "/admin/v1/messages?device_message_id=\(id)"))
      #expect(found["state"]?.string == "stored" && found["history"] == known["history"])
      #expect(found["sender_id"] == known["sender_id"])
      let none = String(repeating: "0", count: 32)
      #expect(
        try await address.administer("GET", "/admin/v1/messages?device_message_id=\(none)").status == 404)
      #expect(try await address.administer("GET", "/admin/v1/messages?device_message_id=x").status == 400)
      sender.abort()
    }
  }
}
