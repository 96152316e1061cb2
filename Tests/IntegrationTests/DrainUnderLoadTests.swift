import ConnectionServer
import DeviceRuntime
import JSONCore
import StreamClient
import Synchronization
import TestKit
import Testing

/// Clients that send without a break while their streams are drained one after the other: nothing is lost, nothing is
/// shown twice.
@Suite(.serialized) struct DrainUnderLoadTests {
  private func drain(_ address: ServerAddress) async throws {
    let body = #"{"sender_id":"\#(address.senderID)"}"#
    // Between two streams there is none to drain.
    for _ in 0..<500 {
      let answer = try await address.administer("POST", "/admin/v1/drain", body: body)
      if answer.status == 202 { return }
      #expect(answer.status == 404, "\(answer.body)")
    }
    throw NothingToDrain()
  }

  private struct NothingToDrain: Error {}

  private func client(
    _ address: ServerAddress, _ change: (inout StreamClient.Configuration) -> Void = { _ in }
  ) throws -> StreamClient {
    var configuration = StreamClient.Configuration(
      host: "127.0.0.1", port: address.xmpp, senderID: address.senderID,
      serverKey: try address.secret("server-key"), trust: .file(address.certificateAuthority))
    change(&configuration)
    return try StreamClient(configuration)
  }

  private func device(_ address: ServerAddress, _ registered: TestDevice) throws -> Device {
    var configuration = Device.Configuration(
      host: "127.0.0.1", port: address.xmpp, trust: .file(address.certificateAuthority))
    configuration.reconnectSpread = .zero
    return try Device(
      .init(token: registered.token, deviceID: registered.id, deviceSecret: registered.secret), configuration)
  }

  /// Counts what was seen, by name.
  private final class Tally: Sendable {
    private let counts = Mutex<[String: Int]>([:])
    func note(_ name: String) { counts.withLock { $0[name, default: 0] += 1 } }
    var distinct: Int { counts.withLock { $0.count } }
    var twice: [String] { counts.withLock { $0.filter { $0.value > 1 }.keys.sorted() } }
  }

  @Test func theClientLibraryComesThroughDrainsBothWays() async throws {
    try await TestServer.run { address in
      let registered = try await address.registerDevice()
      let device = try device(address, registered)
      let client = try client(address)
      let (shown, handled) = (Tally(), Tally())
      let receiving = Task { await device.handleMessages { shown.note($0.data["n"] ?? "?") } }
      let handling = Task {
        await client.handleUpstream(concurrency: 4) { event in
          if case .message(let message) = event { handled.note(message.id) }
        }
      }
      try await device.connect()
      try await client.connect()
      let (count, upstreamCount) = (3_000, 150)
      let upstream = Task {
        for number in 0..<upstreamCount {
          _ = try await device.sendUpstream(
            ["n": "\(number)"], to: address.senderID, id: "u-\(number)")
        }
      }
      let messages = (0..<count).map {
        PushMessage(to: .token(registered.token), data: ["n": String($0)], id: "b-\($0)")
      }
      var acked = 0
      for try await outcome in client.send(contentsOf: messages) {
        switch outcome.result {
        case .success: acked += 1
        case .failure(let error): Issue.record("\(outcome.messageID): \(error)")
        }
        if acked.isMultiple(of: 900) { try await drain(address) }
      }
      #expect(acked == count)
      try await upstream.value
      while shown.distinct < count || handled.distinct < upstreamCount { await Task.yield() }
      await client.close()
      await device.close()
      await receiving.value
      await handling.value
      #expect(shown.distinct == count && shown.twice.isEmpty, "\(shown.twice.prefix(5))")
      #expect(handled.distinct == upstreamCount && handled.twice.isEmpty, "\(handled.twice.prefix(5))")
    }
  }

  @Test func aPlainClientThatFollowsTheProtocolComesThroughDrains() async throws {
    try await TestServer.run { address in
      let registered = try await address.registerDevice()
      let phone = try await address.connect(registered)
      let (count, window) = (1_500, 80)
      let shown = Tally()
      let receiving = Task {
        while shown.distinct < count {
          let payload = try await phone.nextPayload()
          shown.note(payload["data", "n"] ?? "?")
          phone.acknowledgeDelivery(payload)
        }
      }
      var stream = try await address.connectAppServer()
      var left = Array((0..<count).reversed())
      var acked = Set<String>()
      var pending = Set<String>()
      var drains = 0
      func fill() {
        while pending.count < window, let number = left.popLast() {
          pending.insert("m\(number)")
          stream.sendMessage(to: registered.token, id: "m\(number)", data: ["n": "\(number)"])
        }
      }
      fill()
      var old: [TestStream] = []
      while acked.count < count {
        let payload = try await stream.nextPayload()
        switch (payload["message_type"], payload["message_id"]) {
        case ("ack"?, let id?):
          pending.remove(id)
          #expect(acked.insert(id).inserted, "\(id) was acked twice")
          if acked.count.isMultiple(of: 400), drains < 3 {
            drains += 1
            try await drain(address)
          }
        case ("nack"?, let id?):
          // Sent after the announcement: again at once, on the next stream.
          #expect(payload["error"] == "CONNECTION_DRAINING", "\(payload)")
          pending.remove(id)
          if let number = Int(id.dropFirst()) { left.append(number) }
        case ("control"?, _):
          // The old one is read to its end: every message on it gets its answer.
          let draining = stream
          old.append(draining)
          stream = try await address.connectAppServer()
          while true {
            let item = try await draining.next()
            guard case .stanza(let stanza) = item else { break }
            guard let payload = stanza.payload, let id = payload["message_id"] else { continue }
            pending.remove(id)
            if payload["message_type"] == "ack" {
              #expect(acked.insert(id).inserted, "\(id) was acked twice")
            } else if let number = Int(id.dropFirst()) {
              #expect(payload["error"] == "CONNECTION_DRAINING", "\(payload)")
              left.append(number)
            }
          }
          #expect(pending.isEmpty, "no answer came for \(pending.prefix(5))")
        default: Issue.record("\(payload)")
        }
        fill()
      }
      try await receiving.value
      #expect(drains == 3 && old.count == 3)
      #expect(shown.distinct == count && shown.twice.isEmpty, "\(shown.twice.prefix(5))")
    }
  }

