import Foundation
import TestKit
import Testing

/// Start, drain, crash and restart of `weir serve` as a process.
@Suite(.serialized) struct ServerLifeTests {
  @Test func sigtermDrainsAndEndsWithZero() async throws {
    let server = try await ServerProcess.start(flags: ["--drain-seconds", "20"])
    let address = server.address
    let away = try await address.registerDevice()
    let stream = try await address.connectAppServer()
    let device = try await address.connect(try await address.registerDevice())
    stream.sendMessage(to: away.token, id: "before", data: ["n": "kept"])
    #expect(try await stream.nextPayload()["message_type"] == "ack")
    // A drain waits for the app server's ack.
    device.sendPayload(
      #"{"to":"\#(address.senderID)@fcm.googleapis.com","message_id":"u-1","data":{"a":"b"}}"#)
    let upstream = try await stream.nextPayload()
    #expect(try await device.nextPayload()["message_type"] == "ack")

    server.signal(SIGTERM)
    let control = try await stream.nextPayload()
    #expect(control["message_type"] == "control")
    #expect(control["control_type"] == "CONNECTION_DRAINING")
    #expect(control["message_id"] == nil)
    stream.sendMessage(to: away.token, id: "after", data: ["n": "late"])
    let nack = try await stream.nextPayload()
    #expect(nack["message_id"] == "after")
    #expect(nack["error"] == "CONNECTION_DRAINING")
    stream.acknowledge(upstream)
    try await stream.waitForClose()
    try await device.waitForClose()
    #expect(try await server.waitForExit() == 0)

    try await server.restart()
    let back = try await server.address.connect(away)
    let delivered = try await back.nextPayload()
    #expect(delivered["data", "n"] == "kept")
    // The refused message may be sent again under its id.
    let again = try await server.address.connectAppServer()
    again.sendMessage(to: away.token, id: "after", data: ["n": "late"])
    #expect(try await back.nextPayload()["data", "n"] == "late")
    #expect(try await server.terminate() == 0)
  }

  /// A signal in the moment between the ready line and the wait for signals must not be lost.
  @Test func sigtermRightAfterTheReadyLineEndsTheServer() async throws {
    let server = try await ServerProcess.start()
    for _ in 0..<10 {
      #expect(try await server.terminate() == 0)
      try await server.restart()
    }
    #expect(try await server.terminate() == 0)
  }

  @Test func drainServesTheAcksThatAreOwed() async throws {
    let server = try await ServerProcess.start(flags: ["--drain-seconds", "20"])
    let address = server.address
    let registered = try await address.registerDevice()
    let stream = try await address.connectAppServer()
    let device = try await address.connect(registered)
    device.sendPayload(
      #"{"to":"\#(address.senderID)@fcm.googleapis.com","message_id":"u-1","data":{"a":"b"}}"#)
    let upstream = try await stream.nextPayload()
    #expect(upstream["message_id"] == "u-1")
    #expect(try await device.nextPayload()["message_type"] == "ack")
    server.signal(SIGTERM)
    #expect(try await stream.nextPayload()["control_type"] == "CONNECTION_DRAINING")
    // An ack on the draining stream still counts: the message does not come again.
    stream.acknowledge(upstream)
    try await stream.waitForClose()
    #expect(try await server.waitForExit() == 0)

    try await server.restart()
    let next = try await server.address.connectAppServer()
    next.sendMessage(to: "no-token", id: "probe")
    #expect(try await next.nextPayload()["message_id"] == "probe")
    #expect(try await server.terminate() == 0)
  }

  @Test func aLoginDuringADrainIsNotARefusal() async throws {
    let server = try await ServerProcess.start()
    let bound = try await server.address.connectAppServer()
    let late = try await server.address.connect()
    try await late.open()
    server.signal(SIGTERM)
    #expect(try await bound.nextPayload()["control_type"] == "CONNECTION_DRAINING")
    late.send("<auth mechanism=\"PLAIN\" xmlns=\"urn:ietf:params:xml:ns:xmpp-sasl\">AGEAYg==</auth>")
    switch try await late.next() {
    case .stanza(let stanza): #expect(stanza.children.contains("system-shutdown"), "\(stanza.text)")
    // On a slow machine the drain may be over first.
    case .endTag: break
    case let other: Issue.record("\(other)")
    }
    #expect(try await server.waitForExit() == 0)
  }

  @Test func aDrainEndsAtItsDeadline() async throws {
    let server = try await ServerProcess.start(flags: ["--drain-seconds", "1"])
    let address = server.address
    let stream = try await address.connectAppServer()
    let device = try await address.connect(try await address.registerDevice())
    device.sendPayload(
      #"{"to":"\#(address.senderID)@fcm.googleapis.com","message_id":"u-1","data":{"a":"b"}}"#)
    #expect(try await stream.nextPayload()["message_id"] == "u-1")
    server.signal(SIGTERM)
    #expect(try await stream.nextPayload()["control_type"] == "CONNECTION_DRAINING")
    // Never acked: it comes again after the restart.
    try await stream.waitForClose()
    #expect(try await server.waitForExit() == 0)
    try await server.restart()
    let next = try await server.address.connectAppServer()
    let again = try await next.nextPayload()
    #expect(again["message_id"] == "u-1")
    next.acknowledge(again)
    #expect(try await server.terminate() == 0)
  }

  @Test func anAdminCallDrainsToo() async throws {
    let server = try await ServerProcess.start()
    let stream = try await server.address.connectAppServer()
    let answer = try await server.address.administer("POST", "/admin/v1/drain")
    #expect(answer.status == 202)
    #expect(try await stream.nextPayload()["control_type"] == "CONNECTION_DRAINING")
    try await stream.waitForClose()
    #expect(try await server.waitForExit() == 0)
  }

  @Test func killedServersKeepWhatTheyAcked() async throws {
    let server = try await ServerProcess.start()
    let registered = try await server.address.registerDevice()
    let stream = try await server.address.connectAppServer()
    for number in 0..<50 {
      stream.sendMessage(to: registered.token, id: "m-\(number)", data: ["n": "\(number)"])
    }
    for _ in 0..<50 { #expect(try await stream.nextPayload()["message_type"] == "ack") }
    try await server.kill()
    try await server.restart()

    // The app server does not know what arrived, and sends all again.
    let again = try await server.address.connectAppServer()
    for number in 0..<50 {
      again.sendMessage(to: registered.token, id: "m-\(number)", data: ["n": "\(number)"])
    }
    for _ in 0..<50 { #expect(try await again.nextPayload()["message_type"] == "ack") }
    let device = try await server.address.connect(registered)
    var received: [String] = []
    while received.count < 50 {
      let payload = try await device.nextPayload()
      received.append(payload["data", "n"] ?? "")
      device.acknowledgeDelivery(payload)
    }
    #expect(received == (0..<50).map(String.init), "each once, in order")
    // Nothing is left: what comes next is the next message.
    again.sendMessage(to: registered.token, id: "last", data: ["n": "last"])
    #expect(try await device.nextPayload()["data", "n"] == "last")
    #expect(try await server.terminate() == 0)
  }

  @Test func killedServersKeepUpstreamMessages() async throws {
    let server = try await ServerProcess.start()
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

  @Test func aDirectoryInUseIsRefused() async throws {
    let server = try await ServerProcess.start()
    let directory = try TemporaryDirectory()
    let second = try ChildProcess(
      try ServerProcess.findExecutable(),
      [
        "serve", "--data", server.directory.path + "/data", "--xmpp-port", "0", "--https-port", "0",
        "--admin-port", "0",
      ], errors: directory.path + "/errors")
    let (code, output) = try await second.waitForExit(within: .seconds(15))
    #expect(code == 3)
    #expect(output.isEmpty)
    #expect(second.errorText.contains("is in use by another weir process"), "\(second.errorText)")
    // The first one is not disturbed.
    let stream = try await server.address.connectAppServer()
    stream.close()
    #expect(try await server.terminate() == 0)
  }

  @Test func aPortInUseIsRefused() async throws {
    let server = try await ServerProcess.start()
    let directory = try TemporaryDirectory()
    let second = try ChildProcess(
      try ServerProcess.findExecutable(),
      [
        "serve", "--data", directory.path + "/data", "--xmpp-port", "0", "--https-port",
        "\(server.address.https)", "--admin-port", "0",
      ], errors: directory.path + "/errors")
    let (code, _) = try await second.waitForExit(within: .seconds(15))
    #expect(code == 3)
    #expect(second.errorText.contains("Cannot listen on"), "\(second.errorText)")
    #expect(try await server.terminate() == 0)
  }

  @Test func sighupReloadsTheCertificate() async throws {
    let server = try await ServerProcess.start()
    let address = server.address
    let old = try await address.connectAppServer()
    // A new certificate of a new authority, where the server reads it.
    let made = try TemporaryDirectory()
    let maker = try ChildProcess(
      try ServerProcess.findExecutable(), ["certs", "--out", made.path], errors: made.path + "/errors")
    #expect(try await maker.waitForExit(within: .seconds(15)).code == 0)
    let files = FileManager.default
    for name in ["server.pem", "server.key", "ca.pem"] {
      try files.removeItem(atPath: address.credentials + "/" + name)
      try files.copyItem(atPath: made.path + "/" + name, toPath: address.credentials + "/" + name)
    }
    // ca.pem is the client's business: until the reload, the server's old certificate does not match it.
    await #expect(throws: (any Error).self) { _ = try await address.connect() }
    server.signal(SIGHUP)
    try await eventually("the new certificate") {
      guard let stream = try? await address.connect() else { return false }
      stream.close()
      return true
    }
    // A stream that was open goes on.
    old.sendMessage(to: "no-token", id: "old")
    #expect(try await old.nextPayload()["message_id"] == "old")
    _ = try await address.connectAppServer()
    #expect(try await server.terminate() == 0)
  }

  @Test func aBrokenCertificateIsNotTaken() async throws {
    let server = try await ServerProcess.start()
    try Data("nonsense".utf8).write(to: URL(fileURLWithPath: server.address.credentials + "/server.pem"))
    server.signal(SIGHUP)
    try await eventually("a word about the certificate") { server.log.contains("not reloaded") }
    _ = try await server.address.connectAppServer()
    #expect(try await server.terminate() == 0)
  }
}

/// Tries again until something holds; fails after 15 seconds.
func eventually(
  _ what: String, _ condition: () async throws -> Bool
) async throws {
  let start = ContinuousClock.now
  while try await !condition() {
    guard ContinuousClock.now - start < .seconds(15) else {
      Issue.record("\(what) did not come within 15 seconds")
      return
    }
    await Task.yield()
  }
}
