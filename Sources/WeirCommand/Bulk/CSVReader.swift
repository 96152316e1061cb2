import Foundation

/// Reads a CSV file record by record: commas, quotes, line breaks inside quotes (RFC 4180), with or without CR.
struct CSVReader {
  /// Bytes of one record at most.
  static let recordBytesMax = 1 << 20

  private var lines: LineReader
  /// Names of the columns, from the first record.
  let columns: [String]

  init(_ lines: LineReader, path: String) throws(UsageFault) {
    self.lines = lines
    let head: [String]?
    switch Self.record(&self.lines) {
    case .success(let fields)?: head = fields
    case .failure(let fault)?: throw UsageFault(message: "\(path): \(fault.message)")
    case nil: head = nil
    }
    guard var columns = head else {
      throw UsageFault(message: "\(path) is empty: its first line names the columns.")
    }
    // A byte order mark, as spreadsheets write it.
    if let first = columns.first, first.hasPrefix("\u{FEFF}") { columns[0] = String(first.dropFirst()) }
    columns = columns.map { $0.trimmingCharacters(in: .whitespaces) }
    guard Set(columns).count == columns.count else {
      throw UsageFault(message: "\(path): two columns have the same name.")
    }
    self.columns = columns
  }

  var bytesUsed: Int { lines.bytesUsed }

  /// The next record; nil at the end.
  mutating func next() -> Result<[String], UsageFault>? {
    while true {
      switch Self.record(&lines) {
      case .success(let fields)?:
        if fields == [""] { return .success([]) }
        guard fields.count == columns.count else {
          return .failure(
            UsageFault(message: "\(fields.count) fields, but the first line names \(columns.count) columns"))
        }
        return .success(fields)
      case .failure(let fault)?: return .failure(fault)
      case nil: return nil
      }
    }
  }

  private static func record(_ lines: inout LineReader) -> Result<[String], UsageFault>? {
    guard var text = lines.next() else { return nil }
    while true {
      if let fields = fields(of: text[...]) {
        return .success(fields.map { String(decoding: $0, as: UTF8.self) })
      }
      // An open quote: the record goes on in the next line.
      guard let more = lines.next() else {
        return .failure(UsageFault(message: "a quote is not closed"))
      }
      text.append(0x0A)
      text.append(contentsOf: more)
      guard text.count <= recordBytesMax else {
        return .failure(UsageFault(message: "a quote is not closed within \(recordBytesMax) bytes"))
      }
    }
  }

  /// The fields of one record; nil when a quote is open at its end.
  static func fields(of text: ArraySlice<UInt8>) -> [[UInt8]]? {
    var fields: [[UInt8]] = []
    var field: [UInt8] = []
    var isQuoted = false
    var rest = text
    if rest.last == 0x0D { rest.removeLast() }
    while let byte = rest.popFirst() {
      if isQuoted {
        if byte != 0x22 {
          field.append(byte)
        } else if rest.first == 0x22 {
          rest.removeFirst()
          field.append(0x22)
        } else {
          isQuoted = false
        }
      } else if byte == 0x22, field.isEmpty {
        isQuoted = true
      } else if byte == 0x2C {
        fields.append(field)
        field = []
      } else {
        field.append(byte)
      }
    }
    guard !isQuoted else { return nil }
    fields.append(field)
    return fields
  }
}
