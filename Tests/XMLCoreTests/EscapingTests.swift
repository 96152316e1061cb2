import Bytes
import Seams
import Testing
import XMLCore

@Suite struct EscapingTests {
  private func escaped(_ write: (inout ByteWriter) -> Bool) -> String? {
    var writer = ByteWriter()
    let isWritten = write(&writer)
    if !isWritten { #expect(writer.isEmpty) }
    return isWritten ? String(decoding: writer.bytes, as: UTF8.self) : nil
  }

  private func json(_ bytes: [UInt8]) -> String? {
    escaped { writer in bytes.withUnsafeBytes { writer.appendEscapedJSON($0) } }
  }

  @Test func markupIsEscapedInText() {
    #expect(
      escaped { $0.appendEscapedText("<test>test & \"q\" 'a'\r\n]]>") }
        == "&lt;test&gt;test &amp; \"q\" 'a'&#13;\n]]&gt;")
    #expect(escaped { $0.appendEscapedText("") } == "")
    let plain = String(repeating: "plain é語🌍 ", count: 20)
    #expect(escaped { $0.appendEscapedText(plain) } == plain)
  }

  @Test func quotesAndWhiteSpaceAreEscapedInAttributes() {
    #expect(
      escaped { $0.appendEscapedAttribute("a\"b'c<d>&\t\n\r") }
        == "a&quot;b&apos;c&lt;d&gt;&amp;&#9;&#10;&#13;")
  }

  @Test(arguments: ["\u{0}", "\u{1A}", "\u{1F}", "\u{FFFE}", "\u{FFFF}"])
  func whatXMLCannotHoldIsNotWritten(_ character: String) {
    for padding in [0, 5, 16, 40] {
      let text = String(repeating: "a", count: padding) + character + "b"
      #expect(escaped { $0.appendEscapedText(text) } == nil)
      #expect(escaped { $0.appendEscapedAttribute(text) } == nil)
    }
  }

  @Test func nonCharactersInJSONBecomeItsEscapes() {
    #expect(
      json(Array("{\"a\":\"x\u{FFFE}<\u{FFFF}\u{FFFD}\u{7F}\"}".utf8))
        == "{\"a\":\"x\\ufffe&lt;\\uffff\u{FFFD}\u{7F}\"}")
    #expect(json([0x22, 0x1A, 0x22]) == nil)
    #expect(json([0x22, 0xFF, 0x22]) == nil)
    #expect(json(Array("{\"a\":\"\\u001a\"}".utf8)) == "{\"a\":\"\\u001a\"}")
  }

  @Test func whatIsEscapedIsReadBackByBothReaders() throws {
    var chance = SeededChance(seed: 11)
    let pieces = [
      "<", ">", "&", "\"", "'", "\r", "\n", "\t", "]]>", "a", "é", "語", "🌍", "<![CDATA[", "&amp;", " ",
      "plain text of some length",
    ]
    for _ in 0..<2_000 {
      let text = (0..<Int.random(in: 0..<30, using: &chance)).map { _ in
        pieces.randomElement(using: &chance) ?? ""
      }
      .joined()
      let inText = try #require(escaped { $0.appendEscapedText(text) })
      let inAttribute = try #require(escaped { $0.appendEscapedAttribute(text) })
      let stanza = "<message id='\(inAttribute)'><gcm xmlns='google:mobile:data'>\(inText)</gcm></message>"
      let tree = try element(Array(stanza.utf8)).get()
      #expect(tree.attribute("id") == text)
      #expect(tree.child("gcm", Namespace.gcm)?.text == text)
      let hot = "<message><gcm xmlns='google:mobile:data'>\(inText)</gcm></message>"
      #expect(narrow(Array(hot.utf8))?.text == Array(text.utf8))
    }
  }
}