  @Test func slixmppComesThroughADrain() async throws {
    try await TestServer.run {
      try await ClientScript.slixmpp.run(["comes_through_a_drain_under_load"], against: $0)
    }
  }

  // MARK: Faults, as the client library meets them

  @Test func aServerThatFallsSilentIsNoticedAndTheMessageGoesElsewhereOnce() async throws {
    try await TestServer.run { address in
      let registered = try await address.registerDevice()
      let phone = try await address.connect(registered)
      let client = try client(address) {
        $0.keepaliveIdle = .milliseconds(300)
        $0.deadAfter = .seconds(1)
      }
      try await client.connect()
      #expect(
        try await address.administer("POST", "/admin/v1/faults", body: #"{"kind":"half_open"}"#).status == 201
      )
      async let ack = client.send(PushMessage(to: .token(registered.token), data: ["n": "1"], id: "m1"))
      let payload = try await phone.nextPayload()
      phone.acknowledgeDelivery(payload)
      #expect(try await ack.attempts == 2)
      _ = try await client.send(PushMessage(to: .token(registered.token), data: ["n": "2"], id: "m2"))
      #expect(try await phone.nextPayload()["data", "n"] == "2")
      await client.close()
    }
  }

  @Test func aMessageRefusedAfterItWasStoredIsShownOnce() async throws {
    for kind in ["unavailable", "cut"] {
      try await TestServer.run { address in
        let registered = try await address.registerDevice()
        let client = try client(address) { $0.retry.waitMin = .seconds(1) }
        try await client.connect()
        #expect(
          try await address.administer("POST", "/admin/v1/faults", body: #"{"kind":"\#(kind)"}"#).status
            == 201)
        let ack = try await client.send(
          PushMessage(to: .token(registered.token), data: ["n": "1"], id: "m1"))
        #expect(ack.attempts == 2, "\(kind)")
        _ = try await client.send(PushMessage(to: .token(registered.token), data: ["n": "2"], id: "m2"))
        let phone = try await address.connect(registered)
        for n in ["1", "2"] {
          let payload = try await phone.nextPayload()
          #expect(payload["data", "n"] == n, "\(kind)")
          phone.acknowledgeDelivery(payload)
        }
        await client.close()
      }
    }
  }

  // MARK: Upstream, as the client library meets it

  @Test func aHandlerThatThrowsSeesTheMessageAgainOnTheSameStreamAndASlowOneDoesNot() async throws {
    struct HandlerFault: Error {}
    try await TestServer.run({ $0.limits = ["upstream-retry-seconds": 1] }) { address in
      let registered = try await address.registerDevice()
      let client = try client(address)
      let (fails, slow) = (Tally(), Tally())
      let calls = Mutex<[String: Int]>([:])
      let gate = AsyncStream<Void>.makeStream()
      let handling = Task {
        await client.handleUpstream(concurrency: 2) { event in
          guard case .message(let message) = event else { return }
          let call = calls.withLock { calls in
            calls[message.id, default: 0] += 1
            return calls[message.id] ?? 0
          }
          if message.id == "slow" {
            // Longer than the pause after which the server repeats it.
            slow.note("\(call)")
            for await _ in gate.stream { break }
            return
          }
          fails.note("\(call)")
          if call < 3 { throw HandlerFault() }
          gate.continuation.yield()
        }
      }
      try await client.connect()
      let phone = try await address.connect(registered)
      for id in ["slow", "fails"] {
        phone.sendPayload(
          #"{"to":"\#(address.senderID)@fcm.googleapis.com","message_id":"\#(id)","data":{"a":"b"}}"#)
      }
      while fails.distinct < 3 { await Task.yield() }
      await client.close()
      await handling.value
      #expect(fails.distinct == 3 && fails.twice.isEmpty)
      #expect(slow.distinct == 1)
    }
  }

  // MARK: The window

  @Test func theMessageBeyondTheWindowAndItsSurplusIsRefused() async throws {
    let limits = ["pending-per-stream": 2, "held-per-stream": 2]
    try await TestServer.run({ $0.limits = limits }) { address in
      let registered = try await address.registerDevice()
      let stream = try await address.connectAppServer()
      #expect(
        try await address.administer(
          "POST", "/admin/v1/faults", body: #"{"kind":"delay","delay_ms":500,"count":4}"#
        ).status == 201)
      for number in 0..<6 { stream.sendMessage(to: registered.token, id: "m\(number)") }
      for id in ["m4", "m5"] {
        let nack = try await stream.nextPayload()
        #expect(nack["message_id"] == id && nack["error"] == "SERVICE_UNAVAILABLE")
      }
      for _ in 0..<4 { #expect(try await stream.nextPayload()["message_type"] == "ack") }
      // The answers have freed the window.
      stream.sendMessage(to: registered.token, id: "m4")
      #expect(try await stream.nextPayload()["message_type"] == "ack")
    }
  }
}
