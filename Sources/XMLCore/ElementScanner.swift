import Glibc

/// Finds where an element ends, without reading what it says.
///
/// Resumable at any byte. Knows tags, quotes and CDATA sections of the restricted XML of RFC 6120 §11.1 and
/// refuses the rest at the byte that shows it. Well-formedness beyond that (names, matching tags, legal
/// characters, references) is the readers' to judge: whatever a scanner calls complete must be read.
package struct ElementScanner {
  /// What ended at the offset it carries (one past the last byte).
  package enum Outcome: Equatable {
    /// All bytes were looked at and nothing ended.
    case incomplete
    /// The first start tag, when the scanner stops there and it opens an element.
    case openTag(end: Int)
    /// A whole element, or a start tag that closes itself.
    case element(end: Int)
    /// An end tag before any start tag: that of the surrounding element.
    case endTag(end: Int)
    /// `<?xml … ?>`, where it is allowed.
    case declaration(end: Int)
  }

  private enum Lex: UInt8 {
    case text, lessThan, startName, startTag, slash, doubleQuoted, singleQuoted, endName, endTag, bang, cdata
    case question
  }

  /// Deepest nesting that can be followed, whatever the limits say.
  package static let depthMax = 16

  private var lex = Lex.text
  private var depth = 0
  private var attributes = 0
  /// Digest of the name being scanned, and of the names of the open elements.
  ///
  /// Two names may share one; the readers compare names in full.
  private var digest: UInt32 = 0
  private var names = InlineArray<16, UInt32>(repeating: 0)
  /// Matched bytes of `[CDATA[` or `xml`, or the run of `]` or `?` that may end a section; small.
  private var matched = 0
  private let stopsAtOpenTag: Bool
  private let allowsDeclaration: Bool

  /// - Parameters:
  ///   - stopsAtOpenTag: Stop after the first start tag, as for a stream header.
  ///   - allowsDeclaration: Take an XML declaration in place of the element.
  package init(stopsAtOpenTag: Bool = false, allowsDeclaration: Bool = false) {
    self.stopsAtOpenTag = stopsAtOpenTag
    self.allowsDeclaration = allowsDeclaration
  }

  /// Looks at `bytes[from..<to]`; the first byte ever given must be the element's `<`.
  package mutating func scan(
    _ bytes: UnsafeRawBufferPointer, from: Int, to: Int, limits: XMLLimits
  ) throws(XMLFault) -> Outcome {
    guard let base = bytes.baseAddress, from >= 0, to <= bytes.count else { return .incomplete }
    var index = from
    // proof: `index` is below `to` at each load, and `to` is within the buffer.
    while index < to {
      switch lex {
      case .text:
        guard let next = find(0x3C, base, index, to) else { return .incomplete }
        index = next &+ 1
        lex = .lessThan

      case .lessThan:
        try lessThan(base.load(fromByteOffset: index, as: UInt8.self), limits)
        index &+= 1

      case .startName:
        guard scanName(base, &index, to) else { return .incomplete }
        // proof: `lessThan` kept 0 < depth <= 16.
        names[depth &- 1] = digest
        lex = .startTag

      case .endName:
        guard scanName(base, &index, to) else { return .incomplete }
        if depth > 0, names[depth &- 1] != digest { throw .notWellFormed }
        lex = .endTag

      case .startTag:
        let byte = base.load(fromByteOffset: index, as: UInt8.self)
        index &+= 1
        switch byte {
        case 0x22, 0x27:
          attributes &+= 1
          guard attributes <= limits.attributesMax else { throw .limit(.attributes) }
          lex = byte == 0x22 ? .doubleQuoted : .singleQuoted
        case 0x2F: lex = .slash
        case 0x3E:
          lex = .text
          if stopsAtOpenTag, depth == 1 { return .openTag(end: index) }
        case 0x3C: throw .notWellFormed
        default: break
        }

      case .slash:
        guard base.load(fromByteOffset: index, as: UInt8.self) == 0x3E else { throw .notWellFormed }
        index &+= 1
        lex = .text
        depth &-= 1
        if depth == 0 { return .element(end: index) }

      case .doubleQuoted, .singleQuoted:
        let quote: UInt8 = lex == .doubleQuoted ? 0x22 : 0x27
        let next = find(quote, base, index, to)
        // XML 1.0 section 2.3. After a forgotten quote the end would never be found.
        guard find(0x3C, base, index, next ?? to) == nil else { throw .notWellFormed }
        guard let next else { return .incomplete }
        index = next &+ 1
        lex = .startTag

      case .endTag:
        let byte = base.load(fromByteOffset: index, as: UInt8.self)
        index &+= 1
        if isXMLSpace(byte) { continue }
        guard byte == 0x3E else { throw .notWellFormed }
        lex = .text
        if depth == 0 { return .endTag(end: index) }
        depth &-= 1
        if depth == 0 { return .element(end: index) }

      case .bang:
        try bang(base.load(fromByteOffset: index, as: UInt8.self))
        index &+= 1

      case .cdata:
        if matched == 0 {
          guard let next = find(0x5D, base, index, to) else { return .incomplete }
          index = next &+ 1
          matched = 1
        } else {
          let byte = base.load(fromByteOffset: index, as: UInt8.self)
          index &+= 1
          if byte == 0x5D {
            matched = 2
          } else {
            if byte == 0x3E, matched == 2 { lex = .text }
            matched = 0
          }
        }

      case .question:
        let byte = base.load(fromByteOffset: index, as: UInt8.self)
        index &+= 1
        if try question(byte) { return .declaration(end: index) }
      }
    }
    return .incomplete
  }

  private mutating func lessThan(_ byte: UInt8, _ limits: XMLLimits) throws(XMLFault) {
    switch byte {
    case 0x2F:
      lex = .endName
      digest = 0
    case 0x21:
      // Outside an element it can only be a comment, a document type or stray text.
      guard depth > 0 else { throw .restrictedXML }
      lex = .bang
      matched = 0
    case 0x3F:
      guard allowsDeclaration, depth == 0 else { throw .restrictedXML }
      lex = .question
      matched = 0
    case 0x41...0x5A, 0x61...0x7A, 0x5F, 0x3A, 0x80...0xFF:
      guard depth < min(limits.depthMax, Self.depthMax) else { throw .limit(.depth) }
      depth &+= 1
      attributes = 0
      digest = UInt32(byte)
      lex = .startName
    default:
      throw .notWellFormed
    }
  }

  /// Takes name bytes into the digest; true at the first byte that is none, which is not taken.
  private mutating func scanName(_ base: UnsafeRawPointer, _ index: inout Int, _ to: Int) -> Bool {
    while index < to {
      let byte = base.load(fromByteOffset: index, as: UInt8.self)
      if byte <= 0x20 || byte == 0x2F || byte == 0x3E || byte == 0x3C { return true }
      digest = (digest << 5 | digest >> 27) ^ UInt32(byte)
      index &+= 1
    }
    return false
  }

  /// After `<!` inside an element only `[CDATA[` may come.
  private mutating func bang(_ byte: UInt8) throws(XMLFault) {
    let expected: UInt8
    switch matched {
    case 0, 6: expected = 0x5B  // [
    case 1: expected = 0x43  // C
    case 2: expected = 0x44  // D
    case 3, 5: expected = 0x41  // A
    default: expected = 0x54  // T
    }
    guard byte == expected else { throw .restrictedXML }
    matched &+= 1
    if matched == 7 {
      lex = .cdata
      matched = 0
    }
  }

  /// After `<?` only `xml` and a space may come; then all up to `?>`.
  private mutating func question(_ byte: UInt8) throws(XMLFault) -> Bool {
    switch matched {
    case 0, 1, 2:
      guard byte == (matched == 0 ? 0x78 : matched == 1 ? 0x6D : 0x6C) else { throw .restrictedXML }
      matched &+= 1
    case 3:
      guard isXMLSpace(byte) else { throw .restrictedXML }
      matched = 4
    case 4:
      if byte == 0x3C { throw .notWellFormed }
      if byte == 0x3F { matched = 5 }
    default:
      guard byte == 0x3E else { throw .notWellFormed }
      return true
    }
    return false
  }

  private func find(_ byte: UInt8, _ base: UnsafeRawPointer, _ from: Int, _ to: Int) -> Int? {
    guard let hit = memchr(base + from, Int32(byte), to &- from) else { return nil }
    return UnsafeRawPointer(hit) - base
  }
}
