/// The header fields of one message, in the order they came; names are kept in lower case.
package struct HTTPFields: Sendable, Equatable, ExpressibleByDictionaryLiteral {
  package struct Field: Sendable, Equatable {
    package var name: String
    package var value: String
  }

  package private(set) var all: [Field] = []

  package init() {}
  package init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { append(name, value) }
  }

  package mutating func append(_ name: String, _ value: String) {
    all.append(Field(name: name.lowercased(), value: value))
  }

  /// The value of the first field of that name, in any case.
  package subscript(_ name: String) -> String? {
    let wanted = name.lowercased()
    return all.first { $0.name == wanted }?.value
  }

  /// All values of that name, one a field line.
  package func values(_ name: String) -> [String] {
    let wanted = name.lowercased()
    return all.lazy.filter { $0.name == wanted }.map(\.value)
  }

  /// Whether a comma-separated field holds `token`, compared without case: `Connection`, `Upgrade`.
  package func list(_ name: String, holds token: String) -> Bool {
    values(name).contains { value in
      value.split(separator: ",").contains { part in
        part.lowercased().trimmed() == token
      }
    }
  }
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
