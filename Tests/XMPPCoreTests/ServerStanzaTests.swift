import Bytes
import Seams
import Testing
import XMLCore
import XMPPCore

@Suite struct ServerStanzaTests {
  @Test func messagesOfEverySpellingArrive() {
    let server = Server.inState(.bound)
    #expect(
      server.feed(
        gcm("{&quot;a&quot;:1}", id: "")
          + " \n<message><data:gcm xmlns:data='google:mobile:data'>{}</data:gcm></message>"
          + "<message to='devices@gcm.googleapis.com' type='normal' id='&#65;'><gcm xmlns='google:mobile:data'><![CDATA[<&>]]></gcm></message>"
          + "<message><other/><gcm xmlns='google:mobile:data'>a\r\nb</gcm></message>") == "")
    #expect(server.messages == [" {\"a\":1}", "- {}", "A <&>", "- a\nb"])
  }

  @Test func errorsOfAPeerAreSwallowed() {
    let server = Server.inState(.bound)
    #expect(
      server.feed(
        "<message type='error'><gcm xmlns='google:mobile:data'>{}</gcm></message>"
          + "<message type='error'><body/></message><iq type='error' id='1'/><iq type='result' id='2'/><presence/>"
      ) == "")
    #expect(server.events == [])
  }

  @Test func aMessageWithoutTextToReadIsGivenBack() {
    let server = Server.inState(.bound)
    let start = "<message id=\"7&amp;\" type=\"error\" to=\"123456789@gcm.googleapis.com/worker9B3D4E58\">"
    let error =
      "<error code=\"400\" type=\"modify\"><bad-request xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\"/>"
      + "<text xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\">InvalidJson: JSON_PARSING_ERROR : "
    #expect(
      server.feed("<message id='7&amp;'><body>hello</body></message>")
        == start + error + "Missing gcm element\n</text></error></message>")
    #expect(
      server.feed("<message><gcm xmlns='google:mobile:data'>{\"a\":\"<b>c</b>\"}</gcm></message>")
        == start.replacing(" id=\"7&amp;\"", with: "") + error
        + "Markup inside the gcm element\n</text></error></message>")
    #expect(server.events == [])
  }

  @Test(arguments: [
    ("<iq type='get' id='p1'><ping xmlns='urn:xmpp:ping'/></iq>", "<iq type=\"result\" id=\"p1\"/>"),
    (
      "<iq type='get' id='p1' to='gcm.googleapis.com'><ping xmlns='urn:xmpp:ping'/></iq>",
      "<iq type=\"result\" id=\"p1\" from=\"gcm.googleapis.com\"/>"
    ),
    ("<iq type='get'><ping xmlns='urn:xmpp:ping'/></iq>", "<iq type=\"result\"/>"),
    (
      "<iq type='get' id='r'><query xmlns='jabber:iq:roster'/></iq>",
      "<iq type=\"error\" id=\"r\"><error type=\"cancel\"><service-unavailable xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\"/></error></iq>"
    ),
    (
      "<iq type='set' id='r'/>",
      "<iq type=\"error\" id=\"r\"><error type=\"cancel\"><service-unavailable xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\"/></error></iq>"
    ),
    (
      "<iq id='r'><query/></iq>",
      "<iq type=\"error\" id=\"r\"><error type=\"modify\"><bad-request xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\"/></error></iq>"
    ),
    (
      bind("again"),
      "<iq type=\"error\" id=\"b1\"><error type=\"cancel\"><not-allowed xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\"/></error></iq>"
    ),
    (
      "<iq type='set' to='fcm.googleapis.com'><session xmlns='urn:ietf:params:xml:ns:xmpp-session'/></iq>",
      "<iq type=\"result\" from=\"fcm.googleapis.com\"/>"
    ),
  ])
  func everyQueryIsAnswered(_ query: String, _ answer: String) {
    let server = Server.inState(.bound)
    #expect(server.feed(query) == answer)
    #expect(server.stream.state == .bound)
  }

  @Test func aRefusedMessageIsEchoed() throws {
    let server = Server.inState(.bound)
    server.feed("<message id='77'><gcm xmlns='google:mobile:data'>{\"to\":\"a&amp;b\"}</gcm></message>")
    guard case .message(let head)? = server.events.last else {
      Issue.record("no message")
      return
    }
    server.stream.refuse(
      head, in: server.scratch,
      .badRequest("InvalidJson: JSON_PARSING_ERROR : Missing Required Field: message_id"),
      output: &server.output)
    #expect(
      server.written()
        == "<message id=\"77\" type=\"error\" to=\"123456789@gcm.googleapis.com/worker9B3D4E58\">"
        + "<gcm xmlns=\"google:mobile:data\">{\"to\":\"a&amp;b\"}</gcm><error code=\"400\" type=\"modify\">"
        + "<bad-request xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\"/><text xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\">"
        + "InvalidJson: JSON_PARSING_ERROR : Missing Required Field: message_id\n</text></error></message>")
    server.stream.refuse(head, in: server.scratch, .notAcceptable("no such message"), output: &server.output)
    #expect(
      server.written().hasSuffix(
        "<error code=\"406\" type=\"modify\"><not-acceptable xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\"/>"
          + "<text xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\">no such message\n</text></error></message>"))
  }

  @Test func envelopesAreWhatClientsLookFor() {
    var writer = ByteWriter()
    writer.appendUpstreamOpen(to: address)
    writer.append("{}")
    writer.append(MessageEnvelope.close)
    #expect(
      String(decoding: writer.take(), as: UTF8.self)
        == "<message to=\"123456789@gcm.googleapis.com\" from=\"devices@gcm.googleapis.com\" type=\"normal\">"
        + "<gcm xmlns=\"google:mobile:data\">{}</gcm></message>")
    writer.append(MessageEnvelope.controlOpen)
    writer.append(MessageEnvelope.controlClose)
    #expect(
      String(decoding: writer.take(), as: UTF8.self)
        == "<message><data:gcm xmlns:data=\"google:mobile:data\"></data:gcm></message>")
    writer.appendMessageOpen(id: "a\"b")
    #expect(
      String(decoding: writer.take(), as: UTF8.self)
        == "<message id=\"a&quot;b\"><gcm xmlns=\"google:mobile:data\">")
  }

  @Test func theDriverClosesWhenThePeerHasClosed() {
    let server = Server.inState(.bound)
    #expect(server.feed(endTag + " ") == "")
    #expect(server.events == [.peerClosing])
    server.stream.close(output: &server.output)
    #expect(server.written() == endTag)
    #expect(server.stream.state == .ended)
    server.stream.close(output: &server.output)
    #expect(server.written() == "")
  }
}

@Suite struct JIDTests {
  @Test(arguments: [
    ("a@b/c", JID(local: "a", domain: "b", resource: "c")), ("a@b", JID(local: "a", domain: "b")),
    ("b", JID(local: "", domain: "b")), ("a@b/c@d/e", JID(local: "a", domain: "b", resource: "c@d/e")),
    ("", nil), ("@b", nil), ("a@", nil), ("a@b/", nil), ("/c", nil),
    (String(repeating: "a", count: 1_024), nil),
  ])
  func addressesAreSplit(_ text: String, _ expected: JID?) {
    #expect(JID(text) == expected)
    if let expected { #expect(expected.description == text) }
  }
}
