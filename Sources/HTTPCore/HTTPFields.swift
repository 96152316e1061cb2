/// The header fields of one message, in the order they came; names are kept in lower case.
///
/// All names and values lie in one run of bytes, so a head costs two allocations whatever its number of fields;
/// texts are made when they are asked for.
package struct HTTPFields: Sendable, Equatable, ExpressibleByDictionaryLiteral {
  package struct Field: Sendable, Equatable {
    package var name: String
    package var value: String
  }

  private struct Place: Sendable, Equatable {
    var start: Int
    var nameCount: Int
    var valueCount: Int

    var name: Range<Int> { start..<(start + nameCount) }
    var value: Range<Int> { (start + nameCount)..<(start + nameCount + valueCount) }
  }

  private var bytes: [UInt8] = []
  private var places: [Place] = []

  package init() {}

  package init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { append(name, value) }
  }

  package mutating func append(_ name: String, _ value: String) {
    var (name, value) = (name, value)
    name.withUTF8 { name in
      value.withUTF8 { append(name: UnsafeRawBufferPointer(name), value: UnsafeRawBufferPointer($0)) }
    }
  }

  /// Appends a field as it came; blanks around the value are left out (RFC 9110 §5.5).
  package mutating func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
    let start = bytes.count
    if bytes.capacity == 0 { bytes.reserveCapacity(512) }
    for byte in name { bytes.append(byte | ((65...90).contains(byte) ? 0x20 : 0)) }
    var trimmed = value[...]
    while let byte = trimmed.first, byte == 0x20 || byte == 0x09 { trimmed.removeFirst() }
    while let byte = trimmed.last, byte == 0x20 || byte == 0x09 { trimmed.removeLast() }
    bytes.append(contentsOf: trimmed)
    if places.capacity == 0 { places.reserveCapacity(12) }
    places.append(Place(start: start, nameCount: name.count, valueCount: trimmed.count))
  }

  package mutating func append(name: StaticString, value: [UInt8]) {
    value.withUnsafeBytes { value in
      name.withUTF8Buffer { append(name: UnsafeRawBufferPointer($0), value: value) }
    }
  }

  /// Drops all fields of that name.
  package mutating func removeAll(_ name: StaticString) {
    guard has(name) else { return }
    var rest = HTTPFields()
    forEach { other, value in
      if !Self.areEqual(other, name) { rest.append(name: other, value: value) }
    }
    self = rest
  }

  // MARK: Reading as bytes

  package var count: Int { places.count }
  package var isEmpty: Bool { places.isEmpty }

  /// Names and values, in order; good during the call.
  package func forEach(_ body: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void) {
    bytes.withUnsafeBytes { bytes in
      for place in places {
        body(
          UnsafeRawBufferPointer(rebasing: bytes[place.name]),
          UnsafeRawBufferPointer(rebasing: bytes[place.value]))
      }
    }
  }

  /// Whether there is a field of that name, written in lower case.
  package func has(_ name: StaticString) -> Bool { index(name, from: 0) != nil }

  /// How many field lines have that name, written in lower case.
  package func count(of name: StaticString) -> Int {
    var count = 0
    var from = 0
    while let found = index(name, from: from) {
      count += 1
      from = found + 1
    }
    return count
  }

  /// Lends the bytes of the first value of that name, written in lower case; nil if there is none.
  package func withValue<Result>(
    _ name: StaticString, _ body: (UnsafeRawBufferPointer) -> Result
  ) -> Result? {
    guard let found = index(name, from: 0) else { return nil }
    return bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[places[found].value])) }
  }

  private func index(_ name: StaticString, from: Int) -> Int? {
    let count = name.utf8CodeUnitCount
    var index = from
    while index < places.count {
      if places[index].nameCount == count {
        let isFound = bytes.withUnsafeBytes {
          Self.areEqual(UnsafeRawBufferPointer(rebasing: $0[places[index].name]), name)
        }
        if isFound { return index }
      }
      index += 1
    }
    return nil
  }

  static func areEqual(_ bytes: UnsafeRawBufferPointer, _ text: StaticString) -> Bool {
    text.withUTF8Buffer { $0.count == bytes.count && bytes.elementsEqual($0) }
  }

  /// The same without control characters: a value from elsewhere cannot begin a new line.
  var safe: HTTPFields {
    guard bytes.contains(where: Self.isControl) else { return self }
    var copy = self
    for index in copy.bytes.indices where Self.isControl(copy.bytes[index]) { copy.bytes[index] = 0x20 }
    return copy
  }

  private static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x7F }

  // MARK: Reading as text

  package var all: [Field] { places.map { Field(name: text($0.name), value: text($0.value)) } }

  /// The value of the first field of that name, in any case.
  package subscript(_ name: String) -> String? {
    places.first { isNamed($0, name) }.map { text($0.value) }
  }

  /// All values of that name, one a field line.
  package func values(_ name: String) -> [String] {
    places.lazy.filter { isNamed($0, name) }.map { text($0.value) }
  }

  /// Whether a comma-separated field holds `token`, compared without case: `Connection`, `Upgrade`.
  package func list(_ name: String, holds token: String) -> Bool {
    values(name).contains { value in
      value.split(separator: ",").contains { part in
        part.lowercased().trimmed() == token
      }
    }
  }

  private func isNamed(_ place: Place, _ name: String) -> Bool {
    guard name.utf8.count == place.nameCount else { return false }
    return bytes[place.name].elementsEqual(name.utf8.lazy.map { $0 | ((65...90).contains($0) ? 0x20 : 0) })
  }

  private func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }
}

extension String {
  /// Without blanks and tabs at both ends (OWS of RFC 9110 §5.6.3).
  func trimmed() -> String {
    let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
    guard let first = utf8.firstIndex(where: { !isBlank($0) }),
      let last = utf8.lastIndex(where: { !isBlank($0) })
    else { return "" }
    return String(self[first...last])
  }
}
