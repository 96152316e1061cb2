import Testing
import XMLCore

@Suite struct StanzaFramerTests {
  @Test func everyCutOfAStreamGivesTheSameItems() {
    let stanza =
      "<message id='m>1'><gcm xmlns=\"google:mobile:data\">{\"data\":{\"e\":\"é語🌍\"}}</gcm></message>"
    let odd = "<message><gcm xmlns='google:mobile:data'><![CDATA[{\"a\":\"<]]&]>\"]]]>]</gcm></message>"
    let text =
      "<?xml version='1.0' encoding='utf-8'?>\n" + header + stanza + " \n " + odd + "<iq/>\t<presence />"
      + stanza
      + "</stream:stream >\n"
    let expected: [Item] = [
      .header(header, selfClosed: false), .stanza(stanza), .whitespace(3), .stanza(odd), .stanza("<iq/>"),
      .whitespace(1), .stanza("<presence />"), .stanza(stanza), .end,
    ]
    for chunks in everyCut(Array(text.utf8)) {
      #expect(frame(chunks) == expected)
    }
  }

  @Test func aStanzaThatLiesWholeInItsChunkIsNotCopied() throws {
    var framer = StanzaFramer(limits: XMLLimits())
    let bytes = Array((header + "<iq/>").utf8)
    try bytes.withUnsafeBytes { chunk in
      var offset = 0
      _ = try framer.next(chunk, &offset)
      guard case .stanza(let slice)? = try framer.next(chunk, &offset) else {
        Issue.record("no stanza")
        return
      }
      #expect(slice.baseAddress == chunk.baseAddress.map { $0 + header.utf8.count })
      #expect(slice.count == 5)
    }
  }

  @Test func nothingIsHeldBetweenStanzas() throws {
    var framer = StanzaFramer(limits: XMLLimits())
    var items: [Item] = []
    func feed(_ text: String) -> XMLFault? {
      Array(text.utf8).withUnsafeBytes { collect(&framer, $0, &items) }
    }
    #expect(feed(header + "<message><bo") == nil)
    let isMidItem = framer.isMidItem
    #expect(isMidItem)
    let held1 = framer.carriedBytes
    #expect(held1 == 12)
    #expect(feed("dy/></message>") == nil)
    let isStillMidItem = framer.isMidItem
    #expect(!isStillMidItem)
    let held2 = framer.carriedBytes
    #expect(held2 == 0)
    #expect(items.last == .stanza("<message><body/></message>"))
    #expect(feed("  ") == nil)
    let held3 = framer.carriedBytes
    #expect(held3 == 0)
  }

  @Test func aResetAwaitsANewHeader() {
    var framer = StanzaFramer(limits: XMLLimits())
    var items: [Item] = []
    func feed(_ text: String) -> XMLFault? {
      Array(text.utf8).withUnsafeBytes { collect(&framer, $0, &items) }
    }
    #expect(feed(header + "<auth>") == nil)
    framer.reset()
    let held4 = framer.carriedBytes
    #expect(held4 == 0)
    #expect(feed("\n<?xml version='1.0'?>") == .restrictedXML)
    framer.reset()
    items = []
    #expect(feed(" " + header + "<iq/>") == nil)
    #expect(items == [.header(header, selfClosed: false), .stanza("<iq/>")])
  }

  @Test func aFaultComesAgainUntilTheReset() {
    var framer = StanzaFramer(limits: XMLLimits())
    var items: [Item] = []
    for _ in 0..<3 {
      #expect(Array("GET / HTTP/1.1".utf8).withUnsafeBytes { collect(&framer, $0, &items) } == .notWellFormed)
    }
    #expect(items.isEmpty)
  }

