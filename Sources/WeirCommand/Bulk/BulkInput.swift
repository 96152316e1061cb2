/// Where the messages of a bulk job come from, one record after the other.
struct BulkInput: Sendable {
  private enum Form {
    case lines(LineReader)
    case table(CSVReader, BulkTemplate)
  }

  private var form: Form

  /// - Parameters:
  ///   - path: A file, or `-` for standard input.
  ///   - template: The text of a template; the file is CSV then.
  init(path: String, template: String?) throws {
    let lines = try LineReader(path: path)
    if let template {
      let table = try CSVReader(lines, path: path)
      form = .table(table, try BulkTemplate(template, columns: table.columns))
    } else {
      form = .lines(lines)
    }
  }

  /// Bytes of the input that were used.
  var bytesRead: Int {
    switch form {
    case .lines(let lines): lines.bytesUsed
    case .table(let table, _): table.bytesUsed
    }
  }

  /// The next message as JSON; empty for an empty line, nil at the end.
  mutating func next() -> Result<[UInt8], UsageFault>? {
    switch form {
    case .lines(var lines):
      defer { form = .lines(lines) }
      return lines.next().map { .success($0) }
    case .table(var table, let template):
      defer { form = .table(table, template) }
      return table.next().map { record in record.flatMap { $0.isEmpty ? .success([]) : template.fill($0) } }
    }
  }
}
