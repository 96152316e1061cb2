import Bytes
import Glibc
import JSONCore
package import PushModel
package import Seams

/// What the body of an HTTP v1 send comes to.
package enum V1Reading: Sendable {
  case send(V1Send)
  case fault(V1Fault)
}

/// A valid HTTP v1 send in the form that the server's messages have.
package struct V1Send: Sendable {
  /// Its places point into `text`.
  package var draft: DownstreamDraft
  package var text: [UInt8]
  /// Set when the target is an installation id: the token has to be found first.
  package var installation: String?

  /// Puts an id where the draft finds it.
  ///
  /// - Parameter id: What repeats are known by, and the last part of the message's name.
  package mutating func setMessageID(_ id: String) {
    let start = text.count
    var writer = ByteWriter(capacity: id.utf8.count)
    writer.append(jsonEscaped: id)
    text.append(contentsOf: writer.bytes)
    draft.setMessageID(JSONString(start: start, end: text.count, decodedCount: id.utf8.count))
  }

  /// Names the registration that the installation id stands for.
  package mutating func setToken(_ token: String) {
    let start = text.count
    text.append(contentsOf: token.utf8)
    let place = JSONString(start: start, end: text.count, decodedCount: text.count - start)
    draft.setTarget(.token(place), from: place)
    installation = nil
  }
}

