import Bytes
import Seams

/// Builds one line.
///
/// Values are escaped, so that nothing a peer chose can begin a second line or a second field.
struct LogLine {
  private let form: LogSink.Form
  private var writer = ByteWriter(capacity: 256)

  init(form: LogSink.Form, time: WallTime, level: LogLevel, sentence: StaticString) {
    self.form = form
    switch form {
    case .text:
      appendTimestamp(time)
      writer.append(byte: UInt8(ascii: " "))
      writer.append(level.name)
      writer.append(byte: UInt8(ascii: " "))
      writer.append(sentence)
    case .json:
      writer.append("{\"time\":\"")
      appendTimestamp(time)
      writer.append("\",\"level\":\"")
      writer.append(level.name)
      writer.append("\",\"message\":")
      appendQuoted(sentence.description)
    }
  }

  mutating func append(_ name: StaticString, _ value: LogValue) {
    switch form {
    case .text:
      writer.append(byte: UInt8(ascii: " "))
      writer.append(name)
      writer.append(byte: UInt8(ascii: "="))
    case .json:
      writer.append(byte: UInt8(ascii: ","))
      appendQuoted(name.description)
      writer.append(byte: UInt8(ascii: ":"))
    }
    switch value {
    case .text(let text):
      if form == .text && Self.isPlain(text) { writer.append(text) } else { appendQuoted(text) }
    case .number(let number): writer.append(decimal: number)
    case .decimal(let decimal):
      // JSON has no word for these.
      if decimal.isFinite { writer.append(decimal.description) } else { appendQuoted("\(decimal)") }
    case .flag(let flag): writer.append(flag ? "true" : "false")
    }
  }

  /// Ends the line.
  ///
  /// One that is too long is cut between two characters and says so.
  mutating func finish(bytesMax: Int) -> [UInt8] {
    if form == .json { writer.append(byte: UInt8(ascii: "}")) }
    writer.append(byte: UInt8(ascii: "\n"))
    guard writer.count > bytesMax else { return writer.take() }
    let ending: StaticString = form == .json ? "\",\"cut\":true}\n" : "… cut=true\n"
    var kept = writer.take()
    switch form {
    case .text: kept.removeSubrange(Self.cut(kept, bytesMax - ending.utf8CodeUnitCount)...)
    case .json: kept = Self.jsonHead(kept, bytesMax: bytesMax)
    }
    if form == .text { ending.withUTF8Buffer { kept.append(contentsOf: $0) } }
    return kept
  }

  private static func cut(_ bytes: [UInt8], _ limit: Int) -> Int {
    var end = limit
    while end > 0 && bytes[end] & 0xC0 == 0x80 { end -= 1 }
    return end
  }

  /// A JSON line that is too long keeps its first three members, which are short, and the mark.
  private static func jsonHead(_ bytes: [UInt8], bytesMax: Int) -> [UInt8] {
    var quotes = 0
    var end = 0
    var escaped = false
    // time, level and message are six names and values: twelve quotes.
    while end < bytes.count && quotes < 12 {
      if escaped {
        escaped = false
      } else if bytes[end] == UInt8(ascii: "\\") {
        escaped = true
      } else if bytes[end] == UInt8(ascii: "\"") {
        quotes += 1
      }
      end += 1
    }
    return Array(bytes[..<min(end, bytesMax - 16)]) + Array(",\"cut\":true}\n".utf8)
  }

  private mutating func appendTimestamp(_ time: WallTime) {
    let civil = CivilTime(time)
    appendPadded(civil.year, 4)
    writer.append(byte: UInt8(ascii: "-"))
    appendPadded(civil.month, 2)
    writer.append(byte: UInt8(ascii: "-"))
    appendPadded(civil.day, 2)
    writer.append(byte: UInt8(ascii: "T"))
    appendPadded(civil.hour, 2)
    writer.append(byte: UInt8(ascii: ":"))
    appendPadded(civil.minute, 2)
    writer.append(byte: UInt8(ascii: ":"))
    appendPadded(civil.second, 2)
    writer.append(byte: UInt8(ascii: "."))
    appendPadded(civil.millisecond, 3)
    writer.append(byte: UInt8(ascii: "Z"))
  }

  private mutating func appendPadded(_ number: Int, _ digits: Int) {
    let text = String(number)
    for _ in 0..<max(0, digits - text.utf8.count) { writer.append(byte: UInt8(ascii: "0")) }
    writer.append(text)
  }

  /// Text that needs no quotes in the text form: printable ASCII without blank, quote, equals or backslash.
  private static func isPlain(_ text: String) -> Bool {
    !text.isEmpty
      && text.utf8.allSatisfy { byte in
        byte > 0x20 && byte < 0x7F && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "=")
          && byte != UInt8(ascii: "\\")
      }
  }

  private mutating func appendQuoted(_ text: String) {
    writer.append(byte: UInt8(ascii: "\""))
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x22: writer.append("\\\"")
      case 0x5C: writer.append("\\\\")
      case 0x0A: writer.append("\\n")
      case 0x0D: writer.append("\\r")
      case 0x09: writer.append("\\t")
      // Control characters, and the separators and direction marks that some terminals act on.
      case 0..<0x20, 0x7F..<0xA0, 0x2028...0x202E, 0x2066...0x2069:
        writer.append("\\u")
        let hex = String(scalar.value, radix: 16)
        for _ in 0..<max(0, 4 - hex.utf8.count) { writer.append(byte: UInt8(ascii: "0")) }
        writer.append(hex)
      default: writer.append(String(Character(scalar)))
      }
    }
    writer.append(byte: UInt8(ascii: "\""))
  }
}
