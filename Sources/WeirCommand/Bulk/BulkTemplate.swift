import JSONCore

/// A message with places for columns: `{"to":"{{token}}","data":{"name":"{{first name}}"}}`.
///
/// A place inside a JSON text takes any value, escaped; one outside takes a number, `true`, `false` or `null`.
struct BulkTemplate: Sendable {
  private enum Piece: Sendable {
    case text([UInt8])
    case column(Int, isInText: Bool)
  }

  private var pieces: [Piece] = []
  private let columns: [String]

  /// - Throws: ``UsageFault`` with the name of a column that is not there, or when what it makes is no object.
  init(_ text: String, columns: [String]) throws(UsageFault) {
    self.columns = columns
    var rest = Array(text.utf8)[...]
    var fixed: [UInt8] = []
    var isInText = false
    var isEscaped = false
    while let byte = rest.first {
      if byte == 0x7B, rest.dropFirst().first == 0x7B, let end = Self.end(of: rest) {
        let name = String(decoding: rest[(rest.startIndex + 2)..<end], as: UTF8.self)
          .split(separator: " ", omittingEmptySubsequences: true).joined(separator: " ")
        guard let column = columns.firstIndex(of: name) else {
          throw UsageFault(
            message:
              "The template names {{\(name)}}, but the columns are: \(columns.joined(separator: ", ")).")
        }
        pieces.append(.text(fixed))
        fixed = []
        pieces.append(.column(column, isInText: isInText))
        rest = rest[(end + 2)...]
        continue
      }
      if isInText {
        if isEscaped {
          isEscaped = false
        } else if byte == 0x5C {
          isEscaped = true
        } else if byte == 0x22 {
          isInText = false
        }
      } else if byte == 0x22 {
        isInText = true
      }
      // A message is one line: breaks between members are no loss.
      if byte != 0x0A, byte != 0x0D { fixed.append(byte) } else if isInText { fixed.append(byte) }
      rest.removeFirst()
    }
    pieces.append(.text(fixed))
    let sample = pieces.reduce(into: [UInt8]()) { bytes, piece in
      switch piece {
      case .text(let text): bytes += text
      case .column: bytes += [0x30]
      }
    }
    guard let value = try? JSONValue(parsing: sample), value.members != nil else {
      throw UsageFault(message: "The template is no JSON object, with numbers in place of its columns.")
    }
  }

  /// Where `}}` begins; nil when the braces are none of a place.
  private static func end(of rest: ArraySlice<UInt8>) -> Int? {
    var at = rest.startIndex + 2
    while at + 1 < rest.endIndex {
      if rest[at] == 0x7D, rest[at + 1] == 0x7D { return at }
      // A place is a name: an object inside an object has a quote or a brace first.
      if rest[at] == 0x22 || rest[at] == 0x7B || rest[at] == 0x0A { return nil }
      at += 1
    }
    return nil
  }

  /// The message of a record.
  func fill(_ record: [String]) -> Result<[UInt8], UsageFault> {
    var bytes: [UInt8] = []
    for piece in pieces {
      switch piece {
      case .text(let text): bytes += text
      case .column(let column, true):
        // Without the quotes around it: those are the template's.
        bytes += JSONValue.string(record[column]).bytes.dropFirst().dropLast()
      case .column(let column, false):
        switch try? JSONValue(parsing: Array(record[column].utf8)) {
        case .number?, .bool?, .null?: bytes += Array(record[column].utf8)
        default:
          return .failure(
            UsageFault(
              message:
                "column \(columns[column]): \"\(record[column].prefix(40))\" is no number, true, false or null"
            ))
        }
      }
    }
    return .success(bytes)
  }
}