/// Reads bodies of `messages:send`: every field by both of its names, all faults of names and types together, then
/// FCM's own rules one after the other.
///
/// Kept and used again. Choices where the reference is silent: `null` counts as left out; a field that stands
/// twice is refused; an object without members counts as left out.
package struct V1Reader: Sendable {
  let limits: Limits
  var document: JSONDocument
  /// The member of each ``V1Key``, or -1.
  var found: [Int]
  private var violations: [V1Fault.Violation] = []
  private var hasWrongType = false
  /// More faults of one request are not told.
  private let violationsMax = 50

  package init(limits: Limits) {
    self.limits = limits
    document = JSONDocument(depthMax: max(8, min(limits.jsonDepthMax, 64)), recordedDepth: 7)
    found = Array(repeating: -1, count: V1Key.allCases.count)
  }

  /// Reads one body; the message has no id yet.
  ///
  /// - Parameter wall: For `apns-expiration`, which is a point in time.
  package mutating func read(_ text: UnsafeRawBufferPointer, wall: WallTime) -> V1Reading {
    do throws(JSONFault) {
      try document.read(text)
    } catch {
      let message = "Invalid JSON payload received. \(error)"
      return .fault(
        V1Fault(400, "INVALID_ARGUMENT", message, [.badRequest([.init(nil, message)])]))
    }
    for index in found.indices { found[index] = -1 }
    violations = []
    hasWrongType = false
    guard document.kind == .object else {
      let message = "Invalid JSON payload received. The body must be an object."
      return .fault(V1Fault(400, "INVALID_ARGUMENT", message, [.badRequest([.init(nil, message)])]))
    }
    walk(.request, 0..<document.members.count, in: text)
    guard violations.isEmpty else { return .fault(violationFault()) }
    do throws(V1Fault) {
      var mapping = V1Mapping(self, text, wall: wall)
      return .send(try mapping.send())
    } catch {
      return .fault(error)
    }
  }

  /// The field's member, unless it is left out or null.
  func member(_ key: V1Key) -> JSONMember? {
    let index = found[Int(key.rawValue)]
    return index < 0 ? nil : document.members[index]
  }

  func string(_ key: V1Key) -> JSONString? { member(key)?.string }

  func children(_ key: V1Key) -> Range<Int> {
    let index = found[Int(key.rawValue)]
    return index < 0 ? 0..<0 : document.children(of: index)
  }

  /// The field is there and has at least one member.
  func hasMembers(_ key: V1Key) -> Bool { !children(key).isEmpty }

  // MARK: Names and types

  private func violationFault() -> V1Fault {
    var details: [V1Fault.Detail] = [.badRequest(violations)]
    // Unknown names alone were captured without FCM's own code.
    if hasWrongType { details.append(.fcm("INVALID_ARGUMENT")) }
    let message = violations.map(\.description).joined(separator: "\n")
    return V1Fault(400, "INVALID_ARGUMENT", message, details)
  }

  private mutating func report(_ path: String, _ description: String) {
    guard violations.count < violationsMax else { return }
    violations.append(.init(path.isEmpty ? nil : path, description))
  }

  private mutating func reportType(
    _ path: String, _ type: String, _ member: JSONMember, in text: UnsafeRawBufferPointer
  ) {
    hasWrongType = true
    let shown = Echo.bounded(member.value.raw(in: text), limits.echoCharactersMax)
    report(path, "Invalid value at '\(path)' (\(type)), \(shown)")
  }

  /// The recursion is as deep as the schema.
  private mutating func walk(_ object: V1Object, _ children: Range<Int>, in text: UnsafeRawBufferPointer) {
    let fields = V1Schema.fields(of: object)
    var index = children.lowerBound
    while index < children.upperBound {
      let member = document.members[index]
      if let field = Self.find(member.name, among: fields, in: text) {
        let at = Int(field.key.rawValue)
        if found[at] >= 0 {
          let place = object.path.isEmpty ? "" : " at '\(object.path)'"
          report(
            object.path, "Invalid JSON payload received. Name \"\(field.name)\"\(place): Field is set twice.")
        } else if member.kind != .null {
          found[at] = index
          check(field, member, index, object, in: text)
        }
      } else {
        let name = member.name.lend(in: text) { Echo.bounded($0, limits.echoCharactersMax) }
        let place = object.path.isEmpty ? "" : " at '\(object.path)'"
        report(
          object.path,
          "Invalid JSON payload received. Unknown name \"\(name)\"\(place): Cannot find field.")
      }
      index = member.next
    }
  }

  private static func find(
    _ name: JSONString, among fields: [V1Field], in text: UnsafeRawBufferPointer
  ) -> V1Field? {
    name.lend(in: text) { name in
      guard let base = name.baseAddress else { return nil }
      for field in fields {
        for candidate in [field.name, field.camelName]
        where candidate.utf8CodeUnitCount == name.count && memcmp(base, candidate.utf8Start, name.count) == 0
        {
          return field
        }
      }
      return nil
    }
  }

  private mutating func check(
    _ field: V1Field, _ member: JSONMember, _ index: Int, _ object: V1Object,
    in text: UnsafeRawBufferPointer
  ) {
    let type: String
    switch field.kind {
    case .string:
      if member.kind == .string { return }
      type = "TYPE_STRING"
    case .bool:
      if member.kind.isBoolean { return }
      type = "TYPE_BOOL"
    case .integer:
      if Self.isInteger(member, in: text) { return }
      type = "TYPE_INT32"
    case .float:
      if member.kind == .number { return }
      type = "TYPE_FLOAT"
    case .duration:
      if let place = member.string, place.lend(in: text, { DurationText($0) != nil }) { return }
      type = "type.googleapis.com/google.protobuf.Duration"
    case .timestamp:
      if let place = member.string, place.lend(in: text, { TimestampText.isWellFormed($0) }) { return }
      type = "type.googleapis.com/google.protobuf.Timestamp"
    case .stringMap:
      if member.kind == .object { return checkMap(field, index, object, in: text) }
      type = "TYPE_MESSAGE"
    case .anyObject:
      if member.kind == .object { return }
      type = "type.googleapis.com/google.protobuf.Struct"
    case .strings, .durations:
      if member.kind == .array { return checkList(field, member, object, in: text) }
      type = "TYPE_MESSAGE"
    case .object(let inner):
      if member.kind == .object { return walk(inner, document.children(of: index), in: text) }
      type = "type.googleapis.com/\(inner.typeName)"
    case .enumeration(let enumeration):
      if Self.value(of: member, in: enumeration, text) != nil { return }
      type = "type.googleapis.com/\(enumeration.typeName)"
    }
    reportType(Self.path(object, field), type, member, in: text)
  }

  private static func path(_ object: V1Object, _ field: V1Field) -> String {
    object.path.isEmpty ? "\(field.name)" : "\(object.path).\(field.name)"
  }

  private mutating func checkMap(
    _ field: V1Field, _ index: Int, _ object: V1Object, in text: UnsafeRawBufferPointer
  ) {
    let children = document.children(of: index)
    var at = children.lowerBound
    var entry = 0
    while at < children.upperBound {
      let member = document.members[at]
      if member.kind != .string {
        reportType("\(Self.path(object, field))[\(entry)].value", "TYPE_STRING", member, in: text)
      }
      entry += 1
      at = member.next
    }
  }

  private mutating func checkList(
    _ field: V1Field, _ member: JSONMember, _ object: V1Object, in text: UnsafeRawBufferPointer
  ) {
    // It was validated with the whole text.
    let elements = (try? JSONValue(parsing: member.value.raw(in: text)))?.array ?? []
    for (index, element) in elements.enumerated() {
      let isFine: Bool
      let type: String
      if case .durations = field.kind {
        var copy = element.string ?? ""
        isFine = element.string != nil && copy.withUTF8 { DurationText(UnsafeRawBufferPointer($0)) != nil }
        type = "type.googleapis.com/google.protobuf.Duration"
      } else {
        isFine = element.string != nil
        type = "TYPE_STRING"
      }
      if !isFine {
        let path = "\(Self.path(object, field))[\(index)]"
        hasWrongType = true
        var shown = element.text
        shown = shown.withUTF8 { Echo.bounded(UnsafeRawBufferPointer($0), limits.echoCharactersMax) }
        report(path, "Invalid value at '\(path)' (\(type)), \(shown)")
      }
    }
  }

  /// Of 32 bits, as a number or, as proto3 JSON allows, as a string.
  private static func isInteger(_ member: JSONMember, in text: UnsafeRawBufferPointer) -> Bool {
    let value: Int64?
    switch member.kind {
    case .number: value = JSONNumber.integer(member.value.raw(in: text))
    case .string: value = member.string.flatMap { $0.lend(in: text) { JSONNumber.integer($0) } }
    default: value = nil
    }
    return value.flatMap { Int32(exactly: $0) } != nil
  }

  /// The number of an enumeration's value.
  static func value(
    of member: JSONMember, in enumeration: V1Enumeration, _ text: UnsafeRawBufferPointer
  ) -> Int? {
    switch member.kind {
    case .number:
      guard let number = JSONNumber.integer(member.value.raw(in: text)), let index = Int(exactly: number),
        enumeration.values.indices.contains(index)
      else { return nil }
      return index
    case .string:
      guard let name = member.string?.string(in: text) else { return nil }
      return enumeration.values.firstIndex {
        let value = "\($0)"
        return value == name || (enumeration.ignoresCase && value == name.uppercased())
      }
    default:
      return nil
    }
  }
}