  @Test func aSelfClosedHeaderIsTold() {
    let tag = header.dropLast() + "/>"
    #expect(frame(String(tag)) == [.header(String(tag), selfClosed: true)])
    #expect(
      frame(tag + "<iq/>") == [.header(String(tag), selfClosed: true), .fault(.notWellFormed)])
  }

  @Test(arguments: [
    ("GET / HTTP/1.1\r\n", XMLFault.notWellFormed), ("x", .notWellFormed), ("<1>", .notWellFormed),
    ("</stream:stream>", .notWellFormed), ("\u{FEFF}<a>", .notWellFormed),
    ("<!DOCTYPE a [<!ENTITY b \"c\">]>", .restrictedXML), ("<!-- c --><a>", .restrictedXML),
    ("<?php ?>", .restrictedXML), ("<?xml-stylesheet href='a'?>", .restrictedXML),
    (" <?xml version='1.0'?>", .restrictedXML),
    ("<?xml version='1.0'?><?xml version='1.0'?>", .restrictedXML),
    ("<?xml version='1.0' encoding='UTF-16'?>", .unsupportedEncoding),
    ("<?xml version='1.0' encoding='ISO-8859-1'?>", .unsupportedEncoding),
    ("<?xml version='2.0'?>", .notWellFormed), ("<?xml version='1.'?>", .notWellFormed),
    ("<?xml ?>", .notWellFormed), ("<?xml encoding='utf-8'?>", .notWellFormed),
    ("<?xml version='1.0\"?>", .notWellFormed), ("<?xml version=1.0?>", .notWellFormed),
    ("<?xml version='1.0'encoding='utf-8'?>", .notWellFormed), ("<?xml version '1.0'?>", .notWellFormed),
    ("<?xml version='1.0' standalone='maybe'?>", .notWellFormed),
    ("<?xml version='1.0' x='y'?>", .notWellFormed),
    ("<?xml version='1.0'? >", .notWellFormed), ("<?xml version='1.0' <a>", .notWellFormed),
    ("<a <b", .notWellFormed), ("<a / >", .notWellFormed),
  ])
  func whatMayNotBeginAStreamIsRefused(_ text: String, _ fault: XMLFault) {
    for chunks in everyCut(Array(text.utf8)) {
      #expect(frame(chunks).last == .fault(fault), "\(text)")
    }
  }

  @Test(arguments: [[0xFE, 0xFF, 0x00, 0x3C], [0xFF, 0xFE, 0x3C, 0x00], [0x00, 0x3C] as [UInt8]])
  func utf16IsAnUnsupportedEncoding(_ bytes: [UInt8]) {
    #expect(frame([bytes]) == [.fault(.unsupportedEncoding)])
  }

  @Test(arguments: [
    "<?xml version=\"1.0\"?>", "<?xml version='1.1' encoding='UTF-8' standalone='yes' ?>",
    "<?xml\tversion = \"1.0\"\nencoding = 'Utf-8'?>",
  ])
  func aDeclarationOfUTF8IsTaken(_ declaration: String) {
    for chunks in everyCut(Array((declaration + header).utf8)) {
      #expect(frame(chunks) == [.header(header, selfClosed: false)])
    }
  }

  @Test(arguments: [
    ("<!-- c -->", XMLFault.restrictedXML), ("<?pi?>", .restrictedXML), ("<![CDATA[x]]>", .restrictedXML),
    ("<a><!-- c --></a>", .restrictedXML), ("<a><?pi?></a>", .restrictedXML),
    ("<a><!DOCTYPE b></a>", .restrictedXML), ("<a><![CDATAx", .restrictedXML), ("text", .notWellFormed),
    ("\u{1}", .notWellFormed), ("</stream>", .notWellFormed), ("</a>", .notWellFormed),
    ("<>", .notWellFormed),
    ("< a>", .notWellFormed), ("<a/ >", .notWellFormed), ("</stream:stream>x", .notWellFormed),
    ("<message><gcm>{<test>test</gcm>", .notWellFormed), ("<a></b>", .notWellFormed),
    ("<a></a b>", .notWellFormed),
    ("<a></ a>", .notWellFormed), ("<a></>", .notWellFormed), ("<a><b/></b>", .notWellFormed),
    ("<a></a/>", .notWellFormed),
    ("<a></a<", .notWellFormed),
    ("</stream:stream><iq/>", .notWellFormed),
  ])
  func whatMayNotStandInAStreamIsRefused(_ text: String, _ fault: XMLFault) {
    for chunks in everyCut(Array((header + text).utf8)) {
      #expect(frame(chunks).last == .fault(fault), "\(text)")
    }
  }

  @Test func aCommentIsRefusedAtTheByteThatShowsIt() {
    #expect(frame(header + "<a><!-") == [.header(header, selfClosed: false), .fault(.restrictedXML)])
    #expect(frame(header + "<a><![CDAT").count == 1)
  }

  @Test func anotherPrefixOfTheStreamMustCloseIt() {
    let other = "<s:stream xmlns:s='http://etherx.jabber.org/streams' xmlns='jabber:client'>"
    #expect(frame(other + "</s:stream>") == [.header(other, selfClosed: false), .end])
    #expect(frame(other + "</stream:stream>").last == .fault(.notWellFormed))
  }

  @Test func theByteLimitTripsAsSoonAsItIsPassed() {
    let limits = XMLLimits(bytesMax: 200)
    let fitting = "<a>" + String(repeating: "x", count: 193) + "</a>"
    let long = "<a>" + String(repeating: "x", count: 194) + "</a>"
    #expect(fitting.utf8.count == 200)
    for chunks in everyCut(Array((header + fitting).utf8)) {
      #expect(frame(chunks, limits: limits).last == .stanza(fitting))
    }
    for chunks in everyCut(Array((header + long).utf8)) {
      #expect(frame(chunks, limits: limits).last == .fault(.limit(.bytes)))
    }
    // An unclosed tag of 200 bytes waits, one byte more is too much; whatever comes after does not matter.
    let open = header + "<a b='" + String(repeating: "x", count: 194)
    #expect(frame(open, limits: limits).count == 1)
    #expect(frame(open + "x", limits: limits).last == .fault(.limit(.bytes)))
    #expect(frame(open + "x'><!--", limits: limits).last == .fault(.limit(.bytes)))
  }

  @Test func theHeaderCountsAgainstTheLimitToo() {
    #expect(frame(header, limits: XMLLimits(bytesMax: 100)) == [.fault(.limit(.bytes))])
    #expect(
      frame("<?xml" + String(repeating: " ", count: 99), limits: XMLLimits(bytesMax: 100)).last
        == .fault(.limit(.bytes)))
  }

  @Test func theDepthLimitTripsAtTheElementTooMuch() {
    let eight = String(repeating: "<a>", count: 8)
    #expect(frame(header + eight + String(repeating: "</a>", count: 8)).last != .fault(.limit(.depth)))
    #expect(frame(header + eight).count == 1)
    #expect(frame(header + eight + "<a").last == .fault(.limit(.depth)))
    #expect(frame(header + "<a>" + String(repeating: "<b/>", count: 50) + "</a>").count == 2)
  }

  @Test func theAttributeLimitTripsAtTheAttributeTooMuch() {
    let attributes = (0..<32).map { " a\($0)='\"'" }.joined()
    #expect(frame(header + "<a" + attributes + "/>").count == 2)
    #expect(frame(header + "<a" + attributes + " b='").last == .fault(.limit(.attributes)))
    #expect(frame(header + "<a" + attributes + "><b" + attributes + "/></a>").count == 2)
  }
}
