import Seams
import Testing
import XMPPCore

@Suite struct ServerHandshakeTests {
  @Test func eachReplyOfTheHandshakeIsExact() {
    let server = Server()
    #expect(server.feed(openTag) == serverTag + loginFeatures)
    #expect(server.feed(auth("", "123456789@fcm.googleapis.com")) == success)
    #expect(success.utf8.count == 51)
    #expect(server.feed(openTag) == serverTag + bindFeatures)
    #expect(
      server.feed(bind("worker"))
        == "<iq type=\"result\" id=\"b1\"><bind xmlns=\"urn:ietf:params:xml:ns:xmpp-bind\">"
        + "<jid>123456789@gcm.googleapis.com/worker9B3D4E58</jid></bind></iq> ")
    #expect(
      server.feed("<iq type=\"set\" id=\"s1\"><session xmlns=\"urn:ietf:params:xml:ns:xmpp-session\"/></iq>")
        == "<iq type=\"result\" id=\"s1\" from=\"fcm-xmpp.googleapis.com\"/>")
    #expect(
      server.events == [
        .authenticate(PlainCredentials(authcid: "123456789@fcm.googleapis.com", password: "key")),
        .bound(address),
      ])
    #expect(server.stream.jid == address)
    #expect(server.stream.host == "fcm-xmpp.googleapis.com")
  }

  @Test func everyCutOfTheHandshakeGivesTheSameBytesAndEvents() {
    let script = Array(
      ("<?xml version='1.0'?>" + openTag + auth("", "1", "wrong") + auth("", "123456789") + openTag
        + bind("worker")
        + gcm("{\"e\":\"é語🌍\"}") + " " + "<iq type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq><presence/>"
        + "<message id='&amp;'><gcm xmlns='google:mobile:data'>{}</gcm></message>" + endTag).utf8)
    let whole = Server()
    let expected = whole.feed(script)
    #expect(whole.events.count == 6)
    #expect(whole.messages == ["m1 {\"e\":\"é語🌍\"}", "& {}"])
    let single = Server()
    #expect(script.map { single.feed([$0]) }.joined() == expected)
    #expect(single.messages == whole.messages)
    for cut in 1..<script.count {
      let server = Server()
      let written = server.feed(Array(script[..<cut])) + server.feed(Array(script[cut...]))
      #expect(written == expected)
      #expect(server.events.count == whole.events.count)
      #expect(server.messages == whole.messages)
      #expect(server.stream.state == .awaitingClose)
    }
  }

  @Test func theHeaderEchoesWhateverHostThePeerNames() {
    let server = Server()
    #expect(
      server.feed(
        "<stream:stream to='any&amp;host' version='1.0' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
      ).hasPrefix("<stream:stream from=\"any&amp;host\" id=\"7A1F00C29B3D4E58\" version"))
    let nameless = Server()
    #expect(
      nameless.feed(
        "<stream:stream version='1.0' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
      ).hasPrefix("<stream:stream from=\"gcm.googleapis.com\" id="))
  }

  @Test func aSelfClosedHeaderGetsAHeaderAndAnEndTag() {
    let server = Server()
    #expect(server.feed(openTag.dropLast() + "/>") == serverTag + endTag)
    #expect(server.events == [.ended(.selfClosedHeader)])
    #expect(server.stream.nextDeadline == nil)
  }

  // MARK: Binding

  @Test func theServerInventsAResourceWhenNoneIsWished() {
    for request in [
      "<iq type='set'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>",
      "<iq type='set'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource/></bind></iq>",
    ] {
      let server = Server.inState(.awaitingBind)
      #expect(
        server.feed(request)
          == "<iq type=\"result\"><bind xmlns=\"urn:ietf:params:xml:ns:xmpp-bind\">"
          + "<jid>123456789@gcm.googleapis.com/weir9B3D4E58</jid></bind></iq> ")
    }
  }

  @Test func theAddressedPartIsTheAnswersSender() {
    let server = Server.inState(.awaitingBind)
    #expect(
      server.feed(
        "<iq to='gcm.googleapis.com' type='set' id='&quot;'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>"
      ).hasPrefix("<iq type=\"result\" id=\"&quot;\" from=\"gcm.googleapis.com\"><bind"))
  }

  @Test func aResourceIsBoundedAndEscaped() {
    let server = Server.inState(.awaitingBind)
    let refusal =
      "<iq type=\"error\" id=\"b1\"><error type=\"modify\"><bad-request xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\"/></error></iq>"
    #expect(server.feed(bind(String(repeating: "r", count: 1_016))) == refusal)
    #expect(server.feed(bind("a\tb")) == refusal)
    #expect(server.stream.state == .awaitingBind)
    #expect(server.feed(bind("a&lt;b")).contains("/a&lt;b9B3D4E58</jid>"))
    let long = Server.inState(.awaitingBind)
    long.feed(bind(String(repeating: "r", count: 1_015)))
    #expect(long.stream.jid?.resource?.utf8.count == 1_023)
  }
}
