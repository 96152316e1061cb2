import Seams
import Testing
import XMLCore

/// Narrow reader and libxml2 hold the same view of every stanza, or the narrow one steps aside.
@Suite struct DifferentialTests {
  @Test(arguments: 1...4 as ClosedRange<UInt64>)
  func generatedAndMutatedStanzasAreReadAlike(_ seed: UInt64) {
    var chance = SeededChance(seed: seed)
    var taken = 0
    var stepped = 0
    for round in 0..<25_000 {
      var stanza = StanzaMaker.stanza(&chance)
      if round % 2 == 1 { StanzaMaker.mutate(&stanza, &chance) }
      guard let read = narrow(stanza) else {
        stepped += 1
        continue
      }
      let tree = element(stanza)
      taken += 1
      guard let expected = try? message(tree.get()), read == expected else {
        Issue.record("read differently: \(String(decoding: stanza, as: UTF8.self))")
        return
      }
    }
    // The comparison means something only if both outcomes are common.
    #expect(taken > 8_000)
    #expect(stepped > 5_000)
  }

  @Test func generatedStreamsGiveTheSameItemsHoweverTheyAreCut() {
    var chance = SeededChance(seed: 77)
    for round in 0..<400 {
      var stream = Array(header.utf8)
      for _ in 0..<Int.random(in: 1..<4, using: &chance) {
        var stanza = StanzaMaker.stanza(&chance)
        if round % 3 == 0 { StanzaMaker.mutate(&stanza, &chance) }
        stream += stanza
        if Bool.random(using: &chance) { stream += Array(" \n".utf8) }
      }
      stream += Array("</stream:stream>".utf8)
      let limits = XMLLimits(bytesMax: Bool.random(using: &chance) ? 65_536 : 150)
      let whole = frame([stream], limits: limits)
      #expect(frame(stream.map { [$0] }, limits: limits) == whole)
      for _ in 0..<10 {
        var chunks: [[UInt8]] = []
        var rest = stream[...]
        while !rest.isEmpty {
          let size = Int.random(in: 1...max(1, min(rest.count, 90)), using: &chance)
          chunks.append(Array(rest.prefix(size)))
          rest = rest.dropFirst(size)
        }
        #expect(frame(chunks, limits: limits) == whole)
      }
    }
  }
}

/// Makes message stanzas, most of them of the hot shape or near it.
enum StanzaMaker {
  private static let attributes: [[UInt8]] = [
    " id='m-1'", " id=\"\"", " to='devices@gcm.googleapis.com'", " type=\"normal\"", " type='error'",
    " from='é'",
    " xml:lang='en'", " xmlns='jabber:client'", "\n id = 'x'", " id='a&amp;b'", " x='y'", " xmlns:a='b'",
    " id='a\tb'", " type='&#110;ormal'",
  ].map { Array($0.utf8) }
  private static let text: [[UInt8]] = [
    "{\"to\":\"", "&quot;", "&amp;", "&lt;", "&gt;", "&apos;", "&#65;", "&#x1F606;", "&#xe9;", "&#13;", "é語🌍",
    "plain",
    "<![CDATA[<a> & ]] b]]>", "<![CDATA[]]>", "]", "]]", ">", "\n", "\t",
    "a longer run of text without marks", "\\u001a",
    "&#x10FFFF;", "\u{7F}", "\u{FFFD}",
  ].map { Array($0.utf8) }
  private static let rare: [[UInt8]] = [
    "&#0;", "&#xD83D;&#xDE06;", "&#xFFFF;", "&nbsp;", "&", "]]>", "\r", "\u{1A}", "\u{FFFE}", "<b/>",
    "<b>c</b>", "&#;",
    "&#x;", "&#X41;", "&amp", "&#00000065;", "&#x0000041;", "&#1114112;",
  ].map { Array($0.utf8) }
  private static let mutations: [UInt8] =
    Array("<>&;'\"/!?[]:#= \n\rxgm0A".utf8) + [0, 0x1A, 0x80, 0xC3, 0xFF]

  private static let startEnds: [[UInt8]] = [">", ">", ">", " >", ">\n "].map { Array($0.utf8) }
  private static let elements: [(open: [UInt8], close: [UInt8])] = [
    ("<gcm xmlns=\"google:mobile:data\">", "</gcm>"), ("<gcm xmlns='google:mobile:data' >", "</gcm\n>"),
    ("<data:gcm xmlns:data=\"google:mobile:data\">", "</data:gcm>"),
    ("<g.1:gcm xmlns:g.1='google:mobile:data'>", "</g.1:gcm>"),
  ].map { (Array($0.utf8), Array($1.utf8)) }
  private static let ends: [[UInt8]] = [
    "</message>", "</message>", "</message>", " </message>", "\n</message >",
  ].map { Array($0.utf8) }

  static func stanza(_ chance: inout SeededChance) -> [UInt8] {
    var stanza = Array("<message".utf8)
    for _ in 0..<below(4, &chance) {
      // Mostly the first eight, which the narrow reader takes.
      stanza += attributes[below(below(8, &chance) > 0 ? 8 : attributes.count, &chance)]
    }
    stanza += startEnds[below(startEnds.count, &chance)]
    let element = elements[below(elements.count, &chance)]
    stanza += element.open
    for _ in 0..<below(12, &chance) {
      stanza += below(60, &chance) == 0 ? rare[below(rare.count, &chance)] : text[below(text.count, &chance)]
    }
    stanza += element.close
    stanza += ends[below(ends.count, &chance)]
    return stanza
  }

  private static func below(_ bound: Int, _ chance: inout SeededChance) -> Int {
    Int(truncatingIfNeeded: chance.next() % UInt64(bound))
  }

  static func mutate(_ stanza: inout [UInt8], _ chance: inout SeededChance) {
    for _ in 0..<Int.random(in: 1..<3, using: &chance) {
      guard !stanza.isEmpty else { return }
      let place = Int.random(in: 0..<stanza.count, using: &chance)
      switch Int.random(in: 0..<5, using: &chance) {
      case 0: stanza.remove(at: place)
      case 1: stanza.insert(mutations.randomElement(using: &chance) ?? 0, at: place)
      case 2: stanza[place] = mutations.randomElement(using: &chance) ?? 0
      case 3:
        let end = min(stanza.count, place + Int.random(in: 1..<12, using: &chance))
        stanza.insert(
          contentsOf: Array(stanza[place..<end]), at: Int.random(in: 0...stanza.count, using: &chance))
      default:
        stanza.removeSubrange(place..<min(stanza.count, place + Int.random(in: 1..<12, using: &chance)))
      }
    }
  }
}
