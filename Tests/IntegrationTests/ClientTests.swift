import ConnectionServer
import TestKit
import Testing

/// Independently written clients, and raw sockets, against a live server.
@Suite(.serialized) struct ClientTests {
  @Test func aRawClientMeetsTheDocumentedHandshake() async throws {
    try await TestServer.run { try await ClientScript.handshake.run(against: $0) }
  }

  @Test func badInputEndsAtMostItsOwnStream() async throws {
    try await TestServer.run { try await ClientScript.badInput.run(against: $0) }
  }

  @Test func gnuTLSChangesKeysAndUsesEachSuite() async throws {
    try await TestServer.run { try await ClientScript.gnutls.run(against: $0) }
  }

  @Test func aPeerThatNeverReadsIsCutOffAtTheBacklogLimit() async throws {
    try await TestServer.run {
      $0.limits["write-backlog-bytes"] = 65_536
    } _: {
      try await ClientScript.badInput.run(["peer_that_never_reads"], against: $0)
    }
  }

  @Test func peersThatNeverLogInAreClosedAtTheDeadline() async throws {
    try await TestServer.run {
      $0.limits["login-seconds"] = 1
    } _: {
      try await ClientScript.silence.run(["before_login"], against: $0)
    }
  }

  @Test func peersThatFallSilentAreAskedAndThenClosed() async throws {
    try await TestServer.run {
      $0.limits["dead-seconds"] = 2
    } _: {
      try await ClientScript.silence.run(
        ["after_login", "spaces_are_a_sign_of_life", "peer_that_stopped_reading"], against: $0)
      try await ClientScript.slixmpp.run(["answers_the_pings_of_the_server"], against: $0)
    }
  }

  @Test func aiofcmSendsAndResends() async throws {
    try await TestServer.run { try await ClientScript.aiofcm.run(against: $0) }
  }

  @Test func slixmppSendsAndReceives() async throws {
    try await TestServer.run { try await ClientScript.slixmpp.run(against: $0) }
  }
}
