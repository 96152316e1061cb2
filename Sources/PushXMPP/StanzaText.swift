import Bytes
import JSONCore

extension ByteWriter {
  /// Appends JSON text as XML element text: `&`, `<`, `>` and CR as references, U+FFFE and U+FFFF, which XML
  /// may not hold, as JSON escapes.
  ///
  /// - Parameter json: Valid JSON, or a piece of one that begins and ends outside an escape. Then a byte of 0x80
  ///   and more stands inside a string, where an escape may take its place.
  /// - Source: XML 1.0 sections 2.2, 2.4 and 2.11.
  mutating func append(jsonAsXML json: UnsafeRawBufferPointer) {
    var runStart = 0
    var at = 0
    let count = json.count
    while at < count {
      if at &+ 8 <= count {
        let word = UInt64(littleEndian: json.loadUnaligned(fromByteOffset: at, as: UInt64.self))
        let found = Self.marks(word)
        guard found != 0 else {
          at &+= 8
          continue
        }
        at &+= found.trailingZeroBitCount >> 3
      }
      let reference: StaticString
      var width = 1
      switch json[at] {
      case UInt8(ascii: "&"): reference = "&amp;"
      case UInt8(ascii: "<"): reference = "&lt;"
      case UInt8(ascii: ">"): reference = "&gt;"
      case UInt8(ascii: "\r"): reference = "&#13;"
      case 0xEF where at &+ 2 < count && json[at &+ 1] == 0xBF && json[at &+ 2] >= 0xBE:
        reference = json[at &+ 2] == 0xBE ? "\\ufffe" : "\\uffff"
        width = 3
      default:
        at &+= 1
        continue
      }
      append(UnsafeRawBufferPointer(rebasing: json[runStart..<at]))
      append(reference)
      at &+= width
      runStart = at
    }
    append(UnsafeRawBufferPointer(rebasing: json[runStart..<count]))
  }

  /// Marks, in the top bit of each byte, those that ``append(jsonAsXML:)`` must look at.
  ///
  /// The lowest mark is always right.
  @inline(__always)
  private static func marks(_ word: UInt64) -> UInt64 {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let ampersand = word ^ (ones &* 0x26)
    // `<` is 0x3C and `>` 0x3E: one bit apart.
    let angle = (word | (ones &* 0x02)) ^ (ones &* 0x3E)
    let cr = word ^ (ones &* 0x0D)
    let lead = word ^ (ones &* 0xEF)
    let found =
      (ampersand &- ones) & ~ampersand | (angle &- ones) & ~angle | (cr &- ones) & ~cr | (lead &- ones)
      & ~lead
    return found & (ones &* 0x80)
  }

  /// Appends text for an element or a double-quoted attribute; what XML may not hold becomes U+FFFD.
  mutating func append(xml text: String) {
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x26: append("&amp;")
      case 0x3C: append("&lt;")
      case 0x3E: append("&gt;")
      case 0x22: append("&quot;")
      case 0x09: append("&#9;")
      case 0x0A: append("&#10;")
      case 0x0D: append("&#13;")
      case 0..<0x20, 0xFFFE, 0xFFFF: append("\u{FFFD}")
      case 0x20..<0x80: append(byte: UInt8(truncatingIfNeeded: scalar.value))
      default: append(String(scalar))
      }
    }
  }

  /// Appends a string's JSON form, without quotes, as XML element text.
  mutating func append(jsonStringAsXML value: String) {
    var json = ByteWriter(capacity: value.utf8.count + 8)
    json.append(jsonEscaped: value)
    json.bytes.withUnsafeBytes { append(jsonAsXML: $0) }
  }
}
