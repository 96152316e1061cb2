import ConnectionServer
import JSONCore
import TestKit
import Testing

/// What the admin surface shows of streams and devices, drains, and sends in the name of a device.
@Suite struct LiveAdministrationTests {
  private func json(_ answer: TestHTTPAnswer) throws -> JSONValue { try JSONValue(parsing: answer.body) }

  private func messages(_ device: TestDevice, _ query: String = "") -> String {
    "/admin/v1/devices/\(device.token.replacing(":", with: "%3A"))/messages\(query)"
  }

  // MARK: Devices

  @Test func aTestReadsWhatADeviceWasSentAndWhatWaitsForIt() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let sender = try await address.connectAppServer()
      sender.sendMessage(to: device.token, id: "m1", data: ["n": "1"])
      #expect(try await sender.nextPayload()["message_type"] == "ack")
      // Nobody needs to connect as the device.
      let away = try json(try await address.administer("GET", messages(device, "?wait=10")))
      #expect(away["connected"]?.bool == false)
      #expect(away["messages"]?.array?.isEmpty == true)
      #expect(away["waiting"]?.array?.map { $0["data"]?["n"]?.string } == ["1"])

      let stream = try await address.connect(device)
      let payload = try await stream.nextPayload()
      let sent = try json(try await address.administer("GET", messages(device)))
      #expect(sent["connected"]?.bool == true)
      #expect(sent["messages"]?.array?.map { $0["message"]?["data"]?["n"]?.string } == ["1"])
      #expect(sent["messages"]?.array?.first?["state"]?.string == "in_flight")
      #expect(sent["waiting"]?.array?.isEmpty == true)
      stream.acknowledgeDelivery(payload)
      sender.sendMessage(to: device.token, id: "m2", data: ["n": "2"])
      _ = try await stream.nextPayload()
      let next = try #require(sent["next"]?.int)
      let later = try json(try await address.administer("GET", messages(device, "?wait=10&after=\(next)")))
      #expect(later["messages"]?.array?.map { $0["message"]?["data"]?["n"]?.string } == ["2"])
      let all = try json(try await address.administer("GET", messages(device)))
      #expect(all["messages"]?.array?.map { $0["state"]?.string } == ["delivered", "in_flight"])
    }
  }

  @Test func aReaderThatWaitsGetsTheFirstMessageAndNothingWhenItsTimeIsOver() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let sender = try await address.connectAppServer()
      let stream = try await address.connect(device)
      let nothing = try json(try await address.administer("GET", messages(device, "?wait=0.2")))
      #expect(nothing["messages"]?.array?.isEmpty == true && nothing["next"]?.int == 0)
      async let waited = address.administer("GET", messages(device, "?wait=30"))
      sender.sendMessage(to: device.token, id: "m1", data: ["n": "1"])
      #expect(try await stream.nextPayload()["data", "n"] == "1")
      let found = try json(try await waited)
      #expect(found["messages"]?.array?.count == 1)
      for wrong in ["?wait=-1", "?wait=61", "?wait=x", "?after=x"] {
        #expect(try await address.administer("GET", messages(device, wrong)).status == 400, "\(wrong)")
      }
      #expect(try await address.administer("GET", "/admin/v1/devices/nobody/messages").status == 404)
    }
  }

  @Test func administrationSendsUpstreamInTheNameOfADevice() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let path = "/admin/v1/devices/\(device.token.replacing(":", with: "%3A"))/upstream"
      let sender = try await address.connectAppServer()
      async let answer = address.administer(
        "POST", path, body: #"{"message_id":"u-1","data":{"k":"é<&>\"'"}}"#)
      let upstream = try await sender.nextPayload()
      #expect(upstream["from"] == device.token && upstream["message_id"] == "u-1")
      #expect(upstream["data", "k"] == "é<&>\"'")
      sender.acknowledge(upstream)
      let outcome = try await answer
      #expect(outcome.status == 200)
      #expect(try json(outcome)["outcome"]?.string == "ack")
      let refused = try await address.administer(
        "POST", path, body: #"{"message_id":"u-2","data":{"from":"x"}}"#)
      #expect(refused.status == 422)
      #expect(try json(refused)["error"]?.string == "INVALID_JSON")
      #expect(try await address.administer("POST", path, body: "[]").status == 400)
      #expect(try await address.administer("POST", path, body: #"{"data":{}}"#).status == 422)
      #expect(
        try await address.administer("POST", "/admin/v1/devices/nobody/upstream", body: "{}").status == 404)
    }
  }

  // MARK: Streams

  @Test func streamsAreListedWithWhatIsPendingOnThem() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let sender = try await address.connectAppServer()
      let stream = try await address.connect(device)
      sender.sendMessage(to: device.token, id: "m1")
      _ = try await stream.nextPayload()
      _ = try await sender.nextPayload()
      let all = try json(try await address.administer("GET", "/admin/v1/streams"))["streams"]?.array ?? []
      #expect(all.compactMap { $0["kind"]?.string }.sorted() == ["app_server", "device"])
      let shown = try #require(all.first { $0["kind"]?.string == "device" })
      #expect(shown["device_id"]?.string == device.id && shown["pending"]?.int == 1)
      let senders = try json(
        try await address.administer("GET", "/admin/v1/streams?kind=app_server&sender_id=\(address.senderID)")
      )
      let one = try #require(senders["streams"]?.array?.first)
      #expect(one["jid"]?.string?.hasPrefix(address.senderID) == true && one["draining"]?.bool == false)
      let none = try json(try await address.administer("GET", "/admin/v1/streams?sender_id=999"))
      #expect(none["streams"]?.array?.isEmpty == true)
      #expect(try await address.administer("GET", "/admin/v1/streams?kind=x").status == 400)
      #expect(try await address.administer("GET", "/admin/v1/streams?sender_id=x").status == 400)
    }
  }

  @Test func oneStreamIsDrainedAndTheOthersGoOn() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let first = try await address.connectAppServer()
      let shown = try json(try await address.administer("GET", "/admin/v1/streams?kind=app_server"))
      let name = try #require(shown["streams"]?.array?.first?["stream"]?.string)
      let second = try await address.connectAppServer()
      let phone = try await address.connect(device)
      // An upstream message is owed an ack: round-robin begins with the first stream.
      phone.sendPayload(
        #"{"to":"\#(address.senderID)@fcm.googleapis.com","message_id":"u-1","data":{"a":"b"}}"#)
      let owed = try await first.nextPayload()
      let answer = try await address.administer("POST", "/admin/v1/drain", body: #"{"stream":"\#(name)"}"#)
      #expect(answer.status == 202)
      #expect(try json(answer)["draining"]?.array?.map(\.string) == [name])
      #expect(try await first.nextPayload()["control_type"] == "CONNECTION_DRAINING")
      first.sendMessage(to: device.token, id: "m1")
      #expect(try await first.nextPayload()["error"] == "CONNECTION_DRAINING")
      let listed = try json(try await address.administer("GET", "/admin/v1/streams?kind=app_server"))
      #expect(listed["streams"]?.array?.filter { $0["draining"]?.bool == true }.count == 1)
      first.acknowledge(owed)
      try await first.waitForClose()
      second.sendMessage(to: device.token, id: "m1")
      #expect(try await second.nextPayload()["message_type"] == "ack")
      #expect(try await address.administer("GET", "/readyz").status == 200)
      // Upstream goes to who is left.
      phone.sendPayload(
        #"{"to":"\#(address.senderID)@fcm.googleapis.com","message_id":"u-2","data":{"a":"b"}}"#)
      #expect(try await second.nextPayload()["message_id"] == "u-2")
    }
  }

  @Test func aDrainOfASenderEndsAtItsDeadlineAndWhatWasNotAckedComesOnAnotherStream() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let first = try await address.connectAppServer()
      let phone = try await address.connect(device)
      phone.sendPayload(
        #"{"to":"\#(address.senderID)@fcm.googleapis.com","message_id":"u-1","data":{"a":"b"}}"#)
      #expect(try await first.nextPayload()["message_id"] == "u-1")
      let answer = try await address.administer(
        "POST", "/admin/v1/drain", body: #"{"sender_id":"\#(address.senderID)","within_seconds":1}"#)
      #expect(answer.status == 202)
      #expect(try await first.nextPayload()["control_type"] == "CONNECTION_DRAINING")
      try await first.waitForClose()
      let second = try await address.connectAppServer()
      #expect(try await second.nextPayload()["message_id"] == "u-1")
      for wrong in [
        "[]", #"{"stream":"x"}"#, #"{"sender_id":"x"}"#, #"{"project":"nobody"}"#, #"{"who":"all"}"#,
        #"{"stream":"0-1","within_seconds":0}"#, #"{"within_seconds":5}"#,
      ] {
        #expect(
          try await address.administer("POST", "/admin/v1/drain", body: wrong).status == 400, "\(wrong)")
      }
      #expect(
        try await address.administer("POST", "/admin/v1/drain", body: #"{"stream":"0-4000000000"}"#).status
          == 404)
      #expect(try await address.administer("GET", "/readyz").status == 200)
    }
  }

  // MARK: Rates

  @Test func ratesAreNackedOnTheStreamAndAnsweredOverHTTP() async throws {
    let rates = [
      "device-messages-per-minute": 2, "topic-changes-per-second": 1, "project-messages-per-minute": 4,
    ]
    try await TestServer.run({ $0.limits = rates }) { address in
      let device = try await address.registerDevice()
      let sender = try await address.connectAppServer()
      var answers: [String?] = []
      for index in 0..<5 {
        sender.sendMessage(to: device.token, id: "m\(index)")
        let answer = try await sender.nextPayload()
        answers.append(answer["error"])
        if answer["error"] != nil {
          #expect(answer["error_description"]?.contains("retry after ") == true)
        }
      }
      #expect(
        answers == [
          nil, nil, "DEVICE_MESSAGE_RATE_EXCEEDED", "DEVICE_MESSAGE_RATE_EXCEEDED", "SERVICE_UNAVAILABLE",
        ])
      let key = ["x-goog-api-key": try address.secret("api-key")]
      let path =
        "/v1/projects/\(address.projectID)/registrations/\(device.token.replacing(":", with: "%3A"))/topicSubscriptions?topic_name="
      var statuses: [Int] = []
      for topic in ["a", "b", "c"] {
        let answer = try await address.request("POST", path + topic, headers: key)
        statuses.append(answer.status)
        if answer.status == 429 { #expect(answer.headers["retry-after"] == "1") }
      }
      #expect(statuses.first == 200 && statuses.contains(429))
    }
  }

  // MARK: Metrics

  @Test func openFilesAndTimersAreTold() async throws {
    try await TestServer.run { address in
      func held() async throws -> (files: Int, timers: Int) {
        let lines = try await address.administer("GET", "/metrics").body.split(separator: "\n")
        func sum(_ name: String) -> Int {
          let values = lines.filter { $0.hasPrefix(name) }.map { $0.split(separator: " ").last ?? "" }
          return Int(values.reduce(0) { $0 + (Double($1) ?? 0) })
        }
        return (sum("weir_process_open_files "), sum("weir_loop_timers{"))
      }
      let before = try await held()
      // The database, the listeners and the loops themselves.
      #expect(before.files > 10 && before.timers > 0)
      var streams: [TestStream] = []
      for _ in 0..<10 { streams.append(try await address.connect(try await address.registerDevice())) }
      let after = try await held()
      #expect(after.files >= before.files + streams.count)
    }
  }
}
