import Glibc

/// Reads the one shape that traffic is made of: a `message` with one `gcm` element with text in it.
///
/// It takes part of XML and takes it exactly as libxml2 would; at any doubt, errors included, it steps aside
/// and ``ElementReader`` has the word. Default namespace of the surrounding stream: `jabber:client`.
package enum NarrowReader {
  /// - Parameters:
  ///   - stanza: A whole element as ``StanzaFramer`` cuts it.
  ///   - scratch: Where the head's ranges point to afterwards. Grown to the stanza's size when shorter, never
  ///     shrunk; bytes outside the ranges mean nothing.
  /// - Returns: nil to step aside.
  /// - Complexity: O(bytes), a few nanoseconds a reference and less than one for eight plain bytes.
  package static func read(
    _ stanza: UnsafeRawBufferPointer, into scratch: inout [UInt8]
  ) -> MessageHead? {
    guard let base = stanza.baseAddress, let survey = XMLText.survey(stanza),
      survey.isDisjoint(with: [.carriageReturn, .nonCharacter])
    else { return nil }
    let room = stanza.count &+ 16
    if scratch.count < room {
      scratch.append(contentsOf: repeatElement(0, count: room - scratch.count))
    }
    return scratch.withUnsafeMutableBytes { out in
      guard let start = out.baseAddress else { return nil }
      var cursor = Cursor(input: base, end: stanza.count, output: start)
      return cursor.message()
    }
  }
}

/// Position in the stanza and in the output.
///
/// proof: `at` only grows, every load is behind a comparison with `end`, and `written` never passes `at`
/// since no reference is shorter than what it stands for; so a store of 8 bytes stays inside `end + 16`.
private struct Cursor {
  let input: UnsafeRawPointer
  let end: Int
  let output: UnsafeMutableRawPointer
  var at = 0
  var written = 0

  init(input: UnsafeRawPointer, end: Int, output: UnsafeMutableRawPointer) {
    self.input = input
    self.end = end
    self.output = output
  }

  mutating func message() -> MessageHead? {
    guard take("<message"), var head = attributes() else { return nil }
    skipSpaces()
    guard let name = gcmTag() else { return nil }
    let textStart = written
    guard text() else { return nil }
    head.text = textStart..<written
    // `</` was seen.
    guard matches(at, input + name.lowerBound, name.count) else { return nil }
    at &+= name.count
    guard closes() else { return nil }
    skipSpaces()
    guard take("</message"), closes(), at == end else { return nil }
    return head
  }

  // MARK: Tags

  /// Attributes of `message`, through its `>`.
  private mutating func attributes() -> MessageHead? {
    var head = MessageHead(text: 0..<0)
    var seenLang = false
    var seenNamespace = false
    while true {
      let spaces = skipSpaces()
      guard at < end else { return nil }
      if byte(at) == 0x3E {
        at &+= 1
        return head
      }
      guard spaces > 0, let name = name(), equalsSign(), let value = value() else { return nil }
      if equals(name, "id") {
        guard head.id == nil else { return nil }
        head.id = copy(value)
      } else if equals(name, "to") {
        guard head.to == nil else { return nil }
        head.to = copy(value)
      } else if equals(name, "from") {
        guard head.from == nil else { return nil }
        head.from = copy(value)
      } else if equals(name, "type") {
        guard head.kind == .none else { return nil }
        head.kind = MessageKind(UnsafeRawBufferPointer(start: input + value.lowerBound, count: value.count))
      } else if equals(name, "xml:lang") {
        guard !seenLang else { return nil }
        seenLang = true
      } else if equals(name, "xmlns") {
        guard !seenNamespace, equals(value, "jabber:client") else { return nil }
        seenNamespace = true
      } else {
        return nil
      }
    }
  }

  /// Start tag of the `gcm` element, which declares its namespace and nothing else.
  ///
  /// - Returns: Where its qualified name lies.
  private mutating func gcmTag() -> Range<Int>? {
    if take("<gcm xmlns=\"google:mobile:data\">") {
      return (at &- 31)..<(at &- 28)
    }
    guard at < end, byte(at) == 0x3C else { return nil }
    at &+= 1
    guard let qualified = name() else { return nil }
    var prefix: Range<Int>?
    if !equals(qualified, "gcm") {
      let split = qualified.upperBound &- 4
      guard split > qualified.lowerBound, equals(split..<qualified.upperBound, ":gcm") else { return nil }
      let found = qualified.lowerBound..<split
      guard isPlainPrefix(found) else { return nil }
      prefix = found
    }
    guard skipSpaces() > 0, let declared = name() else { return nil }
    if let prefix {
      guard declared.count == prefix.count &+ 6,
        equals(declared.lowerBound..<(declared.lowerBound &+ 6), "xmlns:"),
        matches(declared.lowerBound &+ 6, input + prefix.lowerBound, prefix.count)
      else { return nil }
    } else {
      guard equals(declared, "xmlns") else { return nil }
    }
    guard equalsSign(), let value = value(), equals(value, "google:mobile:data"), closes() else {
      return nil
    }
    return qualified
  }

