import Bytes
package import JSONCore

extension JSONValue {
  /// The value's text over lines, two blanks deeper for each object and array, with a line feed at the end: as
  /// Google's front end writes answers unless told `prettyPrint=false`.
  package var prettyBytes: [UInt8] {
    var writer = ByteWriter(capacity: 512)
    writePretty(to: &writer, indent: 0)
    writer.append(byte: UInt8(ascii: "\n"))
    return writer.take()
  }

  /// Only the server's own values are written, so the depth is known.
  private func writePretty(to writer: inout ByteWriter, indent: Int) {
    func line(_ depth: Int) {
      writer.append(byte: UInt8(ascii: "\n"))
      for _ in 0..<depth { writer.append("  ") }
    }
    switch self {
    case .array(let elements) where !elements.isEmpty:
      writer.append(byte: UInt8(ascii: "["))
      for (index, element) in elements.enumerated() {
        if index > 0 { writer.append(byte: UInt8(ascii: ",")) }
        line(indent + 1)
        element.writePretty(to: &writer, indent: indent + 1)
      }
      line(indent)
      writer.append(byte: UInt8(ascii: "]"))
    case .object(let members) where !members.isEmpty:
      writer.append(byte: UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { writer.append(byte: UInt8(ascii: ",")) }
        line(indent + 1)
        writer.append(jsonString: member.name)
        writer.append(": ")
        member.value.writePretty(to: &writer, indent: indent + 1)
      }
      line(indent)
      writer.append(byte: UInt8(ascii: "}"))
    default:
      write(to: &writer)
    }
  }
}
