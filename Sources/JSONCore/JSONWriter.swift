package import Bytes

extension ByteWriter {
  /// Appends a JSON string, quotes included.
  package mutating func append(jsonString value: String) {
    append(byte: UInt8(ascii: "\""))
    append(jsonEscaped: value)
    append(byte: UInt8(ascii: "\""))
  }

  /// Appends what stands between the quotes of a JSON string.
  package mutating func append(jsonEscaped value: String) {
    var value = value
    value.withUTF8 { append(jsonEscaped: UnsafeRawBufferPointer($0)) }
  }

  /// Appends UTF-8 bytes as what stands between the quotes of a JSON string: quote, backslash and the C0
  /// controls are escaped, all else stays as it is.
  /// - Source: RFC 8259 section 7.
  package mutating func append(jsonEscaped value: UnsafeRawBufferPointer) {
    var runStart = 0
    for at in value.indices {
      let byte = value[at]
      guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
      append(UnsafeRawBufferPointer(rebasing: value[runStart..<at]))
      runStart = at &+ 1
      append(byte: UInt8(ascii: "\\"))
      if byte < 0x20 {
        append("u00")
        append(byte: UInt8(ascii: "0") &+ byte >> 4)
        let low = byte & 0xF
        append(byte: low < 10 ? UInt8(ascii: "0") &+ low : UInt8(ascii: "a") &+ low &- 10)
      } else {
        append(byte: byte)
      }
    }
    append(UnsafeRawBufferPointer(rebasing: value[runStart...]))
  }
}
