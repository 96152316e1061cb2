import Bytes
import Testing
import XMLCore
import XMPPCore

@Suite struct WebSocketFramingTests {
  static let open = "<open xmlns=\"urn:ietf:params:xml:ns:xmpp-framing\""
  static let close = "<close xmlns=\"urn:ietf:params:xml:ns:xmpp-framing\"/>"

  final class Side {
    var framing: WebSocketFraming

    init(_ side: WebSocketFraming.Side) { framing = WebSocketFraming(side) }

    func receive(_ text: String, limits: XMLLimits = XMLLimits()) -> WebSocketFraming.Received {
      Array(text.utf8).withUnsafeBytes { framing.receive($0, limits: limits) }
    }

    func send(_ text: String) -> [String] {
      var sent: [String] = []
      Array(text.utf8).withUnsafeBytes { bytes in
        framing.send(bytes) { part in
          switch part {
          case .message(let text): sent.append(String(decoding: text, as: UTF8.self))
          case .keepalive: sent.append("ping")
          }
        }
      }
      return sent
    }
  }

  @Test func aServersStreamSpeaksOpenAndClose() {
    let server = Side(.server)
    #expect(
      server.receive(Self.open + " to=\"h&amp;\" from=\"f\" version=\"1.0\" xml:lang=\"en\"/>")
        == .tag(
          Array(
            ("<stream:stream to=\"h&amp;\" from=\"f\" version=\"1.0\" xml:lang=\"en\" xmlns=\"jabber:client\""
              + " xmlns:stream=\"http://etherx.jabber.org/streams\">").utf8)))
    #expect(
      server.send(serverTag + loginFeatures) == [
        Self.open + " from=\"fcm-xmpp.googleapis.com\" id=\"7A1F00C29B3D4E58\" version=\"1.0\"/>",
        "<stream:features xmlns:stream=\"http://etherx.jabber.org/streams\">"
          + "<mechanisms xmlns=\"urn:ietf:params:xml:ns:xmpp-sasl\"><mechanism>PLAIN</mechanism></mechanisms>"
          + "</stream:features>",
      ])
    #expect(server.receive(auth("", "a")) == .element)
    #expect(server.send(success) == [success])
    // After it a new `open`, and nothing else.
    #expect(server.receive("<message xmlns=\"jabber:client\"/>") == .fault(.invalidNamespace))
    guard case .tag = server.receive(Self.open + " to=\"h\" version=\"1.0\"/>") else {
      Issue.record("no second open")
      return
    }
    #expect(server.receive("<message xmlns=\"jabber:client\"/>") == .element)
    #expect(server.receive(Self.open + "/>") == .fault(.badFormat))
    #expect(server.receive(Self.close) == .tag(Array(endTag.utf8)))
    #expect(server.send(endTag) == [Self.close])
  }

  @Test func stanzasSayTheirNamespaces() {
    let server = Side(.server)
    #expect(
      server.send("<iq type=\"result\" id=\"&gt;>/ xmlns=\"/><message id='1'><a xmlns=\"b\"/></message> ")
        == [
          "<iq xmlns=\"jabber:client\" type=\"result\" id=\"&gt;>/ xmlns=\"/>",
          "<message xmlns=\"jabber:client\" id='1'><a xmlns=\"b\"/></message>",
        ])
    #expect(
      server.send("<stream:error><a xmlns=\"b\"/></stream:error></stream:stream>") == [
        "<stream:error xmlns:stream=\"http://etherx.jabber.org/streams\"><a xmlns=\"b\"/></stream:error>",
        Self.close,
      ])
    #expect(server.send("<x xmlns=\"y\"/>") == ["<x xmlns=\"y\"/>"])
  }

  @Test func keepalivesBecomePings() {
    let server = Side(.server)
    #expect(server.send(" ") == ["ping"])
    #expect(server.send("<iq/> ") == ["<iq xmlns=\"jabber:client\"/>"])
    #expect(server.send("") == [])
  }

  @Test func aCloseMayNameAnotherPlace() {
    let server = Side(.server)
    server.framing.seeOtherURI = "wss://other/xmpp?a&b"
    let text =
      "<close xmlns=\"urn:ietf:params:xml:ns:xmpp-framing\" see-other-uri=\"wss://other/xmpp?a&amp;b\"/>"
    #expect(server.send(endTag) == [text])
    let client = Side(.client)
    #expect(client.receive(text) == .closed)
    #expect(client.framing.toldURI == "wss://other/xmpp?a&b")
  }

  @Test func whatIsNoElementOfXMPPIsAFault() {
    let cases: [(String, WebSocketFraming.Received)] = [
      ("", .fault(.badFormat)), ("x", .fault(.badFormat)), (" " + Self.close, .fault(.badFormat)),
      ("<?xml version=\"1.0\"?>" + Self.close, .fault(.badFormat)),
      (openTag, .fault(.notWellFormed)), (endTag, .fault(.notWellFormed)),
      (Self.close + Self.close, .fault(.notWellFormed)), (Self.close + "x", .fault(.notWellFormed)),
      ("<open/>", .fault(.invalidNamespace)), (success, .fault(.invalidNamespace)),
      ("<!-- a -->", .fault(.restrictedXML)), (Self.close, .closed),
    ]
    for (text, result) in cases { #expect(Side(.server).receive(text) == result, "\(text)") }
    #expect(
      Side(.server).receive(Self.open + "/>", limits: XMLLimits(bytesMax: 20)) == .fault(.policyViolation))
    #expect(
      Side(.server).receive(Self.open + "><a><b/></a></open>", limits: XMLLimits(depthMax: 2))
        == .fault(.policyViolation))
  }

  @Test func aClientAndAServerSpeakThroughMessages() {
    let server = Server()
    let client = ClientStream(
      login: ClientLogin(host: "fcm", credentials: PlainCredentials(authcid: "123", password: "key")),
      now: server.now)
    let (there, here) = (Side(.server), Side(.client))
    var output = ByteWriter()
    var scratch: [UInt8] = []
    var isReady = false
    client.open(output: &output, now: server.now)
    for _ in 0..<8 {
      let requests = here.send(String(decoding: output.take(), as: UTF8.self))
      var answers: [String] = []
      for request in requests {
        #expect(!request.contains("<stream:stream"))
        var text = request
        if case .tag(let tag) = there.receive(request) { text = String(decoding: tag, as: UTF8.self) }
        answers += there.send(String(decoding: server.feed(text).utf8, as: UTF8.self))
      }
      for answer in answers {
        var bytes = Array(answer.utf8)
        if case .tag(let tag) = here.receive(answer) { bytes = tag }
        bytes.withUnsafeBytes { chunk in
          var offset = 0
          while let event = client.next(chunk, &offset, scratch: &scratch, output: &output, now: server.now) {
            if case .ready = event { isReady = true }
          }
        }
      }
    }
    #expect(isReady)
    #expect(server.events.contains { if case .bound = $0 { true } else { false } })
  }
}
