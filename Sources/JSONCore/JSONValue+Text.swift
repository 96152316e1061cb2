package import Bytes

extension JSONValue {
  /// Reads a whole text.
  ///
  /// - Parameter depthMax: 1 to 64; the recursion below goes no deeper.
  /// - Throws: ``JSONFault`` with the place.
  package init(parsing text: UnsafeRawBufferPointer, depthMax: Int = 64) throws(JSONFault) {
    var document = JSONDocument(depthMax: depthMax, recordedDepth: 1)
    try document.read(text)
    var at = document.range.start
    self = try Self.build(text.bytes, &at)
  }

  package init(parsing text: [UInt8], depthMax: Int = 64) throws(JSONFault) {
    let parsed = text.withUnsafeBytes { bytes -> Result<JSONValue, JSONFault> in
      do throws(JSONFault) {
        return .success(try JSONValue(parsing: bytes, depthMax: depthMax))
      } catch {
        return .failure(error)
      }
    }
    self = try parsed.get()
  }

  package init(parsing text: String, depthMax: Int = 64) throws(JSONFault) {
    try self.init(parsing: Array(text.utf8), depthMax: depthMax)
  }

  /// Builds from a text that was validated, the depth with it.
  private static func build(_ bytes: borrowing RawSpan, _ at: inout Int) throws(JSONFault) -> JSONValue {
    JSONScanner.skipBlanks(bytes, &at)
    let start = at
    switch JSONScanner.byte(bytes, at) {
    case UInt8(ascii: "{"):
      var members: [Member] = []
      at += 1
      JSONScanner.skipBlanks(bytes, &at)
      while JSONScanner.byte(bytes, at) != UInt8(ascii: "}") {
        if JSONScanner.byte(bytes, at) == UInt8(ascii: ",") { at += 1 }
        JSONScanner.skipBlanks(bytes, &at)
        let name = try text(bytes, &at)
        JSONScanner.skipBlanks(bytes, &at)
        at += 1
        members.append(Member(name, try build(bytes, &at)))
        JSONScanner.skipBlanks(bytes, &at)
      }
      at += 1
      return .object(members)
    case UInt8(ascii: "["):
      var elements: [JSONValue] = []
      at += 1
      JSONScanner.skipBlanks(bytes, &at)
      while JSONScanner.byte(bytes, at) != UInt8(ascii: "]") {
        if JSONScanner.byte(bytes, at) == UInt8(ascii: ",") { at += 1 }
        elements.append(try build(bytes, &at))
        JSONScanner.skipBlanks(bytes, &at)
      }
      at += 1
      return .array(elements)
    case UInt8(ascii: "\""):
      return .string(try text(bytes, &at))
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      try JSONScanner.number(bytes, &at)
      return .number(bytes.withUnsafeBytes { String(decoding: $0[start..<at], as: UTF8.self) })
    default:
      switch try JSONScanner.literal(bytes, &at) {
      case .true: return .bool(true)
      case .false: return .bool(false)
      default: return .null
      }
    }
  }

  private static func text(_ bytes: borrowing RawSpan, _ at: inout Int) throws(JSONFault) -> String {
    at += 1
    let start = at
    let decodedCount = try JSONScanner.string(bytes, &at)
    let place = JSONString(start: start, end: at - 1, decodedCount: decodedCount)
    return bytes.withUnsafeBytes { place.string(in: $0) }
  }

  /// Appends the value's text without blanks.
  package func write(to writer: inout ByteWriter) {
    switch self {
    case .null: writer.append("null")
    case .bool(true): writer.append("true")
    case .bool(false): writer.append("false")
    case .number(let text): writer.append(text)
    case .string(let text): writer.append(jsonString: text)
    case .array(let elements):
      writer.append(byte: UInt8(ascii: "["))
      for (index, element) in elements.enumerated() {
        if index > 0 { writer.append(byte: UInt8(ascii: ",")) }
        element.write(to: &writer)
      }
      writer.append(byte: UInt8(ascii: "]"))
    case .object(let members):
      writer.append(byte: UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { writer.append(byte: UInt8(ascii: ",")) }
        writer.append(jsonString: member.name)
        writer.append(byte: UInt8(ascii: ":"))
        member.value.write(to: &writer)
      }
      writer.append(byte: UInt8(ascii: "}"))
    }
  }

  /// The value's text without blanks.
  package var bytes: [UInt8] {
    var writer = ByteWriter()
    write(to: &writer)
    return writer.take()
  }

  /// The value's text without blanks.
  package var text: String { String(decoding: bytes, as: UTF8.self) }
}
