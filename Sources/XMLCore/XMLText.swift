/// Checks of text against XML 1.0 §2.2 (legal characters) and RFC 3629 (UTF-8).
package enum XMLText {
  /// What legal text holds that a reader or writer must mind.
  package struct Survey: OptionSet, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Some byte is 0x80 or above.
    package static let nonASCII = Survey(rawValue: 1)
    /// A carriage return, which a reader turns into a line feed (XML 1.0 §2.11).
    package static let carriageReturn = Survey(rawValue: 2)
    /// U+FFFE or U+FFFF: well-formed UTF-8, legal in JSON, illegal in XML.
    package static let nonCharacter = Survey(rawValue: 4)
  }

  /// Looks through the whole text, 8 bytes at a time while it is plain.
  ///
  /// - Returns: nil for a control character other than tab, LF and CR, and for malformed UTF-8.
  package static func survey(_ text: UnsafeRawBufferPointer) -> Survey? {
    guard let base = text.baseAddress else { return [] }
    let count = text.count
    var survey: Survey = []
    var index = 0
    var all: UInt64 = 0
    // proof: a load of 8 bytes at `index` ends at or before `count`.
    while index &+ 8 <= count {
      let word = base.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      all |= word
      if Swar.hasControl(word), !checkControls(base, index, 8, &survey) { return nil }
      index &+= 8
    }
    let rest = count &- index
    guard checkControls(base, index, rest, &survey) else { return nil }
    while index < count {
      all |= UInt64(base.load(fromByteOffset: index, as: UInt8.self))
      index &+= 1
    }
    if all & Swar.highBits != 0 {
      survey.insert(.nonASCII)
      guard let nonCharacter = checkUTF8(base, count) else { return nil }
      if nonCharacter { survey.insert(.nonCharacter) }
    }
    return survey
  }

  private static func checkControls(
    _ base: UnsafeRawPointer, _ start: Int, _ count: Int, _ survey: inout Survey
  ) -> Bool {
    for index in start..<(start &+ count) {
      let byte = base.load(fromByteOffset: index, as: UInt8.self)
      if byte >= 0x20 || byte == 0x09 || byte == 0x0A { continue }
      guard byte == 0x0D else { return false }
      survey.insert(.carriageReturn)
    }
    return true
  }

  /// Whether every byte belongs to a legal XML 1.0 character.
  package static func isLegal(_ text: UnsafeRawBufferPointer) -> Bool {
    guard let survey = survey(text) else { return false }
    return !survey.contains(.nonCharacter)
  }

  /// Char of XML 1.0 §2.2.
  package static func isLegal(scalar value: UInt32) -> Bool {
    switch value {
    case 0x9, 0xA, 0xD, 0x20...0xD7FF, 0xE000...0xFFFD, 0x1_0000...0x10_FFFF: true
    default: false
    }
  }

  /// - Returns: nil when malformed, else whether U+FFFE or U+FFFF occurs.
  private static func checkUTF8(_ base: UnsafeRawPointer, _ count: Int) -> Bool? {
    var index = 0
    var nonCharacter = false
    // proof: each load is guarded by a comparison with `count`.
    func byte(_ at: Int) -> UInt8 { base.load(fromByteOffset: at, as: UInt8.self) }
    func isTail(_ at: Int) -> Bool { byte(at) & 0xC0 == 0x80 }
    while index < count {
      if index &+ 8 <= count,
        base.loadUnaligned(fromByteOffset: index, as: UInt64.self) & Swar.highBits == 0
      {
        index &+= 8
        continue
      }
      let lead = byte(index)
      switch lead {
      case 0x00...0x7F:
        index &+= 1
      case 0xC2...0xDF:
        guard index &+ 2 <= count, isTail(index &+ 1) else { return nil }
        index &+= 2
      case 0xE0...0xEF:
        guard index &+ 3 <= count, isTail(index &+ 1), isTail(index &+ 2) else { return nil }
        let second = byte(index &+ 1)
        if lead == 0xE0, second < 0xA0 { return nil }
        if lead == 0xED, second > 0x9F { return nil }
        if lead == 0xEF, second == 0xBF, byte(index &+ 2) >= 0xBE { nonCharacter = true }
        index &+= 3
      case 0xF0...0xF4:
        guard index &+ 4 <= count, isTail(index &+ 1), isTail(index &+ 2), isTail(index &+ 3)
        else { return nil }
        let second = byte(index &+ 1)
        if lead == 0xF0, second < 0x90 { return nil }
        if lead == 0xF4, second > 0x8F { return nil }
        index &+= 4
      default:
        return nil
      }
    }
    return nonCharacter
  }
}

/// Eight bytes looked at as one word.
///
/// A mark is the high bit of a byte. The lowest mark in the order of memory is exact; those after it may be
/// wrong, so a word with any mark is looked at byte by byte or up to the first.
enum Swar {
  static let highBits: UInt64 = 0x8080_8080_8080_8080
  static let ones: UInt64 = 0x0101_0101_0101_0101

  /// Marks bytes that are 0, without cutting to high bits.
  static func zeros(_ word: UInt64) -> UInt64 { (word &- ones) & ~word }

  /// Whether some byte is below 0x20.
  static func hasControl(_ word: UInt64) -> Bool {
    (word &- 0x2020_2020_2020_2020) & ~word & highBits != 0
  }

  static func repeating(_ byte: UInt8) -> UInt64 { UInt64(byte) &* ones }
}

/// S of XML 1.0 §2.3.
func isXMLSpace(_ byte: UInt8) -> Bool {
  byte == 0x20 || byte == 0x0A || byte == 0x09 || byte == 0x0D
}
