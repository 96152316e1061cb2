import ConnectionServer
import TestKit
import Testing

/// Stories of streams that need the timing of a client in this process.
@Suite(.serialized) struct StreamTests {
  @Test func aSecondLoginOfADeviceReplacesTheFirst() async throws {
    try await TestServer.run { address in
      let registered = try await address.registerDevice()
      let sender = try await address.connectAppServer()
      let first = try await address.connect(registered)
      sender.sendMessage(to: registered.token, id: "m1", data: ["n": "1"])
      #expect(try await first.nextPayload()["data", "n"] == "1")
      let second = try await address.connect(registered)
      try await first.waitForStreamError("conflict")
      // What the first one had not acked comes again, under the same id.
      let again = try await second.nextPayload()
      #expect(again["data", "n"] == "1")
      second.acknowledgeDelivery(again)
      sender.sendMessage(to: registered.token, id: "m2", data: ["n": "2"])
      #expect(try await second.nextPayload()["data", "n"] == "2")
    }
  }

  @Test func manyLoginsOfOneDeviceLeaveOne() async throws {
    try await TestServer.run { address in
      let registered = try await address.registerDevice()
      let sender = try await address.connectAppServer()
      let streams = try await withThrowingTaskGroup(of: TestStream?.self) { group in
        // A stream may be replaced before its bind is answered.
        for _ in 0..<10 { group.addTask { try? await address.connect(registered) } }
        var streams: [TestStream] = []
        for try await stream in group { if let stream { streams.append(stream) } }
        return streams
      }
      try await withThrowingTaskGroup(of: TestStream.Item.self) { group in
        for stream in streams { group.addTask { try await stream.next() } }
        for _ in 1..<max(1, streams.count) {
          guard case .stanza(let stanza)? = try await group.next() else { throw WrongEnd() }
          #expect(stanza.name == "error" && stanza.children.contains("conflict"), "\(stanza.text)")
        }
        sender.sendMessage(to: registered.token, id: "m1", data: ["n": "1"])
        guard case .stanza(let stanza)? = try await group.next() else { throw WrongEnd() }
        #expect(stanza.payload?["data", "n"] == "1", "\(stanza.text)")
      }
    }
  }

  @Test func aMessageSentWhileItsDeviceConnectsArrives() async throws {
    try await TestServer.run { address in
      let registered = try await address.registerDevice()
      let sender = try await address.connectAppServer()
      for round in 0..<100 {
        let device = try await address.connect(registered)
        sender.sendMessage(to: registered.token, id: "m-\(round)", data: ["n": "\(round)"])
        let delivered = try await device.nextPayload()
        #expect(delivered["data", "n"] == "\(round)")
        device.acknowledgeDelivery(delivered)
        #expect(try await sender.nextPayload()["message_type"] == "ack")
        device.close()
      }
    }
  }

  @Test func aDeviceThatLeavesWithoutAckingGetsTheMessageAgain() async throws {
    try await TestServer.run { address in
      let registered = try await address.registerDevice()
      let sender = try await address.connectAppServer()
      var ids: Set<String> = []
      let first = try await address.connect(registered)
      sender.sendMessage(to: registered.token, id: "m1", data: ["n": "1"])
      ids.insert(try await first.nextPayload()["message_id"] ?? "")
      first.abort()
      for _ in 0..<3 {
        let stream = try await address.connect(registered)
        ids.insert(try await stream.nextPayload()["message_id"] ?? "")
        stream.abort()
      }
      #expect(ids.count == 1, "a device knows a repeat by its id")
      #expect(try await sender.nextPayload()["message_type"] == "ack")
    }
  }

