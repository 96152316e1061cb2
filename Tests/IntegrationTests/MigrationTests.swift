import Foundation
import TestKit
import Testing

/// `weir migrate`: from the embedded store to PostgreSQL.
@Suite(.serialized) struct MigrationTests {
  @Test func aStoreGoesOnInPostgreSQL() async throws {
    let server = try await ServerProcess.start()
    let (away, other) = (
      try await server.address.registerDevice(), try await server.address.registerDevice(user: "ana")
    )
    let stream = try await server.address.connectAppServer()
    for number in 0..<30 {
      stream.sendMessage(to: away.token, id: "m-\(number)", data: ["n": "\(number)"])
    }
    for _ in 0..<30 { #expect(try await stream.nextPayload()["message_type"] == "ack") }
    let subscribed = try await server.address.request(
      "POST",
      "/v1/projects/\(server.address.projectID)/registrations/\(away.token)/topicSubscriptions?topic_name=news",
      headers: ["x-goog-api-key": try server.address.secret("api-key")])
    #expect(subscribed.status == 200)
    stream.sendPayload(#"{"to":"/topics/news","message_id":"t-1","data":{"n":"topic"},"collapse_key":"k"}"#)
    #expect(try await stream.nextPayload()["message_type"] == "ack")
    let data = server.directory.path + "/data"
    let schema = try await PostgresServer.shared().schema()

    // A store in use is not moved.
    let program = try ServerProcess.findExecutable()
    let flags = ["migrate", "--from", data + "/weir.sqlite", "--to", schema.url, "--json"]
    #expect(try await ChildProcess.run(program, flags).code == 3)
    #expect(try await server.terminate() == 0)

    let (code, text) = try await ChildProcess.run(program, flags, errors: server.directory.path + "/errors")
    let errors = (try? String(contentsOfFile: server.directory.path + "/errors", encoding: .utf8)) ?? ""
    #expect(code == 0, "\(errors)")
    #expect(text.contains("\"message\":{\"rows\":31"), "\(text)")
    // Not twice.
    #expect(try await ChildProcess.run(program, flags).code == 3)

    let moved = try await ServerProcess.start(flags: ["--store", schema.url], in: server.directory)
    let device = try await moved.address.connect(away)
    for number in 0..<30 {
      let payload = try await device.nextPayload()
      #expect(payload["data", "n"] == "\(number)")
      device.acknowledgeDelivery(payload)
    }
    #expect(try await device.nextPayload()["data", "n"] == "topic")
    let again = try await moved.address.connectAppServer()
    // Known by the journal, so not delivered again.
    again.sendMessage(to: away.token, id: "m-3", data: ["n": "repeat"])
    #expect(try await again.nextPayload()["message_type"] == "ack")
    // New rows do not meet the old numbers.
    let new = try await moved.address.registerDevice()
    let second = try await moved.address.connect(other)
    let third = try await moved.address.connect(new)
    for (token, stream) in [(other.token, second), (new.token, third)] {
      again.sendMessage(to: token, id: "n-\(token)", data: ["n": "new"])
      #expect(try await stream.nextPayload()["data", "n"] == "new")
    }
    #expect(try await moved.terminate() == 0)
  }
}
