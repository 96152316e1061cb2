import Bytes
import CPQ
import PushModel
import Stores

/// The answer to one statement: rows in binary form.
final class Rows {
  private let pointer: OpaquePointer
  let count: Int

  /// Takes the result over.
  init(_ pointer: OpaquePointer) {
    self.pointer = pointer
    count = Int(PQntuples(pointer))
  }

  deinit { PQclear(pointer) }

  /// Rows that a statement without rows changed.
  var changed: Int {
    guard let text = PQcmdTuples(pointer) else { return 0 }
    return Int(String(cString: text)) ?? 0
  }

  func isNull(_ row: Int, _ column: Int32) -> Bool { PQgetisnull(pointer, Int32(row), column) != 0 }

  private func field(_ row: Int, _ column: Int32) -> UnsafeRawBufferPointer {
    guard let start = PQgetvalue(pointer, Int32(row), column) else { return .init(start: nil, count: 0) }
    return UnsafeRawBufferPointer(start: start, count: Int(PQgetlength(pointer, Int32(row), column)))
  }

  /// A number of 1, 2, 4 or 8 bytes; 0 for NULL.
  func int(_ row: Int, _ column: Int32) -> Int64 {
    let field = field(row, column)
    guard let first = field.first, field.count <= 8 else { return 0 }
    var value: Int64 = first & 0x80 == 0 || field.count == 1 ? 0 : -1
    for byte in field { value = value << 8 | Int64(byte) }
    return value
  }

  func optionalInt(_ row: Int, _ column: Int32) -> Int64? { isNull(row, column) ? nil : int(row, column) }
  func bool(_ row: Int, _ column: Int32) -> Bool { int(row, column) != 0 }
  func text(_ row: Int, _ column: Int32) -> String { String(decoding: field(row, column), as: UTF8.self) }

  func optionalText(_ row: Int, _ column: Int32) -> String? {
    isNull(row, column) ? nil : text(row, column)
  }

  func blob(_ row: Int, _ column: Int32) -> [UInt8] { [UInt8](field(row, column)) }

  func withBlob<Value>(_ row: Int, _ column: Int32, _ body: (UnsafeRawBufferPointer) -> Value) -> Value {
    body(field(row, column))
  }

  /// - Parameter table: Named in the failure.
  func key(_ row: Int, _ column: Int32, table: StaticString) throws(PostgresFailure) -> MessageKey {
    let field = field(row, column)
    guard field.count == 16 else { throw .corrupt("table \(table): a key that is not 16 bytes") }
    return MessageKey(
      Hash128(
        high: UInt64(bigEndian: field.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
        low: UInt64(bigEndian: field.loadUnaligned(fromByteOffset: 8, as: UInt64.self))))
  }
}