  /// Letters, digits, `_`, `-`, `.`; not `xml…`, which is reserved.
  private func isPlainPrefix(_ range: Range<Int>) -> Bool {
    let first = byte(range.lowerBound)
    guard isLetter(first) || first == 0x5F else { return false }
    for index in range where byte(index) == 0x3A { return false }
    if range.count >= 3, byte(range.lowerBound) | 0x20 == 0x78,
      byte(range.lowerBound &+ 1) | 0x20 == 0x6D, byte(range.lowerBound &+ 2) | 0x20 == 0x6C
    {
      return false
    }
    return true
  }

  /// Takes `S? >`.
  private mutating func closes() -> Bool {
    skipSpaces()
    guard at < end, byte(at) == 0x3E else { return false }
    at &+= 1
    return true
  }

  private mutating func equalsSign() -> Bool {
    skipSpaces()
    guard at < end, byte(at) == 0x3D else { return false }
    at &+= 1
    skipSpaces()
    return true
  }

  /// A run of ASCII name characters that begins as a name may.
  private mutating func name() -> Range<Int>? {
    let start = at
    while at < end {
      let next = byte(at)
      guard isLetter(next) || (0x2D...0x3A).contains(next) && next != 0x2F || next == 0x5F else { break }
      at &+= 1
    }
    guard at > start, isLetter(byte(start)) || byte(start) == 0x5F else { return nil }
    return start..<at
  }

  /// A quoted value without references, `<` or white space that would be normalised (XML 1.0 §3.3.3).
  private mutating func value() -> Range<Int>? {
    guard at < end else { return nil }
    let quote = byte(at)
    guard quote == 0x22 || quote == 0x27 else { return nil }
    at &+= 1
    let start = at
    while at < end {
      let next = byte(at)
      if next == quote {
        at &+= 1
        return start..<(at &- 1)
      }
      if next == 0x26 || next == 0x3C || next < 0x20 { return nil }
      at &+= 1
    }
    return nil
  }

  // MARK: Text

  /// Copies text up to the next end tag, decoding references and CDATA sections; ends after `</`.
  private mutating func text() -> Bool {
    // An end tag of `gcm` and one of `message` must follow any text, so 8 bytes can always be loaded.
    while at &+ 8 <= end {
      let word = input.loadUnaligned(fromByteOffset: at, as: UInt64.self)
      output.storeBytes(of: word, toByteOffset: written, as: UInt64.self)
      // `<` and `>` differ in one bit.
      let angles = (word | Swar.repeating(0x02)) ^ Swar.repeating(0x3E)
      let ampersands = word ^ Swar.repeating(0x26)
      let marks = (Swar.zeros(angles) | Swar.zeros(ampersands)) & Swar.highBits
      if marks == 0 {
        at &+= 8
        written &+= 8
        continue
      }
      let plain = marks.littleEndian.trailingZeroBitCount >> 3
      at &+= plain
      written &+= plain
      switch byte(at) {
      case 0x26:
        guard reference() else { return false }
      case 0x3E:
        // `]]>` may not stand in text: XML 1.0 §2.4.
        if at >= 2, byte(at &- 1) == 0x5D, byte(at &- 2) == 0x5D { return false }
        put(0x3E)
        at &+= 1
      default:
        guard at &+ 2 <= end else { return false }
        if byte(at &+ 1) == 0x2F {
          at &+= 2
          return true
        }
        guard section() else { return false }
      }
    }
    return false
  }

