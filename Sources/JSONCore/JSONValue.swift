/// A JSON value as a tree, for configuration, administration and tests; messages on their way use
/// ``JSONDocument``.
///
/// Numbers are kept as their text, so reading and writing loses no digit. Members keep their order; a name
/// may stand twice, looking it up finds the last.
package enum JSONValue: Hashable, Sendable {
  package struct Member: Hashable, Sendable {
    package var name: String
    package var value: JSONValue

    package init(_ name: String, _ value: JSONValue) {
      self.name = name
      self.value = value
    }
  }

  case null
  case bool(Bool)
  /// The number's text, in the grammar of RFC 8259 section 6.
  case number(String)
  case string(String)
  case array([JSONValue])
  case object([Member])

  /// The last member of that name of an object.
  package subscript(name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members.last { $0.name == name }?.value
  }

  /// The element of an array, or nil when there is none.
  package subscript(index: Int) -> JSONValue? {
    guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
    return elements[index]
  }

  package var string: String? {
    guard case .string(let value) = self else { return nil }
    return value
  }

  package var bool: Bool? {
    guard case .bool(let value) = self else { return nil }
    return value
  }

  /// The number when it is an integer of 64 bits, written without fraction and exponent.
  package var int: Int64? {
    guard case .number(let text) = self else { return nil }
    return Int64(text)
  }

  /// The number rounded to a double; nil when it is none.
  package var double: Double? {
    guard case .number(let text) = self else { return nil }
    return Double(text)
  }

  package var array: [JSONValue]? {
    guard case .array(let elements) = self else { return nil }
    return elements
  }

  package var members: [Member]? {
    guard case .object(let members) = self else { return nil }
    return members
  }

  package var isNull: Bool { self == .null }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
  package init(stringLiteral value: String) { self = .string(value) }
  package init(integerLiteral value: Int64) { self = .number(String(value)) }
  package init(booleanLiteral value: Bool) { self = .bool(value) }
  package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  package init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .object(elements.map { Member($0.0, $0.1) })
  }
  package init(nilLiteral: ()) { self = .null }
}

extension JSONValue {
  package static func number(_ value: Int64) -> JSONValue { .number(String(value)) }
  package static func number(_ value: Int) -> JSONValue { .number(String(value)) }
}
