import JSONCore
import PushModel
import TestKit
import Testing

@testable import ConnectionServer

/// Faults that a test arms through the admin surface, as a sender's stream meets them.
@Suite struct LiveFaultTests {
  private func arm(_ address: ServerAddress, _ body: String) async throws -> JSONValue {
    let answer = try await address.administer("POST", "/admin/v1/faults", body: body)
    #expect(answer.status == 201, "\(answer.body)")
    return try JSONValue(parsing: answer.body)
  }

  @Test func theNthMessageIsNackedWithTheCodeAndTheOthersGoWell() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let sender = try await address.connectAppServer()
      _ = try await arm(
        address,
        #"{"kind":"nack","code":"DEVICE_MESSAGE_RATE_EXCEEDED","message":3,"count":2,"retry_after":"120"}"#)
      var errors: [String?] = []
      for index in 0..<6 {
        sender.sendMessage(to: device.token, id: "m\(index)")
        errors.append(try await sender.nextPayload()["error"])
      }
      let code = "DEVICE_MESSAGE_RATE_EXCEEDED"
      #expect(errors == [nil, nil, code, code, nil, nil])
      // It is spent, and the refused message may come again.
      let left = try JSONValue(parsing: try await address.administer("GET", "/admin/v1/faults").body)
      #expect(left["faults"]?.array?.isEmpty == true)
      sender.sendMessage(to: device.token, id: "m2")
      #expect(try await sender.nextPayload()["message_type"] == "ack")
      let stream = try await address.connect(device)
      var seen: [String?] = []
      for _ in 0..<5 { seen.append(try await stream.nextPayload()["message_id"]) }
      #expect(Set(seen).count == 5)
    }
  }

  @Test func aStreamThatIsCutAfterStoringShowsTheDeviceOneMessage() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      _ = try await arm(address, #"{"kind":"cut"}"#)
      let first = try await address.connectAppServer()
      first.sendMessage(to: device.token, id: "m1", data: ["n": "1"])
      guard case .closed = try await first.next() else { throw StreamGoesOn() }
      // No ack came: the sender tries again, with the same id, on another stream.
      let second = try await address.connectAppServer()
      second.sendMessage(to: device.token, id: "m1", data: ["n": "1"])
      #expect(try await second.nextPayload()["message_type"] == "ack")
      second.sendMessage(to: device.token, id: "m2", data: ["n": "2"])
      #expect(try await second.nextPayload()["message_type"] == "ack")
      let stream = try await address.connect(device)
      for n in ["1", "2"] {
        let payload = try await stream.nextPayload()
        #expect(payload["data", "n"] == n)
        stream.acknowledgeDelivery(payload)
      }
    }
  }

  @Test func aMessageThatIsStoredAndThenAnsweredAsUnavailableIsDeliveredOnce() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let sender = try await address.connectAppServer()
      _ = try await arm(address, #"{"kind":"unavailable","retry_after":"1"}"#)
      sender.sendMessage(to: device.token, id: "m1", data: ["n": "1"])
      let nack = try await sender.nextPayload()
      #expect(nack["error"] == "SERVICE_UNAVAILABLE")
      #expect(nack["error_description"]?.contains("Retry-After: 1") == true)
      sender.sendMessage(to: device.token, id: "m1", data: ["n": "1"])
      #expect(try await sender.nextPayload()["message_type"] == "ack")
      sender.sendMessage(to: device.token, id: "m2", data: ["n": "2"])
      #expect(try await sender.nextPayload()["message_type"] == "ack")
      let stream = try await address.connect(device)
      #expect(try await stream.nextPayload()["data", "n"] == "1")
      #expect(try await stream.nextPayload()["data", "n"] == "2")
    }
  }

  @Test func aDroppedAckLeavesTheMessageTakenAndTheStreamAlive() async throws {
    try await TestServer.run { address in
      let (device, other) = (try await address.registerDevice(), try await address.registerDevice())
      let sender = try await address.connectAppServer()
      _ = try await arm(address, #"{"kind":"drop_ack","token":"\#(device.token)"}"#)
      // For one token only: another one's message is answered.
      sender.sendMessage(to: other.token, id: "o1")
      #expect(try await sender.nextPayload()["message_id"] == "o1")
      sender.sendMessage(to: device.token, id: "m1", data: ["n": "1"])
      sender.sendMessage(to: device.token, id: "m2", data: ["n": "2"])
      #expect(try await sender.nextPayload()["message_id"] == "m2")
      let stream = try await address.connect(device)
      #expect(try await stream.nextPayload()["data", "n"] == "1")
    }
  }

  @Test func aDrainThatAFaultBeginsAnswersTheMessageAndClosesTheStream() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let sender = try await address.connectAppServer()
      let other = try await address.connectAppServer()
      _ = try await arm(address, #"{"kind":"drain","project":"\#(address.projectID)"}"#)
      sender.sendMessage(to: device.token, id: "m1")
      #expect(try await sender.nextPayload()["control_type"] == "CONNECTION_DRAINING")
      #expect(try await sender.nextPayload()["message_type"] == "ack")
      sender.sendMessage(to: device.token, id: "m2")
      #expect(try await sender.nextPayload()["error"] == "CONNECTION_DRAINING")
      try await sender.waitForClose()
      // Only that stream: the other one goes on.
      other.sendMessage(to: device.token, id: "m2")
      #expect(try await other.nextPayload()["message_type"] == "ack")
    }
  }

  @Test func aHalfOpenStreamSaysNothingUntilItCountsAsDead() async throws {
    try await TestServer.run({ $0.limits = ["keepalive-seconds": 1, "dead-seconds": 3] }) { address in
      let device = try await address.registerDevice()
      let sender = try await address.connectAppServer()
      _ = try await arm(address, #"{"kind":"half_open"}"#)
      sender.sendMessage(to: device.token, id: "m1")
      sender.sendMessage(to: device.token, id: "m2")
      // Not an answer, not an end tag, not even a space: only the end of the connection.
      await #expect(throws: (any Error).self) { try await sender.nextPayload(within: .seconds(1)) }
      guard case .closed = try await sender.next() else { throw StreamGoesOn() }
      let again = try await address.connectAppServer()
      again.sendMessage(to: device.token, id: "m1")
      #expect(try await again.nextPayload()["message_type"] == "ack")
    }
  }

  @Test func aDelayedAnswerLetsOthersPass() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let sender = try await address.connectAppServer()
      _ = try await arm(address, #"{"kind":"delay","delay_ms":300}"#)
      sender.sendMessage(to: device.token, id: "m1")
      sender.sendMessage(to: device.token, id: "m2")
      #expect(try await sender.nextPayload()["message_id"] == "m2")
      let late = try await sender.nextPayload()
      #expect(late["message_id"] == "m1" && late["message_type"] == "ack")
    }
  }

  @Test func faultsAreListedDisarmedAndCheckedWhenTheyAreArmed() async throws {
    try await TestServer.run { address in
      let first = try await arm(address, #"{"kind":"delay","delay_ms":5,"count":0}"#)
      _ = try await arm(address, #"{"kind":"nack"}"#)
      let id = try #require(first["id"]?.string)
      let list = try JSONValue(parsing: try await address.administer("GET", "/admin/v1/faults").body)
      #expect(list["faults"]?.array?.map { $0["kind"]?.string } == ["delay", "nack"])
      #expect(try await address.administer("DELETE", "/admin/v1/faults/\(id)").status == 200)
      #expect(try await address.administer("DELETE", "/admin/v1/faults/\(id)").status == 404)
      let gone = try JSONValue(parsing: try await address.administer("DELETE", "/admin/v1/faults").body)
      #expect(gone["disarmed"]?.int == 1)
      for wrong in [
        "", "[]", "{}", #"{"kind":"fire"}"#, #"{"kind":"nack","code":"QUOTA_EXCEEDED"}"#,
        #"{"kind":"nack","project":"nobody"}"#, #"{"kind":"delay"}"#, #"{"kind":"nack","message":0}"#,
        #"{"kind":"nack","count":-1}"#, #"{"kind":"nack","retry_after":"a\nb"}"#,
        #"{"kind":"nack","when":"now"}"#, #"{"kind":"unavailable","status":200}"#,
      ] {
        #expect(
          try await address.administer("POST", "/admin/v1/faults", body: wrong).status == 400, "\(wrong)")
      }
      #expect(try await address.administer("PUT", "/admin/v1/faults", body: "{}").status == 405)
    }
  }
}

