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

  /// Looks through the whole text, 16 bytes at a time while it is plain.
  ///
  /// - Returns: nil for a control character other than tab, LF and CR, and for malformed UTF-8.
  package static func survey(_ text: UnsafeRawBufferPointer) -> Survey? {
    guard let base = text.baseAddress else { return [] }
    let count = text.count
    var index = 0
    var any = SIMD16<UInt8>(repeating: 0)
    var odd = SIMD16<UInt8>(repeating: 0)
    let zero = SIMD16<UInt8>(repeating: 0)
    let one = SIMD16<UInt8>(repeating: 0xFF)
    // proof: a load of 16 bytes at `index` ends at or before `count`.
    while index &+ 16 <= count {
      let chunk = base.loadUnaligned(fromByteOffset: index, as: SIMD16<UInt8>.self)
      any |= chunk
      let control = (chunk .< 0x20) .& (chunk .!= 0x09) .& (chunk .!= 0x0A)
      odd |= zero.replacing(with: one, where: control)
      index &+= 16
    }
    var anyByte = any.bits
    var oddByte = odd.bits
    while index < count {
      let byte = base.load(fromByteOffset: index, as: UInt8.self)
      anyByte |= UInt64(byte)
      if byte < 0x20, byte != 0x09, byte != 0x0A { oddByte = 1 }
      index &+= 1
    }
    var survey: Survey = []
    if oddByte != 0 {
      for byte in text where byte < 0x20 && byte != 0x09 && byte != 0x0A {
        guard byte == 0x0D else { return nil }
      }
      survey.insert(.carriageReturn)
    }
    if anyByte & 0x8080_8080_8080_8080 != 0 {
      survey.insert(.nonASCII)
      guard let nonCharacter = checkUTF8(base, count) else { return nil }
      if nonCharacter { survey.insert(.nonCharacter) }
    }
    return survey
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
        base.loadUnaligned(fromByteOffset: index, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
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

extension SIMD16<UInt8> {
  /// All lanes or-ed into 8 bytes.
  fileprivate var bits: UInt64 {
    let halves = unsafeBitCast(self, to: SIMD2<UInt64>.self)
    return halves.x | halves.y
  }
}

/// S of XML 1.0 §2.3.
func isXMLSpace(_ byte: UInt8) -> Bool {
  byte == 0x20 || byte == 0x0A || byte == 0x09 || byte == 0x0D
}