  private mutating func reference() -> Bool {
    guard at &+ 8 <= end else { return false }
    let word = UInt64(littleEndian: input.loadUnaligned(fromByteOffset: at, as: UInt64.self))
    // Little-endian spellings of the five names: XML 1.0 §4.6.
    if word & 0xFFFF_FFFF_FFFF == 0x3B74_6F75_7126 {  // &quot;
      put(0x22)
      at &+= 6
    } else if word & 0xFF_FFFF_FFFF == 0x3B_706D_6126 {  // &amp;
      put(0x26)
      at &+= 5
    } else if word & 0xFFFF_FFFF == 0x3B74_6C26 {  // &lt;
      put(0x3C)
      at &+= 4
    } else if word & 0xFFFF_FFFF == 0x3B74_6726 {  // &gt;
      put(0x3E)
      at &+= 4
    } else if word & 0xFFFF_FFFF_FFFF == 0x3B73_6F70_6126 {  // &apos;
      put(0x27)
      at &+= 6
    } else {
      return word & 0xFFFF == 0x2326 && number()
    }
    return true
  }

  /// Takes `&#123;` or `&#x7b;`, at most seven digits; the character must be legal: XML 1.0 §4.1.
  private mutating func number() -> Bool {
    at &+= 2
    guard at < end else { return false }
    let hex = byte(at) == 0x78
    if hex { at &+= 1 }
    var value: UInt32 = 0
    var digits = 0
    while at < end, digits < 8 {
      let next = byte(at)
      let digit: UInt32
      switch next {
      case 0x30...0x39: digit = UInt32(next &- 0x30)
      case 0x61...0x66 where hex: digit = UInt32(next &- 0x57)
      case 0x41...0x46 where hex: digit = UInt32(next &- 0x37)
      case 0x3B:
        guard digits > 0, XMLText.isLegal(scalar: value) else { return false }
        at &+= 1
        encode(value)
        return true
      default: return false
      }
      value = value &* (hex ? 16 : 10) &+ digit
      digits &+= 1
      at &+= 1
    }
    return false
  }

  private mutating func encode(_ value: UInt32) {
    func tail(_ shift: UInt32) -> UInt8 { UInt8(truncatingIfNeeded: value >> shift) & 0x3F | 0x80 }
    if value < 0x80 {
      put(UInt8(truncatingIfNeeded: value))
    } else if value < 0x800 {
      put(UInt8(truncatingIfNeeded: value >> 6) | 0xC0)
      put(tail(0))
    } else if value < 0x1_0000 {
      put(UInt8(truncatingIfNeeded: value >> 12) | 0xE0)
      put(tail(6))
      put(tail(0))
    } else {
      put(UInt8(truncatingIfNeeded: value >> 18) | 0xF0)
      put(tail(12))
      put(tail(6))
      put(tail(0))
    }
  }

  /// Takes a CDATA section, copied as it is.
  private mutating func section() -> Bool {
    guard take("<![CDATA[") else { return false }
    let start = at
    while at < end, let hit = memchr(input + at, 0x5D, end &- at) {
      at = UnsafeRawPointer(hit) - input
      guard at &+ 3 <= end else { return false }
      if byte(at &+ 1) == 0x5D, byte(at &+ 2) == 0x3E {
        _ = copy(start..<at)
        at &+= 3
        return true
      }
      at &+= 1
    }
    return false
  }

  // MARK: Bytes

  private func byte(_ index: Int) -> UInt8 { input.load(fromByteOffset: index, as: UInt8.self) }

  private mutating func put(_ byte: UInt8) {
    output.storeBytes(of: byte, toByteOffset: written, as: UInt8.self)
    written &+= 1
  }

  private mutating func copy(_ range: Range<Int>) -> Range<Int> {
    let start = written
    memcpy(output + written, input + range.lowerBound, range.count)
    written &+= range.count
    return start..<written
  }

  @discardableResult
  private mutating func skipSpaces() -> Int {
    let start = at
    while at < end, isXMLSpace(byte(at)) { at &+= 1 }
    return at &- start
  }

  private mutating func take(_ word: StaticString) -> Bool {
    guard matches(at, word.utf8Start, word.utf8CodeUnitCount) else { return false }
    at &+= word.utf8CodeUnitCount
    return true
  }

  private func equals(_ range: Range<Int>, _ word: StaticString) -> Bool {
    range.count == word.utf8CodeUnitCount
      && memcmp(input + range.lowerBound, word.utf8Start, range.count) == 0
  }

  private func matches(_ index: Int, _ word: UnsafeRawPointer, _ count: Int) -> Bool {
    index &+ count <= end && memcmp(input + index, word, count) == 0
  }

  private func isLetter(_ byte: UInt8) -> Bool {
    (0x61...0x7A).contains(byte) || (0x41...0x5A).contains(byte)
  }
}
