package import Bytes

extension ByteWriter {
  /// Appends element text: `&`, `<`, `>` and carriage return as references (XML 1.0 §2.4, §2.11).
  ///
  /// - Returns: false, with nothing appended, for text that cannot be in XML (a control character, U+FFFE,
  ///   U+FFFF, malformed UTF-8).
  package mutating func appendEscapedText(_ text: UnsafeRawBufferPointer) -> Bool {
    guard let survey = XMLText.survey(text), !survey.contains(.nonCharacter) else { return false }
    appendEscaped(text, inAttribute: false, json: false)
    return true
  }

  /// Appends element text, as ``appendEscapedText(_:)-(UnsafeRawBufferPointer)``.
  package mutating func appendEscapedText(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { appendEscapedText(UnsafeRawBufferPointer($0)) }
  }

  /// Appends an attribute's value for either kind of quote; tab, LF and CR as references (XML 1.0 §3.3.3).
  ///
  /// - Returns: false, with nothing appended, for text that cannot be in XML.
  package mutating func appendEscapedAttribute(_ value: UnsafeRawBufferPointer) -> Bool {
    guard let survey = XMLText.survey(value), !survey.contains(.nonCharacter) else { return false }
    appendEscaped(value, inAttribute: true, json: false)
    return true
  }

  /// Appends an attribute's value, as ``appendEscapedAttribute(_:)-(UnsafeRawBufferPointer)``.
  package mutating func appendEscapedAttribute(_ value: String) -> Bool {
    var value = value
    return value.withUTF8 { appendEscapedAttribute(UnsafeRawBufferPointer($0)) }
  }

  /// Appends a JSON text as element text; U+FFFE and U+FFFF, legal in a JSON string and illegal in XML, become
  /// the JSON escapes `\ufffe` and `\uffff`.
  ///
  /// - Parameter json: A valid JSON text. Then the two can only stand in strings, and no backslash before them
  ///   is left over from another escape.
  /// - Returns: false, with nothing appended, for malformed UTF-8 or a raw control character, which no valid
  ///   JSON text holds.
  package mutating func appendEscapedJSON(_ json: UnsafeRawBufferPointer) -> Bool {
    guard let survey = XMLText.survey(json) else { return false }
    appendEscaped(json, inAttribute: false, json: survey.contains(.nonCharacter))
    return true
  }

  private mutating func appendEscaped(_ text: UnsafeRawBufferPointer, inAttribute: Bool, json: Bool) {
    guard let base = text.baseAddress else { return }
    var index = 0
    var start = 0
    let count = text.count
    while index < count {
      // proof: a load of 8 bytes at `index` ends at or before `count`.
      if index &+ 8 <= count {
        let word = base.loadUnaligned(fromByteOffset: index, as: UInt64.self)
        var special =
          Swar.zeros(word ^ Swar.repeating(0x26))
          | Swar.zeros((word | Swar.repeating(0x02)) ^ Swar.repeating(0x3E))
          | Swar.zeros(word ^ Swar.repeating(0x0D))
        if inAttribute {
          special |= Swar.zeros(word ^ Swar.repeating(0x22)) | Swar.zeros(word ^ Swar.repeating(0x27))
          special |= Swar.zeros(word ^ Swar.repeating(0x09)) | Swar.zeros(word ^ Swar.repeating(0x0A))
        }
        if json { special |= Swar.zeros(word ^ Swar.repeating(0xEF)) }
        if special & Swar.highBits == 0 {
          index &+= 8
          continue
        }
      }
      let blockEnd = min(index &+ 8, count)
      while index < blockEnd {
        let byte = text[index]
        var width = 1
        let stand: StaticString
        switch byte {
        case 0x26: stand = "&amp;"
        case 0x3C: stand = "&lt;"
        case 0x3E: stand = "&gt;"
        case 0x0D: stand = "&#13;"
        case 0x22 where inAttribute: stand = "&quot;"
        case 0x27 where inAttribute: stand = "&apos;"
        case 0x09 where inAttribute: stand = "&#9;"
        case 0x0A where inAttribute: stand = "&#10;"
        case 0xEF where json && index &+ 2 < count && text[index &+ 1] == 0xBF && text[index &+ 2] >= 0xBE:
          stand = text[index &+ 2] == 0xBE ? "\\ufffe" : "\\uffff"
          width = 3
        default:
          index &+= 1
          continue
        }
        append(UnsafeRawBufferPointer(rebasing: text[start..<index]))
        append(stand)
        index &+= width
        start = index
      }
    }
    append(UnsafeRawBufferPointer(rebasing: text[start..<count]))
  }
}
