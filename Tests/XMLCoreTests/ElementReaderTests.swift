import Testing
import XMLCore

@Suite struct ElementReaderTests {
  private func read(_ text: String) -> Result<XMLElement, XMLFault> { element(Array(text.utf8)) }

  @Test func aStanzaBecomesATree() {
    #expect(
      read(
        "<iq type='set' xml:lang='en'><bind xmlns='urn:x'><resource>a&amp;<![CDATA[<b>]]>&#x1F30D;</resource></bind>c</iq>"
      )
        == .success(
          XMLElement(
            name: "iq", namespace: "jabber:client",
            attributes: [
              XMLAttribute(name: "type", value: "set"),
              XMLAttribute(name: "lang", namespace: Namespace.xml, value: "en"),
            ],
            children: [
              .element(
                XMLElement(
                  name: "bind", namespace: "urn:x",
                  children: [
                    .element(XMLElement(name: "resource", namespace: "urn:x", children: [.text("a&<b>🌍")]))
                  ])),
              .text("c"),
            ])))
  }

  @Test func theStreamPrefixIsKnown() {
    #expect(
      read("<stream:error/>") == .success(XMLElement(name: "error", namespace: Namespace.streams)))
  }

  @Test func attributeValuesAreNormalisedAndDecoded() throws {
    let element = try read("<a b='x&#10;&lt;\ny'/>").get()
    #expect(element.attribute("b") == "x\n< y")
    #expect(element.attribute("c") == nil)
  }

  @Test(arguments: [
    "", " ", "x", "<a>", "</a>", "<a></b>", "<a/><b/>", "<a/>x", "<a/></s><s>", "<a b='1' b='2'/>",
    "<a b=c/>",
    "<a b='<'/>", "<a b='&'/>", "<a b='1'c='2'/>", "<a:b/>", "<a b:c='d'/>", "<a xmlns:b=''/>",
    "<a>&nbsp;</a>",
    "<a>&#0;</a>", "<a>&#1;</a>", "<a>&#xD800;</a>", "<a>&#55357;&#56838;</a>", "<a>&#xdc31;</a>",
    "<a>&#xFFFE;</a>", "<a>&#xFFFF;</a>", "<a>&#x110000;</a>", "<a>&#99999999999999;</a>", "<a>&</a>",
    "<a>&amp</a>", "<a>]]></a>", "<a>\u{1}</a>", "<a>\u{0}</a>", "<a>\u{FFFE}</a>", "<a>\u{FFFF}</a>",
    "<a b='\u{1}'/>", "<a><![CDATA[\u{1}]]></a>", "<a><test>test</a>", "<a b='c' a:b='d'/>",
    "<a xmlns:xmlns='b'/>", "<a xmlns:xml='b'/>", "<a><b></a></b>", "<a><?xml version='1.0'?></a>",
  ])
  func whatIsNotWellFormedIsRefused(_ text: String) {
    #expect(read(text) == .failure(.notWellFormed), "\(text)")
  }

  @Test(arguments: ["<a><!-- b --></a>", "<a><?b c?></a>"])
  func whatIsRestrictedIsRefusedWithoutAFramer(_ text: String) {
    #expect(read(text) == .failure(.restrictedXML))
  }

  @Test(arguments: ["<!DOCTYPE a><a/>", "<a><!DOCTYPE b></a>", "<a><!ENTITY b 'c'></a>"])
  func aDocumentTypeIsRefusedWithoutAFramer(_ text: String) {
    #expect((try? read(text).get()) == nil)
  }

  @Test(
    arguments: [
      [0xC0, 0x80], [0xE0, 0x80, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0x80], [0xFF],
      [0xE2, 0x82],
    ] as [[UInt8]])
  func malformedUTF8IsRefused(_ bytes: [UInt8]) {
    #expect(element(Array("<a>".utf8) + bytes + Array("</a>".utf8)) == .failure(.notWellFormed))
    #expect(element(Array("<a b='".utf8) + bytes + Array("'/>".utf8)) == .failure(.notWellFormed))
  }

  @Test func depthAndAttributesAreBoundWithoutAFramer() {
    let nine = String(repeating: "<a>", count: 9) + String(repeating: "</a>", count: 9)
    #expect(read(nine) == .failure(.limit(.depth)))
    let deep = String(repeating: "<a>", count: 5_000) + String(repeating: "</a>", count: 5_000)
    #expect(read(deep) == .failure(.limit(.depth)))
    let attributes = (0..<33).map { " a\($0)='b'" }.joined()
    #expect(read("<a\(attributes)/>") == .failure(.limit(.attributes)))
  }

  @Test func aHeaderIsRead() throws {
    let read = try streamHeader(
      "<stream:stream to='gcm.googleapis.com' from='a' id='7' version='1.0' xml:lang='en' xmlns='jabber:client'"
        + " xmlns:stream='http://etherx.jabber.org/streams'>"
    ).get()
    #expect(read.to == "gcm.googleapis.com")
    #expect(read.from == "a")
    #expect(read.id == "7")
    #expect(read.version == "1.0")
    #expect(read.language == "en")
    #expect(read.isVersionOne)
    #expect(read.context == .usual)
  }

  @Test func aSelfClosedHeaderIsReadToo() throws {
    #expect(try streamHeader(header.dropLast() + "/>").get().to == "fcm-xmpp.googleapis.com")
  }

  @Test func prefixesOfTheHeaderHoldInItsStanzas() throws {
    let read = try streamHeader(
      "<s:stream xmlns='jabber:client' xmlns:s='http://etherx.jabber.org/streams' xmlns:d='google:mobile:data'"
        + " xmlns:o='urn:a&amp;b'>"
    ).get()
    let stanza = Array("<message><d:gcm>{}</d:gcm><o:x/></message>".utf8)
    let element = try stanza.withUnsafeBytes {
      try ElementReader.read($0, in: read.context, limits: XMLLimits())
    }
    #expect(element.child("gcm", Namespace.gcm)?.text == "{}")
    #expect(element.child("x", "urn:a&b") != nil)
  }

  @Test(arguments: [
    ("<stream:stream xmlns='jabber:client' xmlns:stream='x'>", XMLFault.invalidNamespace),
    ("<stream:stream xmlns:stream='http://etherx.jabber.org/streams'>", .invalidNamespace),
    (
      "<stream:stream xmlns='jabber:server' xmlns:stream='http://etherx.jabber.org/streams'>",
      .invalidNamespace
    ),
    ("<stream xmlns='jabber:client'>", .invalidNamespace),
    ("<stream:flow xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>", .badFormat),
    ("<stream:stream xmlns='jabber:client'>", .notWellFormed), ("<stream:stream a b>", .notWellFormed),
    (
      "<stream:stream to='a' to='b' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>",
      .notWellFormed
    ),
    (
      "<stream:stream to='&x;' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>",
      .notWellFormed
    ),
    ("<>", .notWellFormed), ("", .notWellFormed),
  ])
  func aHeaderOfAnotherKindIsRefused(_ tag: String, _ fault: XMLFault) {
    #expect(streamHeader(tag) == .failure(fault), "\(tag)")
  }

  @Test(arguments: [
    ("1.0", true), ("1.1", true), ("2.0", true), ("0.9", false), ("1", false), ("", false), ("1.", false),
    ("a.b", false), ("1.0.0", false), ("-1.0", false), ("+1.0", false), ("99999999999.0", false),
  ])
  func theVersionIsComparedAsNumbers(_ version: String, _ isOne: Bool) throws {
    let read = try streamHeader(
      "<stream:stream version='\(version)' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
    ).get()
    #expect(read.isVersionOne == isOne, "\(version)")
  }
}
