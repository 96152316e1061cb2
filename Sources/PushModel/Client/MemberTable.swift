import JSONCore

/// The members of a small object by name, for readers on the client's side.
///
/// The last member of a name counts.
struct MemberTable {
  private let document: JSONDocument
  private let text: UnsafeRawBufferPointer

  /// - Throws: When `text` is no JSON object.
  init(_ text: UnsafeRawBufferPointer, with document: inout JSONDocument) throws(JSONFault) {
    try document.read(text)
    guard document.kind == .object else { throw JSONFault(.wrongKind, at: 0) }
    self.document = document
    self.text = text
  }

  private func index(_ name: StaticString) -> Int? {
    var found: Int?
    var index = 0
    while index < document.members.count {
      if document.members[index].name.equals(name, in: text) { found = index }
      index = document.members[index].next
    }
    return found
  }

  /// A string, or what a scalar's text is; nil for anything else.
  func string(_ name: StaticString) -> String? {
    guard let index = index(name) else { return nil }
    return Self.string(document.members[index], in: text)
  }

  func integer(_ name: StaticString) -> Int64? {
    guard let index = index(name) else { return nil }
    let member = document.members[index]
    return JSONNumber.integer(member.string?.raw(in: text) ?? member.value.raw(in: text))
  }

  func flag(_ name: StaticString) -> Bool {
    guard let index = index(name) else { return false }
    return document.members[index].kind == .true
  }

  /// An object's members as strings; values of other kinds as their text, `null` left out.
  func strings(_ name: StaticString) -> [String: String] {
    guard let index = index(name) else { return [:] }
    var strings: [String: String] = [:]
    let children = document.children(of: index)
    var child = children.lowerBound
    while child < children.upperBound {
      let member = document.members[child]
      if let value = Self.string(member, in: text) { strings[member.name.string(in: text)] = value }
      child = member.next
    }
    return strings
  }

  func value(_ name: StaticString) -> JSONValue? {
    guard let index = index(name) else { return nil }
    return try? JSONValue(parsing: document.members[index].value.raw(in: text))
  }

  private static func string(_ member: JSONMember, in text: UnsafeRawBufferPointer) -> String? {
    switch member.kind {
    case .string: member.string?.string(in: text)
    case .null: nil
    default: String(decoding: member.value.raw(in: text), as: UTF8.self)
    }
  }
}
