import Bytes
import PushModel
import Stores

/// Object ids of PostgreSQL's own types, fixed for ever.
enum TypeID: UInt32 {
  case bool = 16
  case bytea = 17
  case int8 = 20
  case int2 = 21
  case int4 = 23
  case text = 25
  case uuid = 2950
}

/// The parameters of one statement in binary form, back to back in one buffer.
struct Parameters {
  private var bytes: [UInt8] = []
  private var places: [(start: Int, count: Int32)] = []

  init() {}

  init(capacity: Int) { bytes.reserveCapacity(capacity) }

  private mutating func value(_ fill: (inout Parameters) -> Void) {
    let start = bytes.count
    fill(&self)
    places.append((start, Int32(truncatingIfNeeded: bytes.count - start)))
  }

  mutating func null() { places.append((bytes.count, -1)) }
  mutating func int(_ number: Int64) { value { $0.raw(number) } }
  mutating func int(_ number: Int64?) { if let number { int(number) } else { null() } }
  mutating func int4(_ number: Int) { value { $0.raw(Int32(clamping: number)) } }
  mutating func bool(_ flag: Bool) { value { $0.bytes.append(flag ? 1 : 0) } }
  mutating func blob(_ blob: [UInt8]) { value { $0.bytes += blob } }
  mutating func blob(_ text: String?) { if let text { blob(Array(text.utf8)) } else { null() } }
  mutating func key(_ key: MessageKey) { value { $0.raw(key) } }

  /// Text without U+0000, which PostgreSQL cannot keep: one that has it is sent as something no row has.
  mutating func text(_ text: String) { value { $0.raw(text) } }
  mutating func text(_ text: String?) { if let text { self.text(text) } else { null() } }

  private mutating func raw<Number: FixedWidthInteger>(_ number: Number) {
    withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
  }

  private mutating func raw(_ key: MessageKey) {
    raw(key.hash.high)
    raw(key.hash.low)
  }

  private mutating func raw(_ text: String) {
    if text.utf8.contains(0) { bytes += Array("\u{FFFD}".utf8) } else { bytes.append(contentsOf: text.utf8) }
  }

  // MARK: Arrays

  private mutating func array<Rows: Collection>(
    _ rows: Rows, _ type: TypeID, _ element: (inout Parameters, Rows.Element) -> Bool
  ) {
    value { into in
      into.raw(Int32(rows.isEmpty ? 0 : 1))
      // "May hold nulls" costs nothing and is always right.
      into.raw(Int32(1))
      into.raw(type.rawValue)
      guard !rows.isEmpty else { return }
      into.raw(Int32(truncatingIfNeeded: rows.count))
      into.raw(Int32(1))
      for row in rows {
        let place = into.bytes.count
        into.raw(Int32(-1))
        guard element(&into, row) else { continue }
        let count = Int32(truncatingIfNeeded: into.bytes.count - place - 4).bigEndian
        withUnsafeBytes(of: count) { source in
          for (offset, byte) in source.enumerated() { into.bytes[place + offset] = byte }
        }
      }
    }
  }

  mutating func ints<Rows: Collection>(_ rows: Rows, _ number: (Rows.Element) -> Int64?) {
    array(rows, .int8) { into, row in
      guard let number = number(row) else { return false }
      into.raw(number)
      return true
    }
  }

  mutating func bools<Rows: Collection>(_ rows: Rows, _ flag: (Rows.Element) -> Bool) {
    array(rows, .bool) { into, row in
      into.bytes.append(flag(row) ? 1 : 0)
      return true
    }
  }

  mutating func texts<Rows: Collection>(_ rows: Rows, _ text: (Rows.Element) -> String) {
    array(rows, .text) { into, row in
      into.raw(text(row))
      return true
    }
  }

  mutating func keys<Rows: Collection>(_ rows: Rows, _ key: (Rows.Element) -> MessageKey) {
    array(rows, .uuid) { into, row in
      into.raw(key(row))
      return true
    }
  }

  mutating func blobs<Rows: Collection>(_ rows: Rows, _ blob: (Rows.Element) -> [UInt8]) {
    array(rows, .bytea) { into, row in
      into.bytes += blob(row)
      return true
    }
  }

  mutating func blobs<Rows: Collection>(_ rows: Rows, text: (Rows.Element) -> String?) {
    array(rows, .bytea) { into, row in
      guard let text = text(row) else { return false }
      into.bytes.append(contentsOf: text.utf8)
      return true
    }
  }

  mutating func optionalBlobs<Rows: Collection>(_ rows: Rows, _ blob: (Rows.Element) -> [UInt8]?) {
    bytes(rows, .bytea, blob)
  }

  mutating func optionalTexts<Rows: Collection>(_ rows: Rows, _ text: (Rows.Element) -> [UInt8]?) {
    bytes(rows, .text, text)
  }

  mutating func keyBytes<Rows: Collection>(_ rows: Rows, _ key: (Rows.Element) -> [UInt8]) {
    bytes(rows, .uuid, key)
  }

  private mutating func bytes<Rows: Collection>(
    _ rows: Rows, _ type: TypeID, _ value: (Rows.Element) -> [UInt8]?
  ) {
    array(rows, type) { into, row in
      guard let value = value(row) else { return false }
      into.bytes += value
      return true
    }
  }

  // MARK: Handing over

  /// Calls `body` with the pointers that libpq takes; they hold while it runs.
  func withPointers<Value>(
    _ body: (Int32, UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?) ->
      Value
  ) -> Value {
    let counts = places.map { max(0, $0.count) }
    let formats = [Int32](repeating: 1, count: places.count)
    // An empty buffer has no address, and a null pointer would be NULL.
    return (bytes + [0]).withUnsafeBytes { buffer in
      let start = buffer.baseAddress?.assumingMemoryBound(to: CChar.self)
      let values = places.map { place -> UnsafePointer<CChar>? in
        place.count < 0 ? nil : start.map { $0 + place.start }
      }
      return values.withUnsafeBufferPointer { values in
        counts.withUnsafeBufferPointer { counts in
          formats.withUnsafeBufferPointer { formats in
            body(Int32(places.count), values.baseAddress, counts.baseAddress, formats.baseAddress)
          }
        }
      }
    }
  }
}
