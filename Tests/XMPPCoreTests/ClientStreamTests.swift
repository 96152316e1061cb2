import Seams
import Testing
import XMLCore
import XMPPCore

@Suite struct ClientStreamTests {
  @Test func eachStepOfTheHandshakeIsExact() {
    let client = Client()
    #expect(client.open() == openTag)
    #expect(client.open() == "")
    #expect(client.feed(serverTag) == "")
    #expect(
      client.feed(loginFeatures)
        == auth("", "123456789@fcm.googleapis.com"))
    #expect(client.feed(success) == openTag)
    #expect(
      client.feed(serverTag + bindFeatures)
        == "<iq type=\"set\" id=\"bind\"><bind xmlns=\"urn:ietf:params:xml:ns:xmpp-bind\"><resource>worker</resource></bind></iq>"
    )
    #expect(client.feed(Client.bound) == "")
    #expect(client.events == [.ready(address)])
    #expect(client.stream.jid == address)
  }

  @Test func allStepsOfALoginCanBeSaidAtOnce() {
    let client = Client(isPipelined: true)
    #expect(
      client.open()
        == openTag + auth("", "123456789@fcm.googleapis.com") + openTag
        + "<iq type=\"set\" id=\"bind\"><bind xmlns=\"urn:ietf:params:xml:ns:xmpp-bind\"><resource>worker</resource></bind></iq>"
    )
    #expect(client.feed(serverTag + loginFeatures + success + serverTag + bindFeatures + Client.bound) == "")
    #expect(client.events == [.ready(address)])
    // A window depends on what the server offers.
    #expect(Client(window: 500, isPipelined: true).open() == openTag)
  }

  @Test func aServerWithoutPlainIsLeftAlsoWhenAllWasSaidAtOnce() {
    let client = Client(isPipelined: true)
    _ = client.open()
    client.feed(
      serverTag + "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>")
    #expect(client.events == [.ended(.failed(.mechanismMissing))])
  }

  @Test func aDemandedSessionIsAskedFor() {
    let client = Client.inState(.awaitingSecondFeatures)
    client.feed(Client.steps[4].1)
    #expect(
      client.feed(Client.bound)
        == "<iq type=\"set\" id=\"session\"><session xmlns=\"urn:ietf:params:xml:ns:xmpp-session\"/></iq>")
    #expect(client.events == [])
    client.feed("<iq type='error' id='session'/>")
    #expect(client.events == [.ready(address)])
  }

  @Test func withoutAResourceTheServerChooses() {
    let client = Client(resource: nil)
    _ = client.open()
    client.feed(serverTag + loginFeatures)
    client.feed(success)
    #expect(
      client.feed(serverTag + bindFeatures)
        == "<iq type=\"set\" id=\"bind\"><bind xmlns=\"urn:ietf:params:xml:ns:xmpp-bind\"/></iq>")
  }

  @Test func everyCutOfWhatTheServerSendsGivesTheSame() {
    let script = Array(
      (serverTag + loginFeatures + success + serverTag + bindFeatures + Client.bound + " "
        + "<message><data:gcm xmlns:data='google:mobile:data'>{\"e\":\"é語🌍\"}</data:gcm></message>"
        + "<iq type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq>" + endTag).utf8)
    let whole = Client()
    let expected = whole.open() + whole.feed(script)
    #expect(whole.events.count == 3)
    for cut in 1..<script.count {
      let client = Client()
      #expect(
        client.open() + client.feed(Array(script[..<cut])) + client.feed(Array(script[cut...])) == expected)
      #expect(client.events.count == 3)
      #expect(client.messages == ["{\"e\":\"é語🌍\"}"])
    }
  }

  @Test(arguments: [
    (ClientStream.State.awaitingFeatures, "<stream:features/>", ClientFault.mechanismMissing),
    (
      .awaitingFeatures,
      "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>X-OAUTH2</mechanism></mechanisms></stream:features>",
      .mechanismMissing
    ),
    (.awaitingSuccess, failure("not-authorized"), .loginRefused(.notAuthorized)),
    (.awaitingSuccess, failure("temporary-auth-failure"), .loginRefused(.temporaryAuthFailure)),
    (.awaitingSuccess, failure("no-such-thing"), .loginRefused(.notAuthorized)),
    (.awaitingSecondFeatures, "<stream:features/>", .bindingRefused("feature-not-implemented")),
    (
      .awaitingBinding,
      "<iq type='error' id='bind'><error type='cancel'><conflict xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>",
      .bindingRefused("conflict")
    ),
    (.awaitingBinding, "<iq type='result' id='bind'/>", .bindingRefused("undefined-condition")),
    (
      .awaitingBinding,
      "<iq type='result' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>@</jid></bind></iq>",
      .bindingRefused("undefined-condition")
    ),
    (.awaitingFeatures, streamError("host-unknown"), .streamError("host-unknown", text: nil)),
    (
      .ready,
      "<stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/><text xmlns='urn:ietf:params:xml:ns:xmpp-streams'>gone</text></stream:error>",
      .streamError("conflict", text: "gone")
    ),
    (.awaitingFeatures, success, .unexpected(.awaitingFeatures)),
    (.awaitingSuccess, loginFeatures, .unexpected(.awaitingSuccess)),
    (.awaitingSecondFeatures, "<message/>", .unexpected(.awaitingSecondFeatures)),
    (.awaitingHeader, serverTag.dropLast() + "/>", .closedEarly(.awaitingHeader)),
    (.awaitingFeatures, endTag, .closedEarly(.awaitingFeatures)),
    (.awaitingBinding, endTag, .closedEarly(.awaitingBinding)),
  ])
  func aLoginFailsForOneNamedReason(_ state: ClientStream.State, _ bytes: String, _ fault: ClientFault) {
    let client = Client.inState(state)
    #expect(client.feed(bytes) == endTag)
    #expect(client.events == [.ended(.failed(fault))])
    #expect(client.stream.state == .ended)
    #expect(client.stream.nextDeadline == nil)
    #expect(client.feed(bytes) == "")
    #expect(client.events.count == 1)
  }

  @Test(arguments: [
    ("HTTP/1.1 400 Bad Request", XMLFault.notWellFormed, "not-well-formed"),
    ("<!DOCTYPE a>", .restrictedXML, "restricted-xml"),
    ("<stream xmlns='jabber:client'>", .invalidNamespace, "invalid-namespace"),
  ])
  func aServerThatSpeaksSomethingElseIsToldSo(_ bytes: String, _ fault: XMLFault, _ condition: String) {
    let client = Client.inState(.awaitingHeader)
    #expect(client.feed(bytes) == streamError(condition))
    #expect(client.events == [.ended(.failed(.xml(fault)))])
  }

  @Test func everyAwaitHasADeadline() {
    for state in ClientStream.State.allCases {
      let client = Client.inState(state)
      switch state {
      case .idle, .ended:
        #expect(client.stream.nextDeadline == nil)
        #expect(client.advance(.seconds(1_000)) == "")
        #expect(client.events == [])
      case .ready:
        #expect(client.stream.nextDeadline == Moment(ns: 30_000_000_000))
      case .awaitingEnd:
        #expect(client.advance(.seconds(4)) == "")
        client.advance(.seconds(1))
        #expect(client.events == [.ended(.closed)])
      default:
        #expect(client.advance(.milliseconds(9_999)) == "")
        #expect(client.advance(.milliseconds(1)) == endTag)
        #expect(client.events == [.ended(.failed(.overdue(state)))])
      }
    }
  }

  @Test func aQuietServerIsPingedThenGivenUp() {
    let client = Client.inState(.ready)
    #expect(client.advance(.seconds(30)) == " ")
    #expect(
      client.advance(.seconds(30)) == "<iq type=\"get\" id=\"ping-1\"><ping xmlns=\"urn:xmpp:ping\"/></iq>")
    #expect(client.feed("<iq type='error' id='ping-1'/>") == "")
    #expect(client.advance(.seconds(30)) == " ")
    #expect(client.advance(.seconds(30)).contains("ping-2"))
    #expect(client.advance(.seconds(30)) == endTag)
    #expect(client.events == [.ended(.failed(.silent))])
  }

  @Test func stanzaErrorsCarryTheirCodeAndText() {
    let client = Client.inState(.ready)
    client.feed(
      "<message id=\"3\" type=\"error\" to=\"\(address)\">\n <gcm>{\"a\":1}</gcm>\n<gcm xmlns='google:mobile:data'>{\"b\":1}</gcm>"
        + "<error code=\"400\" type=\"modify\"><bad-request xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\"/>"
        + "<text xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\">InvalidJson: x\n</text></error></message>"
        + "<message type='error'><gcm xmlns='google:mobile:data'>{}</gcm></message>")
    #expect(
      client.events == [
        .refused(
          RefusedMessage(
            id: "3", code: "400", condition: "bad-request", text: "InvalidJson: x", json: "{\"b\":1}")),
        .refused(RefusedMessage(id: nil, code: nil, condition: "undefined-condition", text: "", json: "{}")),
      ])
  }

  @Test func queriesOfTheServerAreAnswered() {
    let client = Client.inState(.ready)
    #expect(
      client.feed("<iq type='get' id='p' from='gcm.googleapis.com'><ping xmlns='urn:xmpp:ping'/></iq>")
        == "<iq type=\"result\" id=\"p\" to=\"gcm.googleapis.com\"/>")
    #expect(
      client.feed("<iq type='set' id='q'><query xmlns='a'/></iq>")
        == "<iq type=\"error\" id=\"q\"><error type=\"cancel\"><service-unavailable xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\"/></error></iq>"
    )
    #expect(client.feed("<iq type='result' id='x'/><presence/><message><body/></message><other/>") == "")
    #expect(client.events == [])
  }

  @Test func messagesStillComeWhileTheEndIsAwaited() {
    let client = Client.inState(.ready)
    #expect(client.close() == endTag)
    client.feed(gcm("{\"message_type\":\"ack\"}") + "<iq type='get'><ping xmlns='urn:xmpp:ping'/></iq>")
    #expect(client.messages == ["{\"message_type\":\"ack\"}"])
    #expect(client.feed(endTag) == "")
    #expect(client.events.last == .ended(.closed))
    #expect(client.close() == "")
  }

  @Test func closingDuringLoginEndsAtOnce() {
    let client = Client.inState(.awaitingSuccess)
    #expect(client.close() == endTag)
    #expect(client.events == [.ended(.closed)])
    let idle = Client.inState(.idle)
    #expect(idle.close() == "")
    #expect(idle.events == [.ended(.closed)])
  }
}
