import Seams
import Testing
import XMLCore
import XMPPCore

@Suite struct ServerErrorTests {
  private static let ns = "xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'"

  @Test(arguments: [
    ("GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n", "not-well-formed"), ("<!DOCTYPE a>", "restricted-xml"),
    ("<?xml version='1.0' encoding='latin1'?>", "unsupported-encoding"),
    (
      "<stream:stream xmlns='jabber:server' xmlns:stream='http://etherx.jabber.org/streams'>",
      "invalid-namespace"
    ),
    ("<stream:other \(ns)>", "bad-format"), ("<stream:stream a a \(ns)>", "not-well-formed"),
    ("<stream:stream \(ns)>", "unsupported-version"),
    ("<stream:stream version='0.9' \(ns)>", "unsupported-version"),
    ("<a b='" + String(repeating: "x", count: 9_000), "policy-violation"),
  ])
  func anErrorBeforeTheHeaderComesAfterOne(_ bytes: String, _ condition: String) {
    for step in [1, bytes.utf8.count] {
      let server = Server()
      let all = Array(bytes.utf8)
      var written = ""
      for start in stride(from: 0, to: all.count, by: step) {
        written += server.feed(Array(all[start..<min(all.count, start + step)]))
      }
      #expect(
        written
          == serverTag.replacing("fcm-xmpp.googleapis.com", with: "gcm.googleapis.com")
          + streamError(condition))
      guard case .ended(.faulted(let fault, _))? = server.events.last else {
        Issue.record("not ended")
        return
      }
      #expect(fault.rawValue == condition)
      #expect(server.events.count == 1)
    }
  }

  @Test(arguments: [
    "<message/>", "<iq type='get' id='1'/>", "<presence/>", "<auth mechanism='PLAIN'/>",
    "<response xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>",
    "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>",
  ])
  func nothingButAuthIsAllowedBeforeLogin(_ stanza: String) {
    let server = Server.inState(.awaitingLogin)
    #expect(server.feed(stanza) == streamError("not-authorized"))
    #expect(server.stream.state == .ended)
  }

  @Test(arguments: [
    gcm("{}"), "<presence/>", "<iq type='get' id='1'><ping xmlns='urn:xmpp:ping'/></iq>",
    "<iq type='result' id='1'/>",
    "<iq type='get'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>", auth("", "123456789"),
  ])
  func nothingButBindingIsAllowedBeforeIt(_ stanza: String) {
    let server = Server.inState(.awaitingBind)
    #expect(server.feed(stanza) == streamError("not-authorized"))
  }

  @Test(arguments: [
    ("<message><gcm xmlns='google:mobile:data'>a\u{1A}b</gcm></message>", "not-well-formed"),
    ("<message><gcm xmlns='google:mobile:data'>a\u{0}b</gcm></message>", "not-well-formed"),
    ("<message><gcm xmlns='google:mobile:data'>a\u{FFFE}b</gcm></message>", "not-well-formed"),
    ("<message><gcm xmlns='google:mobile:data'>a\u{FFFF}b</gcm></message>", "not-well-formed"),
    ("<message><gcm xmlns='google:mobile:data'>&#55357;&#56838;</gcm></message>", "not-well-formed"),
    ("<message><gcm xmlns='google:mobile:data'>&#xdc31;</gcm></message>", "not-well-formed"),
    ("<message><gcm xmlns='google:mobile:data'><test>test</gcm></message>", "not-well-formed"),
    ("<message><gcm xmlns='google:mobile:data'>a & b</gcm></message>", "not-well-formed"),
    ("<message id='\u{1}'/>", "not-well-formed"), ("<x:message/>", "not-well-formed"),
    ("text", "not-well-formed"),
    ("</a>", "not-well-formed"), ("<a><!-- b --></a>", "restricted-xml"), ("<?pi?>", "restricted-xml"),
    ("<!DOCTYPE a>", "restricted-xml"), (String(repeating: "<a>", count: 9), "policy-violation"),
    ("<a" + String(repeating: " b='c'", count: 33), "policy-violation"),
    ("<auth mechanism='PLAIN' xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>", "unsupported-stanza-type"),
    ("<message xmlns='urn:other'/>", "unsupported-stanza-type"), ("<other/>", "unsupported-stanza-type"),
    ("<stream:features/>", "unsupported-stanza-type"),
  ])
  func aFaultAfterBindingEndsThisStream(_ bytes: String, _ condition: String) {
    let server = Server.inState(.bound)
    #expect(server.feed(bytes) == streamError(condition))
    guard case .ended(.faulted)? = server.events.last else {
      Issue.record("not ended")
      return
    }
    // Nothing is taken or written any more.
    #expect(server.feed(gcm("{}")) == "")
    server.stream.close(output: &server.output)
    server.stream.fail(.conflict, output: &server.output)
    #expect(server.written() == "")
    #expect(server.events.count == 1)
  }

  @Test func malformedUTF8EndsTheStream() {
    let server = Server.inState(.bound)
    let stanza =
      Array("<message><gcm xmlns='google:mobile:data'>".utf8) + [0xC3, 0x28] + Array("</gcm></message>".utf8)
    #expect(server.feed(stanza) == streamError("not-well-formed"))
  }

  @Test func aPeersStreamErrorIsAnsweredByTheEndTag() {
    let server = Server.inState(.awaitingLogin)
    #expect(
      server.feed(
        "<stream:error><text xmlns='urn:ietf:params:xml:ns:xmpp-streams'>a</text>"
          + "<policy-violation xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></stream:stream>")
        == endTag)
    #expect(server.events == [.ended(.peerFault("policy-violation"))])
    let bare = Server.inState(.bound)
    bare.feed("<stream:error/>")
    #expect(bare.events == [.ended(.peerFault("undefined-condition"))])
  }

  @Test func theDriverEndsAStreamWithAnyError() {
    let hint = "<retry-after xmlns=\"urn:weir:retry:0\" seconds=\"2\"/>"
    for condition in StreamErrorCondition.allCases {
      let server = Server.inState(.bound)
      server.stream.fail(condition, output: &server.output)
      #expect(server.written().replacing(hint, with: "") == streamError(condition.rawValue))
    }
    let server = Server.inState(.bound)
    server.stream.fail(.conflict, text: "replaced <by> another", output: &server.output)
    #expect(
      server.written()
        == "<stream:error><conflict xmlns=\"urn:ietf:params:xml:ns:xmpp-streams\"/>"
        + "<text xmlns=\"urn:ietf:params:xml:ns:xmpp-streams\" xml:lang=\"en\">replaced &lt;by&gt; another</text>"
        + "</stream:error></stream:stream>")
  }

  @Test func afterLoginAnErrorComesInANewStream() {
    let server = Server.inState(.awaitingSecondHeader)
    #expect(server.feed("x") == serverTag + streamError("not-well-formed"))
  }
}
