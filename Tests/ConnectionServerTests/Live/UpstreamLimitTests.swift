import TestKit
import Testing

/// What a device may send upstream on its stream, and what it is told beyond that.
@Suite struct UpstreamLimitTests {
  private func stanza(_ id: String, to sender: String, data: String = #"{"k":"v"}"#, ttl: String = "60")
    -> String
  {
    #"<message><gcm xmlns="google:mobile:data">{"to":"\#(sender)@fcm.googleapis.com","message_id":"\#(id)","#
      + #""time_to_live":\#(ttl),"data":\#(data)}</gcm></message>"#
  }

  @Test func twentyUpstreamMessagesMayBePendingAndTheNextIsRefused() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let stream = try await address.connect(device)
      // In one write: no outcome can come between them.
      stream.send((1...21).map { stanza("u-\($0)", to: address.senderID) }.joined())
      var acked: Set<String> = []
      var refused: [TestPayload] = []
      for _ in 1...21 {
        let outcome = try await stream.nextPayload()
        if outcome["message_type"] == "ack" {
          acked.insert(outcome["message_id"] ?? "")
        } else {
          refused.append(outcome)
        }
      }
      #expect(acked == Set((1...20).map { "u-\($0)" }))
      #expect(refused.map { $0["message_id"] } == ["u-21"])
      #expect(refused.first?["error"] == "TOO_MANY_MESSAGES")
      #expect(refused.first?["error_description"] == "20 upstream messages are pending")
      // With outcomes there is room again.
      stream.send(stanza("u-21", to: address.senderID))
      #expect(try await stream.nextPayload()["message_type"] == "ack")
    }
  }

  @Test func eachRefusalOfAnUpstreamMessageHasItsCode() async throws {
    try await TestServer.run { address in
      let device = try await address.registerDevice()
      let stream = try await address.connect(device)
      let big = #"{"k":"\#(String(repeating: "x", count: 4_096))"}"#
      for (text, code) in [
        (stanza("a", to: address.senderID, data: big), "MESSAGE_TOO_BIG"),
        (stanza("b", to: "999"), "SENDER_ID_MISMATCH"),
        (stanza("c", to: address.senderID, data: "5"), "INVALID_JSON"),
        (stanza("d", to: address.senderID, ttl: "0"), "TTL_EXCEEDED"),
      ] {
        stream.send(text)
        let outcome = try await stream.nextPayload()
        #expect(outcome["message_type"] == "nack" && outcome["error"] == code, "\(outcome)")
      }
      // The stream is none the worse for it.
      stream.send(stanza("e", to: address.senderID))
      #expect(try await stream.nextPayload()["message_type"] == "ack")
    }
  }
}