private struct StreamGoesOn: Error {}

@Suite struct FaultRegistryTests {
  private func order(_ text: String) throws -> FaultOrder {
    try FaultOrder(try JSONValue(parsing: Array(text.utf8))) { _ in SenderID(5) }
  }

  @Test func ordersCountOnlyWhatTheyAreFor() throws {
    let faults = Faults()
    #expect(!faults.isArmed)
    #expect(faults.next(sender: SenderID(5), token: "t") == nil)
    _ = faults.arm(try order(#"{"kind":"cut","project":"p","token":"t","message":2,"count":1}"#))
    #expect(faults.isArmed)
    #expect(faults.next(sender: SenderID(6), token: "t") == nil)
    #expect(faults.next(sender: SenderID(5), token: "u") == nil)
    #expect(faults.next(sender: SenderID(5), token: nil) == nil)
    #expect(faults.next(sender: SenderID(5), token: "t") == nil)
    #expect(faults.next(sender: SenderID(5), token: "t") == ArmedFault(kind: .cut))
    #expect(!faults.isArmed)
  }

  @Test func theFirstThatIsDueApplies() throws {
    let faults = Faults()
    _ = faults.arm(try order(#"{"kind":"cut","message":2}"#))
    _ = faults.arm(try order(#"{"kind":"drop_ack","count":0}"#))
    #expect(faults.next(sender: SenderID(5), token: "t")?.kind == .dropAck)
    #expect(faults.next(sender: SenderID(5), token: "t")?.kind == .cut)
    #expect(faults.next(sender: SenderID(5), token: "t")?.kind == .dropAck)
    #expect(faults.armed.count == 1)
  }

  @Test func anyTextOfARetryAfterHeaderMayBeAskedFor() throws {
    for text in ["5", "Wed, 21 Oct 2026 07:28:00 GMT", "0", "-1", "abc", ""] {
      let json = JSONValue.object([.init("kind", "unavailable"), .init("retry_after", .string(text))]).text
      #expect(try order(json).fault.retryAfter == text)
    }
    #expect(try order(#"{"kind":"unavailable","status":429,"retry_after":7}"#).fault.retryAfter == "7")
  }

  @Test func noMoreThanTheBoundAreArmed() throws {
    let faults = Faults()
    let order = try order(#"{"kind":"cut"}"#)
    for _ in 0..<Faults.ordersMax { #expect(faults.arm(order) != nil) }
    #expect(faults.arm(order) == nil)
    #expect(faults.disarm(nil) == Faults.ordersMax)
  }
}
