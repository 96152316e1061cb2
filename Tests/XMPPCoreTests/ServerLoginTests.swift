import Seams
import Testing
import XMPPCore

@Suite struct ServerLoginTests {
  @Test(arguments: [
    ("", "123456789@fcm.googleapis.com"), ("", "123456789@gcm.googleapis.com"), ("", "123456789"),
    ("123456789@gcm.googleapis.com", "123456789"),
    ("123456789@projects.example.gcm.android.com", "123456789"),
    ("123456789", "123456789@fcm.googleapis.com"),
  ])
  func allFormsOfAnIdentityLogIn(_ authzid: String, _ authcid: String) {
    let server = Server.inState(.awaitingLogin)
    #expect(server.feed(auth(authzid, authcid)) == success)
    guard case .authenticate(let credentials)? = server.events.first else {
      Issue.record("not asked")
      return
    }
    #expect(credentials.identity == "123456789")
    #expect(!"\(credentials) \(String(reflecting: credentials))".contains("key"))
  }

  @Test(arguments: [
    (auth("", "123456789", "wrong"), "not-authorized"),
    (auth("987654321", "123456789"), "invalid-authzid"),
    (
      "<auth mechanism='PLAIN' xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>AGE AYg==</auth>",
      "incorrect-encoding"
    ),
    (
      "<auth mechanism='PLAIN' xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>\nAGEAYg==</auth>",
      "incorrect-encoding"
    ),
    (
      "<auth mechanism='PLAIN' xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>AGEAYg==\n</auth>",
      "incorrect-encoding"
    ),
    ("<auth mechanism='PLAIN' xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>AGEAYg</auth>", "incorrect-encoding"),
    (
      "<auth mechanism='PLAIN' xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>AGEAYh==</auth>", "incorrect-encoding"
    ),
    (
      "<auth mechanism='PLAIN' xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>AGEAYg-_</auth>", "incorrect-encoding"
    ),
    ("<auth mechanism='PLAIN' xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>=AAA</auth>", "incorrect-encoding"),
    ("<auth mechanism='PLAIN' xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>====</auth>", "incorrect-encoding"),
    ("<auth mechanism='PLAIN' xmlns='urn:ietf:params:xml:ns:xmpp-sasl'> </auth>", "incorrect-encoding"),
    ("<auth mechanism='PLAIN' xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>=</auth>", "malformed-request"),
    ("<auth mechanism='PLAIN' xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><a/></auth>", "malformed-request"),
    (auth(Array("a\0b".utf8)), "malformed-request"), (auth(Array("\0a\0b\0c".utf8)), "malformed-request"),
    (auth("", ""), "malformed-request"), (auth("", "@fcm.googleapis.com"), "malformed-request"),
    (auth("", "123456789", ""), "malformed-request"), (auth([0, 0xFF, 0, 0x61]), "malformed-request"),
    (
      "<auth mechanism='X-OAUTH2' xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>AGEAYg==</auth>",
      "invalid-mechanism"
    ),
    ("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>AGEAYg==</auth>", "invalid-mechanism"),
  ])
  func aLoginThatFailsMayBeTriedAgain(_ request: String, _ condition: String) {
    let server = Server.inState(.awaitingLogin)
    #expect(server.feed(request) == failure(condition))
    #expect(server.stream.state == .awaitingLogin)
    #expect(server.feed(auth("", "123456789")) == success)
  }

  @Test func theThirdFailureEndsTheStream() {
    let server = Server.inState(.awaitingLogin)
    let wrong = auth("", "123456789", "wrong")
    #expect(server.feed(wrong) == failure("not-authorized"))
    #expect(
      server.feed("<auth mechanism='X' xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>")
        == failure("invalid-mechanism"))
    server.events = []
    #expect(server.feed(wrong) == failure("not-authorized") + streamError("policy-violation"))
    #expect(server.events.last == .ended(.loginRefused))
    #expect(server.feed(auth("", "123456789")) == "")
  }

  @Test func anAbortIsAnsweredAndIsNoTry() {
    let server = Server.inState(.awaitingLogin)
    for _ in 0..<5 {
      #expect(server.feed("<abort xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>") == failure("aborted"))
    }
    let challenged = Server.inState(.awaitingResponse)
    #expect(challenged.feed("<abort xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>") == failure("aborted"))
    #expect(challenged.feed(auth("", "123456789")) == success)
  }

  @Test func anEmptyRequestIsChallenged() {
    let server = Server.inState(.awaitingLogin)
    #expect(
      server.feed("<auth mechanism='PLAIN' xmlns='urn:ietf:params:xml:ns:xmpp-sasl'></auth>")
        == "<challenge xmlns=\"urn:ietf:params:xml:ns:xmpp-sasl\"/>")
    let message = Base64.encode(Array("\u{0}123456789\u{0}key".utf8))
    #expect(
      server.feed("<response xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>\(message)</response>") == success)
  }

  @Test func nothingIsTakenWhileTheVerdictIsOut() {
    let server = Server.inState(.awaitingVerdict)
    let rest = Array((openTag + bind("worker")).utf8)
    #expect(server.feed(rest) == "")
    #expect(server.stream.state == .awaitingVerdict)
    server.stream.authenticated(local: "123456789", output: &server.output, now: server.now)
    #expect(server.written() == success)
    #expect(server.feed(rest).hasPrefix(serverTag + bindFeatures + "<iq type=\"result\""))
    #expect(server.events == [.bound(address)])
  }

  @Test func credentialsThatCannotBeLookedUpAreToldSo() {
    let server = Server.inState(.awaitingVerdict)
    #expect(server.stream.refused(.temporaryAuthFailure, output: &server.output, now: server.now) == nil)
    #expect(server.written() == failure("temporary-auth-failure"))
    // A second word finds nobody waiting.
    #expect(server.stream.refused(output: &server.output, now: server.now) == nil)
    server.stream.authenticated(local: "1", output: &server.output, now: server.now)
    #expect(server.written() == "")
    #expect(server.stream.state == .awaitingLogin)
  }

  @Test func theStanzaLimitIsWiderAfterLogin() {
    let long = gcm(String(repeating: "x", count: 60_000))
    let before = Server.inState(.awaitingLogin)
    #expect(before.feed(long) == streamError("policy-violation"))
    let after = Server.inState(.bound)
    #expect(after.feed(long) == "")
    #expect(after.messages.count == 1)
    #expect(after.feed(gcm(String(repeating: "x", count: 66_000))) == streamError("policy-violation"))
  }

  @Test func base64GoesThereAndBack() {
    var chance = SeededChance(seed: 1)
    for count in 0..<40 {
      let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &chance) }
      #expect(Base64.decode(Base64.encode(bytes)) == bytes)
    }
    #expect(Base64.encode(Array("\u{0}a\u{0}b".utf8)) == "AGEAYg==")
  }
}
