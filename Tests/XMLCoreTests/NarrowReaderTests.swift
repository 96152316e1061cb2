import Testing
import XMLCore

@Suite struct NarrowReaderTests {
  private func text(_ stanza: String) -> String? {
    narrow(Array(stanza.utf8)).map { String(decoding: $0.text, as: UTF8.self) }
  }

  private func gcm(_ text: String) -> String {
    "<message id=\"m1\"><gcm xmlns=\"google:mobile:data\">" + text + "</gcm></message>"
  }

  @Test func theHotShapeIsRead() {
    let read = narrow(
      Array(
        "<message id=\"m-1\" to='devices@gcm.googleapis.com' from=\"a\" type=\"normal\" xml:lang='en'><gcm xmlns=\"google:mobile:data\">{&quot;a&quot;:1}</gcm></message>"
          .utf8))
    #expect(
      read
        == Message(
          kind: .normal, id: Array("m-1".utf8), to: Array("devices@gcm.googleapis.com".utf8),
          from: Array("a".utf8),
          text: Array("{\"a\":1}".utf8)))
  }

  @Test(arguments: [
    "<message><gcm xmlns='google:mobile:data'>{}</gcm></message>",
    "<message id=\"\"><gcm xmlns=\"google:mobile:data\">{}</gcm></message>",
    "<message xmlns='jabber:client'><gcm xmlns=\"google:mobile:data\" >{}</gcm ></message >",
    "<message >\n <data:gcm xmlns:data=\"google:mobile:data\">{}</data:gcm>\n</message>",
    "<message\tid = 'x' ><_a.b-1:gcm xmlns:_a.b-1 = 'google:mobile:data'>{}</_a.b-1:gcm></message\n>",
    "<message><gcm xmlns=\"google:mobile:data\"><![CDATA[{]]>}</gcm></message>",
    "<message><gcm xmlns=\"google:mobile:data\"><![CDATA[]]>&#x7b;<![CDATA[}]]></gcm></message>",
  ])
  func allSpellingsOfTheShapeAreRead(_ stanza: String) {
    #expect(text(stanza) == "{}")
  }

  @Test func referencesAreDecodedOnce() {
    #expect(text(gcm("&lt;test&gt;test &amp; &quot;q&quot; &apos;a&apos;")) == "<test>test & \"q\" 'a'")
    #expect(text(gcm("&amp;lt;&amp;#65;")) == "&lt;&#65;")
    #expect(text(gcm("&#65;&#x42;&#x00043;&#10;&#13;&#9;")) == "ABC\n\r\t")
    #expect(text(gcm("&#233;&#x8a9e;&#x1F30D;&#127757;&#x10FFFF;")) == "é語🌍🌍\u{10FFFF}")
  }

  @Test func oneCharacterHasFiveSpellings() {
    #expect(text(gcm("😆")) == "😆")
    #expect(text(gcm("&#x1F606;")) == "😆")
    #expect(text(gcm("&#128518;")) == "😆")
    #expect(text(gcm("\\ud83d\\ude06")) == "\\ud83d\\ude06")
  }

  @Test func aControlMessageNeedsNoIdentity() {
    let control = "{\"message_type\":\"control\",\"control_type\":\"CONNECTION_DRAINING\"}"
    let read = narrow(
      Array(
        "<message><data:gcm xmlns:data=\"google:mobile:data\">\(control)</data:gcm></message>".utf8))
    #expect(read == Message(kind: .none, id: nil, to: nil, from: nil, text: Array(control.utf8)))
  }

  @Test(arguments: [
    "", "<message/>", "<message></message>", "<message><body>a</body></message>", "<iq/>",
    "<message><gcm>{}</gcm></message>", "<message><gcm xmlns='google:mobile:data'/></message>",
    "<message><gcm xmlns='google:mobile:date'>{}</gcm></message>",
    "<message><data:gcm xmlns:date='google:mobile:data'>{}</data:gcm></message>",
    "<message><data:gcm xmlns='google:mobile:data'>{}</data:gcm></message>",
    "<message><gcm xmlns:gcm='google:mobile:data'>{}</gcm></message>",
    "<message><xml:gcm xmlns:xml='google:mobile:data'>{}</xml:gcm></message>",
    "<message><a:b:gcm xmlns:a:b='google:mobile:data'>{}</a:b:gcm></message>",
    "<message><gcm xmlns='google:mobile:data' a='b'>{}</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>{}</gcm><gcm xmlns='google:mobile:data'>{}</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>{}</gcm>x</message>",
    "<message>x<gcm xmlns='google:mobile:data'>{}</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>{}</gcn></message>",
    "<message><gcm xmlns='google:mobile:data'>{}</gcm></massage>",
    "<message><gcm xmlns='google:mobile:data'>{}</gcm></message>x",
    "<message id='a' id='b'><gcm xmlns='google:mobile:data'>{}</gcm></message>",
    "<message id='a'to='b'><gcm xmlns='google:mobile:data'>{}</gcm></message>",
    "<message id='&amp;'><gcm xmlns='google:mobile:data'>{}</gcm></message>",
    "<message id='a\tb'><gcm xmlns='google:mobile:data'>{}</gcm></message>",
    "<message x='a'><gcm xmlns='google:mobile:data'>{}</gcm></message>",
    "<message xmlns='a'><gcm xmlns='google:mobile:data'>{}</gcm></message>",
    "<message xmlns:b='a'><gcm xmlns='google:mobile:data'>{}</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>a]]>b</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>a\rb</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>a\u{1A}b</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>a\u{FFFF}b</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>a&nbsp;b</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>a&#0;b</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>a&#55357;&#56838;</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>a&#xdc31;</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>a&#xFFFF;</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>a&#x110000;</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>a&#999999999999;</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>a&#;</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>a&#x;</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>a&#X41;</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>a&amp</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>a&</gcm></message>",
    "<message><gcm xmlns='google:mobile:data'>a<b/></gcm></message>",
    "<message><gcm xmlns='google:mobile:data'><![CDATA[a]]</gcm></message>",
  ])
  func everythingElseIsLeftToLibxml2(_ stanza: String) {
    #expect(text(stanza) == nil)
  }

  @Test func everyPrefixOfAStanzaStepsAside() {
    let bytes = Array(gcm("{&quot;a&quot;:&#65;<![CDATA[b]]>}").utf8)
    for count in 0..<bytes.count {
      #expect(narrow(Array(bytes[..<count])) == nil)
    }
    #expect(narrow(bytes) != nil)
  }

  @Test func theScratchBufferIsKept() throws {
    var scratch: [UInt8] = []
    let long = Array(gcm(String(repeating: "x", count: 500)).utf8)
    let short = Array(gcm("{}").utf8)
    let first = try #require(long.withUnsafeBytes { NarrowReader.read($0, into: &scratch) })
    #expect(first.text.count == 500)
    let size = scratch.count
    let second = try #require(short.withUnsafeBytes { NarrowReader.read($0, into: &scratch) })
    #expect(scratch[second.text].elementsEqual("{}".utf8))
    #expect(scratch.count == size)
  }
}