  @Test func aRepeatedMessageIsAckedAndNotDeliveredAgain() async throws {
    try await TestServer.run { address in
      let registered = try await address.registerDevice()
      let device = try await address.connect(registered)
      let one = try await address.connectAppServer()
      let two = try await address.connectAppServer()
      for stream in [one, one, two] { stream.sendMessage(to: registered.token, id: "m1", data: ["n": "1"]) }
      let delivered = try await device.nextPayload()
      device.acknowledgeDelivery(delivered)
      for stream in [one, one, two] { #expect(try await stream.nextPayload()["message_type"] == "ack") }
      two.sendMessage(to: registered.token, id: "m2", data: ["n": "2"])
      #expect(try await device.nextPayload()["data", "n"] == "2")
    }
  }

  @Test func aLargeBacklogReachesASlowDevice() async throws {
    // Ampersands take five bytes on the wire: together these messages pass the write backlog by far.
    try await TestServer.run {
      $0.limits["write-backlog-bytes"] = 131_072
    } _: { address in
      let registered = try await address.registerDevice()
      let sender = try await address.connectAppServer()
      for number in 0..<100 {
        sender.sendMessage(
          to: registered.token, id: "m-\(number)",
          data: ["n": "\(number)", "b": String(repeating: "&", count: 4_000)])
        #expect(try await sender.nextPayload()["message_type"] == "ack")
      }
      let device = try await address.connect(registered)
      for number in 0..<100 {
        let payload = try await device.nextPayload()
        #expect(payload["data", "n"] == "\(number)")
        device.acknowledgeDelivery(payload)
      }
    }
  }

  @Test func aConnectedDeviceLosesNothingToAFastSender() async throws {
    try await TestServer.run { address in
      let registered = try await address.registerDevice()
      let device = try await address.connect(registered)
      let sender = try await address.connectAppServer()
      let count = 3_000
      async let received = {
        var received: [String] = []
        while received.count < count {
          let payload = try await device.nextPayload()
          guard let number = payload["data", "n"] else {
            Issue.record("\(payload)")
            break
          }
          received.append(number)
          device.acknowledgeDelivery(payload)
        }
        return received
      }()
      // A full window all the time; nothing of the device is waited for.
      var sent = 0
      for answered in 0..<count {
        while sent < count, sent - answered < 100 {
          sender.sendMessage(to: registered.token, id: "m-\(sent)", data: ["n": "\(sent)"])
          sent += 1
        }
        #expect(try await sender.nextPayload()["message_type"] == "ack")
      }
      #expect(Set(try await received).count == count)
    }
  }

  @Test func oneSenderMayHaveOnlySoManyStreams() async throws {
    try await TestServer.run {
      $0.limits["streams-per-sender"] = 2
    } _: { address in
      let first = try await address.connectAppServer()
      let second = try await address.connectAppServer()
      let third = try await address.connectAppServer()
      try await third.waitForStreamError("policy-violation")
      first.close()
      try await eventually("the place that became free") {
        let stream = try await address.connectAppServer()
        stream.sendMessage(to: "no-token", id: "m1")
        guard case .stanza(let stanza) = try await stream.next() else { return false }
        return stanza.payload?["message_id"] == "m1"
      }
      second.sendMessage(to: "no-token", id: "m2")
      #expect(try await second.nextPayload()["message_id"] == "m2")
    }
  }

  @Test func anOldTokenReachesTheNewOne() async throws {
    try await TestServer.run { address in
      let old = try await address.registerDevice()
      let new = try await address.registerDevice(on: old, replacing: old.token)
      #expect(new.token != old.token)
      let device = try await address.connect(new)
      let sender = try await address.connectAppServer()
      sender.sendMessage(to: old.token, id: "m1", data: ["n": "1"])
      let delivered = try await device.nextPayload()
      #expect(delivered["token"] == new.token)
      device.acknowledgeDelivery(delivered)
      let ack = try await sender.nextPayload()
      #expect(ack["from"] == old.token)
      #expect(ack["registration_id"] == new.token)
      try await address.unregister(new)
      sender.sendMessage(to: new.token, id: "m2")
      #expect(try await sender.nextPayload()["error"] == "DEVICE_UNREGISTERED")
    }
  }
}

private struct WrongEnd: Error {}
